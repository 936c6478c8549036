"""Atari on ale-py's C++ vector environment: true scores, true last frames, lives counted here.

Two of its own options are not used: `reward_clipping` would throw the score away, `episodic_life` would reset the game.

It cannot save its emulators. So games are started from known seeds, and the actions since are kept: played again, they
lead to the same place, bit for bit. A start from a seed loads the ROM anew, thirty times the work of a plain one, so it
is done at the first game's end after SPAN steps; the games in between follow from the seed before them.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space

from ..errors import EipoError

ENTRY = "ale_py.vector_env:AtariVectorEnv"
SPAN = 8192  # steps: seeds cost 2 % of the time then, and going on takes minutes (docs/reliability.md)
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
        self.history = History(venv.num_envs)
        self.frames: np.ndarray = np.empty(0)  # (N, 1, ...) the last ones

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        if options:
            raise ValueError("games are reset all at once; each that ends starts again by itself")
        self.history.start(seed)
        obs, info = self.env.reset(seed=self.history.seeds())  # type: ignore[arg-type]
        self.lives = info["lives"].copy()
        self.frames = obs
        return self._seen(obs), info

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(actions)
        self.history.add(actions)
        over = terminated | truncated
        anew = over & (self.history.length >= SPAN)
        if anew.any():
            self.history.start_anew(anew)
            obs, started = self.env.reset(seed=self.history.seeds()[anew], options={"reset_mask": anew})
            info["lives"] = started["lives"]
        self.frames = obs
        if "final_obs" in info:
            info["final_obs"] = self._seen(info["final_obs"])
        if self.life_loss:
            # A game's last life ends it: no lives left, and the game's end a little later, are one end and not two.
            lives = info["lives"]
            info["life_lost"] = (lives > 0) & (lives < self.lives) & ~over
            self.lives = lives.copy()
        return self._seen(obs), reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """The seeds, the actions since, and a checksum of what they led to."""
        return {**self.history.state(), "lives": self.lives, "frames": zlib.crc32(self.frames.tobytes())}

    def set_state(self, state: dict[str, Any]) -> None:
        """Play the games again. All end at the same step, so the shorter ones start later."""
        self.history.load(state)
        actions, length, seeds = state["actions"], state["length"], self.history.seeds()
        frames, _ = self.env.reset(seed=seeds)  # type: ignore[arg-type]
        for t in range(len(actions) + 1):
            starts = length == len(actions) - t
            if starts.any():
                frames, _ = self.env.reset(seed=seeds[starts], options={"reset_mask": starts})
            if t < len(actions):
                frames = self.env.step(actions[t].astype(np.int64) if actions.ndim == 2 else actions[t])[0]
        if zlib.crc32(frames.tobytes()) != state["frames"]:
            raise ValueError("the games, played again, look different: another version of ale-py, or other ROMs?")
        self.frames, self.lives = frames, state["lives"].copy()

    def _seen(self, obs: np.ndarray) -> np.ndarray:
        return obs[:, 0] if self.colour else obs


class History:
    """What led to where each game is: a seed, and the actions since."""

    def __init__(self, num: int) -> None:
        self.base = 0
        self.game = np.zeros(num, np.int64)  # (N,) starts from a seed before the last one
        self.length = np.zeros(num, np.int64)  # (N,) steps since the last one
        self.actions: list[np.ndarray] = []  # each (N, ...), at least of the longest length

    def start(self, seed: int | None) -> None:
        self.base = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self.game[:], self.length[:], self.actions = 0, 0, []

    def seeds(self) -> np.ndarray:
        """(N,) of the last starts: environment i begins with base + i."""
        later = [
            int(np.random.SeedSequence([self.base, i, game]).generate_state(1)[0]) % 2**31 if game else self.base + i
            for i, game in enumerate(self.game.tolist())
        ]
        return np.array(later)

    def add(self, actions: np.ndarray) -> None:
        self.actions.append(actions.astype(np.uint8) if actions.ndim == 1 else actions.copy())
        self.length += 1

    def start_anew(self, which: np.ndarray) -> None:
        self.game[which] += 1
        self.length[which] = 0
        if len(self.actions) > 2 * self.length.max() + 100:
            self._trim()

    def _trim(self) -> None:
        self.actions = self.actions[len(self.actions) - int(self.length.max()) :]

    def state(self) -> dict[str, Any]:
        self._trim()
        played = np.stack(self.actions) if self.actions else np.zeros((0, len(self.game)), np.uint8)
        return {"base": self.base, "game": self.game, "length": self.length, "actions": played}

    def load(self, state: dict[str, Any]) -> None:
        self.base = state["base"]
        self.game[:], self.length[:] = state["game"], state["length"]
        self.actions = list(state["actions"])


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
