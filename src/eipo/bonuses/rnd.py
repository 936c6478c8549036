"""Random network distillation (Burda et al., 2018): novelty is the error of a trained network about a fixed one."""

from __future__ import annotations

import gymnasium as gym
import torch
from torch import Tensor

from .. import parallel
from ..rollout import Rollout
from .base import Take
from .networks import Whitened, network


class RND(Whitened):
    """The predictor has two dense layers more than the target (ALGORITHM.md, point 5), so that it can follow it."""

    def __init__(self, observation_space: gym.Space, features: int, share: float) -> None:
        super().__init__(observation_space, share)
        self.target = network(self.shape, features, dense=1).requires_grad_(False)
        self.predictor = network(self.shape, features, dense=3)
        self._target_of: Tensor = torch.empty(0)  # (U, features) of the frames of this rollout

    @torch.no_grad()
    def reward(self, rollout: Rollout) -> Tensor:
        """r_I(s_t, a_t) = mean of (predictor(s_{t+1}) - target(s_{t+1}))^2. Each distinct frame is scored once."""
        self.take_in(rollout)
        errors, targets = [], []
        for x in self.whitened(rollout):
            targets.append(self.target(x))
            errors.append((self.predictor(x) - targets[-1]).square().mean(-1))
        self._target_of = torch.cat(targets)
        return torch.cat(errors)[rollout.next_index]

    def loss(self, rollout: Rollout, take: Take, generator: torch.Generator) -> Tensor | None:
        """Mean error over a drawn share of the samples. Only the drawn frames go through the predictor, each once."""
        T, n = rollout.next_index.shape
        chance = torch.rand(T, n * parallel.size(), generator=generator, device=rollout.next_index.device)
        drawn = take(rollout.next_index)[take(parallel.columns(chance)) < self.share]
        number = parallel.total(len(drawn), drawn.device)
        if number == 0:
            return None
        if len(drawn) == 0:  # what was drawn is other processes'
            return next(self.predictor.parameters()).sum() * 0.0
        distinct, times = drawn.unique(return_counts=True)
        prediction = self.predictor(self.whiten(rollout.frames[distinct]))
        error = (prediction - self._target_of[distinct]).square().mean(-1)
        return (error * times).sum() / number
