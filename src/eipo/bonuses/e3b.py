"""E3B (Henaff et al., 2022): novelty within an episode, where features may be any numbers: an ellipse around them."""

from __future__ import annotations

import gymnasium as gym
import torch
from torch import Tensor

from ..rollout import Rollout
from .base import Take
from .networks import InverseDynamics

RIDGE = 0.1  # lambda of the paper: C of an episode starts as RIDGE times the identity


class E3B(InverseDynamics):
    """r_I = phi(s_{t+1})^T C^-1 phi(s_{t+1}), C = RIDGE I + the sum of phi phi^T over the episode so far.

    Counts for a space without repetition: were phi an indicator, r_I would be 1 / (RIDGE + number of visits).
    """

    inverse_C: Tensor

    def __init__(
        self, observation_space: gym.Space, action_space: gym.Space, features: int, share: float, num_envs: int
    ) -> None:
        super().__init__(observation_space, action_space, features, share)
        self.register_buffer("inverse_C", self.fresh(features).repeat(num_envs, 1, 1))  # (N, F, F), of running episodes

    @staticmethod
    def fresh(features: int) -> Tensor:
        """C^-1 as an episode starts."""
        return torch.eye(features) / RIDGE

    @torch.no_grad()
    def reward(self, rollout: Rollout) -> Tensor:
        """Step by step: the bonus, then C^-1 with the new frame in it, by Sherman and Morrison's formula."""
        self.take_in(rollout)
        phi = self.features(rollout)
        start = self.fresh(phi.shape[1]).to(phi.device)
        C, rewards = self.inverse_C, []
        for after, done in zip(rollout.next_index, rollout.done, strict=True):
            x = phi[after]  # (N, F)
            Cx = torch.einsum("nij,nj->ni", C, x)
            r = (x * Cx).sum(-1).clamp(min=0.0)  # it is never negative, but for rounding
            rewards.append(r)
            C.baddbmm_(Cx.unsqueeze(-1), (Cx / (1.0 + r).unsqueeze(-1)).unsqueeze(-2), alpha=-1.0)
            if done.any():
                C[done] = start
        return torch.stack(rewards)

    def loss(self, rollout: Rollout, take: Take, generator: torch.Generator) -> Tensor | None:
        """The inverse model's, over a drawn share of the samples."""
        samples = self.samples(rollout, take, generator)
        return None if samples is None else self.inverse_loss(*samples)
