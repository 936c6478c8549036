"""`make bench` and the short Atari runs: what they make of their measurements. Nothing is measured or trained here."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from made_up import benchmark, make_run

from eipo.study.runs import EPISODE_COLUMNS


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return benchmark("bench")


@pytest.fixture(scope="module")
def short() -> ModuleType:
    return benchmark("atari_short")


def test_the_table_is_arithmetic_on_the_figures(bench: ModuleType) -> None:
    best = {
        "matrix bf16": {"flops_per_second": 1e12, "peak_mb": 1.0},
        "world atari": {"steps_per_second": 5000.0, "peak_mb": 1.0},
        "sb3-contrib RecurrentPPO": {"steps_per_second": 100.0, "peak_mb": 1.0},
        "atari-paper eo": {"steps_per_second": 1500.0, "peak_mb": 700.0, "acting_share": 0.3},
        "work atari-paper eo": {"flops_per_step": 2e8},
    }
    row = {r["side"]: r for r in bench.table(best)}["atari-paper eo"]
    assert (row["times"], row["wanted"], row["peer"]) == ("15.0", "14", "sb3-contrib RecurrentPPO")
    assert row["of_matrix"] == "0.300"  # 2e8 operations x 1500 steps of 1e12
    assert row["bound"] == "2500"  # 1 / (0.2 ms of products + 0.2 ms of the emulator)
    assert row["of_bound"] == "0.600"


def test_what_was_measured_is_not_measured_again_and_the_best_counts(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeds = iter([10.0, None, 30.0, 20.0])

    def measure(side: str, seconds: float) -> dict[str, float] | None:
        speed = next(speeds)
        return None if speed is None else {"steps_per_second": speed, "peak_mb": 1.0}

    monkeypatch.setattr(bench, "measure", measure)
    sides = [("a", 0), ("b", 0), ("a", 1)]
    assert bench.measure_all(sides, 1.0, tmp_path / "raw.csv")["a"]["steps_per_second"] == 30.0
    # b failed before, so it alone is measured again.
    best = bench.measure_all(sides, 1.0, tmp_path / "raw.csv")
    assert {side: figures["steps_per_second"] for side, figures in best.items()} == {"a": 30.0, "b": 20.0}


def test_every_side_of_the_table_can_be_measured(bench: ModuleType) -> None:
    sides = benchmark("bench_sides").SIDES
    assert set(bench.MACHINE + bench.TRAINED + bench.GROWTH + bench.WORK) == set(sides)
    assert {mine for mine, _, _ in bench.PAIRS} | {peer for _, peer, _ in bench.PAIRS} == set(bench.TRAINED)


def test_work_is_that_of_the_layers() -> None:
    """atari-paper, by hand: two convolutions, dense, LSTM, one policy of 4 actions and one critic."""
    sides = benchmark("bench_sides")
    first = 2 * 16 * 8 * 8 * 20 * 20
    forward = first + 2 * 32 * 16 * 4 * 4 * 10 * 10 + 2 * 3200 * 512 + 2 * 4 * 512 * (512 + 512) + 2 * 512 * 5
    assert sides.work("atari-paper", "eo") == {"flops_per_step": forward + 4 * (3 * forward - first)}


def test_short_runs_are_collected_with_random_play(short: ModuleType, tmp_path: Path) -> None:
    make_run(tmp_path / "Pong-eo", "eo", 0, iterations=20)
    scores = np.random.default_rng(0).integers(-21, 22, 130).astype(float)
    lines = [",".join(EPISODE_COLUMNS), *(f"1,{32_000},E,{score},100" for score in scores)]
    (tmp_path / "Pong-eo" / "episodes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "Pong-random.json").write_text(json.dumps([-21.0, -19.0, -20.0]))
    (row,) = short.rows([("Pong", "eo"), ("Pong", "en")], tmp_path)  # en has not begun
    assert list(row) == list(short.COLUMNS)
    assert (row["kind"], row["random_mean"], row["random_median"]) == ("short", "-20", "-20")
    lines = (tmp_path / "Pong-eo" / "metrics.jsonl").read_text().splitlines()
    spent, before = 0.0, 0
    for m in map(json.loads, lines):
        spent, before = spent + (m["steps"] - before) / m["steps_per_second"], m["steps"]
    assert short.minutes(tmp_path / "Pong-eo") == pytest.approx(spent / 60)
    assert row["steps"] == before
    assert row["mean"] == row["mean_E"] == f"{scores[-100:].mean():.4g}"
    assert row["median"] == f"{np.median(scores[-100:]):.4g}"
    assert row["mean_EI"] == ""


def test_a_run_goes_on_from_its_checkpoint_or_begins_anew(short: ModuleType, tmp_path: Path) -> None:
    run = tmp_path / "Pong-eo"
    (run / "checkpoints" / "00000003").mkdir(parents=True)
    assert short.command(run, "Pong", "eo", 1)[-2:] == ["--resume", str(run)]
    (run / "checkpoints" / "00000003").rmdir()
    assert "ALE/Pong-v5" in short.command(run, "Pong", "eo", 1)
    assert not run.exists()
