"""What studies share: which runs are kept, which begun anew, and what is said of a failure. It trains nothing here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from made_up import benchmark, make_run

from eipo import make_config
from eipo.errors import EipoError
from eipo.study.runs import CONFIG


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    return benchmark("runner")


def test_what_is_finished_is_kept_and_what_is_not_is_begun_anew(runner: ModuleType, tmp_path: Path) -> None:
    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    assert not runner.is_done(tmp_path / "none", asked)

    half = make_run(tmp_path / "eo-0", "eo", done=2)
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
    import dataclasses

    asked = make_config("eipo/Maze-v0", method="eo", steps=32_000 * 4)
    path = make_run(tmp_path / "eo-0", "eo")
    about = json.loads((path / CONFIG).read_text()) | {"config": dataclasses.asdict(asked)}
    (path / CONFIG).write_text(json.dumps(about))
    assert runner.is_done(path, asked)


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
