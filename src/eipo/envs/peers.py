"""Other people's small worlds as the networks here take them, under ids of their own.

MiniGrid and MinAtar are packages of the extra `peers`.

MiniGrid's observation is a dictionary with a picture of codes in it. The codes are names, not magnitudes: they go to
the network one-hot, and the mission's text, which never changes in these tasks, goes nowhere.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

MINIGRID = ("DoorKey-5x5", "DoorKey-6x6", "MultiRoom-N2-S4", "KeyCorridorS3R1", "KeyCorridorS3R2")
MINATAR = {
    "Asterix": "asterix", "Breakout": "breakout", "Freeway": "freeway", "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}  # fmt: skip
KINDS = (11, 6, 3)  # MiniGrid's objects, colours and states of a cell


class CellCodes(gymnasium.ObservationWrapper[NDArray[np.uint8], Any, Any]):
    """The picture of a MiniGrid task as 7 x 7 x 3 codes."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        assert isinstance(env.observation_space, spaces.Dict)
        shape = env.observation_space["image"].shape
        assert shape is not None
        self.observation_space = spaces.MultiDiscrete(np.broadcast_to(KINDS, shape).copy(), dtype=np.uint8)

    def observation(self, observation: dict[str, Any]) -> NDArray[np.uint8]:
        return np.asarray(observation["image"], np.uint8)


def minigrid(task: str, **options: Any) -> gymnasium.Env[NDArray[np.uint8], Any]:
    """A MiniGrid task by its name there, without prefix and version."""
    return CellCodes(gymnasium.make(f"minigrid:MiniGrid-{task}-v0", disable_env_checker=True, **options))


class OnlyTheEnd(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays 1 for reaching the end, and nothing before."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = super().step(action)
        return obs, float(terminated), terminated, truncated, info


def sparse_mountain_car(**options: Any) -> gymnasium.Env[Any, Any]:
    """Gymnasium's MountainCar with a reward at the flag alone; position and speed run from -1 to 1."""
    car = OnlyTheEnd(gymnasium.make("MountainCar-v0", disable_env_checker=True, **options))
    return gymnasium.wrappers.RescaleObservation(car, np.float32(-1.0), np.float32(1.0))


class MinAtar(gymnasium.Env[NDArray[np.int8], np.int64]):
    """A MinAtar game (Young and Tian, 2019) with the actions it uses: 10 x 10 cells, a bit for each kind of thing."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own)

    def __init__(self, game: str, **options: Any) -> None:
        from minatar import Environment  # its own Gymnasium form asks for seaborn

        self.game = Environment(game, **options)
        self._actions = self.game.minimal_action_set()
        self.observation_space = spaces.MultiBinary(self.game.state_shape())
        self.action_space = spaces.Discrete(len(self._actions))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.game.seed(seed)
        self.game.reset()
        return self._observe(), {}

    def step(self, action: int | np.int64) -> tuple[NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        reward, over = self.game.act(self._actions[int(action)])
        return self._observe(), float(reward), bool(over), False, {}

    def _observe(self) -> NDArray[np.int8]:
        return np.asarray(self.game.state(), np.int8)


def register() -> None:
    """Make them known to gymnasium; their packages are imported when one is made."""
    for task in MINIGRID:
        _register(f"eipo/MiniGrid-{task}-v0", "eipo.envs.peers:minigrid", {"task": task})
    _register("eipo/SparseMountainCar-v0", "eipo.envs.peers:sparse_mountain_car", {})
    for name, game in MINATAR.items():
        _register(f"eipo/MinAtar-{name}-v0", "eipo.envs.peers:MinAtar", {"game": game}, max_episode_steps=5000)


def _register(name: str, entry_point: str, kwargs: dict[str, Any], max_episode_steps: int | None = None) -> None:
    if name not in gymnasium.registry:
        gymnasium.register(id=name, entry_point=entry_point, kwargs=kwargs, max_episode_steps=max_episode_steps)
