"""The loop: collect, appraise, aim, update, step. Logging, files and progress hang on it (tracking.py), not in it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import compute, parallel, spaces
from .agent import TrainedAgent, describe
from .appraise import Streams, appraise
from .bonuses import Bonus, make_bonus, name_of
from .bonuses.networks import in_precision
from .config import Config, check
from .core import objective, ppo
from .core.moments import RewardScale
from .envs.make import Factory, make_batch
from .errors import EipoError
from .evaluation import Evaluator
from .keeping import Keeper
from .methods import make_method, restore
from .nets import Agent
from .presets import make_config
from .rollout import MIXED, POLICIES, Carry, Rollout, collect
from .tracking import Tracker
from .update import Learner, log_prob_now


class Training:
    """A run in memory: everything that changes while it trains."""

    def __init__(self, config: Config, factory: Factory | None = None, bonus: Bonus | None = None) -> None:
        check(config)
        parallel.start()
        parallel.refuse(config)
        self.config = config
        seeds = np.random.SeedSequence(config.seed).generate_state(3)
        shards, device = compute.prepare(config.compute), compute.device_of(config.compute)
        precision = compute.precision_of(config.compute)
        self.factory, threads = factory, config.compute.threads or compute.available_cores()
        self.envs = make_batch(config.env, parallel.here(config.envs), threads, factory)
        self.method = make_method(config.method, config.iterations)
        spaces = self.envs.observation_space, self.envs.action_space
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0]))
            self.agent = Agent(
                *spaces, config.net, self.method.policies, self.method.critics, precision, config.envs.stack
            ).to(device)
            self.bonus = make_bonus(config.bonus, *spaces, config.envs.num, bonus).to(device)
            in_precision(self.bonus, precision)
        if config.compute.compile:
            compute.compile_networks([self.agent.encoder, self.bonus], device)
        self.envs.hand_on(self.bonus.terms)
        self.generator = torch.Generator(device).manual_seed(int(seeds[1]))
        gamma, num = config.ppo.gamma, config.envs.num
        self.task_scale = RewardScale(num, gamma).to(device) if config.method.normalize_task else None
        self.bonus_scale = RewardScale(num, gamma, config.bonus.window).to(device)
        self.learner = Learner(self.agent, self.bonus, config.ppo, config.bonus.lr, shards, config.envs.repeats)
        self.envs.reset(int(seeds[2]) % 2**31 + parallel.mine(config.envs.num).start)
        self.carry = Carry.start(self.agent, self.envs.num)
        self.iteration = 0

    def iterate(self) -> tuple[Rollout, dict[str, Any]]:
        """One iteration of the method, whichever it is."""
        cfg, method, began = self.config, self.method, time.perf_counter()
        rollout = collect(
            self.envs, self.agent, method.behaviour(), cfg.envs.steps, self.carry, self.generator, cfg.envs.repeats
        )
        acted = time.perf_counter()
        streams = appraise(
            rollout,
            self.bonus,
            self.task_scale,
            self.bonus_scale,
            method.trained_critics(),
            cfg.ppo,
            cfg.bonus.episodic,
        )
        targets = method.targets(streams)
        left = 1.0 - self.iteration / cfg.iterations if cfg.ppo.anneal else 1.0
        losses = self.learner.update(rollout, targets, streams.returns, self.generator, left)
        metrics = method.step(streams, lambda A, policy: self._gap(rollout, A, policy, cfg.ppo.clip * left))
        self.agent.encoder.take_in(rollout.seen, rollout.index)
        self.iteration += 1
        ended, rollout = time.perf_counter(), parallel.together(rollout)
        return rollout, {
            "iteration": self.iteration,
            "steps": self.iteration * cfg.steps_per_iteration,
            **returns_by_policy(rollout),
            **metrics,
            **summary(streams, rollout),
            **{f"bonus_share_{p}": share for p, share in targets.bonus_shares().items()},
            **{k: v.item() for k, v in losses.items()},
            "steps_per_second": len(rollout) / (ended - began),
            "acting_share": (acted - began) / (ended - began),
        }

    def _gap(self, rollout: Rollout, A: torch.Tensor, policy: str, clip: float) -> float:
        """L, by a policy as it is after the update."""
        log_p = log_prob_now(self.agent, rollout, policy, self.config.ppo.minibatches, self.config.envs.repeats)
        return objective.constraint_gap(parallel.whole(log_p - rollout.log_prob), A, clip)

    def state(self) -> dict[str, Any]:
        """All that the future depends on, beside the configuration: tensors, arrays and plain values."""
        return {
            "iteration": self.iteration,
            "agent": self.agent.state_dict(),
            "bonus": self.bonus.state_dict(),
            "learner": self.learner.state(),
            "task_scale": None if self.task_scale is None else self.task_scale.state_dict(),
            "bonus_scale": self.bonus_scale.state_dict(),
            "method": self.method.state(),
            "generator": self.generator.get_state(),
            "carry": self.carry.saved(),
            "envs": self.envs.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> bool:
        """Go on from what `state()` gave. False: the environments could not, so their episodes start anew."""
        if state["iteration"] > self.config.iterations:
            raise ValueError(f"it is of iteration {state['iteration']}, beyond the run's {self.config.iterations}")
        self.agent.load_state_dict(state["agent"])
        self.bonus.load_state_dict(state["bonus"])
        self.learner.load_state(state["learner"])
        if self.task_scale is not None:
            self.task_scale.load_state_dict(state["task_scale"])
        self.bonus_scale.load_state_dict(state["bonus_scale"])
        restore(self.method, state["method"])
        self.generator.set_state(state["generator"])
        self.iteration = state["iteration"]
        if state["envs"] is None:
            self.envs.reset(self.seed_anew())
            self.carry = Carry.start(self.agent, self.config.envs.num)
            return False
        self.envs.load_state(state["envs"])
        self.carry = Carry.of_saved(state["carry"], self.agent.device)
        return True

    def seed_anew(self) -> int:
        """For episodes that start anew, one for each iteration: the same checkpoint always goes on alike."""
        return int(np.random.SeedSequence([self.config.seed, self.iteration]).generate_state(1)[0]) % 2**31

    def spaces(self) -> dict[str, Any]:
        """What the environments show and take."""
        return {
            "observation_space": spaces.to_json(self.envs.observation_space),
            "action_space": spaces.to_json(self.envs.action_space),
        }

    def trained(self) -> TrainedAgent:
        """The agent as it is now, for the CPU."""
        of = self.envs.observation_space, self.envs.action_space
        agent = copy.deepcopy(self.agent).to("cpu")
        agent.quiet()
        return TrainedAgent(agent, *of, describe(dataclasses.asdict(self.config.net), agent, *of))

    def close(self) -> None:
        self.learner.close()
        self.envs.close()


def returns_by_policy(rollout: Rollout) -> dict[str, Any]:
    """Raw scores of the episodes that ended, each policy's apart."""
    scores: dict[str, list[float]] = {}
    for e in rollout.episodes:
        scores.setdefault(e.policy, []).append(e.score)
    by_policy = {f"return_{p}": float(np.mean(scores[p])) if p in scores else None for p in (*POLICIES, MIXED)}
    every = [e.score for e in rollout.episodes]
    return {
        "acted": " and ".join(dict.fromkeys(rollout.acted)),
        "episodes": len(every),
        "return": float(np.mean(every)) if every else None,
        "length": float(np.mean([e.length for e in rollout.episodes])) if every else None,
        **by_policy,
    }


