"""The study behind results/cpu_suite.csv: what it collects. It trains nothing here."""

from __future__ import annotations

import csv
import dataclasses
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from eipo.errors import EipoError
from eipo.study.plan import Planned, plan, read_study
from eipo.study.runs import AGENT, CONFIG, EPISODE_COLUMNS, EPISODES, METRICS

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "cpu_suite.py"


@pytest.fixture(scope="module")
def suite() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cpu_suite", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_complete(run: Planned, scores: list[float]) -> None:
    """What a complete run leaves that the table is made of: two iterations of a second each."""
    run.out.mkdir(parents=True)
    about = {"config": dataclasses.asdict(run.config), "git": {"commit": "0123456789abcdef", "dirty": True}}
    (run.out / CONFIG).write_text(json.dumps(about))
    lines = [{"iteration": i, "steps": 1000 * i, "steps_per_second": 1000.0} for i in (1, 2)]
    (run.out / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    table = "".join(f"2,2000,E,{score},10\n" for score in scores)
    (run.out / EPISODES).write_text(",".join(EPISODE_COLUMNS) + "\n" + table)
    for name in AGENT:
        (run.out / name).write_text("{}")


def test_the_score_is_the_median_of_the_last_100_episodes(suite: ModuleType, tmp_path: Path) -> None:
    runs = {run.name: run for run in plan(read_study("cpu-suite"), tmp_path / "runs")}
    make_complete(runs["DeepSea/eipo-1"], [7.0] * 50 + [0.0] * 51 + [1.0] * 49)
    make_complete(runs["DeepSea/eo-2"], [0.25, 0.75])
    make_complete(runs["Maze/dc-0"], [])
    suite.collect(tmp_path / "runs", tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as f:
        rows = list(csv.DictReader(f))
    found = [(r["task"], r["method"], r["seed"], r["score"], r["mean_return"], r["episodes"]) for r in rows]
    assert found == [
        ("Maze", "dc", "0", "", "", "0"),
        ("DeepSea", "eo", "2", "0.5", "0.5", "2"),
        ("DeepSea", "eipo", "1", "0", "0.49", "100"),
    ]
    assert {(r["steps"], r["seconds"], r["commit"]) for r in rows} == {("2000", "2", "0123456789+changes")}


def test_a_run_with_other_settings_is_not_put_into_the_table(suite: ModuleType, tmp_path: Path) -> None:
    run = plan(read_study("cpu-suite"), tmp_path / "runs")[0]
    make_complete(dataclasses.replace(run, config=dataclasses.replace(run.config, steps=64000)), [1.0])
    with pytest.raises(EipoError, match="was made with another steps"):
        suite.collect(tmp_path / "runs", tmp_path / "table.csv")
    assert not (tmp_path / "table.csv").exists()


def test_nothing_to_collect_is_said(suite: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(EipoError, match="holds no complete run"):
        suite.collect(tmp_path, tmp_path / "table.csv")
