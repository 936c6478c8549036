"""The report: one picture of some runs. What they earned, what alpha did, and where the agents have been."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ..errors import EipoError
from .diagnosis import diagnose
from .figures import BEST, QUIET, STYLE, draw_seeds, label_ends, limits, mark_best, millions, steps_in_words
from .groups import Group, grouped
from .maps import MOST, Panel, draw_maps, panels_of
from .runs import RunData, read_runs

WIDTH, DPI = 10.0, 160  # inches; 1600 pixels wide
EDGE, TICKS = 0.3, 0.72  # inches: the figure's margin, and the same where tick labels need room
HEAD, CURVES, SIDE, BETWEEN = 0.9, 3.9, 2.85, 1.1  # title; the curves; their small panels' width; to the maps

Place = Callable[[float, float, float, float], Axes]  # left, top, width, height in inches -> axes


def report(paths: Sequence[Path], out: Path) -> Path:
    """Draw the runs among `paths` (run directories, or directories that hold some) as out/report.png and .svg.

    Runs that differ in nothing but their seed are drawn as one group. Unfinished runs are drawn as far as they have
    come. Returns the PNG's path.
    """
    runs = read_runs(paths)
    started = [run for run in runs if len(run)]
    if not started:
        raise EipoError(f"{runs[0].path}: no iteration is finished yet, so there is nothing to draw")
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        return draw(started, out / "report")
    except OSError as e:
        raise EipoError(f"{e.filename or out} cannot be written: {e.strerror}") from e


def draw(runs: Sequence[RunData], stem: Path) -> Path:
    """Write the picture of some runs, which have begun, as STEM.png and STEM.svg; returns the PNG's path."""
    with matplotlib.style.context(STYLE):
        figure = compose(grouped(runs))
        figure.savefig(f"{stem}.svg", metadata={"Date": None})
        figure.savefig(f"{stem}.png", dpi=DPI)
    return Path(f"{stem}.png")


