"""Networks that bonuses share: whitened frames, and features that tell which action led from one frame to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from math import prod

import gymnasium as gym
import torch
from torch import Tensor, nn

from .. import parallel
from ..actions import make_actions
from ..core.moments import RunningMoments
from ..encoders import Layers, convolutions, layer
from ..inputs import observation_input
from ..rollout import Rollout
from .base import Bonus, Take, drawn

CHUNK = 512  # frames scored at once: neither their floats nor their activations are kept, and caches hold more of them


class Whitened(Bonus):
    """A bonus whose networks see frames less their running mean, divided by their running std."""

    def __init__(self, observation_space: gym.Space, share: float) -> None:
        super().__init__()
        self.share = share
        self.input, self.shape = observation_input(observation_space)
        self.moments = RunningMoments(self.shape)

    def whiten(self, frames: Tensor) -> Tensor:
        """(x - mean) / std, clipped to 5: without it a fixed random network is blind to most of a frame."""
        moments = self.moments
        x: Tensor = self.input(frames).sub(moments.mean.float())
        return x.div_(moments.std().float()).clamp_(-5.0, 5.0)

    def take_in(self, rollout: Rollout) -> None:
        """Let the moments follow the rollout's next frames, each as often as it came."""
        times = torch.bincount(rollout.next_index.flatten(), minlength=len(rollout.frames))
        seen = RunningMoments(self.shape).to(times.device)
        for part, weight in zip(rollout.frames.split(CHUNK), times.split(CHUNK), strict=True):
            if weight.any():
                seen.update(self.input(part), weight)
        self.moments.merge(parallel.pooled(seen))

    def whitened(self, rollout: Rollout) -> Iterator[Tensor]:
        """All frames, in pieces."""
        return (self.whiten(part) for part in rollout.frames.split(CHUNK))


class InverseDynamics(Whitened):
    """Features phi that are trained to tell the action between two frames: what no action affects leaves no trace."""

    def __init__(self, observation_space: gym.Space, action_space: gym.Space, features: int, share: float) -> None:
        super().__init__(observation_space, share)
        self.actions = make_actions(action_space)
        self.phi = network(self.shape, features, dense=1)
        self.inverse = nn.Sequential(
            layer(nn.Linear(2 * features, features)), nn.ReLU(), layer(nn.Linear(features, self.actions.size))
        )

    def features(self, rollout: Rollout) -> Tensor:
        """phi of every frame, (U, F)."""
        return torch.cat([self.phi(x) for x in self.whitened(rollout)])

    def samples(self, rollout: Rollout, take: Take, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor] | None:
        """Of a drawn share of a minibatch: phi(s_t) (B, F), phi(s_{t+1}) (B, F), a_t (B, ...). Each frame goes through
        phi once."""
        index, after = take(rollout.index).flatten(), take(rollout.next_index).flatten()
        action = take(rollout.action).reshape(len(index), *rollout.action.shape[2:])
        which = drawn(self.share, len(index), generator)
        if not which.any():
            return None
        pair, where = torch.stack([index[which], after[which]]).unique(return_inverse=True)
        phi, phi_next = self.phi(self.whiten(rollout.frames[pair]))[where]
        return phi, phi_next, action[which]

    def inverse_loss(self, phi: Tensor, phi_next: Tensor, action: Tensor) -> Tensor:
        """-log p(a_t | phi(s_t), phi(s_{t+1})): of choices a cross-entropy, of numbers half a squared error."""
        raw = self.inverse(torch.cat([phi, phi_next], -1))
        params = self.actions.params(raw, raw.new_zeros(self.actions.free))
        return -self.actions.log_prob(params, action).mean()


class Network(Layers):
    """Layers, in bf16 where the run has it; the last one, like all heads, is fp32."""

    bf16 = False

    def forward(self, x: Tensor) -> Tensor:
        *body, last = self
        with torch.autocast(x.device.type, dtype=torch.bfloat16) if self.bf16 else nullcontext():
            for module in body:
                x = module(x)
        out: Tensor = last(x.float())
        return out


def in_precision(bonus: Bonus, precision: str) -> None:
    """Have a bonus' networks calculate as the run does."""
    for module in bonus.modules():
        if isinstance(module, Network):
            module.bf16 = precision == "bf16"


def network(shape: tuple[int, ...], features: int, dense: int) -> Network:
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
    return Network(*body)
