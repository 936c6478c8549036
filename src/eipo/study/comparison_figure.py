"""The figure of a comparison. Each panel draws into axes that it is given, so that a report can use it alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from . import statistics
from .comparison import Comparison
from .comparison_tables import ByTask, improvements
from .figures import INK, QUIET, STYLE, colour, shades
from .statistics import Bootstrap, Estimate

DPI = 160


def draw(comparison: Comparison, out: Path) -> list[Path]:
    """compare.png and compare.svg."""
    files = [out / "compare.png", out / "compare.svg"]
    with matplotlib.style.context(STYLE):
        figure = compose(comparison)
        figure.savefig(files[0], dpi=DPI)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def compose(comparison: Comparison) -> Figure:
    """Probabilities of improvement above; below them, where scores could be normalized, aggregates and profiles."""
    study, focus, how = comparison.study, comparison.focus, comparison.how
    assert study is not None
    rows = 2 if comparison.normalized else 1
    names = 0.12 * max(map(len, study.methods)) + 0.3  # inches
    tall = 1.3 + 0.42 * len(study.methods)
    width, height = 10.0 + 2 * names, rows * (tall + 0.9) + 0.2
    figure = Figure((width, height), facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        rows, 2, left=(names + 0.2) / width, right=1 - 0.3 / width, top=1 - 0.55 / height, bottom=0.6 / height,
        wspace=(names + 0.7) / 4.5, hspace=1.1 / tall,
    )  # fmt: skip
    found = improvements(study, True, how)
    draw_improvement(figure.add_subplot(grid[0, 0]), focus, found[focus])
    draw_matrix(figure.add_subplot(grid[0, 1]), study.methods, found)
    if comparison.normalized:
        draw_aggregates(figure.add_subplot(grid[1, 0]), comparison.normalized, how)
        draw_profiles(figure.add_subplot(grid[1, 1]), comparison.normalized, how)
    return figure


def inks(methods: Sequence[str]) -> dict[str, str]:
    """A colour for each method; variants of one are shades of it."""
    found: dict[str, str] = {}
    for base in dict.fromkeys(m.split(" ")[0] for m in methods):
        variants = [m for m in methods if m.split(" ")[0] == base]
        found |= dict(zip(variants, shades(colour(base), len(variants)), strict=True))
    return found


def draw_improvement(ax: Axes, focus: str, found: Mapping[str, Estimate | None]) -> None:
    """P(focus > B) for each B, with its interval; a half is where neither is better."""
    known = {m: e for m, e in found.items() if e is not None}
    for y, (m, e) in enumerate(known.items()):
        _mark(ax, e, y, inks([*known])[m])
        ax.annotate(f"{e.value:.2f}", (e.value, y), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8)
    _rows(ax, list(known))
    ax.axvline(0.5, color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel(f"probability that a run of {focus} scores higher")
    ax.set_title(f"P({focus} > B), mean over tasks", pad=9)


def draw_matrix(ax: Axes, methods: Sequence[str], found: Mapping[str, Mapping[str, Estimate | None]]) -> None:
    """P(row > column)."""
    scale = matplotlib.colormaps["PuOr_r"]
    values = np.full((len(methods), len(methods)), np.nan)
    for i, a in enumerate(methods):
        for j, b in enumerate(methods):
            if (e := found[a].get(b)) is not None:
                values[i, j] = e.value
                sure = e.low > 0.5 or e.high < 0.5
                ink = "white" if np.dot(scale(e.value)[:3], (0.3, 0.59, 0.11)) < 0.55 else INK
                ax.text(j, i, f"{e.value:.2f}", ha="center", va="center", color=ink, fontsize=9,
                        fontweight="bold" if sure else "normal")  # fmt: skip
    ax.imshow(values, cmap=scale, vmin=0, vmax=1, aspect="auto")
    ax.set_xticks(range(len(methods)), methods, rotation=0 if max(map(len, methods)) < 9 else 30)
    ax.set_yticks(range(len(methods)), methods)
    ax.grid(False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title("P(row > column); bold: interval without 0.5", pad=9)


def draw_aggregates(ax: Axes, scores: Mapping[str, ByTask], how: Bootstrap) -> None:
    """IQM, mean and median of normalized scores."""
    kinds = {"IQM": (statistics.iqm, "o"), "median": (statistics.median, "s"), "mean": (statistics.mean, "^")}
    ink = inks([*scores])
    for y, (m, x) in enumerate(scores.items()):
        for k, (statistic, marker) in enumerate(kinds.values()):
            _mark(ax, statistic(x, how=how), y + 0.22 * (k - 1), ink[m], marker)
    _rows(ax, list(scores))
    for name, (_, marker) in kinds.items():
        ax.plot([], [], marker, color=QUIET, label=name)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, fontsize=8, handletextpad=0.1, columnspacing=1.0)
    ax.set_xlabel("normalized score")
    ax.set_title("Aggregates", pad=9)


def draw_profiles(ax: Axes, scores: Mapping[str, ByTask], how: Bootstrap) -> None:
    """The share of runs above each normalized score."""
    every = np.concatenate([x for by_task in scores.values() for x in by_task.values()])
    low, high = np.quantile(every, [0.0, 0.98])
    tau = np.linspace(min(low, 0.0), max(high, 1.0), 200)
    for m, ink in inks([*scores]).items():
        profile = statistics.performance_profile(scores[m], tau, how)
        ax.plot(tau, profile.value, color=ink, label=m, linewidth=2.4 if m.startswith("eipo") else 1.6)
        ax.fill_between(tau, profile.low, profile.high, color=ink, alpha=0.13, linewidth=0)
    ax.set_ylim(0, 1.02)
    ax.set_xlim(tau[0], tau[-1])
    ax.legend(loc="upper right", fontsize=8)
    ax.set_xlabel("normalized score")
    ax.set_title("Performance profile: share of runs above", pad=9)


def _mark(ax: Axes, e: Estimate, y: float, ink: str, marker: str = "o") -> None:
    if np.isfinite(e.low):
        ax.plot([e.low, e.high], [y, y], color=ink, linewidth=2.2, alpha=0.6)
    ax.plot(e.value, y, marker, color=ink, markersize=6)


def _rows(ax: Axes, names: Sequence[str]) -> None:
    """One row a method, the first at the top."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(True, axis="x")
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
