"""One batched interface over every environment: it hides autoreset and lives, and checks what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from gymnasium.vector import VectorEnv

from ..errors import EipoError


@dataclass(frozen=True)
class Step:
    """What one step of N environments gave."""

    obs: np.ndarray  # (N, *shape)  s_{t+1}, or the first of a new episode where one ended
    reward: np.ndarray  # (N,) as it is learned from
    score: np.ndarray  # (N,) as it is reported: what the environment gave
    terminated: np.ndarray  # (N,) bool
    truncated: np.ndarray  # (N,) bool
    done: np.ndarray  # (N,) bool: either, so an episode of learning is over
    over: np.ndarray  # (N,) bool: the game is over, so its score is reported; differs from done where lives count
    last_obs: np.ndarray  # (number done, *shape)  true last observations, in the order of the environments done
    cell: np.ndarray | None = None  # (N,) where each agent is, for environments that say so in info["cell"]


class Batch:
    """N environments under SAME_STEP autoreset. It remembers the observation that each is waiting to be acted on."""

    def __init__(self, venv: VectorEnv, env_id: str, clip_reward: bool = False) -> None:
        self.venv = venv
        self.clip_reward = clip_reward
        self.id = env_id
        self.num = venv.num_envs
        self.observation_space = venv.single_observation_space
        self.action_space = venv.single_action_space
        self.steps = 0  # of each environment
        self.obs: np.ndarray = np.empty(0)
        self.board = _board(venv)

    def reset(self, seed: int) -> np.ndarray:
        """Start all episodes; environment i is seeded seed + i."""
        obs, _ = self.venv.reset(seed=seed)
        self.obs = np.asarray(obs)
        self._check_observation(self.obs)
        return self.obs

    def step(self, action: np.ndarray) -> Step:
        """Act once in every environment."""
        obs, reward, terminated, truncated, info = self.venv.step(action)
        self.steps += 1
        self.obs = np.asarray(obs)
        reward = np.asarray(reward, dtype=np.float32)
        if not np.isfinite(reward).all():
            i = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise EipoError(f"{self.id}: reward {reward[i]} from environment {i} at its step {self.steps}")
        self._check_observation(self.obs)
        over = terminated | truncated
        lost = info.get("life_lost")  # the game goes on, but what was learned from it so far ends here
        if lost is not None:
            terminated = terminated | lost
        done = over if lost is None else over | lost
        last = self.obs[:0]
        if done.any():
            which = np.flatnonzero(done)
            last = np.stack([np.asarray(info["final_obs"][i] if over[i] else self.obs[i]) for i in which])
            self._check_observation(last, which)
        learned = np.sign(reward) if self.clip_reward else reward
        return Step(self.obs, learned, reward, terminated, truncated, done, over, last, info.get("cell"))

    def _check_observation(self, obs: np.ndarray, which: np.ndarray | None = None) -> None:
        if obs.dtype.kind == "f" and not np.isfinite(obs).all():
            row = int(np.flatnonzero(~np.isfinite(obs).reshape(len(obs), -1).all(1))[0])
            i = row if which is None else int(which[row])
            raise EipoError(
                f"{self.id}: NaN or infinity in the observation of environment {i} "
                + (f"at its step {self.steps}" if self.steps else "at reset")
            )

    def close(self) -> None:
        self.venv.close()


def _board(venv: VectorEnv) -> np.ndarray | None:
    """The map of a grid world (rows, columns) that names its cells row by row, where the environment has one."""
    board = getattr(venv.unwrapped, "board", None)
    return np.asarray(board) if board is not None else None
