"""Where agents have been: the visits of a board's cells as heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import matplotlib.patheffects as effects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, ListedColormap, LogNorm, to_rgb
from numpy.typing import NDArray

from ..envs.maze.board import GOAL, SIZE, START, WALL
from .figures import QUIET
from .groups import Group
from .runs import RunData, Visits

MOST = 8  # maps in a report
PARTS = (("first tenth of the run", 0, 1), ("up to its half", 1, 5), ("second half", 5, 10))  # in tenths
STARTS = {"eipo/Maze-v0": divmod(START, SIZE), "eipo/AlignedMaze-v0": divmod(START, SIZE)}  # a board does not tell
WALLS, NEVER = "#262a35", "#80858f"


@dataclass(frozen=True)
class Panel:
    """One map and its heading."""

    title: str
    note: str
    colour: str
    counts: NDArray[np.int64]  # (rows, columns)
    board: NDArray[np.generic]  # (rows, columns)
    start: tuple[int, int] | None

    @property
    def crop(self) -> tuple[slice, slice]:
        """The part of the board in use, with its walls."""
        rows, columns = (np.flatnonzero(in_use(self.board).any(axis)) for axis in (1, 0))
        return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)

    @property
    def corner(self) -> bool:
        """The upper right of the map is empty, so that the heading can stand there."""
        near = in_use(self.board)[self.crop]
        return not near[: near.shape[0] // 2, near.shape[1] // 3 :].any()


def panels_of(groups: Sequence[Group]) -> list[Panel]:
    """The first run with visits of each group; where there is one group only, three parts of that run's time."""
    first = [(g, run) for g in groups for run in [next((r for r in g.runs if r.visits is not None), None)] if run]
    if len(first) == 1 and len(groups) == 1:
        group, run = first[0]
        return [_panel(group, run, a, b, name) for name, a, b in PARTS]
    return [_panel(group, run) for group, run in first[:MOST]]


def _panel(group: Group, run: RunData, begin: int = 0, end: int | None = None, part: str = "") -> Panel:
    visits = run.visits
    assert isinstance(visits, Visits)
    counts = visits.counts[begin:end].sum((0, 1)).reshape(visits.board.shape)
    free = (visits.board != WALL) & (visits.board != GOAL)
    seen = int(((counts > 0) & free).sum())
    note = f"{seen} of {free.sum()} cells entered"
    last = part or f"seed {run.seed}"
    return Panel(group.label, f"{note}\n{last}", group.colour, counts, visits.board, STARTS.get(run.env))


def draw_maps(axes: Sequence[Axes], panels: Sequence[Panel], bar: Axes) -> None:
    """All maps in one scale, so that their colours can be compared."""
    norm = LogNorm(1, max(10, *(int(p.counts.max()) for p in panels)))
    heat = _heat()
    for ax, panel in zip(axes, panels, strict=True):
        draw_map(ax, panel, heat, norm)
    Colorbar(bar, cmap=heat, norm=norm)
    bar.minorticks_off()
    bar.tick_params(length=2, labelsize=8)
    bar.yaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,.0f}")
    bar.set_title("steps", fontsize=8.5, fontweight="normal", color=QUIET, pad=5)
    bar.grid(False)


def _heat() -> Colormap:
    """Inferno without its darkest part, which would look like wall."""
    return ListedColormap(matplotlib.colormaps["inferno"](np.linspace(0.22, 0.98, 256)))


def draw_map(ax: Axes, panel: Panel, heat: Colormap, norm: LogNorm) -> None:
    """Walls dark, cells that were entered by how often, the rest of the board left out."""
    wall = panel.board == WALL
    image = np.ones((*wall.shape, 4))
    image[..., :3] = np.where(wall[..., None], to_rgb(WALLS), to_rgb(NEVER))
    image[~in_use(panel.board)] = (1, 1, 1, 0)  # rock that nobody ever sees
    entered = panel.counts > 0
    image[entered] = heat(norm(panel.counts[entered]))

    ax.imshow(image, interpolation="nearest")
    rows, columns = panel.crop
    ax.set_xlim(columns.start - 0.5, columns.stop - 0.5)
    ax.set_ylim(rows.stop - 0.5, rows.start - 0.5)
    ax.set_anchor("NW")
    ax.set_axis_off()
    outline = [effects.withStroke(linewidth=2.2, foreground="black")]
    for row, column in np.argwhere(panel.board == GOAL):
        ax.plot(column, row, "*", ms=9, color="white", mew=0, path_effects=outline)
    if panel.start is not None:
        ax.plot(panel.start[1], panel.start[0], "o", ms=6, mfc="none", mec="white", mew=1.6, path_effects=outline)
    x, y, note, size = (0.3, 0.84, panel.note, 15) if panel.corner else (0, 1.07, panel.note.replace("\n", ", "), 11)
    title = panel.title.replace(" ", "\n", 1) if panel.corner and len(panel.title) > 12 else panel.title
    size = 11 if len(panel.title) > 6 else size
    ax.text(x, y, title, transform=ax.transAxes, color=panel.colour, fontsize=size, fontweight="bold", va="bottom")
    ax.text(x, y - 0.02, note, transform=ax.transAxes, fontsize=9, color=QUIET, va="top", linespacing=1.4)


def in_use(board: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Cells that are not wall, and the walls around them."""
    inside = np.pad(board != WALL, 1)
    shifts = [inside[i : i + board.shape[0], j : j + board.shape[1]] for i in range(3) for j in range(3)]
    return np.asarray(np.any(shifts, axis=0))
