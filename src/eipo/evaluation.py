"""Evaluate: play whole episodes with a trained agent and score them. Nothing of a training run is touched."""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from . import scores, spaces
from .agent import TrainedAgent
from .config import Config
from .envs.batch import Batch, Step
from .envs.make import Factory, make_batch
from .errors import EipoError, unknown
from .files import replace
from .nets import State
from .rollout import cleared
from .sharing import find_agent

if TYPE_CHECKING:
    from .training import Training

FORMAT = 1
AT_ONCE = 16  # environments
Watch = Callable[[np.ndarray, Step], None]  # scores so far (N,), what the step gave


class Actor:
    """One policy of an agent, in a batch of environments."""

    def __init__(self, agent: TrainedAgent, policy: str, num: int, seed: int, deterministic: bool) -> None:
        self.net, self.policy, self.deterministic = agent.net, policy, deterministic
        self.generator = torch.Generator().manual_seed(seed)
        self.memory: State = self.net.memory.start(num)
        self.stacked: torch.Tensor | None = None  # (N, K, *observation)

    @torch.no_grad()
    def act(self, obs: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Actions (N, ...) for observations (N, *shape), of which some start an episode (N,)."""
        x = torch.from_numpy(np.ascontiguousarray(obs))
        if self.net.stack > 1:
            first = x.unsqueeze(1).repeat_interleave(self.net.stack, 1)
            if self.stacked is not None:
                later = torch.cat([self.stacked[:, 1:], x.unsqueeze(1)], 1)
                later[torch.from_numpy(starts)] = first[torch.from_numpy(starts)]
                first = later
            x = self.stacked = first
        h, self.memory = self.net.remember(self.net.perceive(x), cleared(self.memory, starts))
        noise = None if self.deterministic else self.net.actions.noise(h.shape[:-1], self.generator)
        return self.net.actions.to_env(self.net.sample(h, self.policy, noise))


@dataclass(frozen=True)
class Played:
    """Episodes that were played to their end, by environment and then by time."""

    scores: list[float]
    lengths: list[int]


def play(
    agent: TrainedAgent, envs: Batch, episodes: int, policy: str, seed: int, deterministic: bool = False,
    watch: Watch | None = None,
) -> Played:  # fmt: skip
    """Each environment plays its share of the episodes, however long they are: short ones get no more weight."""
    if policy not in agent.policies:
        raise unknown("policy", policy, agent.policies)
    share = np.full(envs.num, episodes // envs.num) + (np.arange(envs.num) < episodes % envs.num)  # (N,)
    ended: list[list[tuple[float, int]]] = [[] for _ in range(envs.num)]
    score, length = np.zeros(envs.num), np.zeros(envs.num, np.int64)
    obs, starts = envs.reset(seed), np.ones(envs.num, bool)
    actor = Actor(agent, policy, envs.num, seed, deterministic)
    while any(len(e) < n for e, n in zip(ended, share, strict=True)):
        step = envs.step(actor.act(obs, starts))
        obs, starts = step.obs, step.done
        score += step.score
        length += 1
        if watch is not None:
            watch(score, step)
        for i in np.flatnonzero(step.over):
            if len(ended[i]) < share[i]:
                ended[i].append((float(score[i]), int(length[i])))
            score[i], length[i] = 0.0, 0
    every = [episode for e in ended for episode in e]
    return Played([s for s, _ in every], [n for _, n in every])


def environments(config: Config, num: int, factory: Factory | None = None, **options: Any) -> Batch:
    """Those of a run, for acting alone."""
    envs = dataclasses.replace(config.envs, num=num, options={**config.envs.options, **options})
    return make_batch(config.env, envs, 1, factory)


def evaluate(
    path: str | Path, *, episodes: int = 100, policy: str | None = None, seed: int = 0, deterministic: bool = False,
    video: str | Path | None = None, out: str | Path | None = None, factory: Factory | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Play episodes with the agent of a run directory (finished or not) or of an exported file.

    Returns scores and lengths of the episodes, and mean, median and interquartile mean with 95 % intervals; writes them
    as JSON to `out`. `policy` is "E" (task) or "EI" (task and bonus). `video` shows the first episode, as an mp4.
    `factory` makes the environments of a run that was trained with one.
    """
    if episodes < 1:
        raise EipoError(f"episodes={episodes}: must be at least 1")
    found = find_agent(Path(path))
    agent, policy = found.agent, policy or found.agent.policy
    if policy not in agent.policies:
        raise unknown("policy", policy, agent.policies)
    envs = environments(found.config, min(episodes, AT_ONCE), factory)
    try:
        _refuse_others(found.agent, envs, str(path))
        played = play(agent, envs, episodes, policy, seed, deterministic)
    finally:
        envs.close()
    if video is not None:
        from .video import film

        film(found, policy, seed, deterministic, Path(video), factory)
    result = {
        "format": FORMAT,
        "agent": str(path),
        "env": found.config.env,
        "method": found.config.method_name,
        "iteration": found.iteration,
        "policy": policy,
        "alpha": found.alpha,
        "episodes": episodes,
        "seed": seed,
        "deterministic": deterministic,
        **scores.summary(played.scores, seed),
        "scores": played.scores,
        "lengths": played.lengths,
        "command": sys.argv,
    }
    if out is not None:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
        replace(Path(out), (json.dumps(result, indent=1) + "\n").encode())
    return result


def _refuse_others(agent: TrainedAgent, envs: Batch, path: str) -> None:
    """The environment must still be the one that the agent was trained in."""
    for name in ("observation_space", "action_space"):
        then, now = (spaces.to_json(getattr(x, name)) for x in (agent, envs))
        if then != now:
            raise EipoError(f"{path} does not fit {envs.id}: {name} was {then}, is {now}")


class Evaluator:
    """Hangs on the training loop: plays with each policy every so many iterations."""

    def __init__(self, training: Training) -> None:
        self.training, self.cfg = training, training.config.evaluation
        self.envs: Batch | None = None

    def after_iteration(self) -> dict[str, float]:
        """Mean scores by policy, for the iteration's metrics; nothing where it is not time."""
        t = self.training
        if not self.cfg.every or t.iteration % self.cfg.every:
            return {}
        if self.envs is None:
            self.envs = environments(t.config, min(self.cfg.episodes, AT_ONCE), t.factory)
        agent = copy.deepcopy(t.trained())  # acting in it must not change the one that learns
        # Seeds that depend on nothing but run and iteration: a run that goes on evaluates as if it had never stopped.
        seed = int(np.random.SeedSequence([t.config.seed, t.iteration, 1]).generate_state(1)[0]) % 2**31
        found = {}
        for policy in agent.policies:
            played = play(agent, self.envs, self.cfg.episodes, policy, seed)
            found[f"evaluation_{policy}"] = float(np.mean(played.scores))
        return found

    def close(self) -> None:
        if self.envs is not None:
            self.envs.close()
