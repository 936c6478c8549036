"""How the maze looks: the agent's pixel observation, and the whole board as a picture or as text."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from eipo.envs.maze.board import CROP, FLOOR, GOAL, OBJECT, SIZE, VIEW, WALL

AGENT: Final = 4  # only pictures show the agent; in the grid observation it is always the centre
PIXELS: Final = 84

PALETTE: Final[NDArray[np.uint8]] = np.array(
    [
        (240, 236, 226),  # floor
        (52, 58, 74),  # wall
        (236, 145, 48),  # object
        (38, 166, 110),  # goal
        (41, 98, 214),  # agent
    ],
    dtype=np.uint8,
)
GLYPHS: Final = np.array([" ", "#", "o", "G", "A"])

# Nearest neighbour: which of the view's cells each of the 84 pixels of a side shows.
_SOURCE: Final = np.arange(PIXELS) * VIEW // PIXELS  # (84,)


def paint(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Grid observations (..., 5, 5) as images (..., 3, 84, 84)."""
    codes = codes.copy()
    codes[..., VIEW // 2, VIEW // 2] = AGENT
    small = np.moveaxis(PALETTE[codes], -1, -3)  # (..., 3, 5, 5)
    # Columns first, while the array is small: then stretching the rows copies whole lines.
    return small.take(_SOURCE, axis=-1).take(_SOURCE, axis=-2)


def as_text(board: NDArray[np.uint8], agent: int) -> str:
    """The whole board, one character a cell."""
    glyphs = GLYPHS[board]
    glyphs[agent] = GLYPHS[AGENT]
    return "\n".join("".join(row) for row in glyphs.reshape(SIZE, SIZE))


def as_image(board: NDArray[np.uint8], agent: int, scale: int = 8) -> NDArray[np.uint8]:
    """The whole board, ``scale`` pixels a cell, with what the agent sees lit up: (SIZE * scale, SIZE * scale, 3)."""
    colours = PALETTE[np.where(board == WALL, WALL, FLOOR)].astype(np.float32)  # (SIZE * SIZE, 3)
    colours[_solid(board)] *= 0.72  # what lies behind the rooms' walls recedes
    seen = (agent + CROP).ravel()
    light = np.array((255, 214, 92), dtype=np.float32)
    colours[seen] += 0.4 * (light - colours[seen])

    image = _enlarge(colours, scale)
    image *= 1 - 0.07 * _grid_lines(scale)
    shapes = ((OBJECT, np.flatnonzero(board == OBJECT)), (GOAL, np.flatnonzero(board == GOAL)), (AGENT, [agent]))
    for code, cells in shapes:
        cover = _shape(code, scale)  # (scale, scale, 1)
        for one in cells:
            row, column = divmod(int(one), SIZE)
            patch = image[row * scale : (row + 1) * scale, column * scale : (column + 1) * scale]
            patch += cover * (PALETTE[code] - patch)
    return np.rint(image).astype(np.uint8)


def _solid(board: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Wall cells all of whose neighbours are wall too."""
    wall = np.pad((board == WALL).reshape(SIZE, SIZE), 1, constant_values=True)
    around = np.lib.stride_tricks.sliding_window_view(wall, (3, 3))  # (SIZE, SIZE, 3, 3)
    return np.asarray(around.all(axis=(2, 3))).reshape(-1)  # (SIZE * SIZE,)


def _enlarge(colours: NDArray[np.float32], scale: int) -> NDArray[np.float32]:
    return colours.reshape(SIZE, SIZE, 3).repeat(scale, axis=0).repeat(scale, axis=1)


def _grid_lines(scale: int) -> NDArray[np.float32]:
    """1 on the last pixel line of every cell, so that cells can be counted."""
    last = (np.arange(SIZE * scale) % scale == scale - 1).astype(np.float32)
    lines: NDArray[np.float32] = np.maximum(last[:, None], last)
    return lines[..., None]  # (SIZE * scale, SIZE * scale, 1)


def _shape(code: int, scale: int) -> NDArray[np.float32]:
    """How much of each pixel of a cell is covered: a square object, a goal with cut corners, a round agent."""
    fine = 4  # samples along a pixel's side, averaged: smooth edges
    side = (np.arange(scale * fine) + 0.5) / (scale * fine) * 2 - 1
    x, y = np.abs(side), np.abs(side)[:, None]
    inside = {OBJECT: np.maximum(x, y) < 0.85, GOAL: x + y < 1.25, AGENT: x**2 + y**2 < 1}[code]
    cover: NDArray[np.float32] = inside.reshape(scale, fine, scale, fine).mean(axis=(1, 3), dtype=np.float32)
    return cover[..., None]  # (scale, scale, 1)
