"""Small worlds with known answers, and the parts of a run that many tests need."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import hypothesis
import numpy as np
import pytest
import torch

import eipo  # noqa: F401  (registers the maze)
from eipo.bonuses import NoBonus
from eipo.config import PPO, Envs, Net
from eipo.envs.batch import Batch
from eipo.envs.make import make_batch
from eipo.nets import Agent
from eipo.rollout import Carry, Rollout, collect
from eipo.update import Learner

hypothesis.settings.register_profile("eipo", deadline=None)  # a busy machine is no defect
hypothesis.settings.load_profile("eipo")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """A run sets the process's threads; small products are slow on many, and slower on a busy machine."""
    torch.set_num_threads(1)


class Scripted(gym.Env):
    """Episodes of known length and end, whatever is done. Environment i (seeded i) has episodes of 1, 3 or 5 steps.

    Frame: (environment, episode modulo `different`, step in the episode). Reward of an episode's k-th step: k.
    """

    def __init__(self, end: str = "terminate", different: int = 1000) -> None:
        self.observation_space = gym.spaces.Box(-1e6, 1e6, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.end, self.different, self.episode = end, different, -1

    def frame(self) -> np.ndarray:
        return np.array([self.which, self.episode % self.different, self.step_in_episode], np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self.which, self.length = seed, (1, 3, 5)[seed % 3]
        self.episode += 1
        self.step_in_episode = 0
        return self.frame(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.step_in_episode += 1
        over = self.step_in_episode == self.length
        terminates = self.end in ("terminate", "both") or (self.end == "turns" and self.episode % 2 == 0)
        truncates = self.end in ("truncate", "both") or (self.end == "turns" and self.episode % 2 == 1)
        return self.frame(), float(self.step_in_episode), over and terminates, over and truncates, {}


class Context(gym.Env):
    """One step an episode: reward 1 for the action that follows the shown context. Chance earns 1/3."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(3)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        self.context = int(self.np_random.integers(3))
        return self.context, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        return self.context, float(action == (self.context + 1) % 3), True, False, {}


class Recall(gym.Env):
    """Two steps: a cue is shown, then nothing; reward 1 for naming the cue. Without memory: 1/2."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Discrete(3)  # cue 0, cue 1, nothing
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        self.cue, self.asked = int(self.np_random.integers(2)), False
        return self.cue, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        if self.asked:
            return 2, float(action == self.cue), True, False, {}
        self.asked = True
        return 2, 0.0, False, False, {}


for _name, _cls in {"Scripted": Scripted, "Context": Context, "Recall": Recall}.items():
    if f"eipo-test/{_name}-v0" not in gym.registry:
        gym.register(f"eipo-test/{_name}-v0", entry_point=_cls)

ALL_POLICIES = ("E", "EI")
ALL_CRITICS = ("E__E", "E__EI", "I__EI")


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A directory where flushing costs nothing."""
    directory = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def scripted() -> Callable[..., Batch]:
    """scripted(end=..., num=3): environments with episodes of 1, 3 and 5 steps."""

    def make(num: int = 3, **options: Any) -> Batch:
        envs = make_batch("eipo-test/Scripted-v0", Envs(num=num, options=options))
        envs.reset(0)
        return envs

    return make


@pytest.fixture
def make_agent() -> Callable[..., Agent]:
    """make_agent(envs, memory=...): policies that differ from each other and are far from uniform."""

    def make(
        envs: Batch, memory: str = "none", dense: int = 8, layers: int = 1, seed: int = 0,
        policies: Sequence[str] = ALL_POLICIES, critics: Sequence[str] = ALL_CRITICS, **kwargs: Any,
    ) -> Agent:  # fmt: skip
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            net = Net(dense=dense, layers=layers, memory=memory, width=6)
            agent = Agent(envs.observation_space, envs.action_space, net, policies, critics, **kwargs)
            for head in agent.policies.values():
                torch.nn.init.normal_(head.weight, std=0.3)
                torch.nn.init.normal_(head.bias, std=0.3)
        return agent

    return make


@pytest.fixture
def reading_agent() -> Callable[..., Agent]:
    """An agent without hidden layers whose critics all say V(frame) = `weights` . frame, exactly."""

    def make(envs: Batch, weights: Sequence[float], critics: Sequence[str] = ALL_CRITICS) -> Agent:
        agent = Agent(envs.observation_space, envs.action_space, Net(layers=0, memory="none"), ALL_POLICIES, critics)
        for head in agent.critics.values():
            head.weight.data = torch.tensor([weights])
        return agent

    return make


@pytest.fixture
def play() -> Callable[..., Rollout]:
    """play(envs, agent, T): a rollout from the start of all episodes."""

    def roll(
        envs: Batch, agent: Agent, T: int, *policies: str, repeats: bool = False, seed: int = 0
    ) -> Rollout:  # fmt: skip
        carry = Carry.start(agent, envs.num)
        return collect(envs, agent, policies or ("EI",), T, carry, torch.Generator().manual_seed(seed), repeats)

    return roll


@pytest.fixture
def make_learner() -> Callable[..., Learner]:
    """make_learner(agent, lr=..., ...): no bonus unless one is given."""

    def make(agent: Agent, bonus: Any = None, shards: int = 1, repeats: bool = False, **ppo: Any) -> Learner:
        return Learner(agent, bonus or NoBonus(), PPO(**ppo), 1e-3, shards, repeats)

    return make
