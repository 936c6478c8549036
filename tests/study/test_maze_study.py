"""The study behind results/maze.csv: what it collects, draws and skips. It trains nothing here."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from made_up import ITERATION, make_run

from eipo import make_config
from eipo.errors import EipoError
from eipo.study.runs import CONFIG, METRICS

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "maze_study.py"


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("maze_study", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as f:
        return list(csv.DictReader(f))


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
    row = study.final_row(study.read_run(path))
    # The last 5 % are two iterations: 1 episode of 0 and 3 of 1.
    assert (row["final_return"], row["final_return_E"], row["best_return"]) == ("0.75", "", "1")


def test_what_is_finished_is_kept_and_what_is_not_is_begun_anew(study: ModuleType, tmp_path: Path) -> None:
    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    assert not study.is_done(tmp_path / "none", asked)

    half = make_run(tmp_path / "eo-0", "eo", done=2)
    assert not study.is_done(half, asked)
    assert not half.exists()

    other = make_run(tmp_path / "eo-1", "eo")
    with pytest.raises(EipoError, match="was made with another steps"):
        study.is_done(other, asked)
    assert other.exists()

    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("")
    with pytest.raises(EipoError, match="is in the way"):
        study.is_done(tmp_path / "thesis", asked)
    assert (tmp_path / "thesis" / "thesis.tex").exists()


def test_a_finished_run_of_the_same_configuration_is_skipped(study: ModuleType, tmp_path: Path) -> None:
    import dataclasses

    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    path = make_run(tmp_path / "eo-0", "eo")
    about = json.loads((path / CONFIG).read_text()) | {"config": dataclasses.asdict(asked)}
    (path / CONFIG).write_text(json.dumps(about))
    assert study.is_done(path, asked)


def test_failures_are_told_and_the_rest_goes_on(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(study, "command", lambda *_: [sys.executable, "-c", "import sys; sys.exit(3)"])
    monkeypatch.setattr(sys, "argv", ["maze_study.py", "--out", str(tmp_path), "--methods", "eo", "en", "--seeds", "0"])
    assert study.main() == 2  # nothing to collect
    out, err = capsys.readouterr()
    assert "2 runs, 0 of them finished before" in out
    assert "eo-0: failed with exit code 3" in out
    assert "2/2 " in out
    assert "holds no run" in err


def test_no_csvs_to_draw(study: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(EipoError, match=r"maze\.csv cannot be read.*--collect"):
        study.draw(tmp_path)
