"""Whole runs: they repeat, they learn, they leave behind what they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch

import eipo
from eipo.training import Run, train

SMALL = {
    "envs.num": 16, "envs.steps": 16, "net.dense": 16, "net.layers": 1, "net.width": 16, "bonus.features": 16,
    "ppo.lr": 1e-2, "ppo.minibatches": 2, "compute.threads": 1,
}  # fmt: skip
ITERATION = 256


def run(
    env: str, method: str = "eipo", iterations: int = 20, seed: int = 0, out: Path | None = None, **more: Any
) -> Run:
    settings = SMALL | {k.replace("__", "."): v for k, v in more.items()}
    return train(
        f"eipo-test/{env}-v0", method=method, steps=iterations * ITERATION, seed=seed, out=out, settings=settings
    )


def parameters(r: Run) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in r.agent.net.parameters()])


def latest(r: Run, name: str = "return", iterations: int = 5) -> float:
    """Mean of a metric over the last iterations that have it."""
    return float(np.mean([value for _, value in r.series(name)][-iterations:]))


@pytest.mark.parametrize("memory", ["none", "lstm"])
@pytest.mark.parametrize("shards", [1, 2])
def test_a_seed_gives_the_same_parameters_bit_for_bit(memory: str, shards: int) -> None:
    def once(seed: int) -> Run:
        more = {"net__memory": memory, "compute__shards": shards, "compute__threads": shards}
        return run("Recall", iterations=3, seed=seed, **more)

    first, second, other = once(1), once(1), once(2)
    assert torch.equal(parameters(first), parameters(second))
    assert not torch.equal(parameters(first), parameters(other))
    timing = ("steps_per_second", "acting_share")
    first_lines, second_lines = (
        [{k: v for k, v in m.items() if k not in timing} for m in r.metrics] for r in (first, second)
    )
    assert first_lines == second_lines


def test_the_seed_is_all_there_is() -> None:
    """Whatever torch's and numpy's global generators have been through."""
    results = []
    for noise in (0, 1):
        torch.manual_seed(noise)
        np.random.seed(noise)  # noqa: NPY002
        results.append(parameters(run("Context", iterations=2)))
    assert torch.equal(*results)


@pytest.mark.parametrize("method", ["eo", "rnd", "en", "dy", "dc", "eipo"])
def test_every_method_learns_a_task_in_which_chance_earns_a_third(method: str) -> None:
    r = run("Context", method)
    assert r.metrics[0]["return"] < 0.6
    assert latest(r) > 0.9
    actions, _ = r.agent.act(np.arange(3), deterministic=True)
    assert actions.tolist() == [1, 2, 0]


def test_both_policies_of_eipo_learn_each_in_its_own_stages() -> None:
    r = run("Context", iterations=30)
    assert {m["stage"] for m in r.metrics} == {"min", "max"}
    for policy in ("E", "EI"):
        assert latest(r, f"return_{policy}") > 0.9
        assert r.agent.act(np.arange(3), deterministic=True, policy=policy)[0].tolist() == [1, 2, 0]


def test_eipo_with_a_memory_learns_what_it_cannot_without() -> None:
    assert latest(run("Recall", net__memory="lstm")) > 0.9
    assert latest(run("Recall", net__memory="none")) < 0.65


@pytest.mark.slow
def test_eipo_solves_the_maze() -> None:
    """The best return is 450."""
    r = train("eipo/Maze-v0", method="eipo", preset="maze-grid", steps=6_000_000, seed=0)
    assert latest(r, iterations=10) >= 300


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with a memory, kept in a directory."""
    return run("Recall", out=tmp_path_factory.mktemp("runs") / "one", iterations=20, net__memory="lstm")


