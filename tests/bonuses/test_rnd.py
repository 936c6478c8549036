"""Random network distillation: what it rewards, what it learns from, and how much work that is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from eipo.appraise import appraise
from eipo.bonuses.rnd import RND
from eipo.config import PPO
from eipo.core.moments import RewardScale
from eipo.envs.batch import Batch
from eipo.methods import Targets
from eipo.rollout import Rollout

T, N = 16, 3


def rnd(envs: Batch, share: float = 1.0, seed: int = 0) -> RND:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return RND(envs.observation_space, 16, share)


@pytest.fixture
def rollout(scripted: Callable, make_agent: Callable, play: Callable) -> Rollout:
    """Frames kept each time they come."""
    envs = scripted(end="turns", different=2)
    return play(envs, make_agent(envs), T)


@pytest.fixture
def once(scripted: Callable, make_agent: Callable, play: Callable) -> Rollout:
    """The same rollout, with repeated frames kept once."""
    envs = scripted(end="turns", different=2)
    return play(envs, make_agent(envs), T, repeats=True)


def everything(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(0, 1)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def rows_of(bonus: RND) -> list[int]:
    """How many rows each later call of the predictor got."""
    rows: list[int] = []
    bonus.predictor.register_forward_hook(lambda module, inputs, output: rows.append(len(inputs[0])))
    return rows


def test_the_reward_is_the_error_on_the_next_true_frame(scripted: Callable, rollout: Rollout) -> None:
    bonus = rnd(scripted())
    reward = bonus.reward(rollout)
    frames = rollout.frames[rollout.next_index.flatten()]
    # White: mean and std of the next frames of this rollout, clipped to 5; a column that does not vary is not divided.
    mean, std = frames.double().mean(0), frames.double().std(0, correction=0)
    x = ((frames - mean.float()) / std.float()).clamp(-5, 5)
    with torch.no_grad():
        by_hand = (bonus.predictor(x) - bonus.target(x)).square().mean(-1).unflatten(0, (T, N))
    torch.testing.assert_close(reward, by_hand, rtol=1e-4, atol=1e-6)


def test_an_episodes_end_is_rewarded_by_its_last_frame_not_the_next_first(scripted: Callable, rollout: Rollout) -> None:
    """Marking the true last frames of the longest episodes as far away changes the bonus there, and only there."""
    last = rollout.done & (rollout.frames[rollout.next_index][..., 2] == 5)
    assert last.any()
    seen = rollout.frames.clone()
    bonus = rnd(scripted())
    bonus.reward(rollout)  # so that the moments are not those of the changed frames alone
    with torch.no_grad():
        before = (bonus.predictor(bonus.whiten(seen)) - bonus.target(bonus.whiten(seen))).square().mean(-1)
        seen[rollout.next_index[last]] += 2.0
        after = (bonus.predictor(bonus.whiten(seen)) - bonus.target(bonus.whiten(seen))).square().mean(-1)
    changed = (before - after).abs()[rollout.next_index] > 1e-6
    assert torch.equal(changed, last)


def test_the_filter_runs_along_time(scripted: Callable, rollout: Rollout) -> None:
    """r_I = bonus / std of its discounted sums, each environment's along time (appendix; RND)."""
    bonus, gamma = rnd(scripted()), 0.8
    streams = appraise(rollout, bonus, None, RewardScale(N, gamma), (), PPO(gamma=gamma))
    raw, sums, running = streams.bonus.double().numpy(), [], np.zeros(N)
    for t in range(T):
        running = gamma * running + raw[t]
        sums.append(running)
    np.testing.assert_allclose(streams.r_I, raw / np.std(sums), rtol=1e-4)


