"""The LSTM's own loop against torch's, and its gradients against finite differences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from eipo.lstm import unroll
from eipo.nets import LSTM

T, B, F, H = 7, 3, 4, 5


def data(dtype: torch.dtype) -> tuple[LSTM, Tensor, tuple[Tensor, Tensor], Tensor]:
    torch.manual_seed(0)
    memory = LSTM(F, H).to(dtype)
    nn.init.normal_(memory.cell.bias_ih_l0)
    x, state = torch.randn(T, B, F, dtype=dtype), (torch.randn(B, H, dtype=dtype), torch.randn(B, H, dtype=dtype))
    reset = torch.rand(T, B) < 0.3
    assert reset.any(1).sum() > 2
    return memory, x, state, reset


def test_outputs_and_gradients_are_torchs() -> None:
    memory, x, state, reset = data(torch.float64)
    parameters = list(memory.parameters())
    weight = torch.randn(T, B, H, dtype=torch.float64)
    results = []
    for ours in (False, True):
        seen = x.clone().requires_grad_()
        y = unroll(memory.project(seen), memory.cell.weight_hh_l0, *state, reset) if ours else None
        y = memory.unroll(seen, state, reset) if y is None else y
        results.append([y, *torch.autograd.grad((y * weight).sum(), [seen, *parameters])])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_are_those_of_finite_differences() -> None:
    memory, x, state, reset = data(torch.float64)
    projected = memory.project(x).detach().requires_grad_()
    w = memory.cell.weight_hh_l0.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda p, w: unroll(p, w, *state, reset), (projected, w))


@pytest.mark.parametrize("where", [0, 3])
def test_nothing_goes_over_the_start_of_an_episode(where: int) -> None:
    memory, x, state, _ = data(torch.float64)
    reset = torch.zeros(T, B, dtype=torch.bool)
    reset[where] = True
    seen = x.clone().requires_grad_()
    y = unroll(memory.project(seen), memory.cell.weight_hh_l0, *state, reset)
    (grad,) = torch.autograd.grad(y[where:].sum(), seen)
    assert (grad[:where] == 0).all()
    assert (grad[where:] != 0).all()
    zero = torch.zeros(B, H, dtype=torch.float64)
    alone = unroll(memory.project(x[where:]), memory.cell.weight_hh_l0, zero, zero, reset[where:])
    torch.testing.assert_close(y[where:], alone)


def test_bf16_on_the_cpu_goes_through_it_and_is_close() -> None:
    memory, x, state, reset = data(torch.float32)
    exact = memory.unroll(x, state, reset)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = memory.unroll(x, state, reset)
        h, c = state
        for t in range(T):  # as acting steps it
            keep = (~reset[t]).unsqueeze(-1)
            h, (h, c) = memory.step(memory.project(x[t]), (h * keep, c * keep))
            torch.testing.assert_close(y[t], h, atol=1e-2, rtol=1e-2)
    assert y.grad_fn is not None
    assert type(y.grad_fn).__name__ == "UnrollBackward"
    assert 0 < (y - exact).abs().max() < 0.05
