"""The study behind results/maze.csv: six methods on the maze, five seeds each.

    python benchmarks/maze_study.py              train what is missing in runs/maze, then collect and draw
    python benchmarks/maze_study.py --collect    CSVs and figure from the runs that are finished
    python benchmarks/maze_study.py --draw       the figure from the CSVs alone

It can be stopped and started again: finished runs stay, half-finished ones are begun anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eipo.errors import EipoError
from eipo.study.figures import BEST, METHODS, QUIET, STYLE, colour, draw_seeds, label_ends, limits, mark_best, millions
from eipo.study.runs import RunData, read_runs
from runner import FINAL, LAST, Job, final_row, main, parser, read, returns, text, write

ENV = "eipo/Maze-v0"
BINS = 60
CURVES = ("method", "seed", "steps", "return", "return_E", "return_EI", "alpha")


def jobs(args: argparse.Namespace) -> list[Job]:
    """Seeds are the outer loop, so that what is there after any time compares the methods evenly."""
    return [
        Job(args.out / f"{m}-{s}", ENV, m, s, args.steps, args.set) for s in args.seeds for m in args.methods
    ]  # fmt: skip


def collect(out: Path, results: Path) -> None:
    """results/maze.csv and maze_final.csv from the finished runs below `out`."""
    runs = [run for run in read_runs([out]) if run.finished and run.env == ENV]
    if not runs:
        raise EipoError(f"{out} holds no finished run of {ENV}")
    runs.sort(key=lambda run: (METHODS.index(run.method) if run.method in METHODS else 99, run.method, run.seed))
    results.mkdir(parents=True, exist_ok=True)
    write(results / "maze.csv", CURVES, [row for run in runs for row in curve_rows(run)])
    write(results / "maze_final.csv", FINAL, [final_row(run) for run in runs])
    print(f"{len(runs)} runs collected into {results / 'maze.csv'} and {results / 'maze_final.csv'}")


def curve_rows(run: RunData) -> list[dict[str, Any]]:
    """About 60 points: means over bins of equally many iterations (the first may have less), at their last steps."""
    steps, rows = run.column("steps"), []
    size = 2 * max(1, round(len(run) / BINS / 2))  # even: EIPO's policies often alternate, and shall weigh the same
    for part in np.split(np.arange(len(run)), range(len(run) % size or size, len(run), size)):
        alpha = run.column("alpha")[part]
        rows.append({
            "method": run.method, "seed": run.seed, "steps": int(steps[part[-1]]), **returns(run, part),
            "alpha": text(alpha[-1], 6),
        })  # fmt: skip
    return rows


def draw(results: Path) -> None:
    """results/maze.png and .svg from the CSVs alone."""
    points, finals = read(results / "maze.csv"), read(results / "maze_final.csv")
    known = {row["method"] for row in finals}
    methods = [m for m in METHODS if m in known] + sorted(known - set(METHODS))
    with matplotlib.style.context(STYLE):
        figure = Figure((10, 4.9), facecolor="white")
        FigureCanvasAgg(figure)
        left = figure.add_axes((0.072, 0.185, 0.5, 0.63))
        right = figure.add_axes((0.705, 0.185, 0.275, 0.63), sharey=left)
        figure.text(0.02, 0.95, f"{', '.join(methods)} on {ENV}", fontsize=15, fontweight="bold", va="center")
        draw_curves(left, points, methods)
        draw_finals(right, finals, methods)
        seeds = len({row["seed"] for row in finals})
        steps = max(int(row["steps"]) for row in finals)
        caption = (
            f"{steps / 1e6:.3g} M steps, {seeds} seeds. Left, thin lines: one seed each; thick: their mean; band: its "
            f"standard error. Right: mean of each run's last {100 * LAST:g} %; bar: mean of the seeds."
        )
        figure.text(0.02, 0.03, caption, color=QUIET, fontsize=8.5)
        figure.savefig(results / "maze.png", dpi=160)
        figure.savefig(results / "maze.svg", metadata={"Date": None})
    print(f"drawn: {results / 'maze.png'}")


def draw_curves(ax: Any, points: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
    scale, ends = millions(ax, max(float(row["steps"]) for row in points)), []
    for i, method in enumerate(reversed(methods)):
        rows = [row for row in points if row["method"] == method and row["return"]]
        curves = []
        for seed in sorted({row["seed"] for row in rows}):
            own = [(float(row["steps"]) * scale, float(row["return"])) for row in rows if row["seed"] == seed]
            x, y = np.array(own).T
            curves.append((x, y))
        wide = 2.8 if method == "eipo" else 2.0
        last = draw_seeds(ax, curves, colour(method), zorder=3 + i, linewidth=wide)
        if last is not None:
            ends.append((last, method, colour(method)))
    limits(ax, BEST[ENV])
    mark_best(ax, BEST[ENV])
    label_ends(ax, ends)
    ax.set_ylabel("return")
    ax.set_title("Task return of an episode, by the policy that acted", pad=9)


def draw_finals(ax: Any, finals: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
    """Each seed's final return as a point, beside one another where they would hide each other."""
    for i, method in enumerate(methods):
        y = sorted(float(row["final_return"]) for row in finals if row["method"] == method and row["final_return"])
        x = i + (np.arange(len(y)) - (len(y) - 1) / 2) * 0.12
        ax.plot(x, y, "o", color=colour(method), ms=6, mec="white", mew=0.7, clip_on=False, zorder=4)
        if y:
            ax.plot([i - 0.34, i + 0.34], [np.mean(y)] * 2, color=colour(method), linewidth=1.6, alpha=0.6, zorder=3)
    ax.axhline(BEST[ENV], color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    ax.set_xticks(range(len(methods)), methods)
    for tick, method in zip(ax.get_xticklabels(), methods, strict=True):
        tick.set_color(colour(method))
        tick.set_fontweight("bold" if method == "eipo" else "normal")
    ax.set_xlim(-0.6, len(methods) - 0.4)
    ax.tick_params(axis="x", length=0, labelsize=10)
    ax.set_title("Final return of each seed", pad=9)


def options() -> argparse.Namespace:
    p = parser(__doc__, "maze")
    p.add_argument("--methods", nargs="+", default=["eo", "rnd", "en", "dy", "dc", "eipo"], metavar="NAME")
    p.add_argument("--seeds", nargs="+", type=int, default=list(range(5)), metavar="N")
    return p.parse_args()


if __name__ == "__main__":
    sys.exit(main(options(), jobs, collect, draw))