def test_run_directory(kept: Run) -> None:
    out = kept.out
    assert out is not None
    recorded = json.loads((out / "config.json").read_text())
    assert recorded["config"]["env"] == "eipo-test/Recall-v0"
    assert recorded["config"]["ppo"]["lr"] == 1e-2
    assert recorded["versions"]["gymnasium"] == gym.__version__
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert lines == kept.metrics
    assert [m["iteration"] for m in lines] == list(range(1, 21))
    assert [m["steps"] for m in lines] == [ITERATION * i for i in range(1, 21)]
    keys = {
        "return", "return_E", "return_EI", "episodes", "length", "acted", "reward", "r_E", "r_I", "bonus", "stage",
        "J", "alpha", "gap", "lam", "switches", "loss_E", "loss_EI", "entropy_E", "kl_EI", "loss_bonus", "grad_norm",
        "steps_per_second",
    }  # fmt: skip
    assert all(keys <= m.keys() for m in lines)
    for m in lines:  # each stage trains its own critics
        trained = {"E__E"} if m["stage"] == "max" else {"E__EI", "I__EI"}
        assert {k.removeprefix("loss_V_") for k in m if k.startswith("loss_V_")} == trained
    assert list((out / "tensorboard").glob("events*"))
    assert (out / "agent.json").is_file()
    assert (out / "agent.safetensors").is_file()


def test_tensorboard_has_the_metrics(kept: Run) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert kept.out is not None
    events = accumulator.EventAccumulator(str(kept.out / "tensorboard"))
    events.Reload()
    points = events.Scalars("alpha")
    assert [e.step for e in points] == [m["steps"] for m in kept.metrics]
    assert [e.value for e in points] == pytest.approx([m["alpha"] for m in kept.metrics])


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(eipo.EipoError, match="not empty"):
        run("Context", out=tmp_path, iterations=1)
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_loaded_agent_acts_as_the_one_in_memory(kept: Run) -> None:
    loaded = eipo.load(kept.out)
    assert loaded.policies == kept.agent.policies == ("E", "EI")
    for policy in loaded.policies:
        for deterministic in (True, False):
            states: list[Any] = [None, None]
            loaded.seed(3)
            kept.agent.seed(3)
            for t in range(6):
                observation = (np.arange(50) + t) % 3
                pair = []
                for i, agent in enumerate((loaded, kept.agent)):
                    action, states[i] = agent.act(observation, states[i], deterministic, policy=policy)
                    pair.append(action)
                assert np.array_equal(*pair)
                assert all(torch.equal(a, b) for a, b in zip(*states, strict=True))


def test_act_on_one_observation_equals_act_on_a_batch(kept: Run) -> None:
    agent = eipo.load(kept.out)
    batch = np.array([0, 1, 2])
    actions, state = agent.act(batch, deterministic=True)
    again, _ = agent.act(batch[::-1].copy(), state, deterministic=True)
    assert actions.shape == again.shape == (3,)
    for i in range(3):
        first, own = agent.act(int(batch[i]), deterministic=True)
        second, _ = agent.act(int(batch[2 - i]), own, deterministic=True)
        assert np.ndim(first) == 0
        assert (first, second) == (actions[i], again[i])
        assert agent.action_space.contains(first)


def test_state_is_what_the_agent_remembers(kept: Run) -> None:
    """Observation 2 says nothing: the answer comes from the state, and without it cannot depend on the cue."""
    agent = eipo.load(kept.out)
    answers = []
    for cue in (0, 1):
        _, state = agent.act(cue, None, deterministic=True)
        answers.append(int(agent.act(2, state, deterministic=True)[0]))
    assert answers == [0, 1]


def test_a_stack_of_frames_recalls_as_a_memory_does(tmp_path: Path) -> None:
    r = run("Recall", "eo", iterations=30, net__memory="none", envs__stack=2, out=tmp_path / "x")
    assert latest(r) > 0.9
    agent = eipo.load(tmp_path / "x")
    for cue in (0, 1):
        _, state = agent.act(cue, None, deterministic=True)
        assert int(agent.act(2, state, deterministic=True)[0]) == cue


def test_drawn_actions_follow_the_policy_and_repeat_with_a_seed(kept: Run) -> None:
    agent = eipo.load(kept.out)
    crowd = np.zeros(4000, np.int64)
    agent.seed(0)
    first, _ = agent.act(crowd)
    agent.seed(0)
    second, _ = agent.act(crowd)
    third, _ = agent.act(crowd)
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)
    with torch.no_grad():
        h, _ = agent.net.remember(agent.net.perceive(torch.zeros(1, dtype=torch.int64)), agent.net.memory.start(1))
        p = agent.net.policies["E"](h).softmax(-1)[0, 1].item()
    assert abs(first.mean() - p) < 4 * (p * (1 - p) / 4000) ** 0.5 + 1e-3
