"""A trained agent: what `eipo.train` hands back and `eipo.load` reads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save

from . import packing, spaces
from .checkpoint import UNREADABLE, first_line, refuse_newer
from .config import Net
from .errors import EipoError, unknown
from .files import replace
from .nets import Agent, State

FORMAT = 1
WEIGHTS = "agent.safetensors"
DESCRIPTION = "agent.json"
LARGEST = 10**8  # numbers in an observation or action


class TrainedAgent:
    """Acts in one environment, or in a batch of them.

    `state` is what the agent remembers; pass None at the start of an episode, and what `act` returned after that.
    """

    def __init__(self, net: Agent, observation_space: Any, action_space: Any, description: dict[str, Any]) -> None:
        self.net = net.eval()
        self.observation_space = observation_space
        self.action_space = action_space
        self.description = description
        self.policies = tuple(net.policies)
        self.policy = "E" if "E" in self.policies else self.policies[0]
        self._generator = torch.Generator()
        self._generator.seed()

    def seed(self, seed: int) -> None:
        """Make the actions that are drawn from now on repeatable."""
        self._generator.manual_seed(seed)

    @torch.no_grad()
    def act(
        self, observation: Any, state: State | None = None, deterministic: bool = False, *, policy: str | None = None
    ) -> tuple[Any, State]:
        """The action for an observation (or a batch of them), and the state to pass next time.

        `policy` is "E" (task) or "EI" (task and bonus), where the method trained both; the task policy acts by default.
        """
        policy = self.policy if policy is None else policy
        if policy not in self.policies:
            raise unknown("policy", policy, self.policies)
        obs, single = self._batch(observation)
        frame, stack = torch.from_numpy(np.ascontiguousarray(obs)), self.net.stack
        before: State = ()  # the frames seen, where they are stacked: the state's first part
        if stack > 1:
            seen = frame.unsqueeze(1)
            earlier = seen.repeat_interleave(stack, 1) if state is None else state[0]
            frame = torch.cat([earlier[:, 1:], seen], 1)  # (B, K, *shape)
            before = (frame,)
        memory = self.net.memory.start(len(obs)) if state is None else state[len(before) :]
        h, memory = self.net.remember(self.net.perceive(frame), memory)
        noise = None if deterministic else self.net.actions.noise(h.shape[:-1], self._generator)
        action = self.net.actions.to_env(self.net.sample(h, policy, noise))
        return (action[0] if single else action), before + memory

    def _batch(self, observation: Any) -> tuple[np.ndarray, bool]:
        """Observations (B, ...) as the network takes them, and whether it was a single one."""
        space = self.observation_space
        composite = packing.is_composite(space)
        path, part = next(packing.leaves(space))
        shape = part.shape or ()
        first = np.asarray(packing.part_of(observation, path))
        single = first.shape == shape
        if first.shape[0 if single else 1 :] != shape:
            raise EipoError(f"observation of shape {first.shape[1:]}, but the agent was trained on {shape}")
        obs = packing.pack(space, observation, batched=not single) if composite else first
        return (obs[None] if single else obs), single


def describe(net_config: dict[str, Any], net: Agent, observation_space: Any, action_space: Any) -> dict[str, Any]:
    """All that is needed, beside the weights, to build the agent again."""
    return {
        "format": FORMAT,
        "net": net_config,
        "precision": net.precision,
        "stack": net.stack,
        "policies": list(net.policies),
        "critics": list(net.critics),
        "observation_space": spaces.to_json(observation_space),
        "action_space": spaces.to_json(action_space),
    }


def save_agent(agent: TrainedAgent, directory: Path) -> None:
    """Weights as safetensors, the rest as JSON."""
    replace(directory / WEIGHTS, save({k: v.contiguous() for k, v in agent.net.state_dict().items()}))
    replace(directory / DESCRIPTION, (json.dumps(agent.description, indent=1) + "\n").encode())


def build(d: Any, weights: bytes, where: str) -> TrainedAgent:
    """An agent from its description and its weights, neither of which is believed: EipoError where they do not fit."""
    try:
        refuse_newer(Path(where), d["format"], FORMAT)
        _refuse_endless(d)
        seen, done = (spaces.from_json(d[k]) for k in ("observation_space", "action_space"))
        tensors = load_tensors(weights)

        def net() -> Agent:
            return Agent(seen, done, Net(**d["net"]), d["policies"], d["critics"], d["precision"], d["stack"])

        with torch.device("meta"):  # shapes without memory: a description cannot ask for more than the weights fill
            shapes = {k: tuple(v.shape) for k, v in net().state_dict().items()}
        found = {k: tuple(v.shape) for k, v in tensors.items()}
        if shapes != found:
            odd = min(k for k in shapes.keys() | found.keys() if shapes.get(k) != found.get(k))
            raise ValueError(f"{odd} has shape {found.get(odd)} instead of {shapes.get(odd)}")
        with torch.random.fork_rng(devices=[]):
            agent = net()
        agent.load_state_dict(tensors)
        return TrainedAgent(agent, seen, done, d)
    except UNREADABLE as e:
        raise EipoError(f"{where} holds no readable agent: {first_line(e)}") from e


def _refuse_endless(d: Any) -> None:
    """What would take memory or time before any shape can be compared."""
    for name in ("observation_space", "action_space"):
        if _numbers(d[name]) > LARGEST:
            raise ValueError(f"{name} is too large")
    if d["net"].get("layers", 0) > 1000 or len(d["policies"]) > 100 or len(d["critics"]) > 100 or d["stack"] > 1000:
        raise ValueError("a network of so many parts is none of eipo's")


def _numbers(space: Any) -> float:
    """How many numbers an element of a described space has."""
    if "spaces" in space:
        parts = space["spaces"]
        return sum(_numbers(part) for part in (parts.values() if isinstance(parts, dict) else parts))
    if np.dtype(space.get("dtype", "int64")).kind not in "biuf":  # texts and records may be of any size
        raise ValueError(f"{space['dtype']!r} is no type of number")
    shape = space.get("shape", space.get("n", 0) if space["kind"] == "MultiBinary" else 0)
    return math.prod(np.atleast_1d(np.array(shape, dtype=float)).tolist())


def load(path: str | Path) -> TrainedAgent:
    """The agent of a finished run directory, or of a file that `eipo export` has written."""
    directory = Path(path)
    if directory.is_file():
        from .archive import read_archive

        return read_archive(directory)[0]
    for name in (DESCRIPTION, WEIGHTS):
        if not (directory / name).is_file():
            raise EipoError(f"{directory} holds no trained agent: {name} is missing (is the run finished?)")
    try:
        d, weights = json.loads((directory / DESCRIPTION).read_bytes()), (directory / WEIGHTS).read_bytes()
    except (OSError, ValueError, RecursionError) as e:
        raise EipoError(f"{directory} holds no readable agent: {first_line(e)}") from e
    return build(d, weights, str(directory))
