"""What bounds a gradient: a large critic loss must not drown the policies."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import pytest
import torch
from torch import Tensor, nn

import eipo
from eipo import gradients
from eipo.methods import Targets
from eipo.rollout import Rollout

T, N = 8, 6


def parameters(*sizes: int) -> list[nn.Parameter]:
    return [nn.Parameter(torch.zeros(n)) for n in sizes]


def test_together_is_one_bound_on_the_sum() -> None:
    p = parameters(1, 1)
    grads = gradients.together([3.0 * p[0].sum(), 4.0 * p[1].sum()], p)
    log = gradients.bound_together(grads, p, 1.0)
    assert log["grad_norm"].item() == pytest.approx(5.0)
    assert [x.grad.item() for x in p] == pytest.approx([0.6, 0.8], rel=1e-5)


def test_apart_the_critics_are_no_longer_than_the_policies() -> None:
    p = parameters(1, 1)
    policies, critics = 0.3 * p[0].sum(), 40.0 * p[0].sum() + 30.0 * p[1].sum()
    log = gradients.bound_apart(gradients.apart([policies, critics], p), p, 1.0)
    assert (log["grad_norm"].item(), log["grad_norm_critics"].item()) == pytest.approx((0.3, 50.0))
    # the critics' gradient, of norm 50, becomes 0.3 long: 0.24 and 0.18
    assert [x.grad.item() for x in p] == pytest.approx([0.3 + 0.24, 0.18], rel=1e-5)


def test_apart_a_small_critic_gradient_stays_and_both_are_bounded() -> None:
    p = parameters(1)
    gradients.bound_apart(gradients.apart([5.0 * p[0].sum(), 0.5 * p[0].sum()], p), p, 1.0)
    assert p[0].grad.item() == pytest.approx(1.0 + 0.5, rel=1e-5)
    gradients.bound_apart(gradients.apart([5.0 * p[0].sum(), 7.0 * p[0].sum()], p), p, 1.0)
    assert p[0].grad.item() == pytest.approx(2.0, rel=1e-5)


def test_apart_critics_learn_while_there_is_nothing_to_climb() -> None:
    p = parameters(1)
    gradients.bound_apart(gradients.apart([torch.zeros(()), 7.0 * p[0].sum()], p), p, 1.0)
    assert p[0].grad.item() == pytest.approx(gradients.FLOOR, rel=1e-5)


@pytest.fixture
def stage(scripted: Callable, make_agent: Callable, play: Callable) -> Callable:
    def make() -> tuple[nn.Module, Rollout]:
        envs = scripted(num=N, end="turns", different=2)
        agent = make_agent(envs)
        return agent, play(envs, agent, T)

    return make


def shared_gradient(stage: Callable, make_learner: Callable, unit: float, sign: float = 1.0, **ppo: object) -> Tensor:
    """The gradient in the encoder after one update with returns in some unit, advantages of either sign."""
    agent, rollout = stage()
    noise = torch.Generator().manual_seed(1)
    A, R = (torch.randn(T, N, generator=noise) for _ in range(2))
    learner = make_learner(agent, minibatches=1, epochs=1, entropy=0.0, **ppo)
    returns = {"E__EI": rollout.value["E__EI"] + unit * R}
    learner.update(rollout, Targets({"EI": sign * A}), returns, torch.Generator().manual_seed(0))
    learner.close()
    return torch.cat([p.grad.flatten() for p in agent.encoder.parameters()])


def test_a_large_critic_loss_does_not_drown_the_policies(stage: Callable, make_learner: Callable) -> None:
    """What the advantages' sign changes of the step in the shared network is the policies' part of it."""

    def part(apart: bool, unit: float) -> float:
        up, down = (shared_gradient(stage, make_learner, unit, sign, clip_apart=apart) for sign in (1.0, -1.0))
        return (up - down).norm().item() / 2

    alone = part(apart=False, unit=0.0)
    assert alone < 1.0  # the bound is not at work on the policies
    assert part(apart=False, unit=1e4) < 0.01 * alone  # drowned: one bound shortens both
    assert part(apart=True, unit=1e4) == pytest.approx(alone, rel=1e-3)
    # However large the critic's loss is, the step is the same.
    large, larger = (shared_gradient(stage, make_learner, unit, clip_apart=True) for unit in (1e3, 1e6))
    torch.testing.assert_close(large, larger, rtol=1e-3, atol=1e-6)


def test_apart_shards_do_not_change_the_update(stage: Callable, make_learner: Callable) -> None:
    one, two = (shared_gradient(stage, make_learner, 10.0, clip_apart=True, shards=n) for n in (1, 2))
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


# The task reward's unit, in whole runs


def in_unit(unit: float, method: str, iterations: int, **settings: object) -> list[dict]:
    """Metrics of a run on the three contexts (chance earns 1/3), its task reward in another unit."""

    def world() -> gym.Env:
        return gym.wrappers.TransformReward(gym.make("eipo-test/Context-v0"), lambda r: unit * r)

    small = {"envs.num": 16, "envs.steps": 32, "ppo.lr": 3e-3, "bonus.features": 8, "compute.threads": 1}
    return eipo.train(world, method=method, steps=iterations * 512, settings=small | settings).metrics


@pytest.mark.parametrize("method", ["en", "dy", "dc", "eipo", "hepo"])
def test_where_the_task_reward_is_scaled_its_unit_is_nothing_to_the_run(method: str) -> None:
    """Bit for bit, for a power of two: policies, critics, alpha and the gradient's norm."""
    raw = ("return", "return_E", "return_EI", "return_I", "return_mixed", "reward")
    one, other = (in_unit(unit, method, 4, **{"method.switch": "alternate"}) for unit in (1.0, 1024.0))
    for a, b in zip(one, other, strict=True):
        assert a["grad_norm"] > 0
        for key in a.keys() - {*raw, "steps_per_second", "acting_share"}:
            assert a[key] == b[key] or a[key] != a[key], key
        for key in raw:
            assert b[key] == (None if a[key] is None else pytest.approx(1024 * a[key]))


def test_where_it_is_not_one_bound_lets_the_critic_drown_the_policy_and_two_do_not() -> None:
    """EO has the task reward as it is, as in the paper: in units of 1/1000 its critic takes all there is."""

    def learned(unit: float, apart: bool) -> float:
        return in_unit(unit, "eo", 12, **{"ppo.clip_apart": apart})[-1]["return"] / unit

    assert learned(1.0, apart=False) > 0.95
    assert learned(1000.0, apart=False) < 0.7
    assert learned(1000.0, apart=True) > 0.9
