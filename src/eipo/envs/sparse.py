"""MuJoCo tasks with a sparse reward: 1 for each step that ends beyond a distance, where a second reward is needed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

# id -> (Gymnasium's task, metres ahead of the start beyond which each step earns 1)
TASKS = {"eipo/SparseHalfCheetah-v0": ("HalfCheetah-v5", 5.0), "eipo/SparseHopper-v0": ("Hopper-v5", 1.0)}
EPISODE_STEPS = 1000


class Beyond(gym.Wrapper):
    """Reward 1 where the body is more than `distance` along x, else 0."""

    def __init__(self, env: gym.Env, distance: float) -> None:
        super().__init__(env)
        self.distance = distance

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, float(info["x_position"] > self.distance), terminated, truncated, info


def make_sparse(task: str, distance: float, **options: Any) -> gym.Env:
    """A task without its own reward and time limit; the registered id has the limit."""
    return Beyond(gym.make(task, disable_env_checker=True, **options).unwrapped, distance)


def register() -> None:
    """Make the tasks known to Gymnasium; a second call does nothing. MuJoCo is first needed by gymnasium.make."""
    for name, (task, distance) in TASKS.items():
        if name not in gym.registry:
            gym.register(
                id=name,
                entry_point="eipo.envs.sparse:make_sparse",
                max_episode_steps=EPISODE_STEPS,
                kwargs={"task": task, "distance": distance},
            )
