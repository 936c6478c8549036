"""The update rules, by hand-made streams; and the known defects of public implementations (ALGORITHM.md, point 6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from eipo.appraise import Streams, appraise
from eipo.bonuses import NoBonus
from eipo.config import PPO
from eipo.config import Method as MethodConfig
from eipo.core import objective, ppo
from eipo.core.moments import RewardScale
from eipo.methods import EIPO, Decoupled, Gap, Lam, SinglePolicy, Targets, make_method
from eipo.presets import METHODS, make_config
from eipo.training import Training
from eipo.update import log_prob_now

T, N = 7, 3
EVERYWHERE = {p: torch.ones(T, N) for p in ("E", "EI", "I")}


def streams(r_E: float = 0.0, r_I: float = 0.0, **A: float) -> Streams:
    """Streams that are the same at every step."""
    values = {"E__E": 0.0, "E__EI": 0.0, "I__EI": 0.0} | A
    full = {c: torch.full((T, N), a) for c, a in values.items()}
    r = [torch.full((T, N), value) for value in (r_E, r_E, r_I, 0.0)]
    return Streams(*r, full, full, EVERYWHERE)


def no_gap(A: Tensor, policy: str) -> float:
    raise AssertionError("alpha must not move here")


def eipo(**changes: Any) -> EIPO:
    return EIPO(MethodConfig(rule="eipo", **changes), iterations=100)


def drive(method: EIPO, Js: Sequence[float], gap: Gap = lambda A, policy: 0.0) -> list[dict[str, Any]]:
    """One iteration for each J. With r_E and A at 0, U_max = r_I and U_min = -r_I, so J = r_I in both stages."""
    return [method.step(streams(r_I=J), gap) for J in Js]


def stages(metrics: list[dict[str, Any]]) -> list[str]:
    return [m["stage"] for m in metrics]


# What each policy climbs


def test_single_policy_climbs_task_or_task_plus_lam_times_bonus() -> None:
    eo = make_method(METHODS["eo"].method, 10)
    assert eo.targets(streams(E__E=2.0)).advantage.keys() == {"E"}
    assert eo.targets(streams(E__E=2.0)).advantage["E"][0, 0] == 2.0
    assert (eo.behaviour(), eo.trained_critics()) == (("E",), ("E__E",))
    for name in ("rnd", "en"):
        mixed = make_method(dataclasses.replace(METHODS[name].method, lam=0.5), 10)
        # 2 + 0.5 * 3
        assert mixed.targets(streams(E__EI=2.0, I__EI=3.0)).advantage["EI"][0, 0] == 3.5
        assert (mixed.behaviour(), mixed.trained_critics()) == (("EI",), ("E__EI", "I__EI"))


def test_decoupled_trains_the_task_policy_on_the_mixed_policys_data() -> None:
    dc = Decoupled(MethodConfig(rule="decoupled", lam=0.5, kl_weight=0.25), 10)
    targets = dc.targets(streams(E__E=7.0, E__EI=2.0, I__EI=3.0))
    assert dc.behaviour() == ("EI",)
    assert {p: a[0, 0].item() for p, a in targets.advantage.items()} == {"E": 7.0, "EI": 3.5}
    assert targets.kl_weight == 0.25


def test_eipo_in_the_min_stage() -> None:
    method = eipo(lam=2.0, alpha=0.25)
    targets = method.targets(streams(4.0, 3.0, E__EI=5.0, I__EI=7.0, E__E=1000.0))
    # U_min = (0.25 - 1) * 4 - 2 * 3 + 5 + 2 * 7 = 10;  pi_EI: 5 + 2 * 7 = 19
    assert {p: a[0, 0].item() for p, a in targets.advantage.items()} == {"E": 10.0, "EI": 19.0}
    assert (method.behaviour(), method.trained_critics()) == (("EI",), ("E__EI", "I__EI"))
    # J has the sign of the objective, which this stage lowers: minus U_min
    assert method.step(streams(4.0, 3.0, E__EI=5.0, I__EI=7.0), no_gap)["J"] == -10.0


def test_eipo_in_the_max_stage() -> None:
    method = eipo(lam=2.0, alpha=0.25)
    method.max_stage = True
    targets = method.targets(streams(4.0, 3.0, E__E=8.0, E__EI=1000.0, I__EI=1000.0))
    # U_max = 4 + 2 * 3 + 0.25 * 8 = 12;  pi_E: 8
    assert {p: a[0, 0].item() for p, a in targets.advantage.items()} == {"E": 8.0, "EI": 12.0}
    assert (method.behaviour(), method.trained_critics()) == (("E",), ("E__E",))
    assert method.step(streams(4.0, 3.0, E__E=8.0), lambda A, policy: 0.0)["J"] == 12.0


def test_decay_falls_from_lam_to_lam_min() -> None:
    """Contradiction 4: the paper's formula, as printed, grows."""
    lam = Lam(MethodConfig(lam=1.0, lam_min=0.2, lam_decay=1.0), iterations=8)
    # a fall of 0.8 over 8 iterations
    assert [lam(i) for i in (0, 1, 4, 8, 9)] == pytest.approx([1.0, 0.9, 0.6, 0.2, 0.2])
    half = Lam(MethodConfig(lam=1.0, lam_min=0.2, lam_decay=0.5), iterations=8)
    assert [half(i) for i in (0, 1, 4, 8)] == pytest.approx([1.0, 0.8, 0.2, 0.2])
    assert Lam(MethodConfig(lam=3.0, lam_min=0.0, lam_decay=0.0), iterations=8)(7) == 3.0


