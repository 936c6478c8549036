"""Playing with a trained agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import eipo
from eipo import scores
from eipo.agent import TrainedAgent
from eipo.checkpoint import Checkpoints
from eipo.cli import main
from eipo.config import Envs
from eipo.envs.make import make_batch
from eipo.errors import EipoError
from eipo.evaluation import Actor, play
from eipo.training import Training

SMALL = {
    "envs.num": 8, "envs.steps": 16, "net.dense": 16, "net.width": 16, "bonus.features": 8, "ppo.lr": 1e-2,
    "ppo.minibatches": 2, "compute.threads": 1, "compute.shards": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that has learned to recall a cue."""
    out = tmp_path_factory.mktemp("runs") / "run"
    settings = SMALL | {"net.memory": "lstm"}
    eipo.train("eipo-test/Recall-v0", method="eipo", steps=128 * 60, settings=settings, out=out)
    return out


def fixed_agent(env: str = "eipo-test/Scripted-v0", **more: Any) -> TrainedAgent:
    config = eipo.make_config(env, method="eipo", steps=128, settings=SMALL | more)
    training = Training(config)
    try:
        return training.trained()
    finally:
        training.close()


def test_each_environment_plays_its_share_however_short_its_episodes_are() -> None:
    """Scripted environment i has episodes of 1, 3 or 5 steps whose k-th step earns k: scores 1, 6 and 15."""
    envs = make_batch("eipo-test/Scripted-v0", Envs(num=3))
    played = play(fixed_agent(), envs, 8, "E", seed=0)
    assert played.scores == [1.0, 1.0, 1.0, 6.0, 6.0, 6.0, 15.0, 15.0]
    assert played.lengths == [1, 1, 1, 3, 3, 3, 5, 5]


def test_a_seed_repeats_an_evaluation_and_another_does_not() -> None:
    agent, results = fixed_agent("CartPole-v1"), []
    for seed in (0, 0, 1):
        envs = make_batch("CartPole-v1", Envs(num=4))
        results.append(play(agent, envs, 8, "EI", seed))
        envs.close()
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize("more", [{"net.memory": "lstm"}, {"net.memory": "none", "envs.stack": 3}])
def test_the_actor_sees_what_an_agent_sees_that_starts_each_episode_without_a_past(more: dict[str, Any]) -> None:
    """Against TrainedAgent.act, one environment at a time, from state None at each start."""
    agent = fixed_agent("CartPole-v1", **more)
    envs = make_batch("CartPole-v1", Envs(num=3))
    actor = Actor(agent, "EI", 3, seed=0, deterministic=True)
    obs, starts = envs.reset(0), np.ones(3, bool)
    states: list[Any] = [None] * 3
    ended = 0
    for _ in range(60):
        actions = actor.act(obs, starts)
        for i in range(3):
            own, states[i] = agent.act(obs[i], None if starts[i] else states[i], deterministic=True, policy="EI")
            assert own == actions[i]
        step = envs.step(np.random.default_rng(ended).integers(2, size=3))
        obs, starts, ended = step.obs, step.done, ended + int(step.done.sum())
    assert ended > 3


def test_it_is_known_what_the_agent_has_learned(run: Path) -> None:
    result = eipo.evaluate(run, episodes=40, deterministic=True)
    assert (result["policy"], result["episodes"], len(result["scores"])) == ("E", 40, 40)
    assert result["mean"] > 0.9
    assert set(result["lengths"]) == {2}
    low, high = result["mean_interval"]
    assert low <= result["mean"] <= high


def test_a_run_that_is_not_finished_is_played_from_its_newest_checkpoint(run: Path, tmp_path: Path) -> None:
    import shutil

    whole = eipo.evaluate(run, episodes=20, policy="EI")
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "agent.json").unlink()
    again = eipo.evaluate(tmp_path / "run", episodes=20, policy="EI")
    assert whole["scores"] == again["scores"]
    assert (again["iteration"], again["alpha"]) == (60, whole["alpha"])
    for path in Checkpoints(tmp_path / "run", 1).all():
        shutil.rmtree(path)
    with pytest.raises(EipoError, match="holds no checkpoint"):
        eipo.evaluate(tmp_path / "run")


def test_what_cannot_be_evaluated(run: Path, tmp_path: Path) -> None:
    for kwargs, match in [({"policy": "X"}, "unknown policy 'X'"), ({"episodes": 0}, "must be at least 1")]:
        with pytest.raises(EipoError, match=match):
            eipo.evaluate(run, **kwargs)
    with pytest.raises(EipoError, match="is no run"):
        eipo.evaluate(tmp_path)


def test_from_the_command_line(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "result.json"
    assert main(["evaluate", str(run), "--episodes", "12", "--policy", "EI", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert (result["policy"], result["episodes"], len(result["scores"])) == ("EI", 12, 12)
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "eipo on eipo-test/Recall-v0, policy EI, 12 episodes:"
    for name in ("mean", "median", "IQM"):
        assert f"  {name:<7}{result[name.lower()]:.4g} (" in shown
    assert main(["evaluate", str(run), "--episodes", "3"]) == 0
    assert json.loads((run / "evaluation-E.json").read_text())["episodes"] == 3


def test_training_evaluates_as_it_goes_without_being_touched_by_it(tmp_path: Path) -> None:
    def train(out: Path, every: int) -> eipo.Run:
        settings = SMALL | {"net.memory": "lstm", "evaluation.every": every, "evaluation.episodes": 6}
        return eipo.train("eipo/Maze-v0", steps=128 * 5, settings=settings, out=out)

    plain, watched = train(tmp_path / "plain", 0), train(tmp_path / "watched", 2)
    weights = [torch.cat([p.detach().flatten() for p in r.agent.net.parameters()]) for r in (plain, watched)]
    assert torch.equal(*weights)
    keys = [{k for k in m if k.startswith("evaluation_")} for m in watched.metrics]
    assert keys == [set(), {"evaluation_E", "evaluation_EI"}, set(), {"evaluation_E", "evaluation_EI"}, set()]
    assert not any(k.startswith("evaluation_") for m in plain.metrics for k in m)


# Numbers.


def test_iqm_by_hand() -> None:
    """Of 1 to 8 the lowest and the highest two are left out: (3 + 4 + 5 + 6) / 4."""
    assert scores.iqm(np.array([8, 1, 7, 2, 6, 3, 5, 4])) == 4.5
    assert scores.iqm(np.array([1.0, 2.0, 9.0])) == 4.0  # a quarter of three is none
    assert scores.iqm(np.array([0.0, 2.0, 4.0, 100.0])) == 3.0


def test_mean_and_iqm_equal_those_of_rliable() -> None:
    metrics = pytest.importorskip("rliable.metrics")
    x = np.random.default_rng(0).normal(size=(101, 1))
    found = scores.summary(x[:, 0].tolist())
    assert found["iqm"] == pytest.approx(metrics.aggregate_iqm(x))
    assert found["mean"] == pytest.approx(metrics.aggregate_mean(x))


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """95 % intervals of the mean of 60 normal scores: between 90 and 99 % of 300 cover 0."""
    rng = np.random.default_rng(0)
    covers = []
    for i in range(300):
        low, high = scores.summary(rng.normal(size=60).tolist(), seed=i)["mean_interval"]
        covers.append(low <= 0 <= high)
    assert 0.90 <= np.mean(covers) <= 0.99


def test_equal_scores_leave_no_doubt() -> None:
    found = scores.summary([3.0] * 5)
    assert all(found[m] == 3.0 and found[f"{m}_interval"] == [3.0, 3.0] for m in scores.MEASURES)
