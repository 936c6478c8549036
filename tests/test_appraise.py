"""What each step was worth: where a bonus' return ends, and where it runs on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from eipo.appraise import appraise
from eipo.bonuses import Bonus
from eipo.config import PPO
from eipo.rollout import Rollout

T, N = 7, 3
LENGTH = (1, 3, 5)


class Step(Bonus):
    """Pays the number of the step in its episode."""

    def reward(self, rollout: Rollout) -> Tensor:
        return rollout.next_observations[..., 2]


@pytest.mark.parametrize("end", ["terminate", "truncate", "turns"])
@pytest.mark.parametrize("gae_lambda", [0.0, 0.5])
def test_a_non_episodic_return_runs_on_into_the_next_episode(
    scripted: Callable, reading_agent: Callable, play: Callable, end: str, gae_lambda: float
) -> None:
    envs = scripted(end=end)
    rollout = play(envs, reading_agent(envs, [0.0, 0.0, 100.0]), T)  # V(k-th frame of an episode) = 100 k
    cfg = PPO(gamma=0.5, gae_lambda=gae_lambda)
    A, critics = {}, ("E__EI", "I__EI")
    for episodic in (True, False):
        streams = appraise(rollout, Step(), None, lambda r: r, critics, cfg, episodic)  # type: ignore[arg-type]
        A[episodic] = streams.A
    assert torch.equal(A[True]["E__EI"], A[False]["E__EI"])  # the task's return ends with the episode
    for n, length in enumerate(LENGTH):
        # What is seen at time t, episodes one behind the other: step t mod length of some episode.
        V = [100.0 * (t % length) for t in range(T + 1)]
        delta = [t % length + 1 + 0.5 * V[t + 1] - V[t] for t in range(T)]
        expected = [sum((0.5 * gae_lambda) ** (u - t) * delta[u] for u in range(t, T)) for t in range(T)]
        assert A[False]["I__EI"][:, n].tolist() == pytest.approx(expected, rel=1e-5)
        ends = [t for t in range(T) if (t + 1) % length == 0]
        if ends and end == "terminate" and gae_lambda == 0.0:  # episodic: nothing comes after a termination
            assert A[True]["I__EI"][ends, n].tolist() == [length - 100.0 * (length - 1)] * len(ends)
