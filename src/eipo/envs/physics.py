"""The state of Gymnasium's MuJoCo tasks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.utils import seeding

# What is worked out from positions and velocities, but only within the next step: rewards and observations may read it
# before. It is that of the step before the last substep, so it cannot be worked out anew.
DERIVED = (
    "xpos", "xquat", "xmat", "xipos", "ximat", "geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "subtree_com",
    "cinert", "cvel", "cacc", "cfrc_int", "cfrc_ext", "qacc", "qfrc_actuator", "qfrc_constraint", "actuator_force",
    "sensordata",
)  # fmt: skip
OWN = ("goal", "goal_pos", "cylinder_pos")  # what a task draws at reset and keeps to itself


def is_mujoco(env: Any) -> bool:
    """Whether it is one of Gymnasium's own tasks; a user's may know more than is known here."""
    return (
        type(env).__module__.startswith("gymnasium.envs.mujoco.") and hasattr(env, "data") and "mujoco" in sys.modules
    )


def get(env: Any) -> dict[str, Any]:
    """All that its future depends on."""
    import mujoco

    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    whole = np.zeros(mujoco.mj_stateSize(env.model, kind))
    mujoco.mj_getState(env.model, env.data, whole, kind)
    return {
        "integration": whole,
        "derived": {name: np.array(getattr(env.data, name)) for name in DERIVED},
        "own": {name: np.array(getattr(env, name)) for name in OWN if hasattr(env, name)},
        "rng": env.np_random.bit_generator.state,
    }


def put(env: Any, state: Mapping[str, Any]) -> None:
    """Go on from what `get` gave."""
    import mujoco

    mujoco.mj_setState(env.model, env.data, state["integration"], mujoco.mjtState.mjSTATE_INTEGRATION)
    for name in DERIVED:
        getattr(env.data, name)[...] = state["derived"][name]
    for name, value in state["own"].items():
        if name in OWN:
            setattr(env, name, value)
    env.np_random, _ = seeding.np_random(0)
    env.np_random.bit_generator.state = state["rng"]
