"""The intrinsic curiosity module (Pathak et al., 2017): novelty is what the agent's action does and is not foreseen."""

from __future__ import annotations

import gymnasium as gym
import torch
from torch import Tensor, nn

from ..encoders import layer
from ..rollout import Rollout
from .base import Take
from .networks import CHUNK, InverseDynamics


class ICM(InverseDynamics):
    """A forward model foresees phi(s_{t+1}) from phi(s_t) and a_t; the bonus is its error.

    phi learns from the inverse model alone: were the forward model's error to shape it as well, it could make itself
    easy to foresee.
    """

    def __init__(self, observation_space: gym.Space, action_space: gym.Space, features: int, share: float) -> None:
        super().__init__(observation_space, action_space, features, share)
        self.forward_model = nn.Sequential(
            layer(nn.Linear(features + self.actions.embedded, features)),
            nn.ReLU(),
            layer(nn.Linear(features, features)),
        )

    def foreseen(self, phi: Tensor, action: Tensor) -> Tensor:
        """(B, F) and actions (B, ...) -> phi(s_{t+1}) as the forward model has it, (B, F)."""
        return self.forward_model(torch.cat([phi, self.actions.embed(action)], -1))

    @torch.no_grad()
    def reward(self, rollout: Rollout) -> Tensor:
        """r_I(s_t, a_t) = 1/2 mean of (forward(phi(s_t), a_t) - phi(s_{t+1}))^2."""
        self.take_in(rollout)
        phi = self.features(rollout)
        columns = (x.flatten(0, 1).split(CHUNK) for x in (rollout.index, rollout.next_index, rollout.action))
        pieces = zip(*columns, strict=True)
        errors = [0.5 * (self.foreseen(phi[i], a) - phi[after]).square().mean(-1) for i, after, a in pieces]
        return torch.cat(errors).unflatten(0, rollout.index.shape)

    def loss(self, rollout: Rollout, take: Take, generator: torch.Generator) -> Tensor | None:
        """Of a drawn share of the samples: the inverse model's loss, and the forward model's error."""
        samples = self.samples(rollout, take, generator)
        if samples is None:
            return None
        phi, phi_next, action = samples
        error = 0.5 * (self.foreseen(phi.detach(), action) - phi_next.detach()).square().mean()
        return self.inverse_loss(phi, phi_next, action) + error