def test_decay_runs_with_the_iterations() -> None:
    dy = make_method(METHODS["dy"].method, 4)
    climbed = []
    for _ in range(4):
        climbed.append(dy.targets(streams(I__EI=1.0)).advantage["EI"][0, 0].item())
        assert dy.step(streams(), no_gap)["lam"] == climbed[-1]
    assert climbed == [1.0, 0.75, 0.5, 0.25]


# When stages alternate


def test_the_min_stage_comes_first_and_starts_from_J_0() -> None:
    """It goes on only while J falls below the 0 that it starts from."""
    method = eipo()
    assert method.behaviour() == ("EI",)
    assert stages(drive(method, [-1.0, -2.0, -1.5, 0.0])) == ["min", "min", "min", "max"]
    assert stages(drive(eipo(), [0.0, 0.0])) == ["min", "max"]
    assert stages(drive(eipo(), [0.1, 0.1])) == ["min", "max"]
    assert stages(drive(eipo(), [-0.1, 0.0])) == ["min", "min"]


def test_papers_switch_compares_with_the_iteration_before_whichever_stage_that_was() -> None:
    # MIN ends at 5 (> 0). MAX: 6 > 5 rises, 7 rises, 7 does not: ends. MIN: 6 < 7 falls, 6 does not: ends. MAX.
    metrics = drive(eipo(), [5.0, 6.0, 7.0, 7.0, 6.0, 6.0, 5.0, 0.0])
    assert stages(metrics) == ["min", "max", "max", "max", "min", "min", "max", "min"]
    assert [m["switches"] for m in metrics] == [1, 1, 1, 2, 2, 3, 4, 4]


def test_own_switch_compares_with_the_stages_own_last_value_only() -> None:
    # A stage's first J ends nothing: MIN 5, 4 falls, 4.5: ends. MAX 1, 2 rises, 2: ends. MIN 9, 9: ends. MAX.
    metrics = drive(eipo(switch="own"), [5.0, 4.0, 4.5, 1.0, 2.0, 2.0, 9.0, 9.0, 0.0])
    assert stages(metrics) == ["min", "min", "min", "max", "max", "max", "min", "min", "max"]


def test_alternate_switches_after_every_iteration() -> None:
    assert stages(drive(eipo(switch="alternate"), [0.0, 5.0, -5.0, 5.0])) == ["min", "max", "min", "max"]


# When alpha moves

# MIN, then MAX for three iterations (1 < 2 < 3, then 3 again), MIN for two, MAX
JS = [1.0, 2.0, 3.0, 3.0, 2.0, 2.0, 2.5]


