"""Steps a second of training on the maze: eo, en, eipo on maze-grid and maze-paper, and of the environment alone.

    python benchmarks/maze.py [--repeats 3] [--seconds 6] [--csv results/speed.csv]

The sides alternate, every figure is the best of the repeats (other work on the machine can only slow a run down), and
one iteration of each is thrown away first. `acting` is the share of the time spent in stepping and acting.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import gymnasium
import numpy as np

import eipo
from eipo.training import Training

SIDES = [(preset, method) for preset in ("maze-grid", "maze-paper") for method in ("eo", "en", "eipo")]


def training_speed(preset: str, method: str, seconds: float) -> tuple[float, float]:
    """(steps a second, share of acting) over whole iterations, both stages of EIPO among them."""
    settings = {"method.switch": "alternate"} if method == "eipo" else {}
    config = eipo.make_config("eipo/Maze-v0", method=method, preset=preset, steps=10**9, settings=settings)
    training = Training(config)
    try:
        training.iterate()
        steps, shares, began = 0, [], time.perf_counter()
        while time.perf_counter() - began < seconds or len(shares) % 2:  # as many max stages as min stages
            _, metrics = training.iterate()
            steps += config.steps_per_iteration
            shares.append(metrics["acting_share"])
        return steps / (time.perf_counter() - began), float(np.mean(shares))
    finally:
        training.close()


def environment_speed(observation: str, boards: int, seconds: float) -> float:
    """Environment steps a second, random actions drawn beforehand."""
    envs = gymnasium.make_vec("eipo/Maze-v0", num_envs=boards, observation=observation)
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(5, size=(500, boards))
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for a in actions:
            envs.step(a)
        calls += len(actions)
    return calls * boards / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--csv", type=Path, help="also write the table there")
    args = parser.parse_args()

    best: dict[tuple[str, str], tuple[float, float]] = {}
    for _ in range(args.repeats):
        for observation, boards in [("grid", 64), ("grid", 256), ("pixels", 64)]:
            key = (f"environment alone, {observation}", f"{boards} boards")
            best[key] = max(best.get(key, (0.0, 1.0)), (environment_speed(observation, boards, 1.0), 1.0))
        for preset, method in SIDES:
            measured = training_speed(preset, method, args.seconds)
            best[preset, method] = max(best.get((preset, method), (0.0, 0.0)), measured)
    print(f"{'':32}{'':12}{'steps/s':>12}{'acting':>9}")
    for (what, which), (speed, acting) in best.items():
        print(f"{what:32}{which:12}{speed:12,.0f}{acting:9.0%}")
    if args.csv is not None:
        with open(args.csv, "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["what", "which", "steps_per_second", "acting_share"])
            writer.writerows([*key, round(speed), round(acting, 3)] for key, (speed, acting) in best.items())


if __name__ == "__main__":
    main()
