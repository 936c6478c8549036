"""Worlds: the maze, sparse continuous control, Atari, and one batched interface over every environment."""

from __future__ import annotations


def register() -> None:
    """Register eipo's environments with Gymnasium; `import eipo` does it, and so does "eipo:" before an id.

    Gymnasium 1.0 took out the loading of plugins by entry point, so nothing can register an id that nobody imports.
    """
    from . import maze, sparse

    maze.register()
    sparse.register()