def summary(streams: Streams, rollout: Rollout) -> dict[str, Any]:
    """Means of the rewards, and how well each critic that was trained had known its returns."""
    explained = {
        f"explained_{c}": ppo.explained_variance(rollout.value[c][mine], r[mine]).item()
        for c, r in streams.returns.items()
        for mine in [rollout.own[c[3:]] > 0]
    }
    return {
        "reward": rollout.reward.mean().item(),
        "r_E": streams.r_E.mean().item(),
        "bonus": streams.bonus.mean().item(),
        "r_I": streams.r_I.mean().item(),
        "r_I_std": streams.r_I.std(correction=0).item(),
        **explained,
    }


@dataclass(frozen=True)
class Run:
    """A finished run: its configuration, its metrics (one dictionary an iteration) and its agent."""

    config: Config
    metrics: list[dict[str, Any]]
    agent: TrainedAgent
    out: Path | None

    def series(self, name: str) -> Iterator[tuple[int, float]]:
        """(steps, value) of a metric, where it has a value."""
        return ((m["steps"], m[name]) for m in self.metrics if m.get(name) is not None)


def train(
    env: str | Factory,
    *,
    method: str = "eipo",
    steps: int,
    seed: int = 0,
    out: str | Path | None = None,
    preset: str | None = None,
    bonus: str | Bonus | None = None,
    settings: Iterable[str] | Mapping[str, Any] = (),
    progress: bool = False,
) -> Run:
    """Train an agent and return the run.

    `env` is a Gymnasium id, or a function that makes an environment (a new one at each call). `bonus` names the second
    reward, or is one of your own, derived from eipo.Bonus. `settings` changes single values, as {"ppo.lr": 3e-4} or
    ["ppo.lr=3e-4"] (`eipo list settings` shows them). With `out` the run is kept in that directory, which must not hold
    anything yet. Raises EipoError where something is wrong that you can mend.
    """
    factory = None if isinstance(env, str) else env
    world = env if isinstance(env, str) else f"{env.__module__}.{getattr(env, '__qualname__', type(env).__qualname__)}"
    own, name = (None, bonus) if bonus is None or isinstance(bonus, str) else (bonus, name_of(bonus))
    config = make_config(world, method=method, preset=preset, steps=steps, seed=seed, bonus=name, settings=settings)
    return train_config(config, out, progress, factory, own)


def train_config(
    config: Config,
    out: str | Path | None = None,
    progress: bool = False,
    factory: Factory | None = None,
    bonus: Bonus | None = None,
) -> Run:
    """Train by a whole configuration; `factory` makes the environments, and `bonus` is the second reward, where the
    configuration's id of them is only a name."""
    parallel.start()
    if parallel.rank() > 0:
        out, progress = None, False  # process 0 keeps and shows the run
    if out is not None and Path(out).exists() and (not Path(out).is_dir() or any(Path(out).iterdir())):
        raise EipoError(f"{out} is not empty: choose another directory, or remove it first")
    training = Training(config, factory, bonus)
    try:
        return go_on(training, Path(out) if out is not None else None, progress)
    finally:
        training.close()


def go_on(training: Training, out: Path | None, progress: bool, before: Mapping[str, Any] | None = None) -> Run:
    """Iterate to the end. `before` is the tracker's state, where the run was stopped on the way."""
    config = training.config
    with (
        Tracker(config, out, training.envs, training.agent, progress, before) as tracker,
        Keeper(training, tracker) as keeper,
        contextlib.closing(Evaluator(training)) as evaluator,
    ):
        while training.iteration < config.iterations:
            rollout, metrics = training.iterate()
            tracker.log(rollout, metrics | evaluator.after_iteration())
            keeper.after_iteration()
        keeper.save()
        agent = training.trained()
        tracker.finish(agent)
    return Run(config, tracker.metrics, agent, out)
