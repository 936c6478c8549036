"""Appraise: what each step of a rollout was worth, by each critic. Raw and immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from . import parallel
from .bonuses import Bonus
from .config import PPO
from .core.moments import RewardScale
from .core.returns import generalized_advantage, step_discount
from .errors import EipoError
from .rollout import Rollout


@dataclass(frozen=True)
class Streams:
    """Rewards as they are learned from, and each critic's advantages and returns; keys as in ALGORITHM's notation.

    `E__EI` is the critic of task reward (E) under the mixed policy (EI).
    """

    reward: Tensor  # (T, N) task reward as the environment gave it
    r_E: Tensor  # (T, N) task reward, divided by its running scale where the method says so
    r_I: Tensor  # (T, N) bonus, divided by its running scale, without lam
    bonus: Tensor  # (T, N) bonus as the bonus gave it
    A: Mapping[str, Tensor]  # by critic: (T, N)
    returns: Mapping[str, Tensor]  # by critic: (T, N)
    own: Mapping[str, Tensor]  # by policy: (T, N) as in the rollout

    def of_the_actor(self, reward: str) -> Tensor:
        """(T, N) advantage of a reward, at each step that of the policy that acted."""
        return sum((a * (self.own[c[3:]] > 0) for c, a in self.A.items() if c[0] == reward), torch.zeros(()))


def checked(bonus: Bonus, rollout: Rollout) -> Tensor:
    """The bonus of each step, (T, N)."""
    name, r = type(bonus).__name__, bonus.reward(rollout)
    if not isinstance(r, Tensor) or r.shape != rollout.reward.shape:
        found = f"shape {tuple(r.shape)}" if isinstance(r, Tensor) else f"a {type(r).__name__}"
        raise EipoError(f"bonus {name}: reward() gave {found}; expected a tensor {tuple(rollout.reward.shape)}, (T, N)")
    r = r.detach().to(rollout.reward)
    if not r.isfinite().all():
        t, n = (~r.isfinite()).nonzero()[0].tolist()
        raise EipoError(f"bonus {name}: {r[t, n].item()} for environment {n} at step {t} of the rollout")
    return r


def appraise(
    rollout: Rollout,
    bonus: Bonus,
    task_scale: RewardScale | None,
    bonus_scale: RewardScale,
    critics: Iterable[str],
    ppo: PPO,
    episodic: bool = True,
) -> Streams:
    """Reward every step, then run one advantage estimate for each critic that this rollout trains.

    `episodic`: whether an episode's end ends the bonus' return. The task's it always ends.
    """
    raw_bonus, rollout = parallel.whole(checked(bonus, rollout)), parallel.together(rollout)
    r = {"E": task_scale(rollout.reward) if task_scale is not None else rollout.reward, "I": bonus_scale(raw_bonus)}
    A = {}
    for c in critics:
        ends = episodic or c[0] == "E"
        next_value = rollout.next_value[c] if ends else rollout.going_on(c)
        discount = step_discount(ppo.gamma, rollout.terminated, ends)
        A[c] = generalized_advantage(
            r[c[0]], rollout.value[c], next_value, discount, rollout.done & ends, ppo.gae_lambda
        )
    returns = {c: a + rollout.value[c] for c, a in A.items()}
    return Streams(
        rollout.reward, r["E"], r["I"], raw_bonus, MappingProxyType(A), MappingProxyType(returns), rollout.own
    )
