"""Random network distillation (Burda et al., 2018): novelty is the error of a trained network about a fixed one."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import gymnasium as gym
import torch
from torch import Tensor, nn

from ..core.moments import RunningMoments
from ..encoders import convolutions, layer
from ..inputs import observation_input
from ..rollout import Rollout

CHUNK = 4096  # frames scored at once, so that a rollout of images does not need its size in activations


class RND(nn.Module):
    """The predictor has two dense layers more than the target (ALGORITHM.md, point 5), so that it can follow it."""

    def __init__(self, observation_space: gym.Space, features: int, share: float) -> None:
        super().__init__()
        self.share = share
        self.input, shape = observation_input(observation_space)
        self.moments = RunningMoments(shape)
        self.target = _network(shape, features, dense=1).requires_grad_(False)
        self.predictor = _network(shape, features, dense=3)
        self._target_of: Tensor = torch.empty(0)  # (U, features) of the frames of this rollout

    def whiten(self, frames: Tensor) -> Tensor:
        """(x - mean) / std, clipped to 5: without it a fixed random network is blind to most of a frame."""
        moments = self.moments
        x = (self.input(frames) - moments.mean.float()) / moments.std().float()
        return x.clamp(-5.0, 5.0)

    @torch.no_grad()
    def reward(self, rollout: Rollout) -> Tensor:
        """r_I(s_t, a_t) = mean of (predictor(s_{t+1}) - target(s_{t+1}))^2. Each distinct frame is scored once."""
        frames = rollout.frames
        times = torch.bincount(rollout.next_index.flatten(), minlength=len(frames))
        for part, weight in zip(frames.split(CHUNK), times.split(CHUNK), strict=True):
            if weight.any():
                self.moments.update(self.input(part), weight)
        errors, targets = [], []
        for part in frames.split(CHUNK):
            x = self.whiten(part)
            targets.append(self.target(x))
            errors.append((self.predictor(x) - targets[-1]).square().mean(-1))
        self._target_of = torch.cat(targets)
        return torch.cat(errors)[rollout.next_index]

    def loss(self, rollout: Rollout, take: Callable[[Tensor], Tensor], generator: torch.Generator) -> Tensor | None:
        """Mean error over a drawn share of the samples. Only the drawn frames go through the predictor, each once."""
        index = take(rollout.next_index).flatten()
        drawn = index[torch.rand(len(index), generator=generator, device=index.device) < self.share]
        if len(drawn) == 0:
            return None
        distinct, times = drawn.unique(return_counts=True)
        prediction = self.predictor(self.whiten(rollout.frames[distinct]))
        error = (prediction - self._target_of[distinct]).square().mean(-1)
        return (error * times).sum() / len(drawn)


def _network(shape: tuple[int, ...], features: int, dense: int) -> nn.Module:
    """The paper's three convolutions for an image, one dense layer for a vector; then `dense` layers."""
    body: list[nn.Module]
    if len(shape) == 3:
        convs, width = convolutions(shape, "nature", nn.LeakyReLU)
        body = [*convs]
    else:
        body = [layer(nn.Linear(prod(shape), features)), nn.LeakyReLU()]
        width = features
    for i in range(dense):
        body += [nn.ReLU()] if i else []
        body.append(layer(nn.Linear(width, features)))
        width = features
    return nn.Sequential(*body)
