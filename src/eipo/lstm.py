"""An LSTM over T steps whose state is cleared where an episode starts, for processors that multiply bf16.

oneDNN's fused kernel takes three times as long in its backward pass as the products in it (docs/performance.md). Here
the loop has one product a step in each direction, and what can be done for all steps at once is.

Shapes: T steps, B environments, H width; gates in the order of nn.LSTM: input, forget, cell, output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Unroll(torch.autograd.Function):
    """(projected inputs (T, B, 4 H), recurrent weights (4 H, H), h and c before (B, H), reset (T, B)) -> (T, B, H).

    Products are in the type of the projected inputs, state and gates in that of h and c. The state before is data: no
    gradient goes into it.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, w_hh: Tensor, h: Tensor, c: Tensor, reset: Tensor) -> Tensor:
        T, B, H = *projected.shape[:2], h.shape[1]
        gates, before, ends = h.new_empty(T, B, 4 * H), h.new_empty(T, B, H), h.new_empty(T, B, H)
        y, seen = h.new_empty(T, B, H), projected.new_empty(T, B, H)  # seen: h before each step
        w, keep, starts = w_hh.t().contiguous(), (~reset).to(h.dtype).unsqueeze(-1), reset.any(1).tolist()
        for t in range(T):
            if starts[t]:
                h, c = h * keep[t], c * keep[t]
            before[t], seen[t] = c, h
            gate = gates[t]
            gate.copy_(torch.addmm(projected[t], seen[t], w))
            gate[:, : 2 * H].sigmoid_()
            gate[:, 2 * H : 3 * H].tanh_()
            gate[:, 3 * H :].sigmoid_()
            i, f, g, o = gate.chunk(4, -1)
            c = (f * c).addcmul_(i, g)
            h = torch.mul(o, torch.tanh(c, out=ends[t]), out=y[t])
        ctx.save_for_backward(w_hh, gates, before, ends, seen, keep)
        ctx.starts = starts
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        w_hh, gates, before, ends, seen, keep = ctx.saved_tensors
        (dy,) = grads
        T, B, H = ends.shape
        i, f, g, o = gates.chunk(4, -1)
        # What d loss / d c and d loss / d h have to be multiplied with, all steps at once.
        of_c = torch.cat([g * i * (1 - i), before * f * (1 - f), i * (1 - g * g)], -1)  # (T, B, 3 H)
        of_h, through = ends * o * (1 - o), o * (1 - ends * ends)
        d_gates = seen.new_empty(T, B, 4 * H)
        dh, dc = torch.zeros_like(ends[0]), torch.zeros_like(ends[0])
        for t in range(T - 1, -1, -1):
            dh = dh + dy[t]
            dc = torch.addcmul(dc, dh, through[t])
            d_gates[t, :, : 3 * H].view(B, 3, H).copy_(of_c[t].view(B, 3, H) * dc.unsqueeze(1))
            d_gates[t, :, 3 * H :] = of_h[t] * dh
            dh, dc = torch.mm(d_gates[t], w_hh).to(dh.dtype), dc * f[t]
            if ctx.starts[t]:
                dh, dc = dh * keep[t], dc * keep[t]
        return d_gates, d_gates.flatten(0, 1).t() @ seen.flatten(0, 1), None, None, None


def unroll(projected: Tensor, w_hh: Tensor, h: Tensor, c: Tensor, reset: Tensor) -> Tensor:
    """T steps of an LSTM, differentiable in the projected inputs and the recurrent weights."""
    out: Tensor = Unroll.apply(projected, w_hh.to(projected.dtype), h, c, reset)
    return out
