"""Any environment: autoreset modes, factories, worker processes that hang or die, Dict and Tuple observations."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tests.conftest import Scripted

import eipo
from eipo.appraise import appraise
from eipo.bonuses.rnd import RND
from eipo.config import PPO, Envs
from eipo.core.moments import RewardScale
from eipo.envs.batch import Batch
from eipo.envs.make import make_batch
from eipo.presets import make_config
from eipo.training import Training

TINY = {
    "envs.num": 2, "envs.steps": 8, "ppo.epochs": 1, "ppo.minibatches": 1, "net.dense": 8, "net.width": 8,
    "bonus.features": 8, "bonus.share": 1.0, "compute.threads": 1,
}  # fmt: skip
T = 11


def scripted(mode: AutoresetMode, end: str) -> Batch:
    """Episodes of 1, 3 and 5 steps, under an autoreset mode."""
    envs = Batch(SyncVectorEnv([lambda: Scripted(end)] * 3, autoreset_mode=mode), "scripted")
    envs.reset(0)
    return envs


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED])
@pytest.mark.parametrize("end", ["terminate", "truncate", "turns", "both"])
def test_every_autoreset_mode_gives_the_same_rollout(
    make_agent: Callable, play: Callable, mode: AutoresetMode, end: str
) -> None:
    """Frames, ends, memory, values, scores, advantages and bonuses are those under SAME_STEP, to the bit."""
    rollouts, streams = [], []
    for m in (AutoresetMode.SAME_STEP, mode):
        envs = scripted(m, end)
        agent = make_agent(envs, memory="lstm")
        rollouts.append(play(envs, agent, T))
        torch.manual_seed(0)
        bonus = RND(envs.observation_space, 8, 1.0)
        critics = list(agent.critics)
        streams.append(appraise(rollouts[-1], bonus, None, RewardScale(3, 0.9), critics, PPO(gamma=0.9)))
    one, other = rollouts
    for name in ("frames", "index", "next_index", "reset", "action", "log_prob", "reward", "terminated", "done"):
        assert (getattr(one, name) == getattr(other, name)).all(), name
    for c in one.value:
        assert (one.value[c] == other.value[c]).all()
        assert (one.next_value[c] == other.next_value[c]).all()
        assert (streams[0].A[c] == streams[1].A[c]).all()
    assert (streams[0].bonus == streams[1].bonus).all()
    assert one.episodes == other.episodes
    assert len(one.episodes) == 11 + 3 + 2


class ResetsAll(SyncVectorEnv):
    """A vector environment that does not know of masks."""

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return super().reset(seed=seed)


def test_a_mode_that_loses_episodes_is_refused() -> None:
    envs = Batch(ResetsAll([Scripted] * 3, autoreset_mode=AutoresetMode.NEXT_STEP), "mine")
    envs.reset(0)
    with pytest.raises(eipo.EipoError, match="mine: its autoreset mode is NextStep"):
        envs.step(np.zeros(3, np.int64))


def test_the_autoreset_mode_must_be_said() -> None:
    venv = SyncVectorEnv([Scripted])
    venv.metadata = {}
    with pytest.raises(eipo.EipoError, match="names no autoreset_mode"):
        Batch(venv, "mine")


class Mixture(gym.Env):
    """A picture, a position, a code and a nested pair; some parts are not for a network."""

    def __init__(self, side: int = 40) -> None:
        s = gym.spaces
        self.observation_space = s.Dict({
            "picture": s.Box(0, 255, (side, side, 3), np.uint8), "where": s.Box(-1, 1, (2,), np.float64),
            "code": s.Discrete(5), "pair": s.Tuple([s.MultiBinary(2), s.Box(-1, 1, (1,), np.float32)]),
        })  # fmt: skip
        self.action_space = s.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.left = 3
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        return self.observation_space.sample(), 1.0, self.left == 0, False, {}


def test_dict_and_tuple_observations_are_kept_as_they_are_and_learned_from(tmp_path: Path) -> None:
    envs = make_batch("mixture", Envs(num=2), factory=Mixture)
    env = Mixture()
    expected = env.reset(seed=0)[0]
    row = envs.reset(0)[0]
    parts = [expected["code"], *expected["pair"], expected["picture"], expected["where"]]
    assert row.tobytes() == b"".join(np.asarray(part).tobytes() for part in parts)
    step = [envs.step(np.zeros(2, np.int64)) for _ in range(3)][-1]
    assert step.done.all()
    assert (step.last_obs != step.obs).any()
    run = eipo.train(Mixture, steps=32, settings=TINY, out=tmp_path / "run")
    agent = eipo.load(tmp_path / "run")
    obs = env.reset(seed=1)[0]
    assert agent.act(obs, deterministic=True)[0] == run.agent.act(obs, deterministic=True)[0]
    assert agent.act(obs)[0] in (0, 1)
    x = agent.net.encoder.input(torch.from_numpy(row[None]))
    # Parts in the order of their names: 5 indicators, 2 bits, 1 number, the picture's 3 planes, 2 numbers.
    assert x.shape == (1, 5 + 2 + 1 + 3 * 40 * 40 + 2)
    assert x[0, :5].argmax() == expected["code"]
    assert torch.allclose(x[0, -2:], torch.from_numpy(expected["where"]).float())
    picture = x[0, 8:-2].reshape(3, 40, 40).permute(1, 2, 0).numpy()
    assert np.allclose(picture * 255, expected["picture"])


def test_parts_can_be_chosen() -> None:
    training = Training(
        make_config("x", preset="classic", steps=16, settings={**TINY, "envs.keys": "where, code"}), Mixture
    )
    rollout, _ = training.iterate()
    training.close()
    assert rollout.frames.shape[1] == 2 * 8 + 8


@pytest.mark.parametrize("vector", ["sync", "async", "threads"])
def test_forms_of_many_environments_are_the_same(vector: str) -> None:
    run = eipo.train("CartPole-v1", steps=64, settings={**TINY, "envs.vector": vector, "envs.steps": 16})
    sync = eipo.train("CartPole-v1", steps=64, settings={**TINY, "envs.vector": "sync", "envs.steps": 16})
    timed = ("steps_per_second", "acting_share")
    assert [{k: v for k, v in m.items() if k not in timed} for m in run.metrics] == [
        {k: v for k, v in m.items() if k not in timed} for m in sync.metrics
    ]


class Stubborn(Mixture):
    """Environment 1 hangs, or dies, at its second step."""

    def __init__(self, how: str) -> None:
        super().__init__(2)
        self.how = how

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.which = seed if seed is not None else self.which
        return super().reset(seed=seed)

    def step(self, action: Any) -> Any:
        if self.left == 2 and self.which % 2:
            if self.how == "hangs":
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("hangs", r"mine: worker 1 did not answer within 0.5 s"), ("dies", "mine: worker 1 died with exit code -9")],
)
def test_a_worker_that_hangs_or_dies_is_an_error_that_names_it(how: str, expected: str) -> None:
    envs = make_batch("mine", Envs(num=2, vector="async", timeout=0.5, options={"how": how}), factory=Stubborn)
    envs.reset(0)
    envs.step(np.zeros(2, np.int64))
    began = time.monotonic()
    with pytest.raises(eipo.EipoError, match=expected):
        envs.step(np.zeros(2, np.int64))
    envs.close()
    assert time.monotonic() - began < 10
    assert not any(process.is_alive() for process in envs.venv.processes)


class Unborn(Mixture):
    """The second worker hangs, or dies, while it makes its environment."""

    def __init__(self, how: str) -> None:
        super().__init__(2)
        if multiprocessing.current_process().name.endswith("-1"):
            if how == "hangs":
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("hangs", r"mine: worker 1 did not answer within 3 s"), ("dies", "mine: worker 1 died with exit code -9")],
)
def test_a_worker_that_hangs_or_dies_at_its_start_is_an_error_that_names_it(how: str, expected: str) -> None:
    before = set(multiprocessing.active_children())
    with pytest.raises(eipo.EipoError, match=expected):
        make_batch("mine", Envs(num=2, vector="async", timeout=3.0, options={"how": how}), factory=Unborn)
    assert set(multiprocessing.active_children()) <= before


def test_a_factory_must_make_environments() -> None:
    with pytest.raises(eipo.EipoError, match="made a int"):
        make_batch("mine", Envs(num=2), factory=lambda: 3)
    with pytest.raises(eipo.EipoError, match=r"made 3 environments, but envs\.num=2"):
        make_batch("mine", Envs(num=2), factory=lambda: SyncVectorEnv([Scripted] * 3))
    made = make_batch("mine", Envs(num=3), factory=lambda: SyncVectorEnv([Scripted] * 3))
    assert made.num == 3


PEERS = [
    *(f"MiniGrid-{name}-v0" for name in ("DoorKey-8x8", "MultiRoom-N4-S5", "KeyCorridorS3R3")),
    *(f"MinAtar/{name}-v1" for name in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")),
    "CartPole-v1", "Acrobot-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Pendulum-v1",
    "LunarLander-v3", "BipedalWalker-v3", "CarRacing-v3",
]  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_other_peoples_worlds_train(name: str) -> None:
    keys = {"envs.keys": "image,direction", "net.memory": "lstm"} if name.startswith("MiniGrid") else {}
    run = eipo.train(name, preset="classic", steps=32, settings={**TINY, **keys})
    assert len(run.metrics) == 2
    assert all(np.isfinite(m["loss_bonus"]) for m in run.metrics)


def test_text_is_refused_by_its_name() -> None:
    with pytest.raises(eipo.EipoError, match=r"its part 'mission' .* envs\.keys"):
        eipo.train("MiniGrid-DoorKey-8x8-v0", preset="classic", steps=32, settings=TINY)
