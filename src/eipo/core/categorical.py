"""The categorical distribution over a discrete action, from logits (..., A)."""

from __future__ import annotations

import torch
from torch import Tensor


def gumbel(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Gumbel noise: argmax(logits + noise) is an exact sample of softmax(logits), with no work left for the loop."""
    return -torch.empty(shape, device=generator.device).exponential_(generator=generator).log()


def log_prob(log_p: Tensor, action: Tensor) -> Tensor:
    """log pi(a_t | s_t), from log probabilities (..., A) and actions (...)."""
    return log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)


def entropy(log_p: Tensor) -> Tensor:
    """H = -sum_a p_a log p_a."""
    return -(log_p.exp() * log_p).sum(-1)


def kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) = sum_a p_a (log p_a - log q_a)."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)
