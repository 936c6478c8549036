"""The objective's identities, on random decision processes solved exactly by linear algebra."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from eipo.core import objective

GAMMA = 0.9
S, A = 5, 3


@dataclass
class Process:
    """A random decision process and two random policies, in float64."""

    P: Tensor  # (S, A, S)
    r_E: Tensor  # (S, A)
    r_I: Tensor  # (S, A)
    start: Tensor  # (S,)
    pi_E: Tensor  # (S, A)
    pi_EI: Tensor  # (S, A)

    @classmethod
    def random(cls, seed: int, S: int = S) -> Process:
        g = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=g, dtype=torch.float64)

        return cls(
            draw(S, A, S).softmax(-1), draw(S, A), draw(S, A), draw(S).softmax(-1),
            draw(S, A).softmax(-1), draw(S, A).softmax(-1),
        )  # fmt: skip

    def chain(self, pi: Tensor) -> Tensor:
        """I - gamma P_pi."""
        return torch.eye(len(pi), dtype=torch.float64) - GAMMA * torch.einsum("sa,sat->st", pi, self.P)

    def V(self, pi: Tensor, r: Tensor) -> Tensor:
        """V = (I - gamma P_pi)^-1 r_pi."""
        return torch.linalg.solve(self.chain(pi), (pi * r).sum(1))

    def J(self, pi: Tensor, r: Tensor) -> float:
        return float(self.start @ self.V(pi, r))

    def advantage(self, pi: Tensor, r: Tensor) -> Tensor:
        """A(s, a) = r + gamma E[V(s')] - V(s)."""
        V = self.V(pi, r)
        return r + GAMMA * self.P @ V - V[:, None]

    def visits(self, pi: Tensor) -> Tensor:
        """sum_t gamma^t Pr(s_t = s, a_t = a): sums to 1 / (1 - gamma)."""
        return torch.linalg.solve(self.chain(pi).T, self.start)[:, None] * pi

    def discounted_sum(self, pi: Tensor, U: Tensor) -> float:
        """E_pi[sum_t gamma^t U(s_t, a_t)]."""
        return float((self.visits(pi) * U).sum())

    def gap(self, policy_of_states: Tensor, clip: float) -> float:
        """L / (1 - gamma), with states as one policy visits them and actions of pi_E.

        constraint_gap is a mean; a positive weight w passes through its minimum, so A times w makes it a weighted one.
        """
        w = self.visits(policy_of_states).sum(1, keepdim=True) * self.pi_E
        log_ratio = (self.pi_EI / self.pi_E).log()
        A_E__E = self.advantage(self.pi_E, self.r_E)
        return objective.constraint_gap(log_ratio, w * A_E__E * w.numel(), clip)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("seed", "states"), [(0, 4), (1, 5), (2, 6), (3, 6)])
def test_u_max_sums_to_the_objective_of_the_max_stage(seed: int, states: int, alpha: float) -> None:
    p = Process.random(seed, states)
    U = objective.u_max(p.r_E, p.r_I, p.advantage(p.pi_E, p.r_E), alpha)
    expected = (1 + alpha) * p.J(p.pi_EI, p.r_E) + p.J(p.pi_EI, p.r_I) - alpha * p.J(p.pi_E, p.r_E)
    assert p.discounted_sum(p.pi_EI, U) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("seed", "states"), [(0, 4), (1, 5), (2, 6), (3, 6)])
def test_u_min_sums_to_the_papers_form_of_the_min_stage(seed: int, states: int, alpha: float) -> None:
    """alpha J_E(pi_E) - J_{E+I}(pi_EI): the paper puts V_{E+I} for V^alpha_{E+I}, so alpha J_E(pi_EI) is missing."""
    p = Process.random(seed, states)
    U = objective.u_min(p.r_E, p.r_I, p.advantage(p.pi_EI, p.r_E), p.advantage(p.pi_EI, p.r_I), alpha)
    papers = alpha * p.J(p.pi_E, p.r_E) - p.J(p.pi_EI, p.r_E + p.r_I)
    assert p.discounted_sum(p.pi_E, U) == pytest.approx(papers, abs=1e-10)
    # What is lost does not depend on pi_E, so the policy that climbs it is the same.
    whole = -((1 + alpha) * p.J(p.pi_EI, p.r_E) + p.J(p.pi_EI, p.r_I) - alpha * p.J(p.pi_E, p.r_E))
    assert papers - whole == pytest.approx(alpha * p.J(p.pi_EI, p.r_E), abs=1e-10)


