"""Generalized advantages: numbers by hand, and a slow reference."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from eipo.core.returns import generalized_advantage, step_discount


def column(*xs: float) -> Tensor:
    return torch.tensor(xs, dtype=torch.float32).unsqueeze(1)


def flags(*xs: int) -> Tensor:
    return torch.tensor(xs, dtype=torch.bool).unsqueeze(1)


def advantages(
    reward: Tensor, value: Tensor, next_value: Tensor, terminated: Tensor, done: Tensor, episodic: bool = True
) -> list[float]:
    """gamma = gae_lambda = 0.5, so that decay is 0.25 a step."""
    discount = step_discount(0.5, terminated, episodic)
    return generalized_advantage(reward, value, next_value, discount, done, 0.5).flatten().tolist()


# Three steps of one environment. Rewards 1, 2, 4; V(s_t) = 2, 4, 8; the episode (if any) ends at the second step, whose
# true last frame has V = 6; the third step starts the next episode, and the rollout's last frame has V = 10.
REWARD, VALUE, NEXT = column(1, 2, 4), column(2, 4, 8), column(4, 6, 10)


def test_nothing_ends_but_the_rollout() -> None:
    next_value = column(4, 8, 10)
    # delta: 1 + 2 - 2 = 1;  2 + 4 - 4 = 2;  4 + 5 - 8 = 1 (the edge bootstraps from 10)
    # A_2 = 1;  A_1 = 2 + 0.25 * 1 = 2.25;  A_0 = 1 + 0.25 * 2.25 = 1.5625
    assert advantages(REWARD, VALUE, next_value, flags(0, 0, 0), flags(0, 0, 0)) == [1.5625, 2.25, 1.0]


def test_termination_takes_nothing_from_beyond() -> None:
    # delta: 1;  2 + 0 - 4 = -2;  1.   A_2 = 1;  A_1 = -2 (cut);  A_0 = 1 + 0.25 * -2 = 0.5
    assert advantages(REWARD, VALUE, NEXT, flags(0, 1, 0), flags(0, 1, 0)) == [0.5, -2.0, 1.0]


def test_truncation_bootstraps_from_the_true_last_frame_and_cuts_the_trace() -> None:
    # delta: 1;  2 + 0.5 * 6 - 4 = 1;  1.   A_2 = 1;  A_1 = 1 (cut: not 1.25);  A_0 = 1 + 0.25 * 1 = 1.25
    assert advantages(REWARD, VALUE, NEXT, flags(0, 0, 0), flags(0, 1, 0)) == [1.25, 1.0, 1.0]


def test_both_at_once_is_a_termination() -> None:
    """`terminated` is set, and truncation changes nothing about that."""
    assert advantages(REWARD, VALUE, NEXT, flags(0, 1, 0), flags(0, 1, 0)) == [0.5, -2.0, 1.0]
    assert step_discount(0.9, flags(1)).item() == 0.0


def test_termination_at_the_rollouts_edge() -> None:
    # delta_2 = 4 + 0 - 8 = -4;  A_1 = 2 + 0.25 * -4 = 1;  A_0 = 1 + 0.25 * 1 = 1.25
    assert advantages(REWARD, VALUE, column(4, 8, 10), flags(0, 0, 1), flags(0, 0, 1)) == [1.25, 1.0, -4.0]


def test_an_episode_of_one_step_knows_only_its_reward() -> None:
    # delta_0 = 1 + 0 - 2 = -1, alone;  the next episode begins at step 1: delta_1 = 2 + 4 - 4 = 2, delta_2 = 1
    assert advantages(REWARD, VALUE, column(7, 8, 10), flags(1, 0, 0), flags(1, 0, 0)) == [-1.0, 2.25, 1.0]


def test_non_episodic_rewards_go_on_beyond_a_termination() -> None:
    # As a truncation: delta_1 = 2 + 0.5 * 6 - 4 = 1, and the trace is cut.
    assert advantages(REWARD, VALUE, NEXT, flags(0, 1, 0), flags(0, 1, 0), episodic=False) == [1.25, 1.0, 1.0]


def test_step_discount_stops_only_at_terminations_of_episodic_rewards() -> None:
    assert step_discount(0.75, flags(0, 1, 0)).flatten().tolist() == [0.75, 0.0, 0.75]
    assert step_discount(0.75, flags(0, 1, 0), episodic=False).flatten().tolist() == [0.75, 0.75, 0.75]


def test_environments_do_not_mix() -> None:
    one = generalized_advantage(REWARD, VALUE, NEXT, step_discount(0.5, flags(0, 1, 0)), flags(0, 1, 0), 0.5)
    pair = [torch.cat([x, 100 * x], 1) for x in (REWARD, VALUE, NEXT)]
    done = flags(0, 1, 0).expand(3, 2)
    both = generalized_advantage(*pair, step_discount(0.5, done), done, 0.5)
    torch.testing.assert_close(both, torch.cat([one, 100 * one], 1))


def slow_reference(
    reward: list[float], value: list[float], next_value: list[float], terminated: list[bool], done: list[bool],
    gamma: float, gae_lambda: float,
) -> list[float]:  # fmt: skip
    """For each step the explicit sum over what is left of its episode: A_t = sum_k (gamma lambda)^k delta_{t+k}."""
    out = []
    for t in range(len(reward)):
        end = next((u for u in range(t, len(reward)) if done[u]), len(reward) - 1)
        total = 0.0
        for u in range(t, end + 1):
            bootstrap = 0.0 if terminated[u] else gamma * next_value[u]
            total += (gamma * gae_lambda) ** (u - t) * (reward[u] + bootstrap - value[u])
        out.append(total)
    return out


def random_stream(seed: int, T: int) -> tuple[list[float], list[float], list[float], list[bool], list[bool]]:
    g = torch.Generator().manual_seed(seed)
    reward, value, next_value = torch.randn(3, T, generator=g).tolist()
    done = torch.rand(T, generator=g) < 0.3
    terminated = done & (torch.rand(T, generator=g) < 0.5)
    return reward, value, next_value, terminated.tolist(), done.tolist()


unit = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), T=st.integers(1, 12), gamma=unit, gae_lambda=unit)
def test_equals_the_slow_reference(seed: int, T: int, gamma: float, gae_lambda: float) -> None:
    reward, value, next_value, terminated, done = random_stream(seed, T)
    fast = generalized_advantage(
        column(*reward), column(*value), column(*next_value),
        step_discount(gamma, flags(*terminated)), flags(*done), gae_lambda,
    )  # fmt: skip
    slow = slow_reference(reward, value, next_value, terminated, done, gamma, gae_lambda)
    assert fast.flatten().tolist() == pytest.approx(slow, abs=1e-4)


def consistent_stream(T: int = 9) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """next_value is the value of the next step, except where an episode ended."""
    g = torch.Generator().manual_seed(3)
    reward, value = torch.randn(2, T, 1, generator=g)
    done, terminated = flags(0, 0, 0, 1, 0, 0, 1, 0, 0), flags(0, 0, 0, 1, 0, 0, 0, 0, 0)
    next_value = torch.cat([value[1:], torch.tensor([[0.7]])])
    next_value[6] = -0.4  # the truncated episode's true last frame
    return reward, value, next_value, terminated, done


def test_lambda_one_is_the_discounted_return_minus_the_value() -> None:
    reward, value, next_value, terminated, done = consistent_stream()
    A = generalized_advantage(reward, value, next_value, step_discount(0.9, terminated), done, 1.0)
    r, v = reward.flatten().tolist(), value.flatten().tolist()
    # Steps 0-3 terminate; 4-6 are truncated at a frame worth -0.4; 7-8 meet the edge at a frame worth 0.7.
    returns = [sum(0.9 ** (u - t) * r[u] for u in range(t, 4)) for t in range(4)]
    returns += [sum(0.9 ** (u - t) * r[u] for u in range(t, 7)) + 0.9 ** (7 - t) * -0.4 for t in range(4, 7)]
    returns += [sum(0.9 ** (u - t) * r[u] for u in range(t, 9)) + 0.9 ** (9 - t) * 0.7 for t in range(7, 9)]
    assert A.flatten().tolist() == pytest.approx([g - x for g, x in zip(returns, v, strict=True)], abs=1e-5)


def test_lambda_zero_is_the_temporal_difference() -> None:
    reward, value, next_value, terminated, done = consistent_stream()
    A = generalized_advantage(reward, value, next_value, step_discount(0.9, terminated), done, 0.0)
    torch.testing.assert_close(A, reward + 0.9 * next_value * ~terminated - value)


@pytest.mark.parametrize("episodic", [True, False])
def test_a_constant_reward_known_exactly_has_no_advantage(episodic: bool) -> None:
    """Infinite horizon: V = r / (1 - gamma), through truncations, and through terminations if not episodic."""
    r, gamma = 3.0, 0.99
    V = torch.full((6, 2), r / (1 - gamma))
    done = torch.zeros(6, 2, dtype=torch.bool)
    done[2, 0] = done[4, 1] = True
    terminated = torch.zeros_like(done) if episodic else done
    A = generalized_advantage(torch.full((6, 2), r), V, V, step_discount(gamma, terminated, episodic), done, 0.95)
    assert A.abs().max() < 1e-3  # of values of 300, in fp32
