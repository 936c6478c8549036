"""The update rules: who acts, what each policy climbs, what moves between iterations.

A method is behaviour(), targets(), step(); there is no base class. EO, RND, EN and DY are one rule with different data
(presets.py). Keys as in ALGORITHM's notation: critic `I__EI` is that of the bonus under the mixed policy.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .appraise import Streams
from .config import Method as MethodConfig
from .core import objective, ppo

Gap = Callable[[Tensor, str], float]  # raw advantage of the policies that acted, another policy -> its gain, L


@dataclass(frozen=True)
class Targets:
    """What each policy climbs in this update: raw advantages (T, N) by policy."""

    advantage: Mapping[str, Tensor]
    kl_weight: float = 0.0  # of KL(pi_E || pi_EI), pi_E held constant
    # By policy: a weight, and a raw advantage (T, N) that is added after each of the two was normalized by itself.
    added: Mapping[str, tuple[float, Tensor]] = field(default_factory=dict)
    # By policy: the part of its advantage that is due to the bonus, with lam; without one it climbs the task alone.
    bonus: Mapping[str, Tensor] = field(default_factory=dict)

    def bonus_shares(self) -> dict[str, float]:
        """By policy: std of the bonus' part / (std of it + std of the rest), 0 to 1; NaN where nothing varies."""
        shares = {}
        for p, A in self.advantage.items():
            part = self.bonus.get(p, torch.zeros_like(A))
            spread, rest = float(part.std(correction=0)), float((A - part).std(correction=0))
            if p in self.added:
                weight, added = self.added[p]
                spread, rest = (float(ppo.normalize(x).std(correction=0)) for x in (added, A))
                spread *= weight
            shares[p] = spread / (spread + rest) if spread + rest > 0 else math.nan
        return shares


class Lam:
    """The weight of the bonus: constant, or falling linearly from lam at iteration 0 to lam_min, then constant (DY)."""

    def __init__(self, cfg: MethodConfig, iterations: int) -> None:
        self.start, self.end = cfg.lam, cfg.lam_min
        self.span = cfg.lam_decay * iterations

    def __call__(self, iteration: int) -> float:
        if self.span == 0:
            return self.start
        return self.start + (self.end - self.start) * min(1.0, iteration / self.span)


class SinglePolicy:
    """One policy: task reward alone (EO), or task plus lam times bonus (RND, EN, DY)."""

    def __init__(self, cfg: MethodConfig, iterations: int) -> None:
        self.policy = cfg.policy
        self.policies = (self.policy,)
        self.critics: tuple[str, ...] = ("E__E",) if self.policy == "E" else ("E__EI", "I__EI")
        self.lam = Lam(cfg, iterations)
        self.iteration = 0

    def behaviour(self) -> tuple[str, ...]:
        return (self.policy,)

    def trained_critics(self) -> tuple[str, ...]:
        return self.critics

    def targets(self, streams: Streams) -> Targets:
        if self.policy == "E":
            return Targets({"E": streams.A["E__E"]})
        bonus = self.lam(self.iteration) * streams.A["I__EI"]
        return Targets({"EI": streams.A["E__EI"] + bonus}, bonus={"EI": bonus})

    def step(self, streams: Streams, gap: Gap) -> dict[str, Any]:
        lam = self.lam(self.iteration)
        self.iteration += 1
        return {"lam": lam if self.policy == "EI" else None}

    def state(self) -> dict[str, Any]:
        return {"iteration": self.iteration}


