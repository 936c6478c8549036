"""Episodic counts: novelty is not to have been here in this episode. For observations that repeat exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from ..compute import to_device
from ..rollout import Rollout
from .base import Bonus


class Counts(Bonus):
    """r_I = 1 / sqrt(n), n the number of times that the episode has seen the next frame, this time included."""

    def __init__(self, num_envs: int) -> None:
        super().__init__()
        self.seen: list[dict[bytes, int]] = [{} for _ in range(num_envs)]  # of the running episodes

    def reward(self, rollout: Rollout) -> Tensor:
        frames = rollout.frames.cpu().numpy()
        keys = [frame.tobytes() for frame in frames]
        index, after, reset = (x.cpu().numpy() for x in (rollout.index, rollout.next_index, rollout.reset))
        times = np.empty(index.shape, np.float32)
        for n, seen in enumerate(self.seen):
            for t in range(len(times)):
                if reset[t, n]:
                    seen.clear()
                    seen[keys[index[t, n]]] = 1
                key = keys[after[t, n]]
                seen[key] = times[t, n] = seen.get(key, 0) + 1
        return to_device(1.0 / np.sqrt(times), rollout.reward.device)

    def get_extra_state(self) -> dict[str, Any]:
        """The running episodes' counts as arrays: of which environment, of which frame, how many."""
        rows = [(n, key, times) for n, seen in enumerate(self.seen) for key, times in seen.items()]
        return {
            "env": np.array([n for n, _, _ in rows], np.int64),
            "frame": np.frombuffer(b"".join(key for _, key, _ in rows), np.uint8).reshape(len(rows), -1)
            if rows
            else np.empty((0, 0), np.uint8),
            "times": np.array([times for _, _, times in rows], np.int64),
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.seen = [{} for _ in self.seen]
        for n, frame, times in zip(state["env"], state["frame"], state["times"], strict=True):
            self.seen[int(n)][frame.tobytes()] = int(times)