def learn(bonus: RND, rollout: Rollout, times: int) -> list[float]:
    optimizer = torch.optim.Adam([p for p in bonus.parameters() if p.requires_grad], lr=1e-3)
    losses, g = [], generator()
    for _ in range(times):
        loss = bonus.loss(rollout, everything, g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_only_the_predictor_learns_and_the_target_stays_bit_for_bit(scripted: Callable, rollout: Rollout) -> None:
    bonus = rnd(scripted())
    before = {k: v.clone() for k, v in bonus.state_dict().items()}
    bonus.reward(rollout)
    learn(bonus, rollout, 5)
    assert all(torch.equal(v, before[k]) for k, v in bonus.state_dict().items() if k.startswith("target."))
    moved = [not torch.equal(v, before[k]) for k, v in bonus.state_dict().items() if k.startswith("predictor.")]
    assert moved
    assert all(moved)
    assert not any(p.requires_grad for p in bonus.target.parameters())


def test_the_error_falls_on_frames_that_come_again(scripted: Callable, rollout: Rollout) -> None:
    bonus = rnd(scripted())
    first = bonus.reward(rollout).mean().item()
    learn(bonus, rollout, 200)
    assert bonus.reward(rollout).mean().item() < 0.3 * first


def test_the_predictor_has_two_dense_layers_more_than_the_target(scripted: Callable) -> None:
    def dense(network: torch.nn.Module) -> int:
        return sum(isinstance(m, torch.nn.Linear) for m in network.modules())

    bonus = rnd(scripted())
    assert dense(bonus.predictor) == dense(bonus.target) + 2


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_share_of_the_samples_is_that_share_of_the_work(
    scripted: Callable, make_agent: Callable, play: Callable, share: float
) -> None:
    """No frame comes twice here, so each drawn sample is one row."""
    envs = scripted(end="turns")
    rollout = play(envs, make_agent(envs), 400)
    bonus = rnd(envs, share)
    bonus.reward(rollout)
    rows = rows_of(bonus)
    bonus.loss(rollout, everything, generator())
    drawn = 1200 if share == 1.0 else pytest.approx(300, abs=60)  # four standard deviations: 4 sqrt(1200 * 3 / 16)
    assert rows == [drawn]


def test_no_sample_is_no_work(scripted: Callable, rollout: Rollout) -> None:
    bonus = rnd(scripted(), share=0.0)
    bonus.reward(rollout)
    rows = rows_of(bonus)
    assert bonus.loss(rollout, everything, generator()) is None
    assert rows == []


def test_a_repeated_frame_is_one_row_but_weighs_as_often_as_it_came(scripted: Callable, once: Rollout) -> None:
    bonus = rnd(scripted())
    bonus.reward(once)
    rows = rows_of(bonus)
    loss = bonus.loss(once, everything, generator())
    assert rows == [len(once.next_index.unique())]
    assert rows[0] < T * N
    # The slow way: every sample by itself, and their mean.
    errors = []
    for i in once.next_index.flatten().tolist():
        x = bonus.whiten(once.frames[i : i + 1])
        errors.append((bonus.predictor(x) - bonus.target(x)).square().mean())
    torch.testing.assert_close(loss, torch.stack(errors).mean())
    # Counting each distinct frame once would be another number.
    distinct = dict(zip(once.next_index.flatten().tolist(), errors, strict=True))
    assert abs(loss - torch.stack(list(distinct.values())).mean()) > 1e-2 * loss


def test_keeping_frames_once_gives_the_same_rewards_and_moments(
    scripted: Callable, rollout: Rollout, once: Rollout
) -> None:
    pair = [rnd(scripted()), rnd(scripted())]
    rewards = [bonus.reward(r) for bonus, r in zip(pair, (rollout, once), strict=True)]
    torch.testing.assert_close(*rewards)
    torch.testing.assert_close(*[bonus.moments.std() for bonus in pair])
    assert pair[0].moments.count == pair[1].moments.count == T * N


def test_the_policys_gradient_norm_does_not_include_the_bonus(
    scripted: Callable, make_agent: Callable, make_learner: Callable, rollout: Rollout
) -> None:
    envs = scripted()
    advantage = torch.randn(T, N, generator=generator())
    norms, parameters = [], []
    for bonus in (None, rnd(envs)):
        agent = make_agent(envs)
        if bonus is not None:
            bonus.reward(rollout)
        learner = make_learner(agent, bonus, epochs=1, minibatches=1, grad_norm=0.01)
        log = learner.update(rollout, Targets({"EI": advantage}), {"E__EI": advantage}, generator())
        assert ("loss_bonus" in log) == (bonus is not None)
        norms.append(log["grad_norm"])
        parameters.append(torch.cat([p.detach().flatten() for p in agent.parameters()]))
    assert norms[0] > 0.01  # the bound is at work
    assert torch.equal(*norms)
    assert torch.equal(*parameters)
