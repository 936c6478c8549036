"""Atari on ale-py's C++ vector environment: true scores, true last frames, lives counted here.

Two of its own options are not used: `reward_clipping` would throw the score away, `episodic_life` would reset the game.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from ..errors import EipoError

ENTRY = "ale_py.vector_env:AtariVectorEnv"
OURS = {"reward_clipping": "envs.clip_reward", "episodic_life": "envs.options.life_loss", "stack_num": "envs.stack"}


class Atari(VectorWrapper):
    """`num` games of one ROM. info["life_lost"] (N,): a life was lost, though the game goes on."""

    def __init__(self, venv: VectorEnv, life_loss: bool) -> None:
        super().__init__(venv)
        self.life_loss = life_loss
        shape = venv.single_observation_space.shape
        assert shape is not None
        self.colour = len(shape) == 4  # (1, H, W, 3): one frame of a stack of one
        if self.colour:
            self._single_observation_space = spaces.Box(0, 255, shape[1:], np.uint8)
            self._observation_space = batch_space(self._single_observation_space, venv.num_envs)
        self.lives = np.zeros(venv.num_envs, np.int64)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        self.lives = info["lives"].copy()
        return self._seen(obs), info

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info:
            info["final_obs"] = self._seen(info["final_obs"])
        if self.life_loss:
            # A game's last life ends it: no lives left, and the game's end a little later, are one end and not two.
            lives = info["lives"]
            info["life_lost"] = (lives > 0) & (lives < self.lives) & ~(terminated | truncated)
            self.lives = lives.copy()
        return self._seen(obs), reward, terminated, truncated, info

    def _seen(self, obs: np.ndarray) -> np.ndarray:
        return obs[:, 0] if self.colour else obs


def make_atari(spec: EnvSpec, num: int, options: dict[str, Any]) -> VectorEnv:
    """`num` games by their id's specification. Options: ale-py's own, and life_loss."""
    from ale_py.vector_env import AtariVectorEnv

    for name, setting in OURS.items():
        if name in options:
            raise EipoError(f"envs.options.{name} is not used for Atari: see {setting}")
    settings = {**spec.kwargs, "use_fire_reset": False, **options}
    life_loss = bool(settings.pop("life_loss", False))
    venv = AtariVectorEnv(
        num_envs=num, autoreset_mode=AutoresetMode.SAME_STEP, stack_num=1, reward_clipping=False, **settings
    )
    return Atari(venv, life_loss)
