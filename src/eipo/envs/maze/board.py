"""The board of the maze worlds: a stack of rooms on the left, a corridor of rooms along the bottom.

Everything is worked out once, at import, from the few numbers below. A cell is one integer, ``row * SIZE + column``, so
that a board is a flat array and a move is an addition.

The sizes are chosen so that two figures hold, which the tests check: 394 cells are free (the goal's not counted), and
the goal comes into view after 51 moves at the earliest, so an episode of 500 steps can earn 450 at most.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

SIZE: Final = 54
VIEW: Final = 5  # the agent sees VIEW x VIEW cells around itself, through walls
FLOOR, WALL, OBJECT, GOAL = 0, 1, 2, 3

UP, DOWN, LEFT, RIGHT, STAY = 0, 1, 2, 3, 4
MOVES: Final[NDArray[np.int64]] = np.array([-SIZE, SIZE, -1, 1, 0])  # what each action adds to the cell

# Walls are at least two cells thick around the rooms: the crop never leaves the board, so it needs no padding.
_TOP, _LEFT = 6, 5
_HEIGHT, _WIDTH = 5, 6  # inside of a room of the column
_PITCH = _HEIGHT + 1
_FLOORS = 7
_CORRIDOR_WIDTHS = (5, 5, 5, 5, 5, 6)


def cell(row: int, column: int) -> int:
    """The number of a cell."""
    return row * SIZE + column


def _block(top: int, left: int, height: int, width: int) -> NDArray[np.int64]:
    rows, columns = np.ogrid[top : top + height, left : left + width]
    return (rows * SIZE + columns).ravel()  # (height * width,)


def _column() -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The stacked rooms from the bottom to the top, and the door in the ceiling of each but the last."""
    tops = [_TOP + _PITCH * floor for floor in reversed(range(_FLOORS))]
    rooms = [_block(top, _LEFT, _HEIGHT, _WIDTH) for top in tops]
    # Sides alternate, so that every room has to be crossed; the first door is on the left.
    lefts = [_LEFT if floor % 2 == 0 else _LEFT + _WIDTH - 2 for floor in range(_FLOORS - 1)]
    doors = [_block(top - 1, left, 1, 2) for top, left in zip(tops, lefts, strict=False)]
    return rooms, doors


def _corridor() -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The rooms to the right of the bottom room, and the door on the left of each."""
    top, left = _TOP + _PITCH * (_FLOORS - 1), _LEFT + _WIDTH
    rooms, doors = [], []
    for width in _CORRIDOR_WIDTHS:
        doors.append(_block(top + 1, left, 3, 1))
        rooms.append(_block(top, left + 1, _HEIGHT, width))
        left += 1 + width
    return rooms, doors


COLUMN_ROOMS, COLUMN_DOORS = _column()  # the agent starts in the first room, the goal stands in the last
CORRIDOR_ROOMS, CORRIDOR_DOORS = _corridor()

START: Final = cell(_TOP + _PITCH * (_FLOORS - 1) + 2, _LEFT + 3)
GOAL_CELL: Final = cell(_TOP + 2, _LEFT + 3)

# The noisy television of `NoisyTVMaze`: two columns of wall left of the fifth room, from which the goal is near enough
# (it comes into view after 13 moves) to be found without a bonus.
TV: Final[NDArray[np.int64]] = _block(_TOP + _PITCH * (_FLOORS - 5), _LEFT - 2, _HEIGHT, 2)
TV_START: Final = cell(_TOP + _PITCH * (_FLOORS - 5) + 2, _LEFT + 1)

# Where the two objects of an episode may stand, by the name that the environments take.
OBJECT_CELLS: Final[dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]] = {
    "corridor": (np.concatenate(CORRIDOR_ROOMS[0:2]), np.concatenate(CORRIDOR_ROOMS[2:4])),
    "column": (np.concatenate(COLUMN_ROOMS[1:3]), np.concatenate(COLUMN_ROOMS[3:5])),
}


def _empty_board() -> NDArray[np.uint8]:
    board = np.full(SIZE * SIZE, WALL, dtype=np.uint8)
    for block in (*COLUMN_ROOMS, *COLUMN_DOORS, *CORRIDOR_ROOMS, *CORRIDOR_DOORS):
        board[block] = FLOOR
    board[GOAL_CELL] = GOAL
    board.flags.writeable = False
    return board  # (SIZE * SIZE,)


BOARD: Final = _empty_board()  # the board without an episode's objects

# What to add to the agent's cell to get the cells that it sees.
CROP: Final[NDArray[np.int64]] = SIZE * np.arange(-(VIEW // 2), VIEW // 2 + 1)[:, None] + np.arange(
    -(VIEW // 2), VIEW // 2 + 1
)  # (VIEW, VIEW)


def _goal_in_view() -> NDArray[np.bool_]:
    # The view is square and centred: a cell sees the goal exactly if the goal sees the cell.
    seen = np.zeros(SIZE * SIZE, dtype=np.bool_)
    seen[GOAL_CELL + CROP] = True
    return seen  # (SIZE * SIZE,)


GOAL_IN_VIEW: Final = _goal_in_view()


def place_objects(rng: np.random.Generator, cells: tuple[NDArray[np.int64], NDArray[np.int64]]) -> tuple[int, int]:
    """One uniformly random cell of each of the two sets. Both forms of the environment draw through here."""
    first, second = cells
    return int(first[rng.integers(len(first))]), int(second[rng.integers(len(second))])


def noise(rng: np.random.Generator) -> NDArray[np.uint8]:
    """What the television shows for one step: each cell any code but floor, which could be walked on."""
    return rng.integers(WALL, GOAL + 1, len(TV), np.uint8)


def distances(board: NDArray[np.uint8], start: int = START) -> NDArray[np.int64]:
    """How many moves each cell is away from ``start``; -1 for what cannot be reached. ``board`` is flat."""
    steps = np.full(SIZE * SIZE, -1)
    steps[start] = 0
    front = [start]
    moves = MOVES[:STAY].tolist()
    while front:
        reached = []
        for here in front:
            for move in moves:
                there = here + move
                if steps[there] < 0 and board[there] == FLOOR:
                    steps[there] = steps[here] + 1
                    reached.append(there)
        front = reached
    return steps  # (SIZE * SIZE,)
