"""The study behind results/maze.csv: what it collects, draws and skips. It trains nothing here."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
from made_up import ITERATION, benchmark, make_run, rows

from eipo.errors import EipoError
from eipo.study.runs import METRICS, read_run


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return benchmark("maze_study")


def test_csvs_and_figure(study: ModuleType, tmp_path: Path) -> None:
    for method in ("eo", "eipo"):
        for seed in (0, 1):
            make_run(tmp_path / "runs" / f"{method}-{seed}", method, seed, iterations=120)
    make_run(tmp_path / "runs" / "en-0", "en", 0, iterations=120, done=50)  # not finished: left out
    study.collect(tmp_path / "runs", tmp_path / "results")
    points, finals = rows(tmp_path / "results" / "maze.csv"), rows(tmp_path / "results" / "maze_final.csv")
    assert [(r["method"], r["seed"]) for r in finals] == [("eipo", "0"), ("eipo", "1"), ("eo", "0"), ("eo", "1")]
    assert len(points) == 4 * study.BINS
    assert {r["alpha"] for r in points if r["method"] == "eo"} == {""}
    assert int(finals[0]["steps"]) == int(points[59]["steps"]) == 120 * ITERATION
    assert (finals[0]["steps_per_second"], finals[0]["seconds"]) == ("20000", "192")  # 120 * 32000 / 20000
    study.draw(tmp_path / "results")
    assert (tmp_path / "results" / "maze.png").stat().st_size > 20_000


def test_means_weigh_episodes(study: ModuleType, tmp_path: Path) -> None:
    path = make_run(tmp_path / "eo-0", "eo", iterations=40)
    lines = [
        {"steps": (i + 1) * 10, "episodes": 3 if i == 39 else 1, "return": float(i == 39), "steps_per_second": 5.0}
        for i in range(40)
    ]
    (path / METRICS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    row = study.final_row(read_run(path))
    # The last 5 % are two iterations: 1 episode of 0 and 3 of 1.
    assert (row["final_return"], row["final_return_E"], row["best_return"]) == ("0.75", "", "1")


def test_no_csvs_to_draw(study: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(EipoError, match=r"maze\.csv cannot be read.*--collect"):
        study.draw(tmp_path)
