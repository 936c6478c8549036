"""Worlds: mazes, Deep Sea, sparse control, other people's small worlds, Atari; one batched interface over every one."""

from __future__ import annotations


def register() -> None:
    """Register eipo's environments with Gymnasium; `import eipo` does it, and so does "eipo:" before an id.

    Gymnasium 1.0 took out the loading of plugins by entry point, so nothing can register an id that nobody imports.
    """
    from . import deep_sea, maze, peers, sparse

    for worlds in (maze, deep_sea, sparse, peers):
        worlds.register()
