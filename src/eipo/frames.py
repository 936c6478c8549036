"""The frames of a rollout while it is made: each kept once, and what the memory takes of it.

Shapes: N environments, B of them, U frames kept, K frames that a network sees at once, P what the memory takes.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .compute import to_device
from .nets import Agent


class Frames:
    """The frames of a rollout, in the order in which they came, and what the memory takes of them.

    Each is kept once. What a network sees with it may be a stack: the last K frames of its episode, the first of them
    repeated where there are not K yet.
    """

    def __init__(self, agent: Agent, before: Tensor | None) -> None:
        self.agent, self.device, self.stack = agent, agent.device, agent.stack
        self.chunks: list[Tensor] = []
        self.count = 0
        self.histories: list[np.ndarray] = []  # each (B, K)
        self.now: np.ndarray | None = None  # (N, K) indices of each environment's last frames
        self.stacked: Tensor = torch.empty(0)  # (N, K, *observation) those frames
        if self.stack > 1 and before is not None:
            n, k = before.shape[:2]
            self.now = np.arange(n * k).reshape(n, k)
            self._keep(before.flatten(0, 1), np.repeat(self.now.reshape(-1, 1), self.stack, 1))
            self.now = np.concatenate([self.now[:, :1], self.now], 1)
            self.stacked = torch.cat([before[:, :1], before], 1)

    def add(self, obs: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, Tensor]:
        """All environments' present observations (N, *shape), of which some start an episode -> (N,), (N, P)."""
        index = np.arange(self.count, self.count + len(obs))
        frames = to_device(obs, self.device)
        if self.stack == 1:
            self._keep(frames)
            return index, self.agent.perceive(frames)
        first = np.repeat(index[:, None], self.stack, 1)
        new = frames.unsqueeze(1)
        if self.now is None:
            self.now, self.stacked = first, new.repeat_interleave(self.stack, 1)
        else:
            self.now = np.concatenate([self.now[:, 1:], index[:, None]], 1)
            self.stacked = torch.cat([self.stacked[:, 1:], new], 1)
            if starts.any():
                self.now[starts] = first[starts]
                which = to_device(np.flatnonzero(starts), self.device)
                self.stacked[which] = new[which].repeat_interleave(self.stack, 1)
        self._keep(frames, self.now)
        return index, self.agent.perceive(self.stacked)

    def add_last(self, obs: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray, Tensor]:
        """The true last observations (B, *shape) of some environments; call it before `add` of the next ones."""
        index = np.arange(self.count, self.count + len(obs))
        frames = to_device(obs, self.device)
        if self.stack == 1:
            self._keep(frames)
            return index, self.agent.perceive(frames)
        assert self.now is not None
        before = self.stacked[to_device(ended, self.device), 1:]
        self._keep(frames, np.concatenate([self.now[ended, 1:], index[:, None]], 1))
        return index, self.agent.perceive(torch.cat([before, frames.unsqueeze(1)], 1))

    def _keep(self, frames: Tensor, history: np.ndarray | None = None) -> None:
        self.chunks.append(frames)
        self.count += len(frames)
        if history is not None:
            self.histories.append(history)

    def all(self) -> tuple[Tensor, Tensor | None]:
        """Frames (U, *observation), and their histories (U, K) where they are stacked."""
        history = to_device(np.concatenate(self.histories), self.device) if self.histories else None
        return torch.cat(self.chunks), history

    def before(self) -> Tensor | None:
        """What the next rollout has to know of this one's frames; the present ones are added again there."""
        return self.stacked[:, :-1].clone() if self.stack > 1 else None


class DistinctFrames(Frames):
    """A frame that came before (byte for byte) is kept and encoded once: exact, since the policy does not change within
    a rollout."""

    def __init__(self, agent: Agent, before: Tensor | None) -> None:
        super().__init__(agent, before)
        self.known: dict[bytes, int] = {}
        self.features = torch.empty(0, device=self.device)  # (room, P), grows

    def add(self, obs: np.ndarray, starts: np.ndarray | None = None) -> tuple[np.ndarray, Tensor]:
        raw = obs.tobytes()
        size = len(raw) // len(obs)
        keys = [raw[i : i + size] for i in range(0, len(raw), size)]
        rows = list(map(self.known.get, keys))
        fresh: list[int] = []
        if None in rows:
            for i, key in enumerate(keys):
                if key not in self.known:
                    self.known[key] = self.count + len(fresh)
                    fresh.append(i)
            rows = list(map(self.known.get, keys))
        index = np.array(rows, np.int64)
        if fresh:
            self._keep(to_device(obs[fresh], self.device))
            new = self.agent.perceive(self.chunks[-1])
            if len(self.features) < self.count:
                self.features = torch.cat(
                    [self.features.reshape(-1, new.shape[1]), new.new_empty(self.count, new.shape[1])]
                )
            self.features[self.count - len(fresh) : self.count] = new
        return index, self.features[to_device(index, self.device)]

    def add_last(self, obs: np.ndarray, ended: np.ndarray) -> tuple[np.ndarray, Tensor]:
        return self.add(obs)