def test_u_in_numbers() -> None:
    r_E, r_I, a, b = (torch.tensor([x]) for x in (2.0, 3.0, 5.0, 7.0))
    # 2 + 3 + 0.5 * 5
    assert objective.u_max(r_E, r_I, a, 0.5).tolist() == [7.5]
    # (0.5 - 1) * 2 - 3 + 5 + 7
    assert objective.u_min(r_E, r_I, a, b, 0.5).tolist() == [8.0]


@pytest.mark.parametrize("seed", range(4))
def test_constraint_gap_is_the_difference_of_the_policies_where_pi_EI_visits(seed: int) -> None:
    """Performance difference lemma: exact with pi_EI's own visits and no clipping, however far apart the two are."""
    p = Process.random(seed)
    difference = p.J(p.pi_EI, p.r_E) - p.J(p.pi_E, p.r_E)
    assert p.gap(p.pi_EI, clip=1e9) == pytest.approx(difference, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_constraint_gap_from_pi_E_data_is_right_to_first_order(seed: int) -> None:
    """With pi_E's visits, which is what the max stage has, the error is of second order in the policies' distance."""
    p = Process.random(seed)
    direction = torch.randn(S, A, generator=torch.Generator().manual_seed(seed + 100), dtype=torch.float64)
    errors, differences = [], []
    for eps in (0.02, 0.01):
        p.pi_EI = (p.pi_E.log() + eps * direction).softmax(-1)
        differences.append(p.J(p.pi_EI, p.r_E) - p.J(p.pi_E, p.r_E))
        errors.append(p.gap(p.pi_E, clip=0.1) - differences[-1])
    assert abs(errors[1]) < 0.1 * abs(differences[1])
    # Half the distance: half the difference, a quarter of the error.
    assert differences[0] / differences[1] == pytest.approx(2.0, rel=0.1)
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_constraint_gap_clips_what_the_mixed_policy_may_gain() -> None:
    log_ratio = torch.tensor([1.5, 0.5]).log()
    # min(1.5 * 2, 1.1 * 2) = 2.2 and min(0.5 * -2, 0.9 * -2) = -1.8: mean 0.2
    assert objective.constraint_gap(log_ratio, torch.tensor([2.0, -2.0]), 0.1) == pytest.approx(0.2)


number = st.floats(-1e3, 1e3)
positive = st.floats(1e-3, 10.0)


@given(alpha=st.floats(0.0, 10.0), gap=number, beta=positive, alpha_clip=positive)
def test_alpha_steps_against_the_clipped_gap_and_stops_at_zero(
    alpha: float, gap: float, beta: float, alpha_clip: float
) -> None:
    new = objective.stepped_alpha(alpha, gap, beta, alpha_clip)
    assert new >= 0.0
    assert abs(new - alpha) <= beta * alpha_clip * (1 + 1e-9) + 1e-12
    if gap <= 0:  # the mixed policy earns less task reward: alpha rises by beta * |gap|, at most beta * alpha_clip
        assert new == pytest.approx(alpha + beta * min(-gap, alpha_clip), abs=1e-12)
    else:
        assert new == pytest.approx(max(0.0, alpha - beta * min(gap, alpha_clip)), abs=1e-12)


@pytest.mark.parametrize(
    ("gap", "expected"),
    # alpha 0.5, beta 0.1, clip 0.05: 0.5 + 0.1 * 0.02; 0.5 + 0.1 * 0.05; 0.5 - 0.1 * 0.02; 0.5 - 0.1 * 0.05
    [(-0.02, 0.502), (-9.0, 0.505), (0.02, 0.498), (9.0, 0.495), (0.0, 0.5)],
)
def test_alpha_in_numbers(gap: float, expected: float) -> None:
    assert objective.stepped_alpha(0.5, gap, 0.1, 0.05) == pytest.approx(expected, abs=1e-12)


def test_alpha_never_falls_below_zero() -> None:
    assert objective.stepped_alpha(0.001, 5.0, 0.1, 0.05) == 0.0


@pytest.mark.parametrize(("J", "before", "done"), [(2.0, 1.0, False), (1.0, 1.0, True), (0.0, 1.0, True)])
def test_max_stage_ends_when_J_no_longer_rises(J: float, before: float, done: bool) -> None:
    assert objective.max_stage_is_done(J, before) is done


@pytest.mark.parametrize(("J", "before", "done"), [(2.0, 1.0, True), (1.0, 1.0, True), (0.0, 1.0, False)])
def test_min_stage_ends_when_J_no_longer_falls(J: float, before: float, done: bool) -> None:
    assert objective.min_stage_is_done(J, before) is done


def test_J_is_the_mean_of_raw_u_with_the_stages_sign() -> None:
    U = torch.tensor([[1.0, 2.0], [3.0, 10.0]])  # mean 4
    assert objective.objective_in_max(U) == 4.0
    assert objective.objective_in_min(U) == -4.0