def compose(groups: Sequence[Group]) -> Figure:
    """The whole figure. Places are counted in inches from the top left: it is as tall as its content."""
    panels = panels_of(groups)
    columns = 4 if len(panels) in (4, 7, 8) else 3
    side = (WIDTH - 2 * EDGE - 0.6) / columns - 0.2  # of a map; 0.6 for the colour bar
    above = 0.0 if panels and all(p.corner for p in panels) else 0.4  # a heading above each map
    rows, row = -(-len(panels) // columns), side + 0.25 + above
    caption = caption_of(groups, panels)
    foot = 0.5 + 0.19 * caption.count("\n")
    height = HEAD + CURVES + foot + (BETWEEN + rows * row - 0.15 if rows else 0.6)
    figure = Figure((WIDTH, height), facecolor="white")
    FigureCanvasAgg(figure)

    def place(left: float, top: float, width: float, tall: float) -> Axes:
        return figure.add_axes((left / WIDTH, 1 - (top + tall) / height, width / WIDTH, tall / height))

    def write(top: float, text: str, size: float) -> None:
        figure.text(EDGE / WIDTH, 1 - top / height, text, va="top", fontsize=size, fontweight="bold")

    write(0.2, title_of(groups), 15)
    draw_curves(groups, place)
    if rows:
        top = HEAD + CURVES + BETWEEN
        write(top - 0.4, "Where the agents have been", 11)
        top += above
        squares = [
            place(EDGE + i % columns * (side + 0.2), top + i // columns * row, side, side) for i in range(len(panels))
        ]
        draw_maps(squares, panels, place(WIDTH - EDGE - 0.55, top, 0.13, side))
    figure.text(EDGE / WIDTH, 0.16 / height, caption, color=QUIET, fontsize=8.5, va="bottom", linespacing=1.5)
    return figure


def title_of(groups: Sequence[Group]) -> str:
    """The methods, and the worlds that they were trained in."""
    methods = list(dict.fromkeys(g.method for g in groups))
    envs = list(dict.fromkeys(run.env for g in groups for run in g.runs))
    several = f"{', '.join(methods[:-1])} and {methods[-1]}" if len(methods) > 1 else methods[0]
    return f"{several} on {', '.join(envs)}"


def caption_of(groups: Sequence[Group], panels: Sequence[Panel]) -> str:
    """What was drawn and how, so that the picture can stand alone."""
    runs = [run for g in groups for run in g.runs]
    seeds = sorted({run.seed for run in runs})
    span = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1 else _and(seeds)
    lengths = _and([steps_in_words(s) for s in sorted({run.config["steps"] for run in runs})])
    presets = _and(sorted({str(run.config.get("preset") or "none") for run in runs}))
    facts = [f"{lengths} steps, preset {presets}, {'seeds' if len(seeds) > 1 else 'seed'} {span}."]
    if max(len(g.runs) for g in groups) > 1:
        facts.append("Thin lines: one seed each; thick: their mean; band: its standard error.")
    facts.append("Returns and gap are smoothed over 2 % of a run, 5 iterations at least.")
    if any(_has_both(g) and g.has("return_mixed") for g in groups):
        facts.append("Return by policy: only episodes in which one policy acted throughout, so long ones are missing.")
    late = [run for run in runs if not run.finished]
    if late:
        names = _and([f"{run.path.name} at {steps_in_words(run.numbers['steps'][-1])}" for run in late[:4]])
        facts.append(f"Not finished: {names}{' and more' if len(late) > 4 else ''}.")
    if panels:
        which = f"the first {MOST} of {len(groups)} groups" if len(groups) > MOST else "the first seed of each"
        facts.append(f"Maps: {which}; star: goal, ring: start; grey: never entered.")
    versions = sorted({str(run.about.get("versions", {}).get("eipo", "?")) for run in runs})
    commits = sorted({git["commit"][:7] for run in runs if (git := run.about.get("git"))})
    facts += findings_of(runs)
    facts.append(f"eipo {_and(versions)}{', commit ' + _and(commits) if commits else ''}.")
    return _wrapped(facts)


def findings_of(runs: Sequence[RunData], most: int = 4) -> list[str]:
    """What is wrong with some of them, as far as there is room."""
    found = [f"{run.path.name}: {sentence}" for run in runs for sentence in diagnose(run)]
    return found[:most] + ([f"And {len(found) - most} more of this kind."] if len(found) > most else [])


def _and(things: Sequence[object]) -> str:
    return ", ".join(map(str, things))


def _wrapped(facts: Sequence[str], width: int = 140) -> str:
    """The facts on lines, none torn apart."""
    lines = [""]
    for fact in facts:
        if lines[-1] and len(lines[-1]) + len(fact) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {fact}".strip()
    return "\n".join(lines)


def draw_curves(groups: Sequence[Group], place: Place) -> None:
    """Returns on the left; beside them, where there is something to see, each policy's own, alpha, and the gap."""
    small: list[Callable[[Axes, Sequence[Group]], None]] = []
    if any(_has_both(g) for g in groups):
        small.append(draw_policies)
    if any(g.has("alpha") for g in groups):
        small.append(draw_alpha)
    if any(g.has("gap") for g in groups):
        small.append(draw_gap)
    if any(g.has("bonus_share_EI") for g in groups):
        small.append(draw_share)
    names = min(2.2, 0.3 + 0.085 * max(len(g.label) for g in groups))  # room for them at the ends of the lines
    draw_returns(place(TICKS, HEAD, WIDTH - TICKS - names - (SIDE + 0.85 if small else 0), CURVES), groups)
    tall = (CURVES - 0.46 * (len(small) - 1)) / max(1, len(small))
    for i, draw in enumerate(small):
        ax = place(WIDTH - SIDE - EDGE, HEAD + i * (tall + 0.46), SIDE, tall)
        draw(ax, groups)
        ax.tick_params(labelbottom=i + 1 == len(small))
        if i + 1 < len(small):
            ax.set_xlabel("")


def _scale(ax: Axes, groups: Sequence[Group]) -> float:
    return millions(ax, max(run.config["steps"] for g in groups for run in g.runs))


def _has_both(group: Group) -> bool:
    return group.has("return_EI") and (group.has("return_E") or group.has("return_I"))


def draw_returns(ax: Axes, groups: Sequence[Group]) -> None:
    """The acting policy's return of every group."""
    scale, ends = _scale(ax, groups), []
    for i, g in enumerate(reversed(groups)):  # eipo last, on top
        curves = [(x * scale, y) for x, y in g.curves("return")]
        last = draw_seeds(ax, curves, g.colour, zorder=3 + i, linewidth=2.8 if g.method == "eipo" else 2.0)
        if last is not None:
            ends.append((last, g.label, g.colour))
    if not ends:
        ax.text(0.5, 0.5, "no episode has ended yet", transform=ax.transAxes, ha="center", color=QUIET)
    best = {BEST.get(run.env) for g in groups for run in g.runs}
    limits(ax, best.copy().pop() if len(best) == 1 else None)
    if len(best) == 1 and None not in best:
        mark_best(ax, max(b for b in best if b is not None))
    ax.set_title("Task return of an episode, by the policy that acted", pad=9)
    ax.set_ylabel("return")
    label_ends(ax, ends)


def draw_policies(ax: Axes, groups: Sequence[Group]) -> None:
    """The mixed policy's own return dashed, that of the policy beside it solid: the task's, or HEPO's on the bonus."""
    scale, both = _scale(ax, groups), [g for g in groups if _has_both(g)]
    for g in both:
        for name, dash in (("return_EI", (0, (2.2, 1.3))), ("return_E", "solid"), ("return_I", "solid")):
            curves = [(x * scale, y) for x, y in g.curves(name)]
            draw_seeds(ax, curves, g.colour, linestyle=dash, linewidth=1.7, thin=False)
    limits(ax, None)
    ink = both[0].colour if len(both) == 1 else QUIET
    bonus_alone = all(g.has("return_I") for g in both)
    ax.plot([], [], color=ink, label="bonus alone" if bonus_alone else "task")
    ax.plot([], [], color=ink, linestyle=(0, (2.2, 1.3)), label="mixed")
    ax.legend(loc="lower right", bbox_to_anchor=(1.02, 0.98), ncols=2, fontsize=8, handlelength=1.9, columnspacing=1.1,
              borderpad=0.1, borderaxespad=0.3)  # fmt: skip
    ax.set_title("Return by policy", pad=6, fontsize=10)


def draw_alpha(ax: Axes, groups: Sequence[Group]) -> None:
    """The multiplier as it was: it is not smoothed."""
    scale = _scale(ax, groups)
    for g in groups:
        columns = [(run.column("steps") * scale, run.column("alpha")) for run in g.runs]
        draw_seeds(ax, [(x[np.isfinite(y)], y[np.isfinite(y)]) for x, y in columns], g.colour, linewidth=1.7)
    low, high = ax.get_ylim()
    if high - low < 0.002:  # else the axis shows rounding, and its labels an offset
        ax.set_ylim((low + high) / 2 - 0.001, (low + high) / 2 + 0.001)
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.set_title("Alpha, the weight of the constraint", pad=6, fontsize=10)


def draw_gap(ax: Axes, groups: Sequence[Group]) -> None:
    """What moves alpha: dots for single estimates, a line for their running mean."""
    scale = _scale(ax, groups)
    for g in groups:
        for run in g.runs:
            ax.plot(run.column("steps") * scale, run.column("gap"), "o", color=g.colour, alpha=0.4, ms=2.4, mew=0)
        draw_seeds(ax, [(x * scale, y) for x, y in g.curves("gap")], g.colour, linewidth=1.5, thin=False)
    ax.axhline(0, color=QUIET, linewidth=0.8, zorder=1)
    ax.set_title("Gap: mixed less task policy", pad=6, fontsize=10)


def draw_share(ax: Axes, groups: Sequence[Group]) -> None:
    """How much of what the mixed policy climbs is bonus."""
    scale = _scale(ax, groups)
    for g in groups:
        draw_seeds(ax, [(x * scale, y) for x, y in g.curves("bonus_share_EI")], g.colour, linewidth=1.5, thin=False)
    ax.set_ylim(-0.03, 1.03)
    ax.set_title("Bonus in what the mixed policy climbs", pad=6, fontsize=10)