def test_defect_6c_alpha_moves_once_when_the_max_stage_ends_and_against_the_gap() -> None:
    calls: list[float] = []

    def gap(A_E__E: Tensor, policy: str) -> float:
        assert policy == "EI"
        calls.append(A_E__E.mean().item())
        return -0.02  # the mixed policy earns less: alpha must rise

    metrics = drive(eipo(beta=0.1), JS, gap)
    assert stages(metrics) == ["min", "max", "max", "max", "min", "min", "max"]
    # 0.5 + 0.1 * 0.02, at the fourth iteration alone
    assert [m["alpha"] for m in metrics] == pytest.approx([0.5, 0.5, 0.5, 0.502, 0.502, 0.502, 0.502])
    assert [m["gap"] for m in metrics] == [None, None, None, -0.02, None, None, None]
    assert len(calls) == 1


def test_defect_6c_alpha_falls_when_the_mixed_policy_earns_more() -> None:
    assert drive(eipo(beta=0.1), JS, lambda A, policy: 0.02)[-1]["alpha"] == pytest.approx(0.498)


def test_every_max_rule_moves_alpha_after_every_max_iteration() -> None:
    metrics = drive(eipo(beta=0.1, alpha_rule="every_max"), JS, lambda A, policy: -0.02)
    assert [m["alpha"] for m in metrics] == pytest.approx([0.5, 0.502, 0.504, 0.506, 0.506, 0.506, 0.508])


def test_fixed_rule_never_moves_alpha() -> None:
    assert {m["alpha"] for m in drive(eipo(alpha_rule="fixed"), JS, no_gap)} == {0.5}


@pytest.mark.parametrize(("by_EI", "by_E", "alpha"), [(0.2, 0.23, 0.503), (0.23, 0.2, 0.497), (0.0, 9.0, 0.505)])
def test_observed_rule_reads_what_each_policy_earned_when_it_acted(by_EI: float, by_E: float, alpha: float) -> None:
    """L = by_EI - by_E, clipped to 0.05; alpha = 0.5 - 0.1 * L."""
    method = eipo(beta=0.1, alpha_rule="observed", switch="alternate")
    method.step(streams(r_E=by_EI), no_gap)
    assert method.alpha == 0.5
    method.step(streams(r_E=by_E), no_gap)
    assert method.alpha == pytest.approx(alpha)


# Defects of public implementations


@pytest.fixture
def scored(scripted: Callable, make_agent: Callable, play: Callable) -> Callable:
    """scored(policy, ...) -> agent, rollout, streams whose advantages have means far from 0."""

    def make(*policies: str, end: str = "turns") -> tuple:
        envs = scripted(end=end)
        agent = make_agent(envs)
        rollout = play(envs, agent, T, *policies)
        critics = ("E__E", "E__EI", "I__EI")
        return agent, rollout, appraise(rollout, NoBonus(), None, RewardScale(N, 0.9), critics, PPO(gamma=0.9))

    return make


def in_place(x: Tensor) -> Tensor:
    return x.sub_(x.mean()).div_(x.std())


def tensors(s: Streams, targets: Targets) -> list[Tensor]:
    return [s.r_E, s.r_I, s.bonus, *s.A.values(), *s.returns.values(), *targets.advantage.values()]


