"""What bounds a gradient: policies and critics together, as PPO has it, or apart.

Together a large critic loss shortens the policies' step: the bound is on the norm of all, and Adam sees what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

FLOOR = 0.01  # of the bound, which the critics' gradient may always have


def together(losses: Sequence[Tensor], parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """The gradient of the sum."""
    return list(torch.autograd.grad(torch.stack(tuple(losses)).sum(), parameters, materialize_grads=True))


def bound_together(grads: Sequence[Tensor], parameters: Sequence[nn.Parameter], most: float) -> dict[str, Tensor]:
    """Put the gradient into the parameters, at most `most` long."""
    for p, g in zip(parameters, grads, strict=True):
        p.grad = g
    return {"grad_norm": nn.utils.clip_grad_norm_(parameters, most)}


def apart(losses: Sequence[Tensor], parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """The gradients of the policies' loss, then of the critics'."""
    found: list[Tensor] = []
    for loss in losses:
        if loss.requires_grad:
            found += torch.autograd.grad(loss, parameters, materialize_grads=True, retain_graph=True)
        else:  # nothing to learn here
            found += [torch.zeros_like(p) for p in parameters]
    return found


def bound_apart(grads: Sequence[Tensor], parameters: Sequence[nn.Parameter], most: float) -> dict[str, Tensor]:
    """Bound the policies' gradient by itself, the critics' by the length that the policies' then has; add them up.

    So neither drowns the other in the network that they share, whatever the unit of the returns. The critics may always
    have FLOOR of the bound: they have to learn also while there is nothing yet for the policies to climb.
    """
    policies, critics = grads[: len(parameters)], grads[len(parameters) :]
    norms = [nn.utils.get_total_norm(part) for part in (policies, critics)]
    allowed = norms[0].clamp(FLOOR * most, most)
    a = (most / (norms[0] + 1e-6)).clamp(max=1.0)
    b = (allowed / (norms[1] + 1e-6)).clamp(max=1.0)
    for p, g, h in zip(parameters, policies, critics, strict=True):
        p.grad = a * g + b * h
    return {"grad_norm": norms[0], "grad_norm_critics": norms[1]}
