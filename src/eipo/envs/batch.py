"""One batched interface over every environment: it hides autoreset and lives, and checks what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from .. import packing
from ..errors import EipoError, said_by
from . import infos, state
from .vector import Threads


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
    terms: Mapping[str, np.ndarray] = field(default_factory=dict)  # by key: (N,) numbers of the step's info


class Batch:
    """N environments as if under SAME_STEP autoreset. It remembers the observation that each is to be acted on.

    Under NEXT_STEP and DISABLED those whose episode ended are reset by `reset_mask` within the same step, so nothing
    else has to know of these modes. Dict and Tuple observations come as bytes (packing.py).
    """

    def __init__(self, venv: VectorEnv, env_id: str, clip_reward: bool = False, keys: str = "") -> None:
        self.venv = venv
        self.clip_reward = clip_reward
        self.id = env_id
        self.num = venv.num_envs
        self.observation_space = packing.seen(venv.single_observation_space, keys)
        self.composite = packing.is_composite(self.observation_space)
        self.action_space = venv.single_action_space
        self.steps = 0  # of each environment
        self.obs: np.ndarray = np.empty(0)
        self.board = _board(venv)
        self.terms: tuple[str, ...] = ()  # keys of the step's info that are handed on
        try:
            self.mode = AutoresetMode(venv.metadata["autoreset_mode"])
        except (KeyError, ValueError) as e:
            raise EipoError(f"{env_id}: its metadata names no autoreset_mode (gymnasium.vector.AutoresetMode)") from e

    def hand_on(self, terms: tuple[str, ...]) -> None:
        """Put numbers of the steps' infos into the steps, by these keys."""
        self.terms = terms
        if isinstance(self.venv, Threads):
            self.venv.with_infos = bool(terms)

    def reset(self, seed: int) -> np.ndarray:
        """Start all episodes; environment i is seeded seed + i."""
        with said_by(f"{self.id}: an environment", "at reset"):
            obs, _ = self.venv.reset(seed=seed)
        self.obs = self._array(obs)
        return self.obs

    def step(self, action: np.ndarray) -> Step:
        """Act once in every environment."""
        with said_by(f"{self.id}: an environment", f"at its step {self.steps + 1}"):
            obs, reward, terminated, truncated, info = self.venv.step(action)
        self.steps += 1
        self.obs = self._array(obs)
        reward = np.asarray(reward, dtype=np.float32)
        if not np.isfinite(reward).all():
            i = int(np.flatnonzero(~np.isfinite(reward))[0])
            raise EipoError(f"{self.id}: reward {reward[i]} from environment {i} at its step {self.steps}")
        over = terminated | truncated
        lost = info.get("life_lost")  # the game goes on, but what was learned from it so far ends here
        if lost is not None:
            terminated = terminated | lost
        done = over if lost is None else over | lost
        last = self.obs[:0]
        if done.any():
            last = self.obs[done]  # a copy
            if over.any() and self.mode is AutoresetMode.SAME_STEP:
                ended = np.flatnonzero(over)
                last[np.searchsorted(np.flatnonzero(done), ended)] = self._final(info, ended)
            elif over.any():
                self.obs = self._restarted(over)
        learned = np.sign(reward) if self.clip_reward else reward
        terms = {key: infos.numbers(info, key, over, f"{self.id}, step {self.steps}") for key in self.terms}
        return Step(self.obs, learned, reward, terminated, truncated, done, over, last, info.get("cell"), terms)

    def _final(self, info: dict[str, Any], ended: np.ndarray) -> np.ndarray:
        """The true last observations of those that were reset within the step."""
        if "final_obs" not in info:
            raise EipoError(f"{self.id}: under SAME_STEP an episode's end needs info['final_obs'], which is missing")
        final = info["final_obs"]
        if self.composite:
            each = [final[i] if isinstance(final, np.ndarray) else _row(final, int(i)) for i in ended]
            parts = [[packing.part_of(one, path) for one in each] for path, _ in packing.leaves(self.observation_space)]
            for part in parts:
                self._check_finite(np.stack(part), ended)
            return np.stack([packing.pack(self.observation_space, one, batched=False) for one in each])
        last = np.stack([np.asarray(final[i]) for i in ended])
        self._check_finite(last, ended)
        return last

    def _restarted(self, over: np.ndarray) -> np.ndarray:
        """All observations, after those environments whose episode is over were reset, and no others."""
        obs = self._array(self.venv.reset(options={"reset_mask": over.copy()})[0])
        if (obs[~over] != self.obs[~over]).any():
            raise EipoError(
                f"{self.id}: its autoreset mode is {self.mode.value}, and reset(options={{'reset_mask': ...}}) resets "
                "other environments too; it has to reset those of the mask alone, or autoreset in the same step"
            )
        return obs

    def _array(self, obs: Any) -> np.ndarray:
        if not self.composite:
            array = np.asarray(obs)
            self._check_finite(array)
            return array
        for path, _ in packing.leaves(self.observation_space):
            self._check_finite(np.asarray(packing.part_of(obs, path)))
        return packing.pack(self.observation_space, obs, batched=True)

    def _check_finite(self, obs: np.ndarray, which: np.ndarray | None = None) -> None:
        if obs.dtype.kind == "f" and not np.isfinite(obs).all():
            row = int(np.flatnonzero(~np.isfinite(obs).reshape(len(obs), -1).all(1))[0])
            i = row if which is None else int(which[row])
            raise EipoError(
                f"{self.id}: NaN or infinity in the observation of environment {i} "
                + (f"at its step {self.steps}" if self.steps else "at reset")
            )

    def state(self) -> dict[str, Any] | None:
        """All that the future of the environments depends on; None where they cannot give it."""
        inner = state.get(self.venv)
        return None if inner is None else {"obs": self.obs, "steps": self.steps, "inner": inner}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Go on from what state() gave."""
        state.put(self.venv, saved["inner"])
        self.obs, self.steps = saved["obs"], saved["steps"]

    def close(self) -> None:
        self.venv.close()


def _row(observation: Any, i: int) -> Any:
    """Environment i's own of a batched Dict or Tuple observation."""
    if isinstance(observation, dict):
        return {key: _row(part, i) for key, part in observation.items()}
    return tuple(_row(part, i) for part in observation) if isinstance(observation, tuple) else observation[i]


def _board(venv: VectorEnv) -> np.ndarray | None:
    """The map of a grid world (rows, columns) that names its cells row by row, where the environment has one."""
    board = getattr(venv.unwrapped, "board", None)
    return np.asarray(board) if board is not None else None
