"""Worlds and bonuses of a user's own, as a user would write them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor

import eipo
from eipo.bonuses import RND
from eipo.rollout import Rollout


class Line(gym.Env):
    """Eleven places in a row, the start in the middle, 12 steps: 1 for reaching `end`. Its info has a shaping term."""

    def __init__(self, shaping: str = "always", end: int = 5) -> None:
        self.observation_space = gym.spaces.Box(-5, 5, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.shaping, self.end = shaping, end

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.at, self.steps = 0, 0
        return np.array([self.at], np.float32), {"progress": 99.0}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        moved = 2 * int(action) - 1
        self.at = int(np.clip(self.at + moved, -5, 5))
        self.steps += 1
        info: dict[str, Any] = {"progress": float(moved)}
        if self.shaping == "broken" and self.steps == 3:
            info["progress"] = float("nan")
        if self.shaping == "words":
            info["progress"] = "right"
        if self.shaping == "sometimes" and self.steps == 3:
            info = {"other": 1.0, "more": 2.0}
        there = self.at == self.end
        return np.array([self.at], np.float32), float(there), there, self.steps >= 12, info


gym.register("eipo-test/Line-v0", entry_point=Line)


class Right(eipo.Bonus):
    """Pays for what a user thinks is good: to be on the right."""

    def reward(self, rollout: Rollout) -> Tensor:
        return rollout.next_observations[..., 0]


class Surprise(eipo.Bonus):
    """Learns: how far a frame is from a running guess of frames."""

    def build(self, observation_space: gym.Space, action_space: gym.Space, num_envs: int) -> None:
        self.guess = torch.nn.Parameter(torch.zeros(observation_space.shape or ()))

    def reward(self, rollout: Rollout) -> Tensor:
        return (rollout.next_observations - self.guess).square().sum(-1)

    def loss(self, rollout: Rollout, take: Any, generator: torch.Generator) -> Tensor:
        return (take(rollout.next_observations) - self.guess).square().mean()


class Times(RND):
    """RND in another unit."""

    unit = 1.0

    def __init__(self) -> None:
        torch.nn.Module.__init__(self)

    def build(self, observation_space: gym.Space, action_space: gym.Space, num_envs: int) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            super().__init__(observation_space, 16, 1.0)

    def reward(self, rollout: Rollout) -> Tensor:
        return self.unit * super().reward(rollout)


class Flat(eipo.Bonus):
    """The same for every step, whatever it is."""

    def __init__(self, value: float = 0.0) -> None:
        super().__init__()
        self.value = value

    def reward(self, rollout: Rollout) -> Tensor:
        return torch.full_like(rollout.reward, self.value)


class WrongShape(eipo.Bonus):
    def reward(self, rollout: Rollout) -> Tensor:
        return rollout.reward[0]


class Infinite(eipo.Bonus):
    def reward(self, rollout: Rollout) -> Tensor:
        r = torch.zeros_like(rollout.reward)
        r[1, 2] = float("inf")
        return r


class NeedsArguments(eipo.Bonus):
    def __init__(self, weight: float) -> None:
        super().__init__()
