"""A score for each seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import ITERATION, make_run

from eipo.errors import EipoError
from eipo.study.runs import read_run
from eipo.study.scores import Rule, Score, method_order, read_scores, read_table, score_of, write_table


def with_episodes(path: Path, scores: list[float], policies: list[str] | None = None) -> Path:
    """A run of 10 iterations with an episode of each of these scores in turn, one an iteration, then one each."""
    make_run(path, "eipo", iterations=10, visits=False)
    rows = [
        f"{min(k, 9) + 1},{(min(k, 9) + 1) * ITERATION},{policies[k] if policies else 'E'},{x},9\n"
        for k, x in enumerate(scores)
    ]
    (path / "episodes.csv").write_text("iteration,steps,policy,score,length\n" + "".join(rows))
    return path


def score(path: Path, rule: Rule) -> Score:
    found = score_of(read_run(path), rule)
    assert found is not None
    return found


def test_the_median_of_the_last_hundred_episodes(tmp_path: Path) -> None:
    values = [1000.0] * 50 + [1.0] * 49 + [2.0] * 2 + [7.0] * 49
    found = score(with_episodes(tmp_path / "r", values), Rule())
    assert (found.score, found.episodes) == (2.0, 100)
    assert found.mean == pytest.approx((49 + 2 * 2 + 49 * 7) / 100)
    assert (found.task, found.method, found.seed, found.steps) == ("eipo/Maze-v0", "eipo", 0, 10 * ITERATION)
    assert score(tmp_path / "r", Rule(last=50)).score == 7.0


def test_after_some_steps_and_by_policy(tmp_path: Path) -> None:
    run = with_episodes(tmp_path / "r", list(map(float, range(8))), ["E", "EI"] * 4)
    found = score(run, Rule(upto=4 * ITERATION))
    assert (found.score, found.episodes, found.steps) == (1.5, 4, 4 * ITERATION)
    assert score(run, Rule(policy="task")).score == 3.0  # 0 2 4 6
    never = with_episodes(tmp_path / "n", [3.0, 5.0], ["EI", "EI"])
    assert score(never, Rule(policy="task")).score == 4.0
    assert score_of(read_run(run), Rule(upto=ITERATION - 1)) is None


def test_runs_and_what_should_be_known_of_them(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "eipo", 0, iterations=20)
    make_run(tmp_path / "b", "eo", 1, iterations=20, done=15)
    make_run(tmp_path / "c", "eo", 0, iterations=20, done=0)
    scores, notes = read_scores([tmp_path])
    assert [(s.method, s.seed, s.steps) for s in scores] == [("eipo", 0, 20 * ITERATION), ("eo", 1, 15 * ITERATION)]
    assert notes == [
        f"not finished, scored at {15 * ITERATION} of {20 * ITERATION} steps: {tmp_path / 'b'}",
        f"left out, for no episode has ended: {tmp_path / 'c'}",
    ]
    assert read_scores([tmp_path / "a"], Rule(last=500))[1] == [
        f"only 160 episodes of the 500 that make a score: {tmp_path / 'a'}"
    ]


def test_a_setting_that_tells_methods_apart_is_in_their_names(tmp_path: Path) -> None:
    make_run(tmp_path / "1", "eipo", 0, iterations=4)
    make_run(tmp_path / "2", "eipo", 0, iterations=4, settings={"method.lam": 10.0})
    make_run(tmp_path / "3", "eipo", 0, iterations=4, env="eipo/AlignedMaze-v0")
    make_run(tmp_path / "4", "eo", 0, iterations=4, settings={"ppo.lr": 1.0})  # a method of its own: no other eo
    scores, _ = read_scores([tmp_path])
    assert [s.method for s in scores] == ["eipo lam=1.0", "eipo lam=10.0", "eipo lam=1.0", "eo"]


def test_a_seed_that_is_there_twice(tmp_path: Path) -> None:
    make_run(tmp_path / "a", "eo", 3, iterations=4)
    make_run(tmp_path / "b", "eo", 3, iterations=4)
    with pytest.raises(EipoError, match=r"seed 3 of eo on eipo/Maze-v0 is there twice: .*a and .*b; name one"):
        read_scores([tmp_path])


def test_tables_come_back_as_they_were_written(tmp_path: Path) -> None:
    scores = [
        Score("T-v0", m, s, 1000, float(x), float(x) + 0.5, 100, "")
        for (m, s), x in zip([("eo", 0), ("eo", 1), ("eipo", 0)], np.random.default_rng(0).normal(size=3), strict=True)
    ]
    write_table(scores, tmp_path / "t.csv")
    assert [replace(s, origin="") for s in read_table(tmp_path / "t.csv")[0]] == scores
    assert read_scores([tmp_path / "t.csv"])[1] == []


def test_a_table_with_no_more_than_it_needs(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("score,task,method,seed,steps\n1.5,T,eo,0,1e6\n,T,eo,1,1e6\n")
    assert read_table(tmp_path / "t.csv") == (
        [Score("T", "eo", 0, 1_000_000, 1.5, 1.5, 0, f"{tmp_path / 't.csv'}, line 2")],
        [f"left out, for no episode has ended: {tmp_path / 't.csv'}, line 3"],
    )


def test_a_table_as_the_cpu_suite_writes_it(tmp_path: Path) -> None:
    columns = "task,method,seed,steps,score,mean_return,episodes,seconds,commit"
    (tmp_path / "t.csv").write_text(f"{columns}\nT,eo,0,1000,1.5,1.25,100,12,abc\n")
    (found,) = read_scores([tmp_path / "t.csv"])[0]
    assert (found.score, found.mean, found.episodes) == (1.5, 1.25, 100)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("task,method,seed,score\n", "has no column steps; a table of scores has task,method,seed,steps,score"),
        ("task,method,seed,steps,score\n", "holds no score"),
        ("task,method,seed,steps,score\nT,eo,0,5,x\n", "line 2: could not convert string to float: 'x'"),
        ("task,method,seed,steps,score\nT,eo,0,5,1\nT,eo,1,5,nan\n", "line 3: a score must be finite"),
        ("task,method,seed,steps,score\nT,,0,5,1\n", "line 2: a score must be finite, and have a task and a method"),
        ("task,method,seed,steps,score\nT,eo\n", "line 2:"),
        ("task,method,seed,steps,score\nT,eo,0,5,1\nT,eo,0,5,2\n", "seed 0 of eo on T is there twice"),
        ("\xff", "has no column"),
    ],
)
def test_a_table_that_is_none(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "t.csv").write_text(content, encoding="utf-8")
    with pytest.raises(EipoError, match=says) as error:
        read_scores([tmp_path / "t.csv"])
    assert "\n" not in str(error.value)


def test_methods_stand_in_the_papers_order() -> None:
    names = ["eipo lam=2", "hepo", "dy", "eo", "eipo", "rnd", "noisy", "dc", "en"]
    assert sorted(names, key=method_order) == ["eo", "rnd", "en", "dy", "dc", "hepo", "noisy", "eipo", "eipo lam=2"]
