"""Running moments against numpy, and the running scale of a reward."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eipo.core.moments import RewardScale, RunningMoments


def data(n: int, *shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 3 + 100


def moments_of(batches: list[torch.Tensor], shape: tuple[int, ...] = ()) -> RunningMoments:
    moments = RunningMoments(shape)
    for batch in batches:
        moments.update(batch)
    return moments


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 7), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_any_split_into_batches_gives_numpys_mean_and_std(sizes: list[int], seed: int) -> None:
    x = data(sum(sizes), 2, 3, seed=seed)
    moments = moments_of(list(x.split(sizes)), (2, 3))
    np.testing.assert_allclose(moments.mean, x.numpy().mean(0), rtol=1e-12)
    expected = x.numpy().std(0) if len(x) > 1 else np.ones((2, 3))
    np.testing.assert_allclose(moments.std(), expected, rtol=1e-9)
    assert moments.count == len(x)


@settings(deadline=None)
@given(weights=st.lists(st.integers(0, 4), min_size=1, max_size=10).filter(sum))
def test_a_weight_is_a_repetition(weights: list[int]) -> None:
    x, w = data(len(weights), 2), torch.tensor(weights)
    weighted, repeated = RunningMoments((2,)), RunningMoments((2,))
    weighted.update(x, w)
    repeated.update(x.repeat_interleave(w, 0))
    weighted.update(x + 1, w)
    repeated.update((x + 1).repeat_interleave(w, 0))
    torch.testing.assert_close(weighted.mean, repeated.mean)
    torch.testing.assert_close(weighted.std(), repeated.std())
    assert weighted.count == repeated.count


@pytest.mark.parametrize("scale", [2.0**40, 2.0**-40])
def test_scaling_the_data_by_a_power_of_two_scales_both_moments_bit_for_bit(scale: float) -> None:
    batches = list(data(50).split([1, 9, 20, 20]))
    one, other = moments_of(batches), moments_of([scale * b for b in batches])
    assert torch.equal(other.mean, scale * one.mean)
    assert torch.equal(other.std(), scale * one.std())


@pytest.mark.parametrize("scale", [1e6, 3e-7])
def test_scaling_the_data_scales_both_moments(scale: float) -> None:
    batches = list(data(50).split([1, 9, 20, 20]))
    one, other = moments_of(batches), moments_of([scale * b for b in batches])
    torch.testing.assert_close(other.mean, scale * one.mean, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(other.std(), scale * one.std(), rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("constant", [0.0, 0.3, -1e6])
def test_where_nothing_varies_there_is_no_scale(constant: float) -> None:
    assert moments_of([torch.full((7,), constant), torch.full((1000,), constant)]).std() == 1.0


def test_moments_are_in_the_state() -> None:
    one = moments_of([data(10)])
    other = RunningMoments()
    other.load_state_dict(one.state_dict())
    assert other.std() == one.std() != 1.0


GAMMA = 0.5


def rewards(T: int = 12, N: int = 3, seed: int = 0) -> torch.Tensor:
    """Rewards that drift, so that their order in time matters."""
    x = torch.randn(T, N, generator=torch.Generator().manual_seed(seed))
    return 5 * x.cumsum(0)


def scale_of(reward: torch.Tensor) -> float:
    """What the reward is divided by."""
    out = RewardScale(reward.shape[1], GAMMA)(reward)
    return (reward / out).median().item()


def test_divides_by_the_standard_deviation_of_the_discounted_sums() -> None:
    # One environment, rewards 4, 0, 2: sums 4, 2, 3; mean 3, variance (1 + 1 + 0) / 3
    out = RewardScale(1, GAMMA)(torch.tensor([[4.0], [0.0], [2.0]]))
    torch.testing.assert_close(out, torch.tensor([[4.0], [0.0], [2.0]]) / (2 / 3) ** 0.5)


def test_the_mean_is_not_subtracted() -> None:
    assert RewardScale(1, GAMMA)(torch.tensor([[4.0], [0.0], [2.0]]))[1] == 0.0


def test_defect_6e_sums_run_along_time_for_each_environment_by_itself() -> None:
    r = rewards()
    sums = np.zeros((12, 3))
    for n in range(3):
        for t in range(12):
            sums[t, n] = r[t, n] + (GAMMA * sums[t - 1, n] if t else 0.0)
    assert scale_of(r) == pytest.approx(sums.std(), rel=1e-5)


def test_defect_6e_exchanging_environments_exchanges_and_exchanging_times_changes() -> None:
    r = rewards()
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(RewardScale(3, GAMMA)(r[:, order]), RewardScale(3, GAMMA)(r)[:, order])
    # +1 -1 +1 -1: the sums stay between 1/3 and 1 in size, of either sign; +1 +1 -1 -1: they reach almost 2.
    alternating = torch.tensor([1.0, -1.0]).repeat(20)[:, None].expand(40, 3)
    assert scale_of(alternating.sort(0).values) > 1.5 * scale_of(alternating)


def test_two_rollouts_are_one_long_rollout() -> None:
    r = rewards()
    whole, halves = RewardScale(3, GAMMA), RewardScale(3, GAMMA)
    at_once = whole(r)
    halves(r[:5])
    second = halves(r[5:])
    torch.testing.assert_close(halves.rbar, whole.rbar)
    torch.testing.assert_close(halves.moments.std(), whole.moments.std())
    torch.testing.assert_close(second, at_once[5:])


def test_the_running_sum_is_in_the_state() -> None:
    r = rewards()
    one, other = RewardScale(3, GAMMA), RewardScale(3, GAMMA)
    one(r[:5])
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(r[5:]), other(r[5:]))


@pytest.mark.parametrize("scale", [2.0**20, 2.0**-20])
def test_the_rewards_unit_does_not_matter(scale: float) -> None:
    assert torch.equal(RewardScale(3, GAMMA)(scale * rewards()), RewardScale(3, GAMMA)(rewards()))


def test_no_reward_stays_no_reward() -> None:
    assert torch.equal(RewardScale(2, GAMMA)(torch.zeros(4, 2)), torch.zeros(4, 2))


def test_a_windows_past_fades() -> None:
    """Batches of 4 rows, a window of 4: what was before counts as 4 rows, so half of the merged variance."""
    m = RunningMoments(window=4)
    m.update(torch.tensor([0.0, 0.0, 2.0, 2.0]))  # mean 1, variance 1
    assert (m.count.item(), m.std().item()) == (4.0, 1.0)
    m.update(torch.tensor([1.0, 1.0, 1.0, 1.0]))  # mean 1, variance (4 * 1 + 4 * 0) / 8
    assert m.count.item() == 4.0
    assert m.std().item() == pytest.approx(0.5**0.5)
    for _ in range(30):
        m.update(torch.tensor([9.0, 11.0, 9.0, 11.0]))
    assert (m.mean.item(), m.std().item()) == pytest.approx((10.0, 1.0), rel=1e-4)  # the past is forgotten
    whole = RunningMoments()
    whole.update(torch.tensor([0.0, 0.0, 2.0, 2.0]))
    for _ in range(30):
        whole.update(torch.tensor([9.0, 11.0, 9.0, 11.0]))
    assert whole.std().item() > 1.7


@pytest.mark.parametrize("unit", [2.0**20, 2.0**-20])
def test_a_windows_scale_is_exact_in_the_unit(unit: float) -> None:
    noise = torch.Generator().manual_seed(0)
    one, other = RewardScale(3, 0.9, window=20), RewardScale(3, 0.9, window=20)
    for _ in range(4):
        r = torch.randn(8, 3, generator=noise)
        assert torch.equal(one(r), other(unit * r))