@pytest.mark.parametrize("defective", [False, True])
@pytest.mark.parametrize("max_stage", [False, True])
def test_defect_6a_the_switch_reads_raw_u_after_a_normalizing_update(
    scored: Callable, make_learner: Callable, monkeypatch: pytest.MonkeyPatch, max_stage: bool, defective: bool
) -> None:
    if defective:
        monkeypatch.setattr(ppo, "normalize", in_place)
    method = eipo()
    method.max_stage = max_stage
    agent, rollout, s = scored(*method.behaviour())
    targets = method.targets(s)
    before = [x.clone() for x in tensors(s, targets)]
    # U by hand: r_E + alpha * A_E__E, or (alpha - 1) r_E + A_E__EI + A_I__EI; there is no bonus here
    U = s.r_E + 0.5 * s.A["E__E"] if max_stage else -0.5 * s.r_E + s.A["E__EI"] + s.A["I__EI"]
    J = U.mean().item() if max_stage else -U.mean().item()
    assert abs(J) > 0.5  # far from what a normalized advantage would give
    make_learner(agent, lr=1e-3).update(rollout, targets, s.returns, torch.Generator().manual_seed(0))
    unchanged = all(torch.equal(x, y) for x, y in zip(before, tensors(s, targets), strict=True))
    assert unchanged is not defective
    found = method.step(s, lambda A, policy: 0.0)["J"]
    if not defective:
        assert found == pytest.approx(J, rel=1e-5)
    elif max_stage:  # A_E__E itself is climbed in this stage: its mean would be gone from J
        assert found == pytest.approx(s.r_E.mean().item(), abs=1e-5)


@pytest.mark.parametrize(("favour", "alpha_rises"), [(0.25, False), (-0.25, True)])
def test_defect_6b_alpha_follows_the_raw_advantages_of_the_whole_rollout(favour: float, alpha_rises: bool) -> None:
    """pi_E is uniform over 3 actions, its critic exact (1/3); pi_EI favours the right action, or avoids it."""
    config = make_config(
        "eipo-test/Context-v0", steps=4096,
        settings={"net.layers": 0, "envs.num": 16, "envs.steps": 256, "method.normalize_task": False, "ppo.lr": 0.0,
                  "method.beta": 1.0, "method.alpha_clip": 1.0, "bonus.name": "none", "compute.threads": 1},
    )  # fmt: skip
    training = Training(config)
    training.method.max_stage, training.method.J_before = True, 1e9  # so that this iteration ends the stage
    agent = training.agent
    for head in (*agent.policies.values(), agent.critics["E__E"]):
        torch.nn.init.zeros_(head.weight)
    torch.nn.init.constant_(agent.critics["E__E"].bias, 1 / 3)
    agent.policies["EI"].weight.data[[1, 2, 0], [0, 1, 2]] = favour
    rollout, metrics = training.iterate()
    training.close()
    # By hand: the right action has e^f / (e^f + 2) under pi_EI, each other 1 / (e^f + 2); A = reward - 1/3
    right = rollout.reward.double().numpy() == 1
    ratio = np.where(right, 3 * np.exp(favour), 3) / (np.exp(favour) + 2)
    A = right - 1 / 3
    L = float(np.minimum(ratio * A, ratio.clip(0.8, 1.2) * A).mean())
    assert (L < -0.02) is alpha_rises
    assert abs(L) > 0.02
    assert metrics["gap"] == pytest.approx(L, abs=1e-5)
    assert metrics["alpha"] == pytest.approx(0.5 - L, abs=1e-5)
    # The defective form, from normalized advantages, is another number.
    log_ratio = log_prob_now(agent, rollout, "EI") - rollout.log_prob
    assert abs(objective.constraint_gap(log_ratio, ppo.normalize(torch.from_numpy(A)), 0.2) - L) > 0.01


def slow_advantage(
    r: Tensor, v: Tensor, after: Tensor, stops: Tensor, done: Tensor, gamma: float, lam: float
) -> Tensor:
    """Sums within each episode, step by step."""
    A = torch.zeros(T, N)
    for n in range(N):
        for t in range(T):
            for u in range(t, T):
                delta = r[u, n] + gamma * (0 if stops[u, n] else after[u, n]) - v[u, n]
                A[t, n] += (gamma * lam) ** (u - t) * delta
                if done[u, n]:
                    break
    return A


