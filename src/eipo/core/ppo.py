"""Proximal policy optimization's pieces."""

from __future__ import annotations

import torch
from torch import Tensor


def normalize(x: Tensor) -> Tensor:
    """(x - mean) / std of the whole batch, as a new tensor. Only a policy's loss may see the result.

    A batch whose values are all equal, up to fp32's rounding, says nothing: it becomes 0, not noise blown up.
    """
    centred = x - x.mean()
    std = centred.square().mean().sqrt()
    return centred / std if std > 1e-6 * x.abs().max() else torch.zeros_like(x)


def clipped_surrogate(log_ratio: Tensor, advantage: Tensor, clip: float) -> Tensor:
    """E[min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)], ratio = new policy / policy that acted."""
    ratio = log_ratio.exp()
    return torch.minimum(ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip) * advantage).mean()


def value_loss(value: Tensor, returns: Tensor, weight: Tensor) -> Tensor:
    """1/2 E[w_t (V(s_t) - R_t)^2],  R_t = A_t + V_old(s_t);  w says whose steps these are, its mean is 1."""
    return 0.5 * (weight * (value - returns).square()).mean()


def explained_variance(value: Tensor, returns: Tensor) -> Tensor:
    """1 - Var[R - V] / Var[R]: 1 is a perfect critic, 0 one that knows only the mean; NaN where R does not vary."""
    variance = returns.var(correction=0)
    return torch.where(variance > 0, 1.0 - (returns - value).var(correction=0) / variance, torch.nan)


def kl_from_log_ratio(log_ratio: Tensor) -> Tensor:
    """KL(acted || new) from samples of the acted policy: E[(ratio - 1) - log ratio], never negative."""
    return (log_ratio.exp() - 1.0 - log_ratio).mean()
