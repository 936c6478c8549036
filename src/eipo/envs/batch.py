"""One batched interface over every environment: it hides autoreset and true last frames, and checks what comes out."""

from __future__ import annotations

import difflib
import functools
import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

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
        done = terminated | truncated
        last = self.obs[:0]
        if done.any():
            last = np.stack([np.asarray(info["final_obs"][i]) for i in np.flatnonzero(done)])
            self._check_observation(last, np.flatnonzero(done))
        learned = np.sign(reward) if self.clip_reward else reward
        return Step(self.obs, learned, reward, terminated, truncated, done, done, last, info.get("cell"))

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


def make_batch(env_id: str, num: int, options: dict[str, Any], clip_reward: bool = False) -> Batch:
    """N environments by id: the environment's own vector form where it has one, else one after the other."""
    spec = _find(env_id)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            venv = None
            if spec.vector_entry_point is not None:
                venv = gym.make_vec(env_id, num_envs=num, vectorization_mode="vector_entry_point", **options)
                if venv.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
                    venv.close()  # a vector form that loses the true last observation is of no use here
                    venv = None
            if venv is None:
                make = functools.partial(gym.make, env_id, disable_env_checker=True, **options)
                venv = SyncVectorEnv([make] * num, autoreset_mode=AutoresetMode.SAME_STEP)
    except Exception as e:
        why = str(e).splitlines()[0] if str(e) else repr(e)
        if isinstance(e, gym.error.DependencyNotInstalled | ImportError):
            raise EipoError(f"{env_id} needs a package that is missing: {why}") from e
        given = f" with the options {', '.join(f'{k}={v}' for k, v in options.items())} (preset or --set)"
        raise EipoError(f"{env_id} could not be made{given if options else ''}: {why}") from e
    return Batch(venv, env_id, clip_reward)


def _find(env_id: str) -> gym.envs.registration.EnvSpec:
    module, _, name = env_id.rpartition(":")
    try:
        if module:
            importlib.import_module(module)  # which registers the environment
        return gym.spec(name)
    except gym.error.DeprecatedEnv as e:
        raise EipoError(f"environment {env_id!r}: {e}") from e
    except (gym.error.Error, ImportError) as e:
        if env_id in gym.registry or isinstance(e, ImportError):
            raise EipoError(f"environment {env_id!r}: {e}") from e
        if near := difflib.get_close_matches(env_id, gym.registry, n=1, cutoff=0.7):
            raise EipoError(f"unknown environment {env_id!r}; did you mean {near[0]!r}?") from e
        raise EipoError(f"unknown environment {env_id!r}: {e} `eipo list` says what can be named") from e
