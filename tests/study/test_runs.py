"""Reading run directories."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_up import ITERATION, make_run
from safetensors.numpy import load_file, save_file

from eipo.envs.maze.board import BOARD, SIZE
from eipo.errors import EipoError
from eipo.study.groups import grouped
from eipo.study.runs import (
    AGENT,
    CONFIG,
    EPISODE_COLUMNS,
    EPISODES,
    METRICS,
    VISITS,
    find_runs,
    read_run,
    read_runs,
    smooth,
)


def test_the_names_of_the_files_are_the_trackers() -> None:
    from eipo import agent, tracking

    assert (CONFIG, METRICS, VISITS) == (tracking.CONFIG, tracking.METRICS, tracking.VISITS)
    assert (EPISODES, EPISODE_COLUMNS) == (tracking.EPISODES, tracking.EPISODE_COLUMNS)
    assert AGENT == (agent.WEIGHTS, agent.DESCRIPTION)


def test_runs_are_found_at_any_depth_once_and_in_order(tmp_path: Path) -> None:
    for name in ("b/eipo-10", "b/eipo-2", "a/deep/er/eo"):
        make_run(tmp_path / name, iterations=2)
    (tmp_path / "notes").mkdir()
    found = find_runs([tmp_path, tmp_path / "b" / "eipo-2"])
    assert [str(p.relative_to(tmp_path)) for p in found] == ["a/deep/er/eo", "b/eipo-2", "b/eipo-10"]
    assert find_runs([tmp_path / "b" / "eipo-2"]) == [tmp_path / "b" / "eipo-2"]


def test_a_finished_run(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "r", "eipo", 3, iterations=6))
    assert (run.method, run.env, run.seed, len(run), run.finished) == ("eipo", "eipo/Maze-v0", 3, 6, True)
    assert run.column("steps").tolist() == [ITERATION * i for i in range(1, 7)]
    assert np.isnan(run.column("return_E")).tolist() == [True, False] * 3  # null in every other line
    assert np.isnan(run.column("no such metric")).all()
    assert run.texts["stage"] == ["min", "max"] * 3
    assert run.visits is not None
    assert run.visits.board.shape == (SIZE, SIZE)
    assert run.visits.counts.shape == (10, 2, SIZE * SIZE)


def test_a_run_that_is_being_written(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", iterations=6, done=3)
    with open(path / METRICS, "a") as f:
        f.write('{"iteration": 4, "ste')
    (path / VISITS).write_bytes(b"\x08\x00")
    run = read_run(path)
    assert (len(run), run.finished, run.visits) == (3, False, None)


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    run = read_run(make_run(tmp_path / "r", iterations=6, done=0))
    assert len(run) == 0
    assert len(run.column("return")) == 0


def test_a_flat_board_is_square(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", iterations=2)
    counts = load_file(path / VISITS)["visits"]
    save_file({"visits": counts, "board": BOARD.copy()}, path / VISITS, metadata={"policies": '["E", "EI"]'})
    visits = read_run(path).visits
    assert visits is not None
    assert (visits.board == BOARD.reshape(SIZE, SIZE)).all()


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        (CONFIG, b"{", "config.json cannot be read"),
        (CONFIG, b'{"model": 1}', "config.json is not the configuration of an eipo run"),
        (METRICS, b'{"steps": 1}\nhello\n{"steps": 3}\n', "metrics.jsonl, line 2"),
        (METRICS, b"\xff\xfe\n", "metrics.jsonl, line 1"),
        (METRICS, b'{"loss": 1}\n', "metrics.jsonl is not the metrics of an eipo run"),
        (VISITS, b"nonsense", "visits.safetensors cannot be read"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path: Path, file: str, content: bytes, says: str) -> None:
    path = make_run(tmp_path / "r", iterations=2)
    (path / file).write_bytes(content)
    with pytest.raises(EipoError, match=says) as error:
        read_run(path)
    assert "\n" not in str(error.value)


def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", iterations=2)
    about = json.loads((path / CONFIG).read_text()) | {"format": 2}
    (path / CONFIG).write_text(json.dumps(about))
    with pytest.raises(EipoError, match="format 2, this eipo reads up to 1: upgrade eipo"):
        read_run(path)


def test_nothing_found(tmp_path: Path) -> None:
    with pytest.raises(EipoError, match="nowhere does not exist"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(EipoError, match="holds no run"):
        find_runs([tmp_path])
    with pytest.raises(EipoError, match="no run directory was named"):
        find_runs([])
    (tmp_path / "file").write_text("")
    with pytest.raises(EipoError, match="is not a directory"):
        find_runs([tmp_path / "file"])


def test_smoothing_keeps_a_level_and_lets_nothing_through_that_alternates() -> None:
    x = np.arange(10.0)
    assert smooth(x, np.full(10, 3.0), 4)[1].tolist() == [3.0] * 10
    y = np.where(x % 2, np.nan, x)
    assert smooth(x, y, 4)[0].tolist() == [0, 2, 4, 6, 8]
    # Windows of 5 points in the middle, of 3 and 4 at the edges: (0+1+2)/3, (0+1+2+3)/4, 2, ...
    assert smooth(x, x, 4)[1].tolist() == [1.0, 1.5, 2, 3, 4, 5, 6, 7, 7.5, 8.0]


def test_seeds_are_one_group_and_what_differs_is_said(tmp_path: Path) -> None:
    make_run(tmp_path / "1", "eipo", 0, iterations=4)
    make_run(tmp_path / "2", "eipo", 1, iterations=4)
    make_run(tmp_path / "3", "eipo", 0, iterations=4, settings={"method.lam": 10.0})
    make_run(tmp_path / "4", "en", 0, iterations=4)
    groups = grouped(read_runs([tmp_path]))
    assert [(g.label, [r.seed for r in g.runs]) for g in groups] == [
        ("eipo lam 1", [0, 1]),
        ("eipo lam 10", [0]),
        ("en", [0]),
    ]
    assert len({g.colour for g in groups}) == 3


def test_other_lengths_are_other_groups(tmp_path: Path) -> None:
    make_run(tmp_path / "1", "eipo", iterations=4)
    make_run(tmp_path / "2", "eo", iterations=8)
    assert [g.label for g in grouped(read_runs([tmp_path]))] == ["eipo 0.128 M steps", "eo 0.256 M steps"]