@pytest.mark.parametrize("rule", ["eipo", "decoupled", "single"])
def test_defect_6d_the_task_policys_own_advantage_is_computed(scored: Callable, rule: str) -> None:
    method = make_method(MethodConfig(rule=rule, policy="E"), 10)
    if rule == "eipo":
        method.max_stage = True
    _, rollout, _ = scored(*method.behaviour())
    s = appraise(
        rollout, NoBonus(), None, RewardScale(N, 0.9), method.trained_critics(), PPO(gamma=0.9, gae_lambda=0.5)
    )
    v, after = rollout.value["E__E"], rollout.next_value["E__E"]
    expected = slow_advantage(rollout.reward, v, after, rollout.terminated, rollout.done, 0.9, 0.5)
    torch.testing.assert_close(s.A["E__E"], expected)
    torch.testing.assert_close(s.returns["E__E"], expected + v)
    assert s.A["E__E"].abs().min() > 0
    torch.testing.assert_close(method.targets(s).advantage["E"], expected)
    if rule == "eipo":
        torch.testing.assert_close(method.targets(s).advantage["EI"], rollout.reward + 0.5 * expected)


def test_defect_6e_the_rewards_filter_runs_over_time(scored: Callable) -> None:
    _, rollout, _ = scored("EI")
    s = appraise(rollout, NoBonus(), RewardScale(N, 0.9), RewardScale(N, 0.9), (), PPO())
    running, sums = np.zeros(N), []
    for t in range(T):
        running = 0.9 * running + rollout.reward[t].numpy()
        sums.append(running)
    torch.testing.assert_close(s.r_E, rollout.reward / np.std(sums))
    over_environments = RewardScale(T, 0.9)(rollout.reward.T).T
    assert (s.r_E / over_environments - 1).abs().nanmedian() > 0.05


def test_defect_6f_decoupled_trains_the_task_policys_critic() -> None:
    settings = {"envs.options.different": 2, "envs.num": 6, "envs.steps": 15, "ppo.lr": 3e-3, "compute.threads": 1}
    training = Training(make_config("eipo-test/Scripted-v0", method="dc", steps=15 * 90, settings=settings))
    head = training.agent.critics["E__E"]
    before = [p.clone() for p in head.parameters()]
    losses = [training.iterate()[1]["loss_V_E__E"] for _ in range(15)]
    training.close()
    assert not any(torch.equal(p, b) for p, b in zip(head.parameters(), before, strict=True))
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("end", ["terminate", "truncate", "both"])
def test_defect_6g_truncation_bootstraps_and_termination_does_not(
    scripted: Callable, reading_agent: Callable, play: Callable, end: str
) -> None:
    envs = scripted(end=end)
    rollout = play(envs, reading_agent(envs, [0.0, 0.0, 100.0]), T)  # V(k-th frame of an episode) = 100 k
    A = appraise(rollout, NoBonus(), None, RewardScale(N, 0.5), ("E__EI",), PPO(gamma=0.5, gae_lambda=0.0)).A["E__EI"]
    for n, length in enumerate((1, 3, 5)):
        last = [t for t in range(T) if (t + 1) % length == 0]
        # r = length, V = 100 (length - 1), and beyond a truncation half of V(true last frame) = 100 length
        expected = length - 100 * (length - 1) + (0.5 * 100 * length if end == "truncate" else 0.0)
        assert A[last, n].tolist() == [expected] * len(last)


def test_decoupled_kl_moves_the_mixed_policy_towards_the_task_policy_only(
    scored: Callable, make_learner: Callable
) -> None:
    """With nothing to climb, pi_E's head must stay bit for bit; pi_EI's comes nearer."""
    agent, rollout, _ = scored("EI")
    heads = {p: head.weight.clone() for p, head in agent.policies.items()}
    targets = Targets({"E": torch.zeros(T, N), "EI": torch.zeros(T, N)}, kl_weight=1.0)
    learner = make_learner(agent, lr=1e-2, entropy=0.0, minibatches=1, epochs=1)
    kls = [learner.update(rollout, targets, {}, torch.Generator().manual_seed(0))["kl_E_EI"] for _ in range(10)]
    assert torch.equal(agent.policies["E"].weight, heads["E"])
    assert not torch.equal(agent.policies["EI"].weight, heads["EI"])
    assert kls[-1] < 0.7 * kls[0]


def test_single_policy_is_one_rule_with_different_data() -> None:
    assert all(isinstance(make_method(METHODS[m].method, 10), SinglePolicy) for m in ("eo", "rnd", "en", "dy"))
