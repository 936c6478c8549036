"""N environments of a user's or of Gymnasium's as one: in threads, or in worker processes that may not hang."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from gymnasium.vector.async_vector_env import AsyncState
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from ..errors import EipoError

Make = Callable[[], gym.Env]


@contextlib.contextmanager
def mujoco_warns_once() -> Iterator[None]:
    """MuJoCo says every warning about a model anew for each environment, on stderr and in a file beside the run."""
    import mujoco

    said: set[str] = set()
    mujoco.set_mju_user_warning(said.add)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
    for text in sorted(said):
        if "settotalmass" not in text:  # an attribute in Gymnasium's own models, of no consequence
            warnings.warn(text, stacklevel=2)


class Threads(VectorEnv):
    """Environments stepped by threads, under SAME_STEP: for simulators that let go of Python's lock, as MuJoCo does.

    Each environment is Gymnasium's own, so observations, rewards and ends are those of `SyncVectorEnv`. Infos are made
    only `with_infos`, since building them costs as much as a step; they are the step's own also where an episode ended.
    """

    with_infos = False

    def __init__(self, makes: Sequence[Make], threads: int) -> None:
        self.envs = [make() for make in makes]
        self.num_envs = len(self.envs)
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata = {**self.envs[0].metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.shares = [range(i, self.num_envs, threads) for i in range(threads)]
        self.pool = ThreadPoolExecutor(threads)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        return self._joined([env.reset(seed=s)[0] for env, s in zip(self.envs, seeds, strict=True)]), {}

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        each = list(iterate(self.action_space, actions))
        n = self.num_envs
        obs: list[Any] = [None] * n
        last, said = np.full(n, None, object), [dict[str, Any]()] * n
        reward, terminated, truncated = np.zeros(n), np.zeros(n, bool), np.zeros(n, bool)

        def work(share: range) -> None:
            for i in share:
                obs[i], reward[i], terminated[i], truncated[i], said[i] = self.envs[i].step(each[i])
                if terminated[i] or truncated[i]:
                    last[i] = obs[i]
                    obs[i], _ = self.envs[i].reset()

        list(self.pool.map(work, self.shares))
        infos: dict[str, Any] = {}
        for i, one in enumerate(said if self.with_infos else []):
            infos = self._add_info(infos, one, i)
        return self._joined(obs), reward, terminated, truncated, infos | {"final_obs": last}

    def _joined(self, obs: list[Any]) -> Any:
        space = self.single_observation_space
        into: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, obs, into)

    def close_extras(self, **kwargs: Any) -> None:
        self.pool.shutdown()
        for env in self.envs:
            env.close()


class Workers(AsyncVectorEnv):
    """A process for each environment, under SAME_STEP. One that hangs or dies is an error that names it."""

    def __init__(self, makes: Sequence[Make], name: str, timeout: float) -> None:
        self.name, self.timeout, self.broken = name, timeout, False
        try:
            super().__init__(list(makes), autoreset_mode=AutoresetMode.SAME_STEP)
        except EipoError:
            self.close()
            raise

    def _check_spaces(self) -> None:
        """Gymnasium's first question to the workers, which it lets them answer when they like: so one comes before it,
        with a time limit, and those that hang or die while they make their environment are noticed."""
        self._asked(lambda: self.call_async("metadata"), self.call_wait)
        super()._check_spaces()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self._asked(lambda: self.reset_async(seed, options), self.reset_wait)

    def step(self, actions: Any) -> Any:
        return self._asked(lambda: self.step_async(actions), self.step_wait)

    def _asked(self, ask: Callable[[], None], answer: Callable[[], Any]) -> Any:
        try:
            ask()
            self._wait_for_all()
            return answer()
        except (EOFError, ConnectionError) as e:  # a pipe without anybody at its end
            for i in range(self.num_envs):
                self._check_alive(i, patience=0.2)
            raise self._failure(f"lost its workers: {e!r}") from e

    def _wait_for_all(self) -> None:
        until = time.monotonic() + self.timeout
        for i, pipe in enumerate(self.parent_pipes):
            while not pipe.poll(max(0.0, min(0.5, until - time.monotonic()))):
                self._check_alive(i)
                if time.monotonic() > until:
                    raise self._failure(f"worker {i} did not answer within {self.timeout:g} s (envs.timeout)")

    def _check_alive(self, i: int, patience: float = 0.0) -> None:
        self.processes[i].join(patience)
        if not self.processes[i].is_alive():
            raise self._failure(f"worker {i} died with exit code {self.processes[i].exitcode}")

    def _raise_if_errors(self, successes: Any) -> None:
        """Gymnasium warns of a worker's error with its whole traceback, and then raises it; once is enough."""
        if not all(successes):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                super()._raise_if_errors(successes)

    def _failure(self, what: str) -> EipoError:
        self.broken = True
        return EipoError(f"{self.name}: {what}")

    def close(self, **kwargs: Any) -> None:
        """Workers that hang do not hear that they should end."""
        if self.broken and not self.closed:
            for process in self.processes:
                process.kill()
            self._state = AsyncState.DEFAULT  # nobody is waited for
            kwargs["terminate"] = True
        super().close(**kwargs)