class Decoupled:
    """DC: pi_EI climbs task plus bonus and pays KL(pi_E || pi_EI); pi_E climbs the task on pi_EI's data."""

    policies = ("E", "EI")
    critics = ("E__E", "E__EI", "I__EI")

    def __init__(self, cfg: MethodConfig, iterations: int) -> None:
        self.lam = Lam(cfg, iterations)
        self.kl_weight = cfg.kl_weight
        self.iteration = 0

    def behaviour(self) -> tuple[str, ...]:
        return ("EI",)

    def trained_critics(self) -> tuple[str, ...]:
        return self.critics

    def targets(self, streams: Streams) -> Targets:
        bonus = self.lam(self.iteration) * streams.A["I__EI"]
        advantage = {"E": streams.A["E__E"], "EI": streams.A["E__EI"] + bonus}
        return Targets(advantage, self.kl_weight, bonus={"EI": bonus})

    def step(self, streams: Streams, gap: Gap) -> dict[str, Any]:
        lam = self.lam(self.iteration)
        self.iteration += 1
        return {"lam": lam}

    def state(self) -> dict[str, Any]:
        return {"iteration": self.iteration}


class EIPO:
    """Two policies, two stages, one multiplier.

    MIN (the first): pi_EI acts, pi_E climbs U_min, pi_EI its own advantage. MAX: pi_E acts, pi_EI climbs U_max, pi_E
    its own advantage. alpha steps when a MAX stage ends.
    """

    policies = ("E", "EI")
    critics = ("E__E", "E__EI", "I__EI")

    def __init__(self, cfg: MethodConfig, iterations: int) -> None:
        self.cfg = cfg
        self.lam = Lam(cfg, iterations)
        self.alpha = cfg.alpha
        self.iteration = 0
        self.max_stage = False
        self.J_before: float | None = 0.0 if cfg.switch == "paper" else None  # the paper starts from J[0] = 0
        self.switches = 0
        self.earned: dict[str, float] = {}  # raw task reward a step of each policy when it acted last

    def behaviour(self) -> tuple[str, ...]:
        return ("E",) if self.max_stage else ("EI",)

    def trained_critics(self) -> tuple[str, ...]:
        return ("E__E",) if self.max_stage else ("E__EI", "I__EI")

    def objective(self, streams: Streams) -> Tensor:
        """Raw U_max or U_min of the stage."""
        lam = self.lam(self.iteration)
        if self.max_stage:
            return objective.u_max(streams.r_E, lam * streams.r_I, streams.A["E__E"], self.alpha)
        A = streams.A
        return objective.u_min(streams.r_E, lam * streams.r_I, A["E__EI"], lam * A["I__EI"], self.alpha)

    def targets(self, streams: Streams) -> Targets:
        U, lam = self.objective(streams), self.lam(self.iteration)
        if self.max_stage:
            return Targets({"E": streams.A["E__E"], "EI": U}, bonus={"EI": lam * streams.r_I})
        bonus = lam * streams.A["I__EI"]
        parts = {"E": bonus - lam * streams.r_I, "EI": bonus}
        return Targets({"E": U, "EI": streams.A["E__EI"] + bonus}, bonus=parts)

    def step(self, streams: Streams, gap: Gap) -> dict[str, Any]:
        """After the update: J and the switch from raw U, alpha from raw A_E__E."""
        U, was_max = self.objective(streams), self.max_stage
        J = objective.objective_in_max(U) if was_max else objective.objective_in_min(U)
        self.earned[self.behaviour()[0]] = float(streams.reward.mean())  # raw: the scale moves between stages
        done = self._stage_is_done(J)
        L = self._step_alpha(streams, gap, done) if was_max else None
        metrics = {
            "stage": "max" if was_max else "min",
            "J": J,
            "gap": L,
            "alpha": self.alpha,
            "lam": self.lam(self.iteration),
        }
        self.J_before = J
        if done:
            self.max_stage = not was_max
            self.switches += 1
            if self.cfg.switch == "own":
                self.J_before = None  # a stage's first J has nothing of its own to be compared with
        self.iteration += 1
        return metrics | {"switches": self.switches}

    def _stage_is_done(self, J: float) -> bool:
        if self.cfg.switch == "alternate":
            return True
        if self.J_before is None:
            return False
        rule = objective.max_stage_is_done if self.max_stage else objective.min_stage_is_done
        return rule(J, self.J_before)

    def _step_alpha(self, streams: Streams, gap: Gap, stage_ends: bool) -> float | None:
        rule = self.cfg.alpha_rule
        if rule == "fixed" or not (stage_ends or rule == "every_max"):
            return None
        if rule == "observed":
            if len(self.earned) < 2:
                return None
            L = self.earned["EI"] - self.earned["E"]
        else:
            L = gap(streams.A["E__E"], "EI")
        self.alpha = objective.stepped_alpha(self.alpha, L, self.cfg.beta, self.cfg.alpha_clip)
        return L

    def state(self) -> dict[str, Any]:
        return {k: getattr(self, k) for k in ("iteration", "max_stage", "J_before", "alpha", "switches", "earned")}


