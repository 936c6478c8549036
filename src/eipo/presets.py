"""Methods and presets, as values. A method is an update rule with its data; a preset is everything else."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .config import PPO, Bonus, Compute, Config, Envs, Method, Net, with_settings
from .errors import EipoError, unknown
from .parsing import whole


@dataclass(frozen=True)
class NamedMethod:
    """A method by the paper's name for it."""

    doc: str
    method: Method
    bonus: bool = True
    noisy: float = 0.0  # of Net


METHODS = {
    "eo": NamedMethod(
        "task reward only (PPO): the reference", Method(rule="single", policy="E", normalize_task=False), bonus=False
    ),
    "rnd": NamedMethod("PPO on task + lam * bonus, task reward as it is", Method(rule="single", normalize_task=False)),
    "en": NamedMethod("rnd with the task reward normalized (Ext-norm-RND)", Method(rule="single")),
    "dy": NamedMethod("en with lam decayed linearly (Decay-RND)", Method(rule="single", lam_min=0.0, lam_decay=1.0)),
    "dc": NamedMethod("en whose mixed policy stays near a task policy (Decoupled-RND)", Method(rule="decoupled")),
    "eipo": NamedMethod("two policies under the extrinsic optimality constraint, alpha learned", Method(rule="eipo")),
    "hepo": NamedMethod(
        "a policy that earns no less of the task than one trained on the bonus alone (HEPO)",
        Method(rule="hepo", alpha=0.0, beta=0.01, alpha_clip=1.0),
    ),
    "noisy": NamedMethod(
        "eo with noise in the weights of its heads, learned and redrawn each rollout (noisy networks)",
        Method(rule="single", policy="E", normalize_task=False),
        bonus=False,
        noisy=0.5,
    ),
}


@dataclass(frozen=True)
class Preset:
    """Everything of a run but its environment, method, steps and seed."""

    doc: str
    net: Net
    ppo: PPO
    envs: Envs
    bonus: Bonus
    compute: Compute = field(default_factory=Compute)
    for_envs: tuple[str, ...] = ()  # ids (patterns) that take this preset when none is named


MUJOCO = (
    "Hopper", "HalfCheetah", "Ant", "Humanoid", "HumanoidStandup", "Reacher", "Swimmer", "Walker2d",
    "InvertedPendulum", "InvertedDoublePendulum",
)  # fmt: skip

PRESETS = {
    "maze-grid": Preset(
        "the maze from its 5 x 5 cell codes: dense 128 + LSTM 128, 64 x 500, learns faster than the paper's",
        Net(dense=128, width=128),
        # Every seed sees reward early, and with smaller steps most lose it again: what is seen rarely must be learned
        # fast. docs/maze.md has the figures.
        PPO(epochs=3, minibatches=4, lr=1e-3, clip=0.2, entropy=0.01, gae_lambda=0.98),
        Envs(num=64, steps=500, options={"observation": "grid"}, repeats=True),
        Bonus(share=0.5, features=128),
        Compute(shards=2, precision="fp32"),
        for_envs=("eipo/Maze-v0", "eipo/AlignedMaze-v0", "eipo/NoisyTVMaze-v0"),
    ),
    "maze-paper": Preset(
        "the maze from pixels, the paper's network (conv + LSTM 512) and tables, 64 x 500",
        Net(),
        PPO(epochs=3, minibatches=4),
        Envs(num=64, steps=500, options={"observation": "pixels"}, repeats=True),
        Bonus(share=0.5),
    ),
    "classic": Preset(
        "small vector observations, fully observed: two dense layers of 64, no memory, 16 x 128",
        Net(dense=64, layers=2, memory="none"),
        PPO(lr=3e-4, clip=0.2, epochs=4),
        Envs(num=16, steps=128),
        Bonus(share=0.25, features=64),
        Compute(precision="fp32"),
    ),
    "atari-paper": Preset(
        "Atari with the paper's network (conv + LSTM 512, one gray frame) and tables, 128 games x 128 steps",
        Net(),
        PPO(),
        Envs(options={"repeat_action_probability": 0.0}, clip_reward=True),
        Bonus(),
        for_envs=("ALE/*",),
    ),
    "atari-ff": Preset(
        "Atari feed-forward: the Nature DQN's convolutions on four gray frames, lives end what is learned from",
        Net(convs="nature", memory="none"),
        PPO(),
        Envs(
            options={"repeat_action_probability": 0.0, "life_loss": True, "use_fire_reset": True},
            stack=4,
            clip_reward=True,
        ),
        Bonus(),
    ),
    "mujoco": Preset(
        "continuous control: normalized observations, two dense layers of 64, no memory, 64 x 64",
        Net(dense=64, layers=2, memory="none", normalize=True),
        PPO(epochs=4, minibatches=8, lr=3e-4, clip=0.2, entropy=0.0),
        Envs(num=64, steps=64),
        Bonus(features=64),
        Compute(precision="fp32"),
        for_envs=(*(f"{task}-v5" for task in MUJOCO), "eipo/SparseHalfCheetah-v0", "eipo/SparseHopper-v0"),
    ),
}


def make_config(
    env: str,
    *,
    method: str = "eipo",
    preset: str | None = None,
    steps: int,
    seed: int = 0,
    bonus: str | None = None,
    settings: Any = (),
) -> Config:
    """The configuration of a run from names, with single settings changed last."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if preset is None:
        preset = next((n for n, p in PRESETS.items() if any(fnmatchcase(env, e) for e in p.for_envs)), "classic")
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    p, m = PRESETS[preset], METHODS[method]
    if bonus not in (None, "none") and not m.bonus:
        raise EipoError(f"method {method} climbs the task reward alone, so bonus {bonus} would do nothing")
    name = bonus if bonus is not None else p.bonus.name if m.bonus else "none"
    config = Config(
        env=env,
        steps=whole("steps", steps),
        seed=whole("seed", seed),
        method_name=method,
        preset=preset,
        method=m.method,
        bonus=dataclasses.replace(p.bonus, name=name),
        net=dataclasses.replace(p.net, noisy=m.noisy),
        ppo=p.ppo,
        envs=p.envs,
        compute=p.compute,
    )
    return with_settings(config, settings)
