"""HEPO: two policies in one rollout, each stream normalized by itself, and an alpha that goes both ways."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eipo.appraise import Streams, appraise
from eipo.bonuses import NoBonus
from eipo.config import PPO, check
from eipo.config import Method as MethodConfig
from eipo.core import categorical
from eipo.core.moments import RewardScale
from eipo.errors import EipoError
from eipo.methods import HEPO, Targets
from eipo.presets import METHODS, make_config
from eipo.rollout import Carry, Rollout, collect, own_weights, shared_out
from eipo.training import Training

T, N = 6, 4
CRITICS = HEPO.critics


def hepo(**changes: Any) -> HEPO:
    return HEPO(MethodConfig(rule="hepo", **{"alpha": 0.0, "beta": 0.1, "alpha_clip": 1.0} | changes), iterations=100)


def streams(**A: float) -> Streams:
    """Streams that are the same at every step; pi_EI acts in the first two environments, pi_I in the others."""
    full = {c: torch.full((T, N), A.get(c, 0.0)) for c in CRITICS}
    zero = torch.zeros(T, N)
    own = own_weights(("EI", "EI", "I", "I"), ("EI", "I"), T, torch.device("cpu"))
    return Streams(zero, zero, zero, zero, full, full, own)


def step(method: HEPO, over_I: float, over_EI: float) -> dict[str, Any]:
    """One step, whose surrogates are these."""
    return method.step(streams(), lambda A, policy: over_I if policy == "EI" else over_EI)


# Who acts where


def test_environments_are_shared_out_in_equal_blocks() -> None:
    assert shared_out(["EI"], 5) == [("EI", slice(0, 5))]
    assert shared_out(["EI", "I"], 6) == [("EI", slice(0, 3)), ("I", slice(3, 6))]
    assert sum(block.stop - block.start for _, block in shared_out(["EI", "I"], 7)) == 7


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_each_policy_acts_in_its_half_and_log_prob_is_its_own(
    scripted: Callable, make_agent: Callable, play: Callable, memory: str
) -> None:
    envs = scripted(num=N)
    agent = make_agent(envs, memory, policies=("EI", "I"), critics=CRITICS)
    both = play(envs, agent, T, "EI", "I")
    assert both.acted == ("EI", "EI", "I", "I")
    for policy, block in (("EI", slice(0, 2)), ("I", slice(2, 4))):
        # The same noise: alone in all environments, each policy does in its half what it does here.
        alone = play(scripted(num=N), agent, T, policy)
        assert torch.equal(alone.action[:, block], both.action[:, block])
        assert torch.equal(alone.log_prob[:, block], both.log_prob[:, block])
    if memory == "none":
        h = agent.encode(both.frames[both.index[:, 2:].flatten()])
        log_p = agent.policies["I"](h).log_softmax(-1)
        expected = categorical.log_prob(log_p, both.action[:, 2:].flatten()).unflatten(0, (T, 2))
        torch.testing.assert_close(both.log_prob[:, 2:], expected)


def test_an_episode_over_two_rollouts_keeps_its_policy(scripted: Callable, make_agent: Callable) -> None:
    envs = scripted(num=6)
    agent = make_agent(envs, policies=("EI", "I"), critics=CRITICS)
    carry, g = Carry.start(agent, 6), torch.Generator().manual_seed(0)
    episodes = [e for _ in range(3) for e in collect(envs, agent, ("EI", "I"), 4, carry, g).episodes]
    assert {e.policy for e in episodes} == {"EI", "I"}
    assert sum(e.length == 5 for e in episodes) == 4  # in 12 steps, of the two environments that have such


def test_own_weights() -> None:
    own = own_weights(("EI", "I", "I"), ("E", "EI", "I"), 2, torch.device("cpu"))
    assert own["EI"].tolist() == [[3.0, 0.0, 0.0]] * 2
    assert own["I"].tolist() == [[0.0, 1.5, 1.5]] * 2
    assert own["E"].tolist() == [[1.0, 1.0, 1.0]] * 2  # it acted nowhere


# What each policy climbs


def test_both_policies_climb_the_advantage_of_whoever_acted() -> None:
    targets = hepo(lam=2.0, alpha=0.25).targets(streams(E__EI=1.0, E__I=2.0, I__EI=3.0, I__I=4.0))
    assert targets.advantage["EI"][0].tolist() == [1.0, 1.0, 2.0, 2.0]  # the task
    assert targets.advantage["I"][0].tolist() == [3.0, 3.0, 4.0, 4.0]  # the bonus alone
    weight, bonus = targets.added["EI"]
    assert weight == 2.0 / 1.25
    assert torch.equal(bonus, targets.advantage["I"])


def test_each_stream_is_normalized_before_it_is_weighed(
    scripted: Callable, make_agent: Callable, make_learner: Callable, play: Callable
) -> None:
    envs = scripted(num=N)
    noise = torch.Generator().manual_seed(1)
    A_E, A_I = (torch.randn(T, N, generator=noise) + 1 for _ in range(2))
    heads = []
    for task, bonus in ((1.0, 1.0), (1024.0, 1.0), (1.0, 1 / 1024)):
        agent = make_agent(envs, policies=("EI", "I"), critics=CRITICS)
        rollout = play(scripted(num=N), agent, T, "EI", "I")
        targets = Targets({"EI": task * A_E}, added={"EI": (0.5, bonus * A_I)})
        learner = make_learner(agent, minibatches=1, epochs=1, lr=1e-2, clip=0.1)
        learner.update(rollout, targets, {}, torch.Generator().manual_seed(0))
        heads.append(agent.policies["EI"].weight.detach().clone())
    assert torch.equal(heads[0], heads[1])
    assert torch.equal(heads[0], heads[2])
    # By hand: the gradient of the head's bias is that of -mean((A_E' + A_I' / 2) log pi)
    agent = make_agent(envs, policies=("EI",), critics=("E__EI",))
    rollout = play(scripted(num=N), agent, T, "EI")
    normal = [(a - a.mean()) / a.std(correction=0) for a in (A_E, A_I)]
    log_p = agent.heads(agent.encode(rollout.frames[rollout.index.flatten()]), ["EI"], []).policy["EI"]
    loss = -((normal[0] + 0.5 * normal[1]).flatten() * agent.actions.log_prob(log_p, rollout.action.flatten())).mean()
    (expected,) = torch.autograd.grad(loss, agent.policies["EI"].bias)
    targets = Targets({"EI": A_E}, added={"EI": (0.5, A_I)})
    make_learner(agent, minibatches=1, epochs=1, entropy=0.0, grad_norm=1e9).update(
        rollout, targets, {}, torch.Generator().manual_seed(0)
    )
    torch.testing.assert_close(agent.policies["EI"].bias.grad, expected, rtol=1e-4, atol=1e-6)


def test_a_critic_learns_from_its_own_policys_steps_alone(
    scripted: Callable, make_agent: Callable, make_learner: Callable, play: Callable
) -> None:
    envs = scripted(num=N)
    losses, heads = [], []
    for elsewhere in (0.0, 1e6):  # what the returns say where the other policy acted must not matter
        agent = make_agent(envs, policies=("EI", "I"), critics=CRITICS)
        rollout = play(scripted(num=N), agent, T, "EI", "I")
        returns = rollout.value["E__I"] + 2.0
        returns[:, :2] = elsewhere
        log = make_learner(agent, epochs=1, minibatches=1, lr=1e-2).update(
            rollout, Targets({}), {"E__I": returns}, torch.Generator().manual_seed(0)
        )
        losses.append(log["loss_V_E__I"].item())
        heads.append(agent.critics["E__I"].weight.detach().clone())
    assert losses == pytest.approx([2.0, 2.0], rel=1e-5)  # half of 2 squared, over its own half of the steps
    assert torch.equal(*heads)


# Alpha


@pytest.mark.parametrize(("over_I", "over_EI", "alpha"), [(-0.3, 0.1, 0.02), (0.3, -0.1, -0.02), (0.2, 0.2, 0.0)])
def test_alpha_goes_both_ways(over_I: float, over_EI: float, alpha: float) -> None:
    """L = (over_I - over_EI) / 2: both are estimates of what pi_EI earns more. It earns less: alpha rises."""
    method = hepo()
    metrics = step(method, over_I, over_EI)
    assert metrics["gap"] == pytest.approx((over_I - over_EI) / 2)
    assert method.alpha == metrics["alpha"] == pytest.approx(alpha)


def test_alpha_follows_the_median_of_the_last_eight() -> None:
    method = hepo(beta=1.0)
    for gap in (0.5, 0.5, -0.25):  # medians 0.5, 0.5, 0.5: alpha falls to its floor
        step(method, gap, -gap)
    assert method.alpha == -0.99
    method.alpha = 0.0
    for gap in (-0.25,) * 5:
        step(method, gap, -gap)
    # Medians of the last 8: 0.125 (2 of 4), -0.25 four times
    assert method.alpha == pytest.approx(-0.125 + 4 * 0.25)
    assert len(method.gaps) == 8
    step(method, 0.75, -0.75)  # one step of 0.75 is no median
    assert method.alpha == pytest.approx(-0.125 + 5 * 0.25)


def test_alphas_step_is_clipped_to_one_and_alpha_never_divides_by_zero() -> None:
    method = hepo(beta=0.5)
    step(method, -1e6, 1e6)
    assert method.alpha == 0.5
    method.gaps.clear()
    for _ in range(20):
        step(method, 1e6, -1e6)
    assert method.alpha == -0.99
    weight, _ = method.targets(streams(I__EI=1.0)).added["EI"]
    assert weight == pytest.approx(100.0)


def test_the_gaps_are_the_surrogates_of_each_policy_on_the_others_steps() -> None:
    """Over three contexts pi_I is uniform; pi_EI favours the right action. Critics are exact (1/3) or 0 by hand."""
    favour = 0.25
    config = make_config(
        "eipo-test/Context-v0", method="hepo", steps=8192,
        settings={"net.layers": 0, "envs.num": 32, "envs.steps": 256, "method.normalize_task": False, "ppo.lr": 0.0,
                  "method.beta": 1.0, "bonus.name": "none", "compute.threads": 1},
    )  # fmt: skip
    training = Training(config)
    agent = training.agent
    for head in (*agent.policies.values(), *agent.critics.values()):
        torch.nn.init.zeros_(head.weight)
    torch.nn.init.constant_(agent.critics["E__I"].bias, 1 / 3)
    agent.policies["EI"].weight.data[[1, 2, 0], [0, 1, 2]] = favour
    rollout, metrics = training.iterate()
    training.close()
    assert metrics["acted"] == "EI and I"
    right = rollout.reward.double().numpy() == 1
    ratio = np.where(right, 3 * math.exp(favour), 3) / (math.exp(favour) + 2)  # pi_EI / pi_I
    by_EI, by_I = right[:, :16], right[:, 16:]
    over_I = np.minimum(ratio[:, 16:] * (by_I - 1 / 3), ratio[:, 16:].clip(0.8, 1.2) * (by_I - 1 / 3)).mean()
    over_EI = np.minimum(by_EI / ratio[:, :16], by_EI * (1 / ratio[:, :16]).clip(0.8, 1.2)).mean()
    L = (over_I - over_EI) / 2
    assert metrics["gap"] == pytest.approx(L, abs=1e-5)
    assert metrics["alpha"] == pytest.approx(max(-0.99, -L), abs=1e-5)
    assert metrics["return_EI"] == pytest.approx(by_EI.mean())
    assert metrics["return_I"] == pytest.approx(by_I.mean())


# Whole


def test_values_and_advantages_are_of_the_half_that_acted(
    scripted: Callable, make_agent: Callable, play: Callable
) -> None:
    envs = scripted(num=N)
    agent = make_agent(envs, policies=("EI", "I"), critics=CRITICS)
    rollout = play(envs, agent, T, "EI", "I")
    s = appraise(rollout, NoBonus(), None, RewardScale(N, 0.9), CRITICS, PPO(gamma=0.9))
    mixed: Tensor = s.of_the_actor("E")
    assert torch.equal(mixed[:, :2], s.A["E__EI"][:, :2])
    assert torch.equal(mixed[:, 2:], s.A["E__I"][:, 2:])


class Astray(NoBonus):
    """Pays for naming the shown context, where the task pays for the one after it."""

    def reward(self, rollout: Rollout) -> Tensor:
        return (rollout.action == rollout.frames[rollout.index]).float()


def test_hepo_learns_the_task_beside_a_policy_that_the_bonus_leads_astray() -> None:
    settings = {"envs.num": 16, "envs.steps": 32, "ppo.lr": 3e-3, "method.lam": 0.3, "bonus.name": "none",
                "compute.threads": 1}  # fmt: skip
    training = Training(make_config("eipo-test/Context-v0", method="hepo", steps=40 * 512, settings=settings))
    training.bonus = Astray()
    metrics = [training.iterate()[1] for _ in range(40)]
    agent = training.trained()
    training.close()
    assert agent.policy == "EI"
    assert metrics[-1]["return_EI"] > 0.9
    assert metrics[-1]["return_I"] < 0.1
    assert max(m["gap"] for m in metrics) > 0.03  # while the two part, pi_EI earns more, and alpha falls
    assert metrics[-1]["alpha"] < metrics[0]["alpha"] < 0.0


def test_hepo_needs_two_environments() -> None:
    config = make_config("CartPole-v1", method="hepo", steps=1000, settings={"envs.num": 1, "envs.steps": 100})
    with pytest.raises(EipoError, match=r"envs\.num=1: hepo needs 2 environments"):
        check(config)
    assert METHODS["hepo"].method.alpha == 0.0
