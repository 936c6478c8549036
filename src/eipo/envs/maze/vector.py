"""The maze, many boards at once: a step is a dozen NumPy calls, however many boards there are."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from eipo.envs.maze.board import (
    BOARD,
    CROP,
    FLOOR,
    GOAL_IN_VIEW,
    MOVES,
    OBJECT,
    OBJECT_CELLS,
    SIZE,
    START,
    TV,
    TV_START,
    noise,
    place_objects,
)
from eipo.envs.maze.env import EPISODE_STEPS, OBSERVATIONS, RENDER_MODES, check_choice, observation_space
from eipo.envs.maze.picture import as_image, as_text, paint

_REWARD = GOAL_IN_VIEW.astype(np.float64)
# NumPy counts negative indices from the end: there, and just behind the real moves, stand moves that leave every board,
# so that a wrong action fails in a lookup and needs no check of its own.
_MOVES = np.concatenate([MOVES, np.full(len(MOVES), np.iinfo(np.int64).max // 2)])

Seeds = int | Sequence[int | None] | None


class MazeVectorEnv(VectorEnv[NDArray[np.uint8], NDArray[np.integer[Any]], NDArray[Any]]):
    """``num_envs`` mazes, each with its own generator: board i equals a ``MazeEnv`` seeded with ``seed + i``.

    Observations, rewards and infos have the layout of gymnasium's ``SyncVectorEnv``, in all three autoreset modes, and
    are new arrays at every step: a caller may keep them. See ``MazeEnv`` for the world and the other arguments.

    Args:
        num_envs: How many boards.
        max_episode_steps: Truncate after so many steps.
        autoreset_mode: SAME_STEP returns the next episode's first frame and the true last one in ``info["final_obs"]``,
            NEXT_STEP spends the next step on the reset, DISABLED waits for ``reset(options={"reset_mask": ended})``.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (gymnasium's own)
        "render_modes": list(RENDER_MODES),
        "render_fps": 30,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        objects: str = "corridor",
        observation: str = "grid",
        tv: bool = False,
        max_episode_steps: int = EPISODE_STEPS,
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
    ) -> None:
        check_choice("objects", objects, tuple(OBJECT_CELLS))
        check_choice("observation", observation, OBSERVATIONS)
        check_choice("render_mode", render_mode, (None, *RENDER_MODES))
        for name, value in (("num_envs", num_envs), ("max_episode_steps", max_episode_steps)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self.num_envs = num_envs
        self.board = BOARD.reshape(SIZE, SIZE)  # the map that info["cell"] counts along; runs keep it with their visits
        self.max_episode_steps = max_episode_steps
        self.render_mode = render_mode
        if isinstance(autoreset_mode, str):
            check_choice("autoreset_mode", autoreset_mode, tuple(mode.value for mode in AutoresetMode))
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.single_observation_space = observation_space(observation)
        self.single_action_space = spaces.Discrete(len(MOVES))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._object_cells = OBJECT_CELLS[objects]
        self._pixels = observation == "pixels"

        # All boards in one flat array, agents as positions in it: a view is then one lookup for all boards.
        self._boards = np.tile(BOARD, (num_envs, 1))  # (N, 54 * 54)
        self._flat = self._boards.reshape(-1)
        self._first = np.arange(num_envs) * BOARD.size  # (N,) where each board begins
        self._tv = tv
        self._start = TV_START if tv else START
        self._agents = self._first + self._start  # (N,)
        self._crop = np.empty((num_envs, *CROP.shape), dtype=np.int64)  # (N, 5, 5) scratch
        self._objects = np.zeros((num_envs, 2), dtype=np.int64)
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self._ended = np.zeros(num_envs, dtype=np.bool_)  # boards whose episode is over and that were not reset yet
        self._any_ended = False
        self._started = False
        self._rngs: list[np.random.Generator] = []  # made when first needed: fresh entropy costs time
        self._seeds: list[int] = []

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Start episodes on all boards, or on those of ``options["reset_mask"]``."""
        mask = self._reset_mask(options)  # (N,)
        if not self._started and not mask.all():
            raise ResetNeeded("the first reset must be one of all boards")
        self._seed(seed, mask)
        self._begin_episodes(np.flatnonzero(mask))
        self._started = True
        self._any_ended = bool(self._ended.any())
        # As in SyncVectorEnv, info speaks of the boards that were reset only.
        return self._observe(), {"cell": np.where(mask, self._agents - self._first, 0), "_cell": mask}

    def step(
        self, actions: NDArray[np.integer[Any]]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        if not self._started:
            raise ResetNeeded("call reset() before step()")
        if self._any_ended and self.autoreset_mode is AutoresetMode.DISABLED:
            raise ResetNeeded('episodes have ended: call reset(options={"reset_mask": ...}) for them first')
        self._move(actions)
        self._elapsed += 1
        if self._tv:
            self._flicker(np.flatnonzero(~self._ended))
        if self._any_ended:  # NEXT_STEP: this step is their reset, whatever the action was
            self._begin_episodes(np.flatnonzero(self._ended))
        cells = self._agents - self._first  # (N,)
        rewards = _REWARD.take(cells)  # (N,); 0 on a first frame, which never shows the goal
        truncations = self._elapsed >= self.max_episode_steps  # (N,)
        self._any_ended = bool(truncations.any())
        observations = self._observe()
        infos: dict[str, Any] = {"cell": cells, "_cell": np.ones(self.num_envs, dtype=np.bool_)}
        if self._any_ended:
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                infos = self._next_episodes(truncations, observations, cells) | infos
            else:
                self._ended[:] = truncations
        return observations, rewards, np.zeros(self.num_envs, dtype=np.bool_), truncations, infos

    def render(self) -> tuple[NDArray[np.uint8] | str, ...] | None:
        """A picture, or a text, of every board."""
        if self.render_mode is None:
            return None
        if not self._started:
            raise ResetNeeded("call reset() before render()")
        draw = as_image if self.render_mode == "rgb_array" else as_text
        cells = (self._agents - self._first).tolist()
        return tuple(draw(board, cell) for board, cell in zip(self._boards, cells, strict=True))

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The boards' generators."""
        self._make_generators()
        return tuple(self._rngs)

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The boards' seeds; -1 where ``set_state`` put the generator, as gymnasium has it."""
        self._make_generators()
        return tuple(self._seeds)

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on, as arrays (their own copies) and JSON-able values; see ``set_state``."""
        self._make_generators()
        return {
            "started": self._started,
            "cell": self._agents - self._first,  # (N,)
            "objects": self._objects.copy(),  # (N, 2)
            "elapsed": self._elapsed.copy(),  # (N,)
            "ended": self._ended.copy(),  # (N,)
            "tv": self._boards[:, TV],  # (N, cells of the television)
            "rng": [rng.bit_generator.state for rng in self._rngs],
        }

    def set_state(self, state: dict[str, Any]) -> tuple[NDArray[np.uint8], dict[str, Any]] | None:
        """Continue from ``get_state()``; also before any reset. Returns what ``reset`` would, to act on next."""
        if len(state["cell"]) != self.num_envs:
            raise ValueError(f"the state is one of {len(state['cell'])} boards, not of {self.num_envs}")
        self._make_generators()
        for rng, generator_state in zip(self._rngs, state["rng"], strict=True):
            rng.bit_generator.state = generator_state
        self._seeds = [-1] * self.num_envs
        self._started = bool(state["started"])
        self._agents[:] = self._first + state["cell"]
        self._elapsed[:] = state["elapsed"]
        self._ended[:] = state["ended"]
        self._any_ended = bool(self._ended.any())
        if not self._started:
            return None
        self._put_objects(np.arange(self.num_envs), np.asarray(state["objects"]))
        self._boards[:, TV] = state["tv"]
        cells = self._agents - self._first
        return self._observe(), {"cell": cells, "_cell": np.ones(self.num_envs, dtype=np.bool_)}

    def _move(self, actions: NDArray[np.integer[Any]]) -> None:
        if np.shape(actions) != self._agents.shape:
            raise ValueError(f"actions have shape {self._agents.shape}, one for each board, not {np.shape(actions)}")
        try:
            targets = self._agents + _MOVES.take(actions)  # (N,)
            free = self._flat.take(targets) == FLOOR
        except (IndexError, TypeError) as wrong:
            raise ValueError(f"actions are integers from 0 to {len(MOVES) - 1}, not {actions!r}") from wrong
        np.copyto(self._agents, targets, where=free)

    def _observe(self) -> NDArray[np.uint8]:
        np.add(self._agents[:, None, None], CROP, out=self._crop)
        codes = self._flat.take(self._crop)  # (N, 5, 5)
        return paint(codes) if self._pixels else codes

    def _next_episodes(
        self, ended: NDArray[np.bool_], observations: NDArray[np.uint8], cells: NDArray[np.int64]
    ) -> dict[str, Any]:
        """Reset the ended boards, put their first frames into the results, and return the true last ones as info."""
        boards = np.flatnonzero(ended)
        last_frames, last_cells = observations[boards], np.where(ended, cells, 0)
        self._begin_episodes(boards)
        self._any_ended = False
        observations[boards] = self._observe()[boards]
        cells[boards] = self._start
        final_obs = np.full(self.num_envs, None, dtype=object)
        for board, last in zip(boards, last_frames, strict=True):
            final_obs[board] = last
        return {
            "final_obs": final_obs,
            "_final_obs": ended.copy(),
            "final_info": {"cell": last_cells, "_cell": ended.copy()},
            "_final_info": ended.copy(),
        }

    def _begin_episodes(self, boards: NDArray[np.int64]) -> None:
        drawn = [place_objects(self._rngs[board], self._object_cells) for board in boards]
        self._put_objects(boards, np.array(drawn))
        self._agents[boards] = self._first[boards] + self._start
        self._elapsed[boards] = 0
        self._ended[boards] = False
        if self._tv:
            self._flicker(boards)

    def _flicker(self, boards: NDArray[np.int64]) -> None:
        """The television's next picture."""
        for board in boards:
            self._boards[board, TV] = noise(self._rngs[board])

    def _put_objects(self, boards: NDArray[np.int64], objects: NDArray[np.int64]) -> None:
        self._objects[boards] = objects  # (boards, 2)
        self._boards[boards] = BOARD
        self._boards[boards[:, None], objects] = OBJECT

    def _make_generators(self) -> None:
        if not self._rngs:
            self._seed([None] * self.num_envs, np.ones(self.num_envs, dtype=np.bool_))

    def _seed(self, seed: Seeds, mask: NDArray[np.bool_]) -> None:
        """Gymnasium's rule: an integer means seed + i for board i, None leaves a generator as it is."""
        seeds: list[int | None]
        if seed is None or isinstance(seed, Sequence):
            seeds = [None] * self.num_envs if seed is None else list(seed)
        else:
            seeds = [index(seed) + board for board in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise ValueError(f"a list of seeds has one for each board: {self.num_envs}, not {len(seeds)}")
        fresh = not self._rngs
        if fresh:
            self._rngs, self._seeds = [None] * self.num_envs, [-1] * self.num_envs  # type: ignore[list-item]
        for board, one in enumerate(seeds):
            if fresh or (one is not None and mask[board]):
                self._rngs[board], self._seeds[board] = seeding.np_random(None if one is None else index(one))

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, dtype=np.bool_)
        mask = options["reset_mask"]
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must be a boolean array of shape ({self.num_envs},), not {mask!r}")
        if not mask.any():
            raise ValueError("reset_mask names no board")
        return np.array(mask)  # a copy: the infos carry it
