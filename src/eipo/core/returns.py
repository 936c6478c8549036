"""Generalized advantages from per-step discounts: one function for episodic and non-episodic rewards."""

from __future__ import annotations

import torch
from torch import Tensor


def step_discount(gamma: float, terminated: Tensor, episodic: bool = True) -> Tensor:
    """discount_t = gamma * (1 - terminated_t) where the reward ends with the episode, else gamma.

    Truncation is no end of the task: a time limit cuts the data, not the return, so it does not appear here.
    """
    going_on = (~terminated).to(torch.float32)
    return gamma * going_on if episodic else torch.full_like(going_on, gamma)


def generalized_advantage(
    reward: Tensor,  # (T, N)
    value: Tensor,  # (T, N)  V(s_t)
    next_value: Tensor,  # (T, N)  V(s_{t+1}), of the true last observation where an episode ended
    discount: Tensor,  # (T, N)  of step_discount
    done: Tensor,  # (T, N)  bool: s_{t+1} is the last observation of its episode
    gae_lambda: float,
) -> Tensor:
    """A_t = delta_t + discount_t gae_lambda (1 - done_t) A_{t+1},  delta_t = r_t + discount_t V(s_{t+1}) - V(s_t).

    The trace is cut wherever an episode ended, for whatever reason: step t + 1 belongs to another episode. What a
    truncated step (or the rollout's last) would still have earned is in V(s_{t+1}).
    """
    delta = reward + discount * next_value - value  # (T, N)
    decay = discount * gae_lambda * (~done)  # (T, N)
    advantage = torch.zeros_like(delta[0])
    backwards = []
    for delta_t, decay_t in zip(reversed(delta.unbind(0)), reversed(decay.unbind(0)), strict=True):
        advantage = torch.addcmul(delta_t, decay_t, advantage)
        backwards.append(advantage)
    return torch.stack(backwards[::-1])
