"""Learning: the split of the work must not change the result, and every sample counts once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from eipo import update
from eipo.core import ppo
from eipo.methods import Targets
from eipo.nets import Agent
from eipo.rollout import Rollout
from eipo.update import log_prob_now, parts

T, N = 8, 6


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_advantage(seed: int) -> Tensor:
    return torch.randn(T, N, generator=generator(seed)) * 3 + 1


def aims() -> tuple[Targets, dict[str, Tensor]]:
    """Something for both policies to climb and all critics to fit."""
    targets = Targets({"E": random_advantage(1), "EI": random_advantage(2)}, kl_weight=0.5)
    return targets, {c: random_advantage(i) for i, c in enumerate(("E__E", "E__EI", "I__EI"), 3)}


@pytest.fixture(params=["none", "lstm"])
def memory(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def stage(scripted: Callable, make_agent: Callable, play: Callable, memory: str) -> Callable:
    """stage() -> an agent and a rollout of it, the same at every call."""

    def make(repeats: bool = False, precision: str = "fp32") -> tuple[Agent, Rollout]:
        envs = scripted(num=N, end="turns", different=2)
        agent = make_agent(envs, memory, precision=precision)
        return agent, play(envs, agent, T, repeats=repeats)

    return make


def flat(agent: Agent) -> Tensor:
    return torch.cat([p.detach().flatten() for p in agent.parameters()])


@pytest.mark.parametrize("shards", [2, 4])
def test_shards_do_not_change_the_update(stage: Callable, make_learner: Callable, shards: int) -> None:
    results = []
    for n in (1, shards):
        agent, rollout = stage()
        learner = make_learner(agent, shards=n, epochs=2, minibatches=3, lr=1e-3)
        log = learner.update(rollout, *aims(), generator())
        learner.close()
        results.append((flat(agent), log))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=0, atol=2e-6)
    assert results[0][1].keys() == results[1][1].keys()
    for k, v in results[0][1].items():
        torch.testing.assert_close(v, results[1][1][k], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("shards", [2, 5])
def test_uneven_shards_weigh_by_their_samples(stage: Callable, make_learner: Callable, shards: int) -> None:
    """Two minibatches of 3 columns (2 shards: 2 + 1) or of 24 samples (5 shards: 5 + 5 + 5 + 5 + 4)."""
    results = []
    for n in (1, shards):
        agent, rollout = stage()
        learner = make_learner(agent, shards=n, epochs=1, minibatches=2, lr=1e-3)
        results.append(learner.update(rollout, *aims(), generator())["grad_norm"])
        learner.close()
    torch.testing.assert_close(*results, rtol=1e-4, atol=0)


def test_repeated_frames_do_not_change_the_update(stage: Callable, make_learner: Callable) -> None:
    results = []
    for repeats in (False, True):
        agent, rollout = stage(repeats)
        make_learner(agent, repeats=repeats, epochs=2, minibatches=3, lr=1e-3).update(rollout, *aims(), generator())
        results.append(flat(agent))
    torch.testing.assert_close(*results, rtol=0, atol=5e-6)


def test_every_sample_counts_once_an_epoch(
    stage: Callable, make_learner: Callable, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, rollout = stage()
    names = torch.arange(T * N).reshape(T, N)
    seen: list[Tensor] = []
    read = update.read

    def spy(agent: Agent, rollout: Rollout, part: update.Part, *args: object) -> object:
        seen.append(part.take(names))
        return read(agent, rollout, part, *args)

    monkeypatch.setattr(update, "read", spy)
    make_learner(agent, epochs=2, minibatches=4).update(rollout, *aims(), generator())
    assert len(seen) == 8
    for epoch in (seen[:4], seen[4:]):
        assert torch.cat([x.flatten() for x in epoch]).sort().values.tolist() == list(range(T * N))
    if memory == "lstm":  # whole environments: each column is one of `names`' columns, in the order of time
        for part in seen:
            assert part.shape[0] == T
            assert torch.equal(part, part[0] + N * torch.arange(T)[:, None])
    first, second = (torch.cat([x.flatten() for x in epoch]).tolist() for epoch in (seen[:4], seen[4:]))
    assert first != second  # shuffled anew


def test_parts_without_a_generator_keep_the_order(stage: Callable, memory: str) -> None:
    agent, rollout = stage()
    index = torch.cat([p.index for p in parts(agent, rollout, 4)])
    assert index.tolist() == list(range(N if memory == "lstm" else T * N))


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("repeats", [False, True])
def test_the_ratio_is_one_before_any_step(stage: Callable, pieces: int, repeats: bool) -> None:
    """So log_prob_now is in the rollout's order, and unrolling the memory again equals having acted."""
    agent, rollout = stage(repeats)
    ratio = (log_prob_now(agent, rollout, "EI", pieces, repeats) - rollout.log_prob).exp()
    assert ratio.shape == (T, N)
    assert (ratio - 1).abs().max() < 1e-4
    other = (log_prob_now(agent, rollout, "E", pieces, repeats) - rollout.log_prob).exp()
    assert (other - 1).abs().max() > 0.05  # the other policy's is not


