"""The report: it is there, it shows something in every panel, and it copes with what runs leave out."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import matplotlib.image
import matplotlib.style
import numpy as np
import pytest
from made_up import LEVEL, make_run
from matplotlib.backends.backend_agg import FigureCanvasAgg

import eipo
from eipo.errors import EipoError
from eipo.study.figures import STYLE, apart, average
from eipo.study.groups import grouped
from eipo.study.report import compose, report
from eipo.study.runs import read_runs


def colours_of_panels(path: Path) -> list[int]:
    """How many different colours each panel of the figure shows inside its frame."""
    with matplotlib.style.context(STYLE):
        figure = compose(grouped(read_runs([path])))
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
    image = np.asarray(canvas.buffer_rgba())
    counts = []
    for ax in figure.axes:
        box = ax.get_window_extent()
        inside = image[image.shape[0] - int(box.y1) : image.shape[0] - int(box.y0), int(box.x0) : int(box.x1)]
        counts.append(len(np.unique(inside.reshape(-1, 4), axis=0)))
    return counts


def test_three_runs(tmp_path: Path) -> None:
    for method in ("eipo", "en", "eo"):
        make_run(tmp_path / "runs" / method, method)
    begin = time.perf_counter()
    png = report([tmp_path / "runs"], tmp_path / "out" / "new")
    assert time.perf_counter() - begin < 10  # about 2 s on an idle machine
    assert png == tmp_path / "out" / "new" / "report.png"
    assert matplotlib.image.imread(png).shape[1] == 1600
    svg = png.with_suffix(".svg").read_text()
    assert svg.startswith("<?xml")
    counts = colours_of_panels(tmp_path / "runs")
    assert len(counts) == 8  # returns, both policies, alpha, gap, three maps, colour bar
    assert min(counts) > 10


def test_six_methods_and_an_unfinished_seed(tmp_path: Path) -> None:
    for method in LEVEL:
        for seed in range(3):
            make_run(tmp_path / f"{method}-{seed}", method, seed, done=20 if (method, seed) == ("eo", 2) else None)
    assert min(colours_of_panels(tmp_path)) > 10
    with matplotlib.style.context(STYLE):
        figure = compose(grouped(read_runs([tmp_path])))
    caption = figure.texts[-1].get_text()
    assert "seeds 0 to 2" in caption
    assert "Not finished: eo-2 at 0.64 M" in caption


def test_one_run_is_shown_in_three_parts_of_its_time(tmp_path: Path) -> None:
    make_run(tmp_path / "r", "eipo")
    assert len(colours_of_panels(tmp_path / "r")) == 8


def test_no_board_and_no_alpha(tmp_path: Path) -> None:
    make_run(tmp_path / "r", "rnd", env="CartPole-v1", visits=False)
    assert len(colours_of_panels(tmp_path)) == 1


def test_a_run_without_an_episode_so_far(tmp_path: Path) -> None:
    path = make_run(tmp_path / "r", "eo", done=1)
    (path / "metrics.jsonl").write_text('{"iteration": 1, "steps": 32000, "return": null}\n')
    assert report([path], tmp_path).is_file()


def test_nothing_to_draw(tmp_path: Path) -> None:
    make_run(tmp_path / "r", done=0)
    with pytest.raises(EipoError, match="no iteration is finished yet"):
        report([tmp_path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    make_run(tmp_path / "r")
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(EipoError, match="out cannot be written"):
        report([tmp_path / "r"], tmp_path / "out")


def test_a_real_run(tmp_path: Path) -> None:
    settings = {"envs.num": 4, "envs.steps": 32, "net.dense": 16, "net.width": 16, "bonus.features": 8}
    eipo.train("eipo/Maze-v0", method="eipo", steps=128 * 6, out=tmp_path / "run", settings=settings)
    assert report([tmp_path / "run"], tmp_path).stat().st_size > 10_000


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    make_run(tmp_path / "r", "eipo")
    first, again = (report([tmp_path / "r"], tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == again.read_bytes()
    assert first.with_suffix(".svg").read_bytes() == again.with_suffix(".svg").read_bytes()


def test_a_report_needs_neither_torch_nor_pyplot() -> None:
    code = "import sys, eipo.study.report; sys.exit(any(m in sys.modules for m in ('torch', 'matplotlib.pyplot')))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_the_mean_over_seeds_by_hand() -> None:
    x = np.array([0.0, 1.0, 2.0])
    curves = [(x, np.array([0.0, 2.0, 4.0])), (x, np.array([2.0, 4.0, 6.0])), (x[:2], np.array([4.0, 0.0]))]
    at, mean, low, high = average(curves, points=3)
    assert at.tolist() == [0, 1, 2]
    assert mean.tolist() == [2, 2, 5]
    # Standard errors: sqrt(8/2/3), sqrt(8/2/3), sqrt(2/1/2) = 1; the last reaches both seeds.
    np.testing.assert_allclose(high - mean, [np.sqrt(4 / 3), np.sqrt(4 / 3), 1])
    np.testing.assert_allclose(mean - low, high - mean)


def test_names_are_moved_apart_but_not_out_of_the_picture() -> None:
    assert apart(np.array([0.0, 0.0, 50.0]), 10, 100).tolist() == [0, 10, 50]
    assert apart(np.array([0.0, 99.0, 99.0]), 10, 100).tolist() == [0, 90, 100]
