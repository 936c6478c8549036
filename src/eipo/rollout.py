"""Act: the only place that steps environments.

Shapes: T steps, N environments, U frames kept, H memory width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import parallel
from .compute import to_device
from .envs.batch import Batch
from .frames import DistinctFrames, Frames
from .nets import Agent, State

POLICIES = ("E", "EI", "I")  # climb the task reward, both rewards, the bonus alone
MIXED = "mixed"  # an episode in which more than one policy acted


@dataclass(frozen=True)
class Episode:
    """An episode that ended: the raw score, never the reward that is learned from."""

    policy: str  # who acted in it, or MIXED
    score: float
    length: int


@dataclass(frozen=True)
class Rollout:
    """T steps of N environments, each frame kept once, as the environment gave it."""

    acted: tuple[str, ...]  # (N,) the policy that acted in each environment
    own: Mapping[str, Tensor]  # by policy: (T, N) weight of each step in what it learns from its own steps alone
    frames: Tensor  # (U, *observation)
    index: Tensor  # (T, N) frames[index] is s_t
    next_index: Tensor  # (T, N) frames[next_index] is s_{t+1}, the true last frame where an episode ended
    history: Tensor | None  # (U, K) the K frames, oldest first, that a network sees with frame u; None: u alone
    reset: Tensor  # (T, N) bool: s_t starts an episode
    action: Tensor  # (T, N, ...) as actions.py stores it
    log_prob: Tensor  # (T, N) of the action, under the policy that acted
    reward: Tensor  # (T, N) raw task reward
    terminated: Tensor  # (T, N) bool
    done: Tensor  # (T, N) bool: terminated or truncated
    value: dict[str, Tensor]  # by critic: (T, N) V(s_t)
    next_value: dict[str, Tensor]  # by critic: (T, N) V(s_{t+1})
    beyond: dict[str, Tensor]  # by critic: (N,) V of what each environment waits with, after the last step
    state: State  # memory before the first step, each (N, H)
    episodes: list[Episode]
    terms: Mapping[str, Tensor]  # by key of the steps' info that the bonus reads: (T, N)
    cells: np.ndarray | None  # (T, N) where each agent was after the step, in environments that say so

    def __len__(self) -> int:
        return self.reward.numel()

    @property
    def observations(self) -> Tensor:
        """(T, N, *observation) s_t."""
        return self.frames[self.index]

    @property
    def next_observations(self) -> Tensor:
        """(T, N, *observation) s_{t+1}, the true last one where an episode ended."""
        return self.frames[self.next_index]

    def going_on(self, critic: str) -> Tensor:
        """(T, N) value of what is seen after each step, where an episode ended that of the next one's first frame."""
        return torch.cat([self.value[critic][1:], self.beyond[critic][None]])

    def seen(self, index: Tensor) -> Tensor:
        """What a network sees at frames (B,): (B, *observation), or (B, K, *observation) where frames are stacked."""
        return self.frames[index if self.history is None else self.history[index]]


