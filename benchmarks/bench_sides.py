"""What `bench.py` measures, each in a process of its own: our presets, peers, the machine, the worlds alone."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from typing import Any

import eipo  # isort: skip  # before torch, as in `eipo train`: it says how torch's threads wait; the peers have it, too
import ale_py
import gymnasium as gym
import numpy as np
import torch
from torch import nn

from eipo import compute
from eipo.envs.make import make_batch
from eipo.training import Training

gym.register_envs(ale_py)  # for the peers: ours find it by themselves
ATARI, CHEETAH = "ALE/Breakout-v5", "HalfCheetah-v5"
PEER_GAMES = 32


def ours(env: str, preset: str, method: str, seconds: float, **settings: Any) -> dict[str, float]:
    """Steps a second over whole iterations, as many max stages as min stages; the first iteration is thrown away."""
    stages = {"method.switch": "alternate"} if method == "eipo" else {}
    config = eipo.make_config(env, preset=preset, method=method, steps=10**9, settings={**stages, **settings})
    training = Training(config)
    training.iterate()
    steps, shares, began = 0, [], time.perf_counter()
    while time.perf_counter() - began < seconds or (stages and len(shares) % 2):
        _, metrics = training.iterate()
        steps += config.steps_per_iteration
        shares.append(metrics["acting_share"])
    took = time.perf_counter() - began
    training.close()
    return {"steps_per_second": steps / took, "acting_share": float(np.mean(shares))}


class PaperNet(nn.Module):
    """The paper's convolutions and dense layer, for Stable-Baselines3."""

    def __init__(self, observation_space: gym.Space, features_dim: int = 512) -> None:
        super().__init__()
        shape = observation_space.shape
        assert shape is not None
        self.features_dim = features_dim
        convs = [nn.Conv2d(shape[0], 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(), nn.Flatten()]
        self.layers = nn.Sequential(*convs, nn.Linear(3200, features_dim), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(x)
        return features


def learned(model: Any, steps: int, seconds: float) -> dict[str, float]:
    """Steps a second of a peer over whole iterations of `steps`; the first is thrown away."""
    model.learn(steps)
    done, began = 0, time.perf_counter()
    while not done or time.perf_counter() - began < seconds:
        model.learn(steps, reset_num_timesteps=False)
        done += steps
    return {"steps_per_second": done / (time.perf_counter() - began)}


def sb3_recurrent(seconds: float) -> dict[str, float]:
    """sb3-contrib's RecurrentPPO with the paper's network: one frame, conv + LSTM 512, shared by actor and critic."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_atari_env

    envs = make_atari_env(ATARI, n_envs=PEER_GAMES, seed=0)
    policy = {
        "features_extractor_class": PaperNet, "lstm_hidden_size": 512, "shared_lstm": True,
        "enable_critic_lstm": False, "net_arch": [],
    }  # fmt: skip
    model = RecurrentPPO(
        "CnnLstmPolicy", envs, n_steps=128, n_epochs=4, batch_size=PEER_GAMES * 128 // 4, policy_kwargs=policy,
        device="cpu",
    )  # fmt: skip
    return learned(model, PEER_GAMES * 128, seconds)


def sb3_ppo(seconds: float) -> dict[str, float]:
    """Stable-Baselines3's PPO: four frames, the Nature DQN's network."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    envs = VecFrameStack(make_atari_env(ATARI, n_envs=PEER_GAMES, seed=0), 4)
    model = PPO("CnnPolicy", envs, n_steps=128, n_epochs=4, batch_size=PEER_GAMES * 128 // 4, device="cpu")
    return learned(model, PEER_GAMES * 128, seconds)


def sb3_mujoco(seconds: float) -> dict[str, float]:
    """Stable-Baselines3's PPO, MLP 64-64, 64 environments, epochs and minibatches of our preset `mujoco`."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    p = eipo.PRESETS["mujoco"]
    size = p.envs.num * p.envs.steps
    model = PPO(
        "MlpPolicy", make_vec_env(CHEETAH, n_envs=p.envs.num, seed=0), n_steps=p.envs.steps, n_epochs=p.ppo.epochs,
        batch_size=size // p.ppo.minibatches, device="cpu",
    )  # fmt: skip
    return learned(model, size, seconds)


def world(env: str, preset: str, seconds: float) -> dict[str, float]:
    """Environment steps a second without an agent, actions drawn beforehand."""
    config = eipo.make_config(env, preset=preset, steps=10**9)
    envs = make_batch(env, config.envs, compute.available_cores())
    envs.reset(0)
    actions = [np.stack([envs.action_space.sample() for _ in range(envs.num)]) for _ in range(64)]
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        envs.step(actions[calls % len(actions)])
        calls += 1
    took = time.perf_counter() - began
    envs.close()
    return {"steps_per_second": calls * envs.num / took}


def matrix(dtype: torch.dtype, seconds: float, n: int = 4096) -> dict[str, float]:
    """Floating-point operations a second of a large matrix product: the best of several."""
    a, b = torch.randn(n, n).to(dtype), torch.randn(n, n).to(dtype)
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    return {"flops_per_second": 2.0 * n**3 / best}


def work(preset: str, method: str) -> dict[str, float]:
    """Floating-point operations of one environment step: acting, 4 epochs of learning, and the bonus; products alone.

    A backward pass is two forward passes, save the first layer's, which hands no gradient on to the image.
    """
    config = eipo.make_config(ATARI, preset=preset, method=method, steps=10**9, settings={"envs.num": 4})
    training = Training(config)
    net, p = training.agent, config.ppo

    def products(module: nn.Module, x: torch.Tensor) -> tuple[float, float]:
        """Of one forward pass: of all layers, and of the first."""
        each: list[float] = []
        for m in module.modules():
            if isinstance(m, nn.Conv2d | nn.Linear):
                m.register_forward_hook(
                    lambda m, _, y: each.append(2.0 * m.weight.numel() * (y[0].numel() // m.weight.shape[0]))
                )
        module(x)
        return sum(each), each[0]

    shape = (1, 84, 84)
    frames = torch.zeros(1, *((config.envs.stack,) if config.envs.stack > 1 else ()), *shape, dtype=torch.uint8)
    with torch.no_grad():
        body, first = products(net.encoder, frames)
        memory = 2.0 * sum(w.numel() for w in net.memory.parameters() if w.dim() == 2)
        heads = 2.0 * sum(w.weight.numel() for w in [*net.policies.values(), *net.critics.values()])
        forward = body + memory + heads
        total = forward + p.epochs * (3.0 * forward - first)
        if config.bonus.name == "rnd":
            target, _ = products(training.bonus.target, torch.zeros(1, *shape))
            predictor, first = products(training.bonus.predictor, torch.zeros(1, *shape))
            total += target + predictor + config.bonus.share * p.epochs * (3.0 * predictor - first)
    training.close()
    return {"flops_per_step": total}


SIDES = {
    "matrix bf16": lambda s: matrix(torch.bfloat16, s / 2),
    "matrix fp32": lambda s: matrix(torch.float32, s / 2),
    "world atari": lambda s: world(ATARI, "atari-paper", s),
    "world mujoco": lambda s: world(CHEETAH, "mujoco", s),
    "sb3-contrib RecurrentPPO": sb3_recurrent,
    "atari-paper eo": lambda s: ours(ATARI, "atari-paper", "eo", s),
    "atari-paper eipo": lambda s: ours(ATARI, "atari-paper", "eipo", s),
    "sb3 PPO atari": sb3_ppo,
    "atari-ff eo": lambda s: ours(ATARI, "atari-ff", "eo", s),
    "atari-ff eipo": lambda s: ours(ATARI, "atari-ff", "eipo", s),
    "sb3 PPO mujoco": sb3_mujoco,
    "mujoco eo": lambda s: ours(CHEETAH, "mujoco", "eo", s),
    "mujoco eipo": lambda s: ours(CHEETAH, "mujoco", "eipo", s),
    **{
        f"atari-paper eipo, {n} games x 64": lambda s, n=n: ours(
            ATARI, "atari-paper", "eipo", s, **{"envs.num": n, "envs.steps": 64}
        )
        for n in (8, 32, 128, 512)
    },
    **{f"work {p} {m}": lambda s, p=p, m=m: work(p, m) for p in ("atari-paper", "atari-ff") for m in ("eo", "eipo")},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("--seconds", type=float, default=8.0)
    args = parser.parse_args()
    figures = SIDES[args.side](args.seconds)
    unit = 1024 if sys.platform != "darwin" else 1024**2
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
