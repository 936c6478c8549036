"""EIPO's objective: what each policy climbs, what moves alpha, and when the stages alternate.

Every function reads raw values. Normalizing any of these before it is read here would erase its meaning: a normalized
advantage has mean 0, so alpha would never move and the switch would compare rounding noise.
"""

from __future__ import annotations

from torch import Tensor

from .ppo import clipped_surrogate


def u_max(r_E: Tensor, r_I: Tensor, A_E__E: Tensor, alpha: float) -> Tensor:
    """U_max = r_E + r_I + alpha * A_E^{pi_E}  (appendix, "Rearranging the expression for GAE").

    Its discounted sum along pi_EI is (1 + alpha) J_E(pi_EI) + J_I(pi_EI) - alpha J_E(pi_E). r_I comes times lam.
    """
    return r_E + r_I + alpha * A_E__E


def u_min(r_E: Tensor, r_I: Tensor, A_E__EI: Tensor, A_I__EI: Tensor, alpha: float) -> Tensor:
    """U_min = (alpha - 1) r_E - r_I + A_{E+I}^{pi_EI},  A_{E+I} = A_E^{pi_EI} + A_I^{pi_EI}  (same place).

    Its discounted sum along pi_E is alpha J_E(pi_E) - J_{E+I}(pi_EI): the paper puts V_{E+I} for V_{E+I}^alpha, since a
    critic cannot follow a moving alpha, and so loses the term alpha J_E(pi_EI). r_I and A_I__EI come times lam.
    """
    return (alpha - 1.0) * r_E - r_I + A_E__EI + A_I__EI


def objective_in_max(U_max: Tensor) -> float:
    """J = J^alpha_{E+I}(pi_EI) - alpha J_E(pi_E), estimated in the max stage: the mean of raw U_max."""
    return float(U_max.mean())


def objective_in_min(U_min: Tensor) -> float:
    """The same J in the min stage, whose policy climbs -J: minus the mean of raw U_min."""
    return -float(U_min.mean())


def max_stage_is_done(J: float, J_before: float) -> bool:
    """Leave the max stage when J no longer rises: J[i] - J[i-1] <= 0  (section 2.3)."""
    return J - J_before <= 0.0


def min_stage_is_done(J: float, J_before: float) -> bool:
    """Leave the min stage when J no longer falls: J[i] - J[i-1] >= 0  (section 2.3)."""
    return J - J_before >= 0.0


def constraint_gap(log_ratio: Tensor, A_E__E: Tensor, clip: float) -> float:
    """L = E_{pi_E}[min(ratio A, clip(ratio) A)], ratio = pi_EI / pi_E: an estimate of J_E(pi_EI) - J_E(pi_E).

    A_E__E is raw. L is per step: the sum over an episode's steps is this times their (discounted) number.
    """
    return float(clipped_surrogate(log_ratio, A_E__E, clip))


def stepped_alpha(alpha: float, gap: float, beta: float, alpha_clip: float, least: float = 0.0) -> float:
    """alpha <- max(least, alpha - beta * clip(L, -alpha_clip, alpha_clip))  (Eq. 9 and "Clipping the derivative of
    alpha"; least is 0 there, and -0.99 for HEPO, whose weight is 1 / (1 + alpha)).

    L < 0 says that the mixed policy earns less task reward than the task policy; then alpha rises, and task reward
    weighs more.
    """
    return max(least, alpha - beta * min(max(gap, -alpha_clip), alpha_clip))
