"""Deep Sea (Osband et al., 2020): a treasure that random actions find once in 2^size episodes.

A board of size x size cells. The diver starts at the top left and sinks one row a step, to the left or to the right as
it chooses; which of the two actions means right is drawn once for each cell, so that nothing is learned of one cell in
another. Every step to the right costs `cost` / size, so that a reward seeker learns to keep left; the step to the right
from the bottom right cell earns 1. The best return is 1 - cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

SIZE = 10
COST, TREASURE = 0.01, 1.0


class _Sea:
    """What both forms share: cells are numbered row by row, and there is a row below the last, where episodes end."""

    def __init__(self, size: int, cost: float, mapping_seed: int) -> None:
        if size < 2:
            raise ValueError(f"size must be at least 2, not {size}")
        self.size = size
        self.bottom = size * size  # the first cell below the board
        self.right = np.random.default_rng(mapping_seed).integers(2, size=size * size)  # the action that goes right
        self.cost = cost / size
        self.corner = size * size - 1

    def step(self, cell: NDArray[np.int64], action: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The next cells and the rewards, one for each diver."""
        right = action == self.right[cell]
        column = np.clip(cell % self.size + np.where(right, 1, -1), 0, self.size - 1)
        reward = np.where(right, -self.cost, 0.0) + np.where(right & (cell == self.corner), TREASURE, 0.0)
        return (cell // self.size + 1) * self.size + column, reward


class DeepSeaEnv(gymnasium.Env[np.int64, np.int64]):
    """One diver.

    Args:
        size: Rows and columns; an episode has so many steps.
        cost: Of `size` steps to the right.
        mapping_seed: Decides which action means right, cell by cell. It belongs to the task, not to the run.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own)

    def __init__(self, size: int = SIZE, cost: float = COST, mapping_seed: int = 0) -> None:
        self._sea = _Sea(size, cost, mapping_seed)
        self.observation_space = spaces.Discrete((size + 1) * size)
        self.action_space = spaces.Discrete(2)
        self._cell = self._sea.bottom

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.int64, dict]:
        super().reset(seed=seed)
        self._cell = 0
        return np.int64(0), {}

    def step(self, action: int | np.int64) -> tuple[np.int64, float, bool, bool, dict]:
        if self._cell >= self._sea.bottom:
            raise ResetNeeded("call reset() before step()")
        if not self.action_space.contains(action):
            raise ValueError(f"an action is 0 or 1, not {action!r}")
        cell, reward = self._sea.step(np.array([self._cell]), np.array([action]))
        self._cell = int(cell[0])
        return np.int64(self._cell), float(reward[0]), self._cell >= self._sea.bottom, False, {}

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on."""
        return {"cell": self._cell}

    def set_state(self, state: dict[str, Any]) -> tuple[np.int64, dict[str, Any]]:
        """Continue from `get_state()`."""
        self._cell = int(state["cell"])
        return np.int64(self._cell), {}


class DeepSeaVectorEnv(VectorEnv[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]):
    """Many divers at once, under SAME_STEP autoreset. Nothing in it is random, so seeds change nothing."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, num_envs: int = 1, size: int = SIZE, cost: float = COST, mapping_seed: int = 0) -> None:
        self._sea = _Sea(size, cost, mapping_seed)
        self.num_envs = num_envs
        self.single_observation_space = spaces.Discrete((size + 1) * size)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._cell: NDArray[np.int64] | None = None  # (N,)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        self._cell = np.zeros(self.num_envs, np.int64)
        return self._cell.copy(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        if self._cell is None:
            raise ResetNeeded("call reset() before step()")
        self._cell, reward = self._sea.step(self._cell, np.asarray(actions))
        ended = self._cell >= self._sea.bottom  # (N,) all or none: episodes are equally long
        infos: dict[str, Any] = {}
        if ended.any():
            last = np.full(self.num_envs, None, dtype=object)
            last[ended] = list(self._cell[ended])
            infos = {"final_obs": last, "_final_obs": ended, "final_info": {}, "_final_info": ended}
            self._cell = np.where(ended, 0, self._cell)
        return self._cell.copy(), reward, ended, np.zeros(self.num_envs, np.bool_), infos

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on."""
        return {"cell": None if self._cell is None else self._cell.copy()}

    def set_state(self, state: dict[str, Any]) -> tuple[NDArray[np.int64], dict[str, Any]] | None:
        """Continue from `get_state()`."""
        self._cell = None if state["cell"] is None else np.array(state["cell"], np.int64)
        return None if self._cell is None else (self._cell.copy(), {})


def register() -> None:
    """Make it known to gymnasium; a second call does nothing."""
    if "eipo/DeepSea-v0" not in gymnasium.registry:
        gymnasium.register(
            id="eipo/DeepSea-v0",
            entry_point="eipo.envs.deep_sea:DeepSeaEnv",
            vector_entry_point="eipo.envs.deep_sea:DeepSeaVectorEnv",
        )