def test_the_ratio_stays_near_one_in_bf16(stage: Callable) -> None:
    agent, rollout = stage(precision="bf16")
    ratio = (log_prob_now(agent, rollout, "EI") - rollout.log_prob).exp()
    assert (ratio - 1).abs().max() < 0.02


def test_the_first_loss_is_what_the_formulas_say(stage: Callable, make_learner: Callable) -> None:
    """One minibatch, one epoch: surrogate of normalized advantages at ratio new / acted, value losses, KL 0."""
    agent, rollout = stage()
    targets, returns = aims()
    ratio_E = (log_prob_now(agent, rollout, "E") - rollout.log_prob).exp()
    log = make_learner(agent, epochs=1, minibatches=1, clip=0.1).update(rollout, targets, returns, generator())
    normal = {p: (a - a.mean()) / a.std(correction=0) for p, a in targets.advantage.items()}
    clipped = torch.minimum(ratio_E * normal["E"], ratio_E.clamp(0.9, 1.1) * normal["E"]).mean()
    assert log["loss_E"].item() == pytest.approx(-clipped.item(), abs=1e-4)
    assert log["loss_EI"].item() == pytest.approx(0.0, abs=1e-4)  # ratio 1, mean 0
    assert log["kl_EI"].item() == pytest.approx(0.0, abs=1e-6)
    for c, r in returns.items():
        assert log[f"loss_V_{c}"].item() == pytest.approx(0.5 * (rollout.value[c] - r).square().mean().item(), rel=1e-4)


def test_only_what_is_aimed_at_moves(stage: Callable, make_learner: Callable) -> None:
    agent, rollout = stage()
    before = {k: v.clone() for k, v in agent.state_dict().items()}
    learner = make_learner(agent, epochs=1, minibatches=1, lr=1e-3)
    learner.update(rollout, Targets({"E": random_advantage(1)}), {"E__EI": random_advantage(2)}, generator())
    moved = {k.rpartition(".")[0] for k, v in agent.state_dict().items() if not torch.equal(v, before[k])}
    assert {"policies.E", "critics.E__EI"} <= moved
    assert not {"policies.EI", "critics.E__E", "critics.I__EI"} & moved


def test_an_update_climbs(stage: Callable, make_learner: Callable) -> None:
    """The probability of what was better than average rises, of the rest falls, up to about the clip."""
    agent, rollout = stage()
    A = random_advantage(1)
    make_learner(agent, epochs=20, lr=1e-2, entropy=0.0).update(rollout, Targets({"EI": A}), {}, generator())
    change = log_prob_now(agent, rollout, "EI") - rollout.log_prob
    assert (change * ppo.normalize(A)).mean() > 0.02


def test_annealing_scales_learning_rate_and_clip(
    stage: Callable, make_learner: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, rollout = stage()
    clips: list[float] = []
    surrogate = ppo.clipped_surrogate
    monkeypatch.setattr(ppo, "clipped_surrogate", lambda r, a, clip: clips.append(clip) or surrogate(r, a, clip))
    learner = make_learner(agent, epochs=1, minibatches=1, lr=1e-3, clip=0.2)
    learner.update(rollout, *aims(), generator(), left=0.25)
    assert clips == pytest.approx([0.05, 0.05])
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(2.5e-4)
