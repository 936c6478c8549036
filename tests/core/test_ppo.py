"""Proximal policy optimization's pieces, in numbers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from eipo.core import ppo


@pytest.mark.parametrize(
    ("ratio", "advantage", "surrogate", "gradient"),
    # clip 0.2. The gradient is with respect to log ratio: ratio * A where the ratio counts, 0 where it is clipped.
    [
        (1.3, 2.0, 1.2 * 2.0, 0.0),  # too far up, and it would gain: clipped
        (1.3, -2.0, 1.3 * -2.0, 1.3 * -2.0),  # too far up, and it loses: pulled back
        (0.7, 2.0, 0.7 * 2.0, 0.7 * 2.0),  # too far down, and it loses: pulled back
        (0.7, -2.0, 0.8 * -2.0, 0.0),  # too far down, and it would gain: clipped
        (1.1, 2.0, 2.2, 2.2),  # within
        (0.9, -2.0, -1.8, -1.8),  # within
        (1.0, 3.0, 3.0, 3.0),
    ],
)
def test_clipped_surrogate_and_its_gradient(ratio: float, advantage: float, surrogate: float, gradient: float) -> None:
    log_ratio = torch.tensor([math.log(ratio)], requires_grad=True)
    loss = ppo.clipped_surrogate(log_ratio, torch.tensor([advantage]), 0.2)
    loss.backward()
    assert loss.item() == pytest.approx(surrogate, rel=1e-5)
    assert log_ratio.grad.item() == pytest.approx(gradient, rel=1e-5)


def test_clipped_surrogate_is_a_mean() -> None:
    log_ratio = torch.tensor([1.3, 1.3, 1.0, 0.5]).log()
    # 2.4, -2.6, 3, min(0.5 * 1, 0.8 * 1) = 0.5: sum 3.3
    A = torch.tensor([2.0, -2.0, 3.0, 1.0])
    assert ppo.clipped_surrogate(log_ratio, A, 0.2).item() == pytest.approx(3.3 / 4)


def test_gradient_at_ratio_one_is_the_policy_gradient() -> None:
    logits = torch.tensor([0.5, -0.2, 0.1], requires_grad=True)
    action, A = torch.tensor([0, 2, 2, 1]), torch.tensor([1.0, -2.0, 0.5, 3.0])
    acted = logits.detach().log_softmax(-1)[action]
    ppo.clipped_surrogate(logits.log_softmax(-1)[action] - acted, A, 0.1).backward()
    # d log pi(a) / d logits = onehot(a) - pi
    by_hand = (A[:, None] * (torch.eye(3)[action] - logits.detach().softmax(-1))).mean(0)
    torch.testing.assert_close(logits.grad, by_hand)


def test_normalize_gives_mean_0_and_std_1_in_a_new_tensor() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 10.0]])
    before = x.clone()
    y = ppo.normalize(x)
    # mean 4; deviations -3, -2, -1, 6; variance (9 + 4 + 1 + 36) / 4 = 12.5
    torch.testing.assert_close(y, torch.tensor([[-3.0, -2.0], [-1.0, 6.0]]) / math.sqrt(12.5))
    assert torch.equal(x, before)
    assert y.data_ptr() != x.data_ptr()


@given(c=st.floats(-1e6, 1e6, width=32), n=st.integers(1, 3000))
@example(c=466034.75, n=9)  # whose fp32 mean is not 466034.75
@example(c=0.1, n=64_000)
def test_a_batch_of_equal_values_becomes_zero(c: float, n: int) -> None:
    assert torch.equal(ppo.normalize(torch.full((n,), c)), torch.zeros(n))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_normalize_does_not_see_the_unit(scale: float) -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 10.0])
    torch.testing.assert_close(ppo.normalize(x * scale), ppo.normalize(x))


def test_value_loss() -> None:
    # 1/2 * mean(1, 4) = 1.25
    value, returns = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0])
    assert ppo.value_loss(value, returns, torch.ones(2)).item() == 1.25
    # only the second step is the policy's own: 1/2 * 4
    assert ppo.value_loss(value, returns, torch.tensor([0.0, 2.0])).item() == 2.0


def test_explained_variance() -> None:
    R = torch.tensor([1.0, 2.0, 3.0, 6.0])
    assert ppo.explained_variance(R, R).item() == 1.0
    assert ppo.explained_variance(torch.full((4,), 7.0), R).item() == 0.0
    # R - V = 0.5 R has a quarter of the variance
    assert ppo.explained_variance(0.5 * R, R).item() == pytest.approx(0.75)
    assert math.isnan(ppo.explained_variance(R, torch.ones(4)).item())


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_kl_estimate_is_never_negative(log_ratio: list[float]) -> None:
    assert ppo.kl_from_log_ratio(torch.tensor(log_ratio, dtype=torch.float64)).item() >= -1e-12


def test_kl_estimate_is_exact_over_all_actions() -> None:
    """Weighing each action by the acted policy gives KL(acted || new)."""
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.5, 0.25])
    samples = torch.tensor([0, 0, 1, 2])  # in proportion to p
    estimate = ppo.kl_from_log_ratio((q / p).log()[samples])
    assert estimate.item() == pytest.approx((p * (p / q).log()).sum().item(), rel=1e-5)
