"""The worlds of the illustrative example, ``eipo/Maze-v0`` and ``eipo/AlignedMaze-v0``; and ``eipo/NoisyTVMaze-v0``."""

from __future__ import annotations

import gymnasium

from eipo.envs.maze.env import EPISODE_STEPS, MazeEnv
from eipo.envs.maze.vector import MazeVectorEnv

__all__ = ["MazeEnv", "MazeVectorEnv", "register"]


def register() -> None:
    """Make the mazes known to gymnasium; a second call does nothing."""
    for name, kwargs in (
        ("eipo/Maze-v0", {"objects": "corridor"}),
        ("eipo/AlignedMaze-v0", {"objects": "column"}),
        ("eipo/NoisyTVMaze-v0", {"objects": "corridor", "tv": True}),
    ):
        if name not in gymnasium.registry:  # gymnasium warns of every id that is registered again
            gymnasium.register(
                id=name,
                entry_point="eipo.envs.maze.env:MazeEnv",
                vector_entry_point="eipo.envs.maze.vector:MazeVectorEnv",
                max_episode_steps=EPISODE_STEPS,
                kwargs=kwargs,
            )
