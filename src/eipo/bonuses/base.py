"""What a second reward is: something that rewards a rollout, learns from minibatches of it, and has a state."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import torch
from torch import Tensor, nn

from ..rollout import Rollout

Take = Callable[[Tensor], Tensor]  # (T, N, ...) -> a minibatch's part of it, (T, B, ...) or (B, ...)


class Bonus(nn.Module):
    """A second reward. `reward` is all that a bonus must have; networks, buffers and `loss` make it one that learns.

    Parameters and buffers are its state: they are on the run's device and in its checkpoints.
    """

    terms: tuple[str, ...] = ()  # keys of a step's info that it reads, as rollout.terms[key] (T, N)

    def build(self, observation_space: gym.Space, action_space: gym.Space, num_envs: int) -> None:
        """Make what needs to know the world. Called once, before training."""

    def reward(self, rollout: Rollout) -> Tensor:
        """The raw bonus of each step, (T, N); its unit does not matter. Called once a rollout, before `loss`."""
        raise NotImplementedError

    def loss(self, rollout: Rollout, take: Take, generator: torch.Generator) -> Tensor | None:
        """The loss of one minibatch, or None if there is nothing to learn; take(x) picks its part of a (T, N, ...)."""
        return None


class NoBonus(Bonus):
    """No second reward."""

    def reward(self, rollout: Rollout) -> Tensor:
        return torch.zeros_like(rollout.reward)


class Info(Bonus):
    """A number that the environment computes itself and puts into the info of each step: a shaping term."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.terms = (key,)

    def reward(self, rollout: Rollout) -> Tensor:
        return rollout.terms[self.terms[0]]


def drawn(share: float, count: int, generator: torch.Generator) -> Tensor:
    """Which of `count` samples train the bonus, (count,) bool."""
    return torch.rand(count, generator=generator, device=generator.device) < share
