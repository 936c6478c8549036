"""The study behind results/lam.csv: its order, its table, its figure. It trains nothing here."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from made_up import ITERATION, benchmark, make_run, rows

from eipo.config import check
from eipo.errors import EipoError


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return benchmark("lam_study")


def test_runs_go_from_the_middle_outward_and_seeds_come_last(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study.outward(study.LAMS) == [1, 0.3, 3, 0.1, 10, 0.03, 30, 0.01, 100]
    monkeypatch.setattr("sys.argv", ["lam_study.py", "--out", str(tmp_path)])
    jobs = study.jobs(study.options())
    assert len(jobs) == 3 * 9 * 4
    assert [job.run.name for job in jobs[:6]] == ["en-1-0", "eipo-1-0", "dc-1-0", "hepo-1-0", "en-0.3-0", "eipo-0.3-0"]
    assert [job.seed for job in jobs] == [0] * 36 + [1] * 36 + [2] * 36
    assert len({job.run for job in jobs}) == len(jobs)
    for job in jobs[:36]:
        check(job.config())
        assert job.config().method.lam == float(job.run.name.split("-")[1])
        assert (job.config().steps, job.config().preset) == (6_000_000, "maze-grid")


def test_table_and_figure_from_what_is_finished(study: ModuleType, tmp_path: Path) -> None:
    made = [("en", 0.3, 0), ("en", 1.0, 0), ("en", 1.0, 1), ("eipo", 1.0, 0), ("eipo", 10.0, 0), ("hepo", 0.01, 2)]
    for method, lam, seed in made:
        path = tmp_path / "runs" / f"{method}-{lam:g}-{seed}"
        make_run(path, method, seed, iterations=40, settings={"method.lam": lam})
    make_run(tmp_path / "runs" / "dc-1-0", "dc", 0, iterations=40, done=20)  # not finished: left out
    study.collect(tmp_path / "runs", tmp_path / "results")
    table = rows(tmp_path / "results" / "lam.csv")
    assert [(r["method"], r["lam"], r["seed"]) for r in table] == [
        ("eipo", "1", "0"), ("eipo", "10", "0"), ("hepo", "0.01", "2"), ("en", "0.3", "0"), ("en", "1", "0"),
        ("en", "1", "1"),
    ]  # fmt: skip
    assert {int(r["steps"]) for r in table} == {40 * ITERATION}
    assert all(float(r["final"]) > 0 for r in table)
    assert [r["final"] == r["final_return"] for r in table] == [True, True, False, True, True, True]
    assert table[2]["final"] == table[2]["final_return_EI"]
    assert [bool(r["final_alpha"]) for r in table] == [True, True, True, False, False, False]
    study.draw(tmp_path / "results")
    assert (tmp_path / "results" / "lam.png").stat().st_size > 20_000
    alphas = rows(tmp_path / "results" / "lam_alpha.csv")
    assert {(r["method"], r["lam"]) for r in alphas} == {("eipo", "1"), ("eipo", "10"), ("hepo", "0.01")}
    assert len(alphas) == 3 * study.POINTS
    assert (alphas[-1]["steps"], alphas[-1]["alpha"]) == (str(40 * ITERATION), table[2]["final_alpha"])
    assert (tmp_path / "results" / "lam_alpha.png").stat().st_size > 20_000


def test_what_another_sitting_has_made_is_kept_and_not_trained_again(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, whole = tmp_path / "results", 5_984_000 // ITERATION  # of 6 M steps, whole iterations
    for sitting, methods in (("first", ("en", "eipo")), ("second", ("eipo", "dc"))):
        for m in methods:
            make_run(tmp_path / sitting / f"{m}-1-0", m, 0, iterations=whole)
        study.collect(tmp_path / sitting, results)
    assert {r["method"] for r in rows(results / "lam.csv")} == {"en", "eipo", "dc"}
    points = rows(results / "lam_alpha.csv")
    assert {r["method"] for r in points} == {"eipo"}
    assert len(points) == study.POINTS
    study.collect(tmp_path / "not there", results)
    assert rows(results / "lam_alpha.csv") == points
    lone = ["lam_study.py", "--out", str(tmp_path), "--results", str(results), "--lams", "1", "--seeds", "0"]
    monkeypatch.setattr("sys.argv", lone)
    assert [job.method for job in study.todo(study.options())] == ["hepo"]
    monkeypatch.setattr("sys.argv", [*lone, "--steps", "1000000"])
    other = study.options()
    assert len(study.todo(other)) == 4
    monkeypatch.setattr("sys.argv", lone)
    other = study.options()
    other.set = [*study.SHARE, "ppo.lr=1e-3"]
    assert len(study.todo(other)) == 4


def test_nothing_to_collect_or_draw(study: ModuleType, tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "en-1-0", "en", 0, done=5)
    with pytest.raises(EipoError, match="holds no finished run"):
        study.collect(tmp_path / "runs", tmp_path)
    with pytest.raises(EipoError, match=r"lam\.csv cannot be read.*--collect"):
        study.draw(tmp_path)
