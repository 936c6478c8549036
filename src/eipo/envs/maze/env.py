"""The maze, one board at a time."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from numpy.typing import NDArray

from eipo.envs.maze.board import (
    BOARD,
    CROP,
    FLOOR,
    GOAL_IN_VIEW,
    MOVES,
    OBJECT,
    OBJECT_CELLS,
    START,
    TV,
    TV_START,
    VIEW,
    noise,
    place_objects,
)
from eipo.envs.maze.picture import PIXELS, as_image, as_text, paint

OBSERVATIONS = ("grid", "pixels")
RENDER_MODES = ("rgb_array", "ansi")
EPISODE_STEPS = 500


def observation_space(observation: str) -> spaces.Space[Any]:
    """The space of one board's observation."""
    if observation == "grid":
        # Codes are names, not magnitudes, so this is no Box: a network should see them one-hot.
        return spaces.MultiDiscrete(np.full((VIEW, VIEW), 4), dtype=np.uint8)
    return spaces.Box(0, 255, (3, PIXELS, PIXELS), np.uint8)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a value that is not among the choices, and say which they are."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")


class MazeEnv(gymnasium.Env[NDArray[np.uint8], np.int64]):
    """A room stack with the goal at its top, and a corridor with two objects at random places as a distraction.

    Actions: 0 up, 1 down, 2 left, 3 right, 4 stay; walls, objects and the goal block. The reward is 1 for every step
    that ends with the goal inside the 5 x 5 view. ``info["cell"]`` is the agent's cell, ``row * 54 + column``.

    Args:
        objects: "corridor" puts them away from the way to the goal, "column" on it. They never close it, but in 13 % of
            the episodes they cost a detour of two or four moves: the best return is then 448 or 446 instead of 450.
        observation: "grid" for 5 x 5 cell codes (0 floor, 1 wall, 2 object, 3 goal), "pixels" for 3 x 84 x 84.
        tv: Start in a room from which the goal is near, and in which a television shows other codes at every step.
        max_episode_steps: Truncate after so many steps. ``gymnasium.make`` does that by its own wrapper, whose limit
            can then be set freely, hence no limit here by default.
        render_mode: "rgb_array", "ansi" or None.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 30}  # noqa: RUF012  (gymnasium's own)

    def __init__(
        self,
        objects: str = "corridor",
        observation: str = "grid",
        tv: bool = False,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        check_choice("objects", objects, tuple(OBJECT_CELLS))
        check_choice("observation", observation, OBSERVATIONS)
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ValueError(f"max_episode_steps must be at least 1, not {max_episode_steps}")
        self.observation_space = observation_space(observation)
        self.action_space = spaces.Discrete(len(MOVES))
        self.render_mode = render_mode
        self.max_episode_steps = max_episode_steps
        self._object_cells = OBJECT_CELLS[objects]
        self._pixels = observation == "pixels"
        self._board = BOARD.copy()  # (54 * 54,)
        self._objects = (0, 0)
        self._tv = tv
        self._start = TV_START if tv else START
        self._cell = self._start
        self._elapsed = 0
        self._started = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        self._put_objects(place_objects(self.np_random, self._object_cells))
        self._cell, self._elapsed, self._started = self._start, 0, True
        if self._tv:
            self._board[TV] = noise(self.np_random)
        return self._observe(), {"cell": self._cell}

    def step(self, action: int | np.int64) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        if not self._started:
            raise ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise ValueError(f"an action is an integer from 0 to {len(MOVES) - 1}, not {action!r}")
        target = self._cell + int(MOVES[action])
        if self._board[target] == FLOOR:
            self._cell = target
        if self._tv:
            self._board[TV] = noise(self.np_random)
        self._elapsed += 1
        truncated = self.max_episode_steps is not None and self._elapsed >= self.max_episode_steps
        return self._observe(), float(GOAL_IN_VIEW[self._cell]), False, truncated, {"cell": self._cell}

    def render(self) -> NDArray[np.uint8] | str | None:
        if self.render_mode is None:
            gymnasium.logger.warn("render() does nothing: the maze was made without a render_mode")
            return None
        if not self._started:
            raise ResetNeeded("call reset() before render()")
        draw = as_image if self.render_mode == "rgb_array" else as_text
        return draw(self._board, self._cell)

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on, in JSON-able values; see ``set_state``.

        The step count of ``gymnasium.make``'s TimeLimit wrapper is not in it: give ``max_episode_steps`` to the
        constructor where episodes must resume exactly.
        """
        return {
            "started": self._started,
            "cell": self._cell,
            "objects": list(self._objects),
            "elapsed": self._elapsed,
            "tv": self._board[TV].tolist(),
            "rng": self.np_random.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> tuple[NDArray[np.uint8], dict[str, Any]] | None:
        """Continue from ``get_state()``; also before any reset. Returns what ``reset`` would, to act on next."""
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = state["rng"]
        self.np_random = generator
        self._cell, self._elapsed, self._started = int(state["cell"]), int(state["elapsed"]), bool(state["started"])
        if not self._started:
            return None
        self._put_objects(tuple(state["objects"]))
        self._board[TV] = state["tv"]
        return self._observe(), {"cell": self._cell}

    def _put_objects(self, objects: tuple[int, int]) -> None:
        self._board[:] = BOARD
        self._board[list(objects)] = OBJECT
        self._objects = objects

    def _observe(self) -> NDArray[np.uint8]:
        codes = self._board[self._cell + CROP]  # (5, 5), a copy
        return paint(codes) if self._pixels else codes
