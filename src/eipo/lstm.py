"""An LSTM over T steps whose state is cleared where an episode starts, for processors that multiply bf16.

oneDNN's fused kernel takes three times as long in its backward pass as the products in it (docs/performance.md). Here
the loop has one product a step in each direction, and the rest is done where caches hold it.

Shapes: T steps, B environments, H width; gates in the order of nn.LSTM: input, forget, cell, output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

BLOCK = 16  # steps whose factors are made together on the way back


class Unroll(torch.autograd.Function):
    """(projected inputs (T, B, 4 H), recurrent weights (4 H, H), h and c before (B, H), reset (T, B)) -> (T, B, H).

    Products are in the type of the projected inputs, state and gates in that of h and c. The state before is data: no
    gradient goes into it.

    tanh(x) is 2 sigmoid(2 x) - 1, which torch computes several times as fast: so the cell gate's inputs are doubled,
    exactly, and one sigmoid serves all gates. Below, s stands for sigmoid(2 x) of the cell gate, so g = 2 s - 1.
    """

    @staticmethod
    def forward(ctx: Any, projected: Tensor, w_hh: Tensor, h: Tensor, c: Tensor, reset: Tensor) -> Tensor:
        T, B, H = *projected.shape[:2], h.shape[1]
        gates, before, ends = h.new_empty(T, B, 4 * H), h.new_empty(T, B, H), h.new_empty(T, B, H)
        y, seen = h.new_empty(T, B, H), projected.new_empty(T, B, H)  # seen: h before each step
        double = torch.ones(4 * H, dtype=projected.dtype, device=projected.device)
        double[2 * H : 3 * H] = 2.0
        w, inputs = (w_hh * double.unsqueeze(-1)).t().contiguous(), projected * double
        keep, starts = (~reset).to(h.dtype).unsqueeze(-1), reset.any(1).tolist()
        for t in range(T):
            if starts[t]:
                h, c = h * keep[t], c * keep[t]
            before[t], seen[t] = c, h
            gate = gates[t]
            gate.copy_(torch.addmm(inputs[t], seen[t], w)).sigmoid_()
            i, f, s, o = gate.chunk(4, -1)
            c = (f * c).sub_(i).addcmul_(i, s, value=2.0)
            end = torch.mul(c, 2.0, out=ends[t]).sigmoid_().mul_(2.0).sub_(1.0)  # tanh(c)
            h = torch.mul(o, end, out=y[t])
        ctx.save_for_backward(w_hh, gates, before, ends, seen, keep)
        ctx.starts = starts
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        w_hh, gates, before, ends, seen, keep = ctx.saved_tensors
        (dy,) = grads
        T, B, H = ends.shape
        d_gates = seen.new_empty(T, B, 4 * H)
        dh, dc = torch.zeros_like(ends[0]), torch.zeros_like(ends[0])
        for stop in range(T, 0, -BLOCK):
            begin = max(0, stop - BLOCK)
            i, f, s, o = gates[begin:stop].chunk(4, -1)
            end = ends[begin:stop]
            # What d loss / d c and d loss / d h have to be multiplied with.
            g = s.mul(2.0).sub_(1.0)
            of_c = torch.cat([g * i * (1 - i), before[begin:stop] * f * (1 - f), i * (1 - g * g)], -1)  # (., B, 3 H)
            of_h, through = end * o * (1 - o), o * (1 - end * end)
            for t in range(stop - 1, begin - 1, -1):
                k = t - begin
                dh = dh + dy[t]
                dc = torch.addcmul(dc, dh, through[k])
                d_gates[t, :, : 3 * H].view(B, 3, H).copy_(of_c[k].view(B, 3, H) * dc.unsqueeze(1))
                d_gates[t, :, 3 * H :] = of_h[k] * dh
                dh, dc = torch.mm(d_gates[t], w_hh).to(dh.dtype), dc * f[k]
                if ctx.starts[t]:
                    dh, dc = dh * keep[t], dc * keep[t]
        return d_gates, d_gates.flatten(0, 1).t() @ seen.flatten(0, 1), None, None, None


def unroll(projected: Tensor, w_hh: Tensor, h: Tensor, c: Tensor, reset: Tensor) -> Tensor:
    """T steps of an LSTM, differentiable in the projected inputs and the recurrent weights."""
    out: Tensor = Unroll.apply(projected, w_hh.to(projected.dtype), h, c, reset)
    return out
