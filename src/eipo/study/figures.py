"""What all figures share: a style, a colour for each method, and the arithmetic of curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.colors as mcolors
import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from .runs import Floats

# Okabe and Ito's colours, which stay apart for colour-blind eyes; the one that stands out is eipo's.
COLOURS = {"eipo": "#D55E00", "en": "#0072B2", "rnd": "#56B4E9", "dy": "#009E73", "dc": "#B0599A", "eo": "#6B6B6B",
           "hepo": "#1F7A7A", "noisy": "#8C6D1F"}  # fmt: skip
OTHER = ("#4B3F91", "#8A2F3C", "#7A5C3E", "#2F6B3C")  # methods that are not ours
METHODS = ("eipo", "hepo", "en", "rnd", "dy", "dc", "noisy", "eo")  # the order in which figures list them
BEST = {"eipo/Maze-v0": 450.0}  # the highest return there is, where it is known

INK, QUIET, FAINT = "#1f2430", "#6c7280", "#d9dce3"
STYLE: list[Any] = [
    "default",  # whatever the user's matplotlibrc says, a report looks the same
    {
        "font.family": ["DejaVu Sans"],
        "font.size": 10, "axes.titlesize": 11, "axes.labelsize": 10, "xtick.labelsize": 9, "ytick.labelsize": 9,
        "text.color": INK, "axes.labelcolor": INK, "xtick.color": QUIET, "ytick.color": QUIET,
        "axes.edgecolor": QUIET, "axes.linewidth": 0.8, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "axes.grid.axis": "y", "grid.color": FAINT, "grid.linewidth": 0.7, "axes.axisbelow": True,
        "axes.titlelocation": "left", "axes.titleweight": "bold", "lines.solid_capstyle": "round",
        "legend.frameon": False, "svg.hashsalt": "eipo",
    },
]  # fmt: skip


def colour(method: str) -> str:
    """The fixed colour of a method."""
    return COLOURS.get(method) or OTHER[sum(map(ord, method)) % len(OTHER)]


def shades(base: str, count: int) -> list[str]:
    """Variants of one method: its own colour, then darker and lighter ones."""
    if count == 1:
        return [base]
    rgb = np.array(mcolors.to_rgb(base))
    mix = [rgb + (np.array(end) - rgb) * w for end, w in [((0, 0, 0), 0.5), ((1, 1, 1), 0.4)]]
    stops = np.linspace(0, 2, count)
    mixed = np.stack([np.interp(stops, [0, 1, 2], [mix[0][c], rgb[c], mix[1][c]]) for c in range(3)], axis=1)
    return [mcolors.to_hex((r, g, b)) for r, g, b in mixed]


def average(curves: Sequence[tuple[Floats, Floats]], points: int = 300) -> tuple[Floats, Floats, Floats, Floats]:
    """Over seeds: x, the mean, and the mean minus and plus its standard error, where at least half of them have come.

    The band stays between the lowest and the highest seed: a return that cannot be negative does not look so.
    """
    curves = [c for c in curves if len(c[0])]
    x = np.linspace(min(c[0][0] for c in curves), max(c[0][-1] for c in curves), points)
    y = np.stack([np.interp(x, *c, left=np.nan, right=np.nan) for c in curves])  # (seeds, points)
    seeds = np.isfinite(y).sum(0)
    x, y, seeds = x[2 * seeds >= len(curves)], y[:, 2 * seeds >= len(curves)], seeds[2 * seeds >= len(curves)]
    mean = np.nanmean(y, 0)
    error = np.sqrt(np.nansum((y - mean) ** 2, 0) / np.maximum(seeds - 1, 1) / seeds)
    return x, mean, np.maximum(mean - error, np.nanmin(y, 0)), np.minimum(mean + error, np.nanmax(y, 0))


def draw_seeds(
    ax: Axes, curves: Sequence[tuple[Floats, Floats]], colour: str, *, zorder: float = 3, thin: bool = True, **line: Any
) -> float | None:
    """Each seed thin, their mean with a band; the last value of the mean."""
    curves = [c for c in curves if len(c[0])]
    if not curves:
        return None
    if thin and len(curves) > 1:
        for x, y in curves:
            ax.plot(x, y, color=colour, linewidth=0.7, alpha=0.45, zorder=zorder - 0.5)
    x, mean, low, high = average(curves)
    if thin and len(curves) > 2:
        ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0, zorder=zorder - 0.7)
    ax.plot(x, mean, color=colour, zorder=zorder, **line)
    return float(mean[-1])


def limits(ax: Axes, best: float | None) -> None:
    """From 0, where nothing is below it, to a little over the best that there is."""
    low, high = ax.dataLim.y0, ax.dataLim.y1
    if best is not None:
        high = max(high, best)
    if not np.isfinite([low, high]).all() or low == high == 0:
        low, high = 0.0, 1.0
    room = 0.05 * (high - low or 1.0)
    ax.set_ylim(0 - 0.4 * room if 0 <= low < high else low - room, high + room)


def mark_best(ax: Axes, best: float) -> None:
    """The highest return that there is."""
    ax.axhline(best, color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    where = blended_transform_factory(ax.transAxes, ax.transData)
    ax.text(0.005, best, f"best possible: {best:g}", transform=where, color=QUIET, fontsize=8.5, va="bottom")


def label_ends(ax: Axes, ends: Sequence[tuple[float, str, str]], size: float = 10) -> None:
    """Names (value, text, colour) to the right of the axes, where their lines end, moved apart where they collide."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    low, high = ax.get_ylim()
    tall = ax.get_position().height * figure.get_size_inches()[1] * 72  # points
    ends = sorted(ends, key=lambda end: end[0])
    at = apart(np.array([(value - low) / (high - low) * tall for value, _, _ in ends]), 1.25 * size, tall)
    for y, (_, text, ink) in zip(at / tall, ends, strict=True):
        weight = "bold" if text.startswith("eipo") else "normal"
        ax.text(1.015, y, text, color=ink, transform=ax.transAxes, va="center", fontsize=size, fontweight=weight)


def apart(wanted: Floats, gap: float, top: float) -> Floats:
    """Sorted places near `wanted`, at least `gap` from one to the next, and below `top` if there is room."""
    at = wanted.copy()
    for i in range(1, len(at)):
        at[i] = max(at[i], at[i - 1] + gap)
    for i in reversed(range(len(at))):
        at[i] = min(at[i], top - (len(at) - 1 - i) * gap)
    return at


def millions(ax: Axes, steps: float) -> float:
    """Name the x axis, and what to multiply steps with: millions, or thousands for short runs."""
    unit, scale = ("million", 1e-6) if steps >= 1e6 else ("thousand", 1e-3)
    ax.set_xlabel(f"{unit} steps")
    ax.set_xlim(0, steps * scale)
    return scale


def steps_in_words(steps: float) -> str:
    """6 M, 0.32 M, 60 k."""
    return f"{steps / 1e6:.3g} M" if steps >= 1e5 else f"{steps / 1e3:.3g} k"
