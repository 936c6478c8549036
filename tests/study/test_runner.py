"""What studies share: which runs are kept, which begun anew, and what is said of a failure. It trains nothing here."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from made_up import benchmark, make_run

from eipo import Config, make_config
from eipo.errors import EipoError
from eipo.study.runs import CONFIG


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    return benchmark("runner")


def as_asked(path: Path, config: Config) -> None:
    """Make a run one of this configuration."""
    about = json.loads((path / CONFIG).read_text()) | {"config": dataclasses.asdict(config)}
    (path / CONFIG).write_text(json.dumps(about))


def test_what_is_finished_is_kept_and_what_is_not_is_begun_anew(runner: ModuleType, tmp_path: Path) -> None:
    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    assert not runner.is_done(tmp_path / "none", asked)

    half = make_run(tmp_path / "eo-0", "eo", done=2)
    as_asked(half, asked)
    assert not runner.is_done(half, asked)
    assert not half.exists()

    other = make_run(tmp_path / "eo-1", "eo")
    with pytest.raises(EipoError, match="was made with another steps"):
        runner.is_done(other, asked)
    assert other.exists()

    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("")
    with pytest.raises(EipoError, match="is in the way"):
        runner.is_done(tmp_path / "thesis", asked)
    assert (tmp_path / "thesis" / "thesis.tex").exists()


def test_a_finished_run_of_the_same_configuration_is_skipped(runner: ModuleType, tmp_path: Path) -> None:
    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    path = make_run(tmp_path / "eo-0", "eo")
    as_asked(path, asked)
    assert runner.is_done(path, asked)


def test_rows_of_runs_that_are_not_there_are_kept(runner: ModuleType, tmp_path: Path) -> None:
    file, names, key = tmp_path / "t.csv", ("task", "seed", "score"), ("task", "seed")
    mine = [{"task": "a", "seed": 0, "score": 1.5}, {"task": "b", "seed": 0, "score": 2}]
    assert runner.with_former(file, names, key, mine) == mine  # there is no table yet
    runner.write(file, names, mine)
    again = [{"task": "a", "seed": 0, "score": 7.0}, {"task": "a", "seed": 1, "score": 8.0}]
    assert runner.with_former(file, names, key, again) == [*again, {"task": "b", "seed": "0", "score": "2"}]
    with pytest.raises(EipoError, match="has other columns than task,seed"):
        runner.with_former(file, ("task", "seed"), key, again)


def test_what_a_table_has_is_skipped_and_named(
    runner: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [runner.Job(tmp_path / f"eo-{s}", "eipo/Maze-v0", "eo", s, 100_000, []) for s in range(3)]
    file = tmp_path / "t.csv"

    def key(job: Any) -> dict[str, str]:
        return {"seed": str(job.seed)}

    assert runner.not_recorded(jobs, file, key) == jobs
    # 64 environments x 500 steps: three whole iterations of 32,000 fit.
    runner.write(file, ("seed", "steps"), [{"seed": 0, "steps": 96_000}, {"seed": 1, "steps": 64_000}])
    assert runner.not_recorded(jobs, file, key) == jobs[1:]  # of seed 1 there is a shorter run
    assert capsys.readouterr().out == f"1 runs skipped, in {file}: eo-0\n"


def test_failures_are_told_and_the_rest_goes_on(
    runner: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner.Job, "command", lambda self: [sys.executable, "-c", "import sys; sys.exit(3)"])
    study = benchmark("maze_study")
    monkeypatch.setattr(sys, "argv", ["maze_study.py", "--out", str(tmp_path), "--methods", "eo", "en", "--seeds", "0"])
    assert runner.main(study.options(), study.jobs, study.collect, study.draw) == 2  # nothing to collect
    out, err = capsys.readouterr()
    assert "2 runs, 0 of them finished before" in out
    assert "eo-0: failed with exit code 3" in out
    assert "2/2 " in out
    assert "holds no run" in err


def test_a_job_is_the_command_that_its_configuration_says(runner: ModuleType, tmp_path: Path) -> None:
    from eipo import cli

    job = runner.Job(tmp_path / "en-0.1-2", "eipo/Maze-v0", "en", 2, 32_000, ["method.lam=0.1", "compute.threads=1"])
    command = cli.parse(job.command()[3:])  # behind "python -m eipo"
    given = make_config(
        command.env, method=command.method, steps=command.steps, seed=command.seed,
        settings=[pair for group in command.set for pair in group],
    )  # fmt: skip
    assert given == job.config()
    assert given.method.lam == 0.1
    assert command.out == job.run
