"""Second rewards. A bonus rewards a rollout, learns from minibatches of it, and has its state in its state_dict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import gymnasium as gym
import torch
from torch import Tensor, nn

from ..config import BONUSES
from ..config import Bonus as BonusConfig
from ..errors import unknown
from ..rollout import Rollout
from .rnd import RND


class Bonus(Protocol):
    """What the training loop asks of a second reward."""

    def reward(self, rollout: Rollout) -> Tensor:
        """The raw bonus of each step, (T, N). Called once a rollout, before it is learned from."""
        ...

    def loss(self, rollout: Rollout, take: Callable[[Tensor], Tensor], generator: torch.Generator) -> Tensor | None:
        """The loss of one minibatch, or None if there is nothing to learn; take(x) picks its part of a (T, N, ...)."""
        ...

    def to(self, device: torch.device) -> Any: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def state_dict(self) -> Mapping[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> Any: ...


class NoBonus(nn.Module):
    """No second reward."""

    def reward(self, rollout: Rollout) -> Tensor:
        return torch.zeros_like(rollout.reward)

    def loss(self, rollout: Rollout, take: Callable[[Tensor], Tensor], generator: torch.Generator) -> Tensor | None:
        return None


def make_bonus(config: BonusConfig, observation_space: gym.Space) -> Bonus:
    """A bonus by name."""
    if config.name == "rnd":
        return RND(observation_space, config.features, config.share)
    if config.name == "none":
        return NoBonus()
    raise unknown("bonus", config.name, BONUSES)