@dataclass
class Carry:
    """What goes on from one rollout into the next, beside the environments themselves."""

    state: State
    reset: np.ndarray  # (N,) bool: the next step starts an episode
    score: np.ndarray  # (N,) of the running episode
    length: np.ndarray  # (N,)
    policy: list[str] = field(default_factory=list)  # (N,) who has acted in the running episode
    before: Tensor | None = None  # (N, K - 1, *observation) frames before the present one, where frames are stacked

    @classmethod
    def start(cls, agent: Agent, n: int) -> Carry:
        return cls(agent.memory.start(n), np.ones(n, bool), np.zeros(n), np.zeros(n, np.int64), [""] * n)

    def saved(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def of_saved(cls, state: Mapping[str, Any], device: torch.device) -> Carry:
        """What goes on from a checkpoint."""
        before = state["before"]
        return cls(
            tuple(s.to(device, copy=True) for s in state["state"]),
            state["reset"].copy(),
            state["score"].copy(),
            state["length"].copy(),
            list(state["policy"]),
            None if before is None else before.to(device, copy=True),
        )


@torch.no_grad()
def collect(
    envs: Batch,
    agent: Agent,
    behaviour: Sequence[str],
    T: int,
    carry: Carry,
    generator: torch.Generator,
    repeats: bool = False,
) -> Rollout:
    """Let policies act for T steps, each in an equal block of the environments; `carry` is brought up to date."""
    N, device = envs.num, agent.device
    every = N * parallel.size()
    all_blocks = shared_out(behaviour, every)
    all_acted = [p for p, block in all_blocks for _ in range(block.start, block.stop)]
    blocks, acted = parallel.blocks_here(all_blocks, every), tuple(all_acted[parallel.mine(every)])
    frames = (DistinctFrames if repeats else Frames)(agent, carry.before)
    agent.redraw(generator)
    noise = parallel.columns(agent.actions.noise((T, every), generator))
    state, reset = carry.state, carry.reset
    first_state = tuple(s.clone() for s in state)
    index, next_index = np.empty((T, N), np.int64), np.empty((T, N), np.int64)
    reward, terminated = np.empty((T, N), np.float32), np.empty((T, N), bool)
    done, resets = np.empty((T, N), bool), np.empty((T, N), bool)
    cells: list[np.ndarray] = []
    terms = {key: np.empty((T, N), np.float32) for key in envs.terms}
    features, actions = [], []
    ends: list[tuple[int, np.ndarray, Tensor]] = []  # (t, environments, memory's features of their last observations)
    episodes: list[Episode] = []
    starts = np.array([not p for p in carry.policy])  # games that start; at a lost life frames go on as they were
    carry.policy = [p if before in ("", p) else MIXED for before, p in zip(carry.policy, acted, strict=True)]

    with agent.backbone_precision():  # one context for the whole loop, in which weights are cast once
        index[0], x = frames.add(envs.obs, starts)
        for t in range(T):
            resets[t] = reset
            h, state = agent.remember(x, cleared(state, reset))
            action = torch.cat([agent.sample(h[block], p, noise[t, block]) for p, block in blocks])  # (N, ...)
            step = envs.step(agent.actions.to_env(action))
            features.append(h)
            actions.append(action)
            reward[t], terminated[t], done[t] = step.reward, step.terminated, step.done
            carry.score += step.score
            carry.length += 1
            for key, column in terms.items():
                column[t] = step.terms[key]
            if step.cell is not None:
                cells.append(step.cell)
            reset = step.done
            over = np.flatnonzero(step.over)
            if len(over):
                last_index, x_last = frames.add_last(step.last_obs[step.over[reset]], over)
            after, x = frames.add(step.obs, step.over)
            next_index[t] = after
            if reset.any():
                ended, x_end = np.flatnonzero(reset), x
                if len(over):
                    next_index[t, over] = last_index
                    x_end = x.index_copy(0, to_device(over, device), x_last)
                h_last, _ = agent.remember(x_end[ended], tuple(s[ended] for s in state))
                ends.append((t, ended, h_last))
            if t + 1 < T:
                index[t + 1] = after
            for i in over:
                episodes.append(Episode(carry.policy[i], float(carry.score[i]), int(carry.length[i])))
                carry.score[i], carry.length[i], carry.policy[i] = 0.0, 0, acted[i]

        h_beyond, _ = agent.remember(x, cleared(state, reset))  # features of s_T, where episodes go on
    carry.state, carry.reset, carry.before = state, reset.copy(), frames.before()
    carry.policy = ["" if starts else p for p, starts in zip(carry.policy, step.over, strict=True)]
    critics = list(agent.critics)
    action = torch.stack(actions)  # (T, N, ...)
    out = agent.heads(torch.stack(features), behaviour, critics)
    beyond = agent.heads(h_beyond, [], critics).value
    next_value = {c: torch.cat([v[1:], beyond[c][None]]) for c, v in out.value.items()}
    for t, ended, h_last in ends:
        last = agent.heads(h_last, [], critics).value
        for c in critics:
            next_value[c][t, ended] = last[c]
    kept, history = frames.all()
    return Rollout(
        acted=acted,
        own={p: parallel.columns(w) for p, w in own_weights(all_acted, list(agent.policies), T, device).items()},
        frames=kept,
        history=history,
        index=to_device(index, device),
        next_index=to_device(next_index, device),
        reset=to_device(resets, device),
        action=action,
        log_prob=torch.cat(
            [agent.actions.log_prob(out.policy[p][:, block], action[:, block]) for p, block in blocks], dim=1
        ),
        reward=to_device(reward, device),
        terminated=to_device(terminated, device),
        done=to_device(done, device),
        value=out.value,
        next_value=next_value,
        beyond=beyond,
        state=first_state,
        episodes=episodes,
        terms={key: to_device(column, device) for key, column in terms.items()},
        cells=np.stack(cells) if cells else None,
    )


def shared_out(policies: Sequence[str], n: int) -> list[tuple[str, slice]]:
    """Environments in equal blocks, one for each policy: always the same, so that an episode has one policy."""
    edges = [round(i * n / len(policies)) for i in range(len(policies) + 1)]
    return [(p, slice(*ends)) for p, ends in zip(policies, pairwise(edges), strict=True)]


def own_weights(acted: Sequence[str], policies: Sequence[str], T: int, device: torch.device) -> dict[str, Tensor]:
    """By policy (T, N), mean 1: only the steps in which it acted count; all of them if it acted in none (DC's pi_E)."""
    weights = {}
    for p in policies:
        mine = torch.tensor([float(p == who) for who in acted], device=device)
        weights[p] = (mine / mine.mean() if mine.any() else torch.ones_like(mine)).repeat(T, 1)
    return weights


def cleared(state: State, reset: np.ndarray) -> State:
    """The memory, zero where an episode starts."""
    if not state or not reset.any():
        return state
    keep = to_device(~reset, state[0].device).unsqueeze(-1)
    return tuple(s * keep for s in state)
