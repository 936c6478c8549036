"""The study behind results/cpu_suite.csv: what it collects. It trains nothing here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType

import pytest
from made_up import benchmark, rows

from eipo import cli
from eipo.errors import EipoError
from eipo.study.plan import Planned, plan, read_study
from eipo.study.runs import AGENT, CONFIG, EPISODE_COLUMNS, EPISODES, METRICS


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    return benchmark("cpu_suite")


def make_complete(run: Planned, scores: list[float], whole: bool = False) -> None:
    """What a complete run leaves that the table is made of: two iterations of a second each."""
    each = run.config.iterations * run.config.steps_per_iteration // 2 if whole else 1000
    run.out.mkdir(parents=True)
    about = {"config": dataclasses.asdict(run.config), "git": {"commit": "0123456789abcdef", "dirty": True}}
    (run.out / CONFIG).write_text(json.dumps(about))
    lines = [{"iteration": i, "steps": each * i, "steps_per_second": each} for i in (1, 2)]
    (run.out / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = "".join(f"2,{2 * each},E,{score},10\n" for score in scores)
    (run.out / EPISODES).write_text(",".join(EPISODE_COLUMNS) + "\n" + table)
    for name in AGENT:
        (run.out / name).write_text("{}")


def test_the_score_is_the_median_of_the_last_100_episodes(suite: ModuleType, tmp_path: Path) -> None:
    runs = {run.name: run for run in plan(read_study("cpu-suite"), tmp_path / "runs")}
    make_complete(runs["DeepSea/eipo-1"], [7.0] * 50 + [0.0] * 51 + [1.0] * 49)
    make_complete(runs["DeepSea/eo-2"], [0.25, 0.75])
    make_complete(runs["Maze/dc-0"], [])
    suite.collect(tmp_path / "runs", tmp_path / "table.csv")
    table = rows(tmp_path / "table.csv")
    found = [(r["task"], r["method"], r["seed"], r["score"], r["mean_return"], r["episodes"]) for r in table]
    assert found == [
        ("Maze", "dc", "0", "", "", "0"),
        ("DeepSea", "eo", "2", "0.5", "0.5", "2"),
        ("DeepSea", "eipo", "1", "0", "0.49", "100"),
    ]
    assert {(r["steps"], r["seconds"], r["commit"]) for r in table} == {("2000", "2", "0123456789+changes")}


def test_a_run_with_other_settings_is_not_put_into_the_table(suite: ModuleType, tmp_path: Path) -> None:
    run = plan(read_study("cpu-suite"), tmp_path / "runs")[0]
    make_complete(dataclasses.replace(run, config=dataclasses.replace(run.config, steps=64000)), [1.0])
    with pytest.raises(EipoError, match="was made with another steps"):
        suite.collect(tmp_path / "runs", tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


def test_another_sitting_keeps_the_rows_of_the_one_before(
    suite: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And `eipo compare` reads what comes of it."""
    file, names = tmp_path / "table.csv", ("Maze/eo-0", "Maze/eipo-0", "DeepSea/eo-1")
    for sitting, scores in (("first", (1.0, 2.0, 3.0)), ("second", (None, 5.0, None))):
        runs = {run.name: run for run in plan(read_study("cpu-suite"), tmp_path / sitting)}
        for name, score in zip(names, scores, strict=True):
            if score is not None:
                make_complete(runs[name], [score], whole=True)
        suite.collect(tmp_path / sitting, file)
    assert capsys.readouterr().out.endswith(f"into {file}, 2 rows kept whose runs are not there\n")
    table = rows(file)
    assert [(r["task"], r["method"], r["seed"], r["score"]) for r in table] == [
        ("Maze", "eo", "0", "1"), ("Maze", "eipo", "0", "5"), ("DeepSea", "eo", "1", "3"),
    ]  # fmt: skip
    random = tmp_path / "random.csv"
    random.write_text("task,random\nMaze,0.5\nDeepSea,0\n")
    compare = ["compare", str(file), "--scale", "best", "--random", str(random), "-o", str(tmp_path / "tables")]
    assert cli.main(compare) == 0
    assert (tmp_path / "tables" / "against.md").exists()

    for old, new, said in (
        ("Maze,eipo", "Maze,eipoo", "which cpu-suite has not"),
        ("Maze,eo,0,", "Maze,eo,0,1", "steps"),
    ):
        wrong = tmp_path / "wrong.csv"
        wrong.write_text(file.read_text().replace(old, new))
        with pytest.raises(EipoError, match=said):
            suite.collect(tmp_path / "none", wrong)


def test_nothing_to_collect_is_said(suite: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(EipoError, match="holds no complete run"):
        suite.collect(tmp_path, tmp_path / "table.csv")
