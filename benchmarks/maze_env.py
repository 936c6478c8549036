"""How fast the maze steps: ``python benchmarks/maze_env.py [--quick]``.

Only ``step()`` is timed, with actions drawn beforehand, over whole episodes, whose resets are part of it.
The best of several repeats is printed, because whatever else the machine does can only slow a repeat down.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from eipo.envs.maze import MazeEnv, MazeVectorEnv

EPISODE = 500


def seconds_a_call(boards: int, observation: str, repeats: int) -> float:
    """The fastest mean time of one ``step()`` over an episode."""
    envs = MazeVectorEnv(boards, observation=observation)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 5, (EPISODE, boards))
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for one in actions:
            envs.step(one)
        best = min(best, time.perf_counter() - begin)
    return best / EPISODE


def seconds_a_single_step(repeats: int) -> float:
    """The same for the single form, with its reset."""
    env = MazeEnv()
    actions = np.random.default_rng(0).integers(0, 5, EPISODE).tolist()
    env.reset(seed=0)
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        for action in actions:
            env.step(action)
        env.reset()
        best = min(best, time.perf_counter() - begin)
    return best / EPISODE


def main() -> None:
    repeats = 2 if "--quick" in sys.argv[1:] else 10
    print(f"{'boards':>6} {'observation':>11} {'us a call':>10} {'steps a second':>15}")
    single = seconds_a_single_step(repeats)
    print(f"{'1':>6} {'grid':>11} {single * 1e6:>10.1f} {1 / single:>15,.0f}  (MazeEnv)")
    for observation in ("grid", "pixels"):
        for boards in (1, 64, 256):
            seconds = seconds_a_call(boards, observation, repeats)
            print(f"{boards:>6} {observation:>11} {seconds * 1e6:>10.1f} {boards / seconds:>15,.0f}")


if __name__ == "__main__":
    main()
