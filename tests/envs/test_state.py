"""Environments that go on where they were."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

from eipo.checkpoint import flatten, unflatten
from eipo.config import Envs
from eipo.envs import state
from eipo.envs.batch import Batch
from eipo.envs.make import make_batch


def through_files(saved: Any) -> Any:
    tensors: dict[str, torch.Tensor] = {}
    return unflatten(json.loads(json.dumps(flatten(saved, "", tensors))), tensors)


def assert_goes_on(one: Batch, other: Batch, before: int, after: int) -> int:
    """How many episodes ended after it went on."""
    rng = np.random.default_rng(0)
    one.action_space.seed(0)
    one.reset(3)
    other.reset(77)
    for _ in range(before):
        one.step(np.stack([one.action_space.sample() for _ in range(one.num)]))
    saved = one.state()
    assert saved is not None
    other.load_state(through_files(saved))
    assert np.array_equal(one.obs, other.obs)
    ended = 0
    for _ in range(after):
        action = np.stack([one.action_space.sample() for _ in range(one.num)])
        a, b = one.step(action), other.step(action)
        for name in ("obs", "reward", "terminated", "truncated", "last_obs"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), name
        ended += int(a.done.sum())
    del rng
    one.close()
    other.close()
    return ended


TASKS = [
    "Hopper-v5", "HalfCheetah-v5", "Ant-v5", "Humanoid-v5", "HumanoidStandup-v5", "Reacher-v5", "Swimmer-v5",
    "Walker2d-v5", "InvertedPendulum-v5", "InvertedDoublePendulum-v5", "Pusher-v5", "eipo/SparseHopper-v0",
]  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_mujoco_goes_on_bit_for_bit(task: str) -> None:
    pytest.importorskip("mujoco")
    batches = [make_batch(task, Envs(num=2, vector=v)) for v in ("auto", "auto")]
    assert_goes_on(*batches, before=23, after=60)


def test_mujoco_over_the_ends_of_episodes() -> None:
    pytest.importorskip("mujoco")
    batches = [make_batch("Hopper-v5", Envs(num=3, vector="sync")) for _ in range(2)]
    assert assert_goes_on(*batches, before=40, after=120) > 6


def test_a_time_limit_is_remembered() -> None:
    pytest.importorskip("mujoco")
    batches = [make_batch("Reacher-v5", Envs(num=2)) for _ in range(2)]  # 50 steps an episode
    assert assert_goes_on(*batches, before=30, after=45) == 2


class Counts(gym.Env[np.ndarray, int]):
    """A user's own that can say its state."""

    observation_space = gym.spaces.Box(-1, 1000, (1,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.count = int(self.np_random.integers(5))
        return np.array([self.count], np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.count += 1
        return np.array([self.count], np.float32), 0.0, self.count == 9, False, {}

    def get_state(self) -> dict[str, Any]:
        return {"count": self.count, "rng": self.np_random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.count = state["count"]
        self.np_random.bit_generator.state = state["rng"]


class Unknown(gym.Wrapper[Any, Any, Any, Any]):
    """Nobody knows what it remembers."""


class Known(gym.Wrapper[Any, Any, Any, Any]):
    """It says so itself."""

    seen = 0

    def step(self, action: Any) -> Any:
        self.seen += 1
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward + self.seen, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def set_state(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def test_a_users_own_and_its_wrappers() -> None:
    def make(**_: Any) -> gym.Env[Any, Any]:
        return gym.wrappers.TimeLimit(Known(Counts()), 7)

    batches = [make_batch("mine", Envs(num=3), 1, make) for _ in range(2)]
    assert assert_goes_on(*batches, before=11, after=40) > 10


@pytest.mark.parametrize("wrapper", [Unknown, gym.wrappers.NormalizeReward])
def test_what_is_not_understood_is_not_believed_to_be_exact(wrapper: Any) -> None:
    envs = make_batch("mine", Envs(num=2), 1, lambda **_: wrapper(Counts()))
    assert envs.state() is None
    assert make_batch("CartPole-v1", Envs(num=2)).state() is None


def test_another_number_of_environments_is_refused() -> None:
    one, other = (make_batch("mine", Envs(num=n), 1, Counts) for n in (2, 3))
    one.reset(0)
    other.reset(0)
    with pytest.raises(ValueError, match="one of 2 environments, not of 3"):
        state.put(other.venv, state.get(one.venv))