class HEPO:
    """Two policies act side by side: pi_I climbs the bonus alone, pi_EI both rewards, under the constraint that it
    earns no less of the task than pi_I does. Every step teaches both.

    Each reward's advantage is normalized by itself before they are weighed, so neither reward's unit matters.
    """

    policies = ("EI", "I")
    critics = ("E__EI", "I__EI", "E__I", "I__I")
    MEMORY = 8  # estimates of the difference that alpha's step takes the median of

    def __init__(self, cfg: MethodConfig, iterations: int) -> None:
        self.cfg = cfg
        self.lam = Lam(cfg, iterations)
        self.alpha = cfg.alpha
        self.iteration = 0
        self.gaps: list[float] = []  # the last of them, oldest first

    def behaviour(self) -> tuple[str, ...]:
        return self.policies

    def trained_critics(self) -> tuple[str, ...]:
        return self.critics

    def targets(self, streams: Streams) -> Targets:
        A_E, A_I = streams.of_the_actor("E"), streams.of_the_actor("I")
        weight = self.lam(self.iteration) / (1.0 + self.alpha)
        return Targets({"EI": A_E, "I": A_I}, added={"EI": (weight, A_I)}, bonus={"I": A_I})

    def step(self, streams: Streams, gap: Gap) -> dict[str, Any]:
        """After the update: each policy's gain on the other's steps, both estimates of the same difference."""
        own = streams.own
        over_I = gap(streams.A["E__I"] * own["I"], "EI")  # J_E(pi_EI) - J_E(pi_I), from pi_I's steps
        over_EI = gap(streams.A["E__EI"] * own["EI"], "I")  # J_E(pi_I) - J_E(pi_EI), from pi_EI's
        L = 0.5 * (over_I - over_EI)
        self.gaps = [*self.gaps, L][-self.MEMORY :]
        lam, middle = self.lam(self.iteration), statistics.median(self.gaps)
        self.alpha = objective.stepped_alpha(self.alpha, middle, self.cfg.beta, self.cfg.alpha_clip, least=-0.99)
        self.iteration += 1
        return {"gap": L, "alpha": self.alpha, "lam": lam}

    def state(self) -> dict[str, Any]:
        return {k: getattr(self, k) for k in ("iteration", "alpha", "gaps")}


Method = SinglePolicy | Decoupled | EIPO | HEPO
RULES: dict[str, Callable[[MethodConfig, int], Method]] = {
    "single": SinglePolicy,
    "decoupled": Decoupled,
    "eipo": EIPO,
    "hepo": HEPO,
}


def make_method(cfg: MethodConfig, iterations: int) -> Method:
    """The rule that a configuration names."""
    return RULES[cfg.rule](cfg, iterations)


def restore(method: Method, state: Mapping[str, Any]) -> None:
    """Put back what its state() gave, which are attributes by name."""
    if method.state().keys() != state.keys():
        raise ValueError(f"the state of rule {type(method).__name__} has {sorted(method.state())}, not {sorted(state)}")
    for name, value in state.items():
        setattr(method, name, value)
