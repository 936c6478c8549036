"""The diagonal Gaussian over a continuous action (..., D), from its mean and log standard deviation (..., D)."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor


def log_prob(mean: Tensor, log_std: Tensor, action: Tensor) -> Tensor:
    """log pi(a | s) = -sum_d [ (a_d - mean_d)^2 / (2 std_d^2) + log std_d + log(2 pi) / 2 ]."""
    z = (action - mean) * (-log_std).exp()
    return -(0.5 * z.square() + log_std + 0.5 * log(2.0 * pi)).sum(-1)


def entropy(log_std: Tensor) -> Tensor:
    """H = sum_d [ log std_d + (1 + log(2 pi)) / 2 ]."""
    return (log_std + 0.5 * (1.0 + log(2.0 * pi))).sum(-1)


def kl(mean_p: Tensor, log_std_p: Tensor, mean_q: Tensor, log_std_q: Tensor) -> Tensor:
    """KL(p || q) = sum_d [ log(std_q / std_p) + (std_p^2 + (mean_p - mean_q)^2) / (2 std_q^2) - 1/2 ]."""
    moved = (mean_p - mean_q).square()
    spread = torch.exp(2.0 * (log_std_p - log_std_q)) + moved * torch.exp(-2.0 * log_std_q)
    return (log_std_q - log_std_p + 0.5 * spread - 0.5).sum(-1)
