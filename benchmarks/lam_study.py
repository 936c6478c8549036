"""The study behind results/lam.csv: what a run earns in the end, against the weight of its bonus.

    python benchmarks/lam_study.py --jobs 2     train what is missing in runs/lam, then collect and draw
    python benchmarks/lam_study.py --collect    CSVs and figures from the runs that are finished
    python benchmarks/lam_study.py --draw       the figures from the CSVs alone

It can be stopped and started again: finished runs stay, half-finished ones are begun anew, and rows of the CSVs whose
runs are not there are kept; what has a row of as many steps is not trained again, unless --set says how to. Runs go
from the middle outward: lam 1 for every method, then 0.3 and 3, and so on to the ends; then the next seed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eipo.errors import EipoError
from eipo.study.figures import BEST, METHODS, QUIET, STYLE, colour, label_ends, limits, mark_best
from eipo.study.runs import RunData, read_runs
from runner import (
    FINAL,
    LAST,
    SHARE,
    Job,
    final_row,
    main,
    not_recorded,
    parser,
    read,
    text,
    with_former,
    write,
)

ENV = "eipo/Maze-v0"
DEFAULT = ("en", "eipo", "dc", "hepo")
LAMS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
POINTS = 40
KEY = ("method", "lam", "seed")
ALPHAS = ("method", "lam", "seed", "steps", "alpha")
COLUMNS = ("method", "lam", "seed", "steps", "final", *FINAL[3:], "final_alpha")


def outward(lams: Sequence[float]) -> list[float]:
    """From 1 to the ends in half decades; of two that are equally far, the smaller first."""
    return sorted(lams, key=lambda lam: (round(2 * abs(math.log10(lam))), lam))


def jobs(args: argparse.Namespace) -> list[Job]:
    """Seeds are the outer loop, then the weights: what is there after any time compares the methods evenly."""
    return [
        Job(args.out / f"{m}-{lam:g}-{s}", ENV, m, s, args.steps, [*args.set, f"method.lam={lam:g}"])
        for s in args.seeds
        for lam in outward(args.lams)
        for m in args.methods
    ]


def todo(args: argparse.Namespace) -> list[Job]:
    """Without what earlier sittings have left in the results. Rows do not say what --set was."""
    if len(args.set) > len(SHARE):
        return jobs(args)
    return not_recorded(
        jobs(args), args.results / "lam.csv",
        lambda job: dict(zip(KEY, (job.method, f"{job.config().method.lam:g}", str(job.seed)), strict=True)),
    )  # fmt: skip


def collect(out: Path, results: Path) -> None:
    """results/lam.csv and lam_alpha.csv from the finished runs below `out`, and from what they hold of others."""
    runs = [run for run in read_runs([out]) if run.finished and run.env == ENV] if out.exists() else []
    rows = with_former(results / "lam.csv", COLUMNS, KEY, [row(run) for run in runs])
    if not rows:
        raise EipoError(f"{out} holds no finished run of {ENV}")
    results.mkdir(parents=True, exist_ok=True)
    points = [point for run in runs if np.isfinite(run.column("alpha")).any() for point in trajectory(run)]
    points = with_former(results / "lam_alpha.csv", ALPHAS, KEY, points)
    write(results / "lam.csv", COLUMNS, sorted(rows, key=order))
    write(results / "lam_alpha.csv", ALPHAS, sorted(points, key=order))  # stable: steps stay in order
    kept = f", {len(rows) - len(runs)} rows kept whose runs are not there" if len(rows) > len(runs) else ""
    print(f"{len(runs)} runs collected into {results / 'lam.csv'} and lam_alpha.csv{kept}")


def order(row: dict[str, Any]) -> tuple[int, str, float, int]:
    return place(row["method"]), row["method"], float(row["lam"]), int(row["seed"])


def trajectory(run: RunData) -> list[dict[str, Any]]:
    """About POINTS points of alpha, the last one included: as it was, not smoothed."""
    steps, alpha = run.column("steps"), run.column("alpha")
    at = np.unique(np.linspace(0, len(run) - 1, POINTS).round().astype(int))
    head = {"method": run.method, "lam": f"{run.config['method']['lam']:g}", "seed": run.seed}
    return [head | {"steps": int(steps[i]), "alpha": text(alpha[i], 6)} for i in at]


def place(method: str) -> int:
    return METHODS.index(method) if method in METHODS else len(METHODS)


def row(run: RunData) -> dict[str, Any]:
    """A run in one line."""
    alpha, finals = run.column("alpha")[-1:], final_row(run)
    return finals | {
        # Of whichever policy acted; but one that climbs the bonus alone is no part of what a user wants.
        "final": finals["final_return_EI" if run.method == "hepo" else "final_return"],
        "lam": f"{run.config['method']['lam']:g}",
        "final_alpha": text(alpha[-1], 6) if len(alpha) else "",
    }


def draw(results: Path) -> None:
    """results/lam.png and .svg from the CSV alone."""
    rows = [r for r in read(results / "lam.csv") if r["final"]]
    methods = sorted({r["method"] for r in rows}, key=lambda m: (place(m), m))
    with matplotlib.style.context(STYLE):
        figure = Figure((10, 5.2), facecolor="white")
        FigureCanvasAgg(figure)
        ax = figure.add_axes((0.072, 0.22 + 0.032 * len(methods), 0.82, 0.62 - 0.032 * len(methods)))
        figure.text(0.02, 0.95, f"What lam does: {', '.join(methods)}", fontsize=15, fontweight="bold", va="center")
        ends = [
            draw_method(ax, m, i, len(methods), [r for r in rows if r["method"] == m]) for i, m in enumerate(methods)
        ]
        lams = sorted({float(r["lam"]) for r in rows})
        ax.set_xscale("log")
        ax.set_xlim(lams[0] / 1.7, lams[-1] * 1.7)
        ax.set_xticks(lams, [f"{lam:g}" for lam in lams])
        ax.minorticks_off()
        limits(ax, BEST[ENV])
        mark_best(ax, BEST[ENV])
        label_ends(ax, ends)
        ax.set_ylabel("return")
        ax.set_xlabel(
            "lam, the weight of the bonus, and how many seeds are behind each mean", labelpad=12 + 13 * len(methods)
        )
        ax.set_title(f"Final task return on {ENV}", pad=9)
        steps = max(int(r["steps"]) for r in rows)
        caption = (
            f"{steps / 1e6:.3g} M steps. A point: a seed, mean of its last {100 * LAST:g} %, whichever policy acted "
            "(hepo: pi_EI). Line: mean of the seeds that are finished."
        )
        figure.text(0.02, 0.03, caption, color=QUIET, fontsize=8.5)
        figure.savefig(results / "lam.png", dpi=160)
        figure.savefig(results / "lam.svg", metadata={"Date": None})
    print(f"drawn: {results / 'lam.png'}")
    draw_alphas(results)


def draw_alphas(results: Path) -> None:
    """results/lam_alpha.png and .svg: alpha of every run, each method by itself, light to dark with lam."""
    rows = [r for r in read(results / "lam_alpha.csv") if r["alpha"]]
    methods = sorted({r["method"] for r in rows}, key=lambda m: (place(m), m))
    if not methods:
        return
    lams = sorted({float(r["lam"]) for r in rows})
    inks = dict(zip(lams, matplotlib.colormaps["viridis_r"](np.linspace(0.1, 1.0, len(lams))), strict=True))
    with matplotlib.style.context(STYLE):
        figure = Figure((10, 4.2), facecolor="white")
        FigureCanvasAgg(figure)
        figure.text(0.02, 0.94, "Alpha's way, for each lam", fontsize=15, fontweight="bold", va="center")
        for i, method in enumerate(methods):
            wide = 0.84 / len(methods)
            ax = figure.add_axes((0.075 + i * wide, 0.2, wide - 0.08, 0.58))
            own = [r for r in rows if r["method"] == method]
            for lam, seed in sorted({(float(r["lam"]), r["seed"]) for r in own}):
                run = [r for r in own if float(r["lam"]) == lam and r["seed"] == seed]
                ax.plot([int(r["steps"]) / 1e6 for r in run], [float(r["alpha"]) for r in run], color=inks[lam],
                        linewidth=1.4, label=f"{lam:g}")  # fmt: skip
            ax.ticklabel_format(axis="y", useOffset=False)
            ax.set_xlabel("million steps")
            ax.set_title(method, pad=9)
        seen = {name: line for ax in figure.axes for line, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        seen = {name: seen[name] for name in sorted(seen, key=float)}
        figure.legend(
            seen.values(), seen.keys(), title="lam", loc="center right", fontsize=8.5, bbox_to_anchor=(0.995, 0.5)
        )
        figure.text(0.02, 0.03, f"{ENV}. A line: one seed.", color=QUIET, fontsize=8.5)
        figure.savefig(results / "lam_alpha.png", dpi=160)
        figure.savefig(results / "lam_alpha.svg", metadata={"Date": None})
    print(f"drawn: {results / 'lam_alpha.png'}")


def draw_method(ax: Any, method: str, i: int, of: int, rows: Sequence[dict[str, str]]) -> tuple[float, str, str]:
    """Seeds as points, moved apart a little between methods; their mean as a line; their number below the axis."""
    ink, lams = colour(method), sorted({float(r["lam"]) for r in rows})
    shift = 10 ** (0.05 * (i - (of - 1) / 2))
    means = []
    for lam in lams:
        y = [float(r["final"]) for r in rows if float(r["lam"]) == lam]
        means.append(float(np.mean(y)))
        ax.plot([lam * shift] * len(y), y, "o", color=ink, ms=5, mec="white", mew=0.6, clip_on=False, zorder=4)
        ax.annotate(str(len(y)), (lam, 0), xycoords=("data", "axes fraction"), xytext=(0, -30 - 13 * i),
                    textcoords="offset points", ha="center", va="center", color=ink, fontsize=8.5)  # fmt: skip
    ax.annotate(method, (0, 0), xycoords="axes fraction", xytext=(-8, -30 - 13 * i), textcoords="offset points",
                ha="right", va="center", color=ink, fontsize=8.5)  # fmt: skip
    ax.plot([lam * shift for lam in lams], means, color=ink, linewidth=2.6 if method == "eipo" else 1.8, zorder=3)
    return means[-1], method, ink


def options() -> argparse.Namespace:
    p = parser(__doc__, "lam")
    p.add_argument("--methods", nargs="+", default=list(DEFAULT), metavar="NAME")
    p.add_argument("--lams", nargs="+", type=float, default=list(LAMS), metavar="LAM")
    p.add_argument("--seeds", nargs="+", type=int, default=list(range(3)), metavar="N")
    return p.parse_args()


if __name__ == "__main__":
    sys.exit(main(options(), todo, collect, draw))
