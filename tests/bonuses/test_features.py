"""ICM, E3B and counts: their rewards and updates against numbers made by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from eipo.bonuses import E3B, ICM, Counts
from eipo.bonuses.networks import InverseDynamics
from eipo.envs.batch import Batch
from eipo.rollout import Carry, Rollout, collect

T, N, F = 16, 3, 8
BOX = gym.spaces.Box(-1, 1, (2,), np.float32)
CHOICES = gym.spaces.MultiDiscrete([2, 3])
LENGTH = (1, 3, 5)


def everything(x: Tensor) -> Tensor:
    return x.flatten(0, 1)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def make(cls: Any, envs: Batch, *more: Any, actions: gym.Space | None = None, share: float = 1.0) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return cls(envs.observation_space, actions or envs.action_space, F, share, *more)


@pytest.fixture
def rollout(scripted: Callable, make_agent: Callable, play: Callable) -> Rollout:
    envs = scripted(end="turns", different=2)
    return play(envs, make_agent(envs), T)


def with_actions(rollout: Rollout, space: gym.Space) -> Rollout:
    """The same frames, after actions of another space."""
    space.seed(0)
    action = torch.as_tensor(np.stack([space.sample() for _ in range(T * N)])).unflatten(0, (T, N))
    return dataclasses.replace(rollout, action=action)


SPACES = {"Discrete": None, "Box": BOX, "MultiDiscrete": CHOICES}


@pytest.mark.parametrize("kind", SPACES)
def test_icm_rewards_what_the_forward_model_does_not_foresee(scripted: Callable, rollout: Rollout, kind: str) -> None:
    space = SPACES[kind]
    rollout = rollout if space is None else with_actions(rollout, space)
    bonus = make(ICM, scripted(), actions=space)
    reward = bonus.reward(rollout)
    # Each sample by itself: 1/2 mean (W2 relu(W1 [phi(s), code of a]) - phi(s'))^2, s' the true next frame
    first, _, second = bonus.forward_model
    with torch.no_grad():
        for t, n in ((0, 0), (2, 1), (7, 2), (15, 1)):
            phi, after = bonus.phi(
                bonus.whiten(rollout.frames[torch.stack([rollout.index[t, n], rollout.next_index[t, n]])])
            )
            a = rollout.action[t, n]
            code = {
                "Discrete": lambda a: [float(a == 0), float(a == 1)],
                "Box": lambda a: a.tolist(),
                "MultiDiscrete": lambda a: [float(a[0] == i) for i in (0, 1)] + [float(a[1] == i) for i in (0, 1, 2)],
            }[kind](a)
            x = torch.cat([phi, torch.tensor(code)])
            foreseen = second.weight @ (first.weight @ x + first.bias).relu() + second.bias
            assert reward[t, n].item() == pytest.approx(0.5 * (foreseen - after).square().mean().item(), rel=1e-4)


@pytest.mark.parametrize("kind", SPACES)
def test_the_inverse_loss_in_numbers(scripted: Callable, kind: str) -> None:
    """With an inverse model that says the same of every pair."""
    bonus = make(InverseDynamics, scripted(), actions=SPACES[kind])
    said = {"Discrete": [1.0, 2.0], "Box": [0.5, -1.0], "MultiDiscrete": [1.0, 2.0, 0.0, 1.0, 3.0]}[kind]
    bonus.inverse = nn.Sequential(nn.Linear(2 * F, len(said)))
    nn.init.zeros_(bonus.inverse[0].weight)
    bonus.inverse[0].bias.data = torch.tensor(said)
    phi = torch.zeros(2, F)
    if kind == "Discrete":  # mean over two actions of log(e^1 + e^2) - logit
        loss = bonus.inverse_loss(phi, phi, torch.tensor([0, 1]))
        assert loss.item() == pytest.approx(np.log(np.exp(1) + np.exp(2)) - 1.5)
    elif kind == "Box":  # half of (0.5^2 + 1^2) and of (0.5^2 + 0), their mean, and log(2 pi) for the two numbers
        loss = bonus.inverse_loss(phi, phi, torch.tensor([[0.0, 0.0], [0.0, -1.0]]))
        assert loss.item() == pytest.approx((0.625 + 0.125) / 2 + np.log(2 * np.pi))
    else:  # both choices are right or wrong by themselves
        loss = bonus.inverse_loss(phi, phi, torch.tensor([[0, 2], [1, 0]]))
        first, second = np.log(np.exp(1) + np.exp(2)), np.log(1 + np.exp(1) + np.exp(3))
        assert loss.item() == pytest.approx(((first - 1) + (second - 3) + (first - 2) + (second - 0)) / 2)


def test_icms_gradient_in_numbers(scripted: Callable, rollout: Rollout) -> None:
    """The forward model's last bias: dL/db = mean over samples of (foreseen - phi(s')) / F. phi does not feel it."""
    bonus = make(ICM, scripted())
    bonus.reward(rollout)
    with torch.no_grad():
        before, after = (
            bonus.phi(bonus.whiten(rollout.frames[i.flatten()])) for i in (rollout.index, rollout.next_index)
        )
        error = bonus.foreseen(before, rollout.action.flatten()) - after
    loss = bonus.loss(rollout, everything, generator())
    grads = torch.autograd.grad(loss, [bonus.forward_model[-1].bias, *bonus.phi.parameters()], retain_graph=True)
    torch.testing.assert_close(grads[0], error.mean(0) / F, rtol=1e-4, atol=1e-7)
    inverse = bonus.inverse_loss(*bonus.samples(rollout, everything, generator()))
    alone = torch.autograd.grad(inverse, list(bonus.phi.parameters()))
    for g, expected in zip(grads[1:], alone, strict=True):
        torch.testing.assert_close(g, expected)
    assert loss.item() == pytest.approx(inverse.item() + 0.5 * error.square().mean().item(), rel=1e-4)


def learn(bonus: Any, rollout: Rollout, times: int) -> list[float]:
    optimizer = torch.optim.Adam([p for p in bonus.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(times):
        loss = bonus.loss(rollout, everything, generator())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def moving(rollout: Rollout) -> Rollout:
    """A world in which the first number of a frame tells the action that led there, and the last is noise."""
    noise = torch.Generator().manual_seed(3)
    frames = torch.randn(T * N + T * N, 3, generator=noise)
    index = torch.arange(T * N).reshape(T, N)
    frames[T * N :, 0] = frames[: T * N, 0] + 2.0 * rollout.action.flatten() - 1.0
    return dataclasses.replace(rollout, frames=frames, index=index, next_index=index + T * N)


def test_icm_learns_which_action_it_was_and_what_comes_of_it(scripted: Callable, rollout: Rollout) -> None:
    world = moving(rollout)
    bonus = make(ICM, scripted())
    bonus.reward(world)
    losses = learn(bonus, world, 100)
    phi, after, action = bonus.samples(world, everything, generator())
    told = bonus.inverse(torch.cat([phi, after], -1)).argmax(-1)
    assert (told == action).float().mean() > 0.95
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("cls", [ICM, E3B])
def test_a_share_of_the_samples_trains_and_none_is_none(scripted: Callable, rollout: Rollout, cls: Any) -> None:
    more = (N,) if cls is E3B else ()
    half, none = (make(cls, scripted(), *more, share=share) for share in (0.5, 0.0))
    _, _, action = half.samples(rollout, everything, generator())
    assert 10 < len(action) < 38
    assert none.loss(rollout, everything, generator()) is None


def test_samples_are_in_step(scripted: Callable, rollout: Rollout) -> None:
    """Also when a minibatch takes whole environments, and single ones."""
    bonus = make(InverseDynamics, scripted())
    bonus.take_in(rollout)
    for take in (lambda x: x[:, torch.tensor([2, 0])], lambda x: x.flatten(0, 1)[torch.tensor([5, 40, 17])]):
        phi, after, action = bonus.samples(rollout, take, generator())
        columns = (take(x).flatten() for x in (rollout.index, rollout.next_index, rollout.action))
        for i, (index, then, a) in enumerate(zip(*columns, strict=True)):
            torch.testing.assert_close(phi[i], bonus.phi(bonus.whiten(rollout.frames[index[None]]))[0])
            torch.testing.assert_close(after[i], bonus.phi(bonus.whiten(rollout.frames[then[None]]))[0])
            assert action[i] == a


# E3B


def test_e3b_is_the_ellipse_of_the_episode_so_far(scripted: Callable, rollout: Rollout) -> None:
    """phi(s')^T (0.1 I + sum of phi phi^T)^-1 phi(s'), by a fresh inverse at every step."""
    bonus = make(E3B, scripted(), N)
    reward = bonus.reward(rollout)
    phi = bonus.features(rollout).detach().double()
    for n in range(N):
        C = 0.1 * torch.eye(F, dtype=torch.float64)
        for t in range(T):
            x = phi[rollout.next_index[t, n]]
            assert reward[t, n].item() == pytest.approx((x @ C.inverse() @ x).item(), rel=1e-3)
            C = C + torch.outer(x, x)
            if rollout.done[t, n]:
                C = 0.1 * torch.eye(F, dtype=torch.float64)


def test_e3b_of_indicators_counts(scripted: Callable, rollout: Rollout) -> None:
    """phi an indicator: 1 / (0.1 + number of earlier visits in this episode)."""
    bonus = make(E3B, scripted(), N)
    step = rollout.frames[:, 2].long()  # the step in the episode, 0 to 5; made one of two by `// 3`
    bonus.features = lambda _: nn.functional.one_hot(step // 3, F).float()  # type: ignore[method-assign]
    reward = bonus.reward(rollout)
    # Environment 2 has episodes of 5 steps; next frames are steps 1, 2, 3, 4, 5: features 0, 0, 1, 1, 1
    assert reward[:5, 2].tolist() == pytest.approx([1 / 0.1, 1 / 1.1, 1 / 0.1, 1 / 1.1, 1 / 2.1], rel=1e-4)
    assert reward[5:10, 2].tolist() == pytest.approx(reward[:5, 2].tolist())  # a new episode begins anew


@pytest.mark.parametrize("cls", [E3B, Counts])
def test_episodes_go_on_over_rollouts_and_checkpoints(scripted: Callable, make_agent: Callable, cls: Any) -> None:
    envs = scripted(end="truncate", different=2)
    agent = make_agent(envs)
    carry, g = Carry.start(agent, N), generator()
    pieces = [collect(envs, agent, ["EI"], steps, carry, g) for steps in (4, 6)]
    fresh = scripted(end="truncate", different=2)
    whole = collect(fresh, agent, ["EI"], 10, Carry.start(agent, N), generator())

    def bonus() -> Any:
        made = make(E3B, envs, N) if cls is E3B else Counts(N)
        if cls is E3B:  # moments that do not move: features are then the same in the pieces and in the whole
            made.take_in(whole)
            made.take_in = lambda _: None
        return made

    expected = bonus().reward(whole)
    first, second = bonus(), bonus()
    found = [first.reward(pieces[0])]
    second.load_state_dict(first.state_dict())  # as a run that was stopped in between
    found.append(second.reward(pieces[1]))
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-4, atol=1e-5)


def test_e3b_stays_exact_over_a_long_episode(scripted: Callable, rollout: Rollout) -> None:
    """Two thousand updates of the inverse in fp32, the features of very different sizes."""
    steps = 2000
    x = torch.randn(steps, F, generator=generator()) * torch.tensor([10.0 ** (-i / 3) for i in range(F)])
    bonus = make(E3B, scripted(), 1)
    bonus.take_in, bonus.features = (lambda _: None), (lambda _: x)
    small = dataclasses.replace(
        rollout, next_index=torch.arange(steps)[:, None], done=torch.zeros(steps, 1, dtype=torch.bool)
    )
    reward = bonus.reward(small)
    assert (reward > 0).all()
    C = 0.1 * torch.eye(F, dtype=torch.float64) + x[:-1].double().T @ x[:-1].double()
    assert reward[-1, 0].item() == pytest.approx((x[-1].double() @ C.inverse() @ x[-1].double()).item(), rel=1e-3)


# Counts


def test_counts_in_numbers(scripted: Callable, rollout: Rollout) -> None:
    """1 / sqrt(visits in this episode); its first frame counts as seen."""
    frames = torch.tensor([[0.0], [1.0], [2.0]])
    # One environment: 0 -> 1, 1 -> 0, 0 -> 1, 1 -> 1, end; then 2 -> 1, 1 -> 2
    index = torch.tensor([0, 1, 0, 1, 2, 1])[:, None]
    after = torch.tensor([1, 0, 1, 1, 1, 2])[:, None]
    reset = torch.tensor([True, False, False, False, True, False])[:, None]
    small = dataclasses.replace(rollout, frames=frames, index=index, next_index=after, reset=reset)
    expected = [1.0, 1 / 2**0.5, 1 / 2**0.5, 1 / 3**0.5, 1.0, 1 / 2**0.5]
    assert Counts(1).reward(small).flatten().tolist() == pytest.approx(expected)


def test_counts_state_is_empty_before_the_first_step() -> None:
    bonus = Counts(2)
    other = Counts(2)
    other.seen[1][b"old"] = 3
    other.load_state_dict(bonus.state_dict())
    assert other.seen == [{}, {}]
