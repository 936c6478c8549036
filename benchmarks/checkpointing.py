"""What checkpoints cost a run: seconds and megabytes of one, and their share of the time at the default interval.

python benchmarks/checkpointing.py [--preset atari-paper] [--env ALE/Breakout-v5] [--method eipo] [--set envs.num=2 ...]

A checkpoint of Atari holds the actions since each environment's last seed: 8,192 steps and the rest of a game. The run
here is too short for that, so as many as `--history` says are put there; they are noise, nothing to go on from.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import eipo
from eipo.checkpoint import Checkpoints
from eipo.keeping import Keeper
from eipo.tracking import Tracker
from eipo.training import Training

SAVES = 5


def fill(training: Training, steps: int) -> int:
    """As if the environments had been played for so many steps since their seeds; how many steps they now have."""
    history = getattr(training.envs.venv, "history", None)
    if history is None:
        return 0  # environments that give their state need none
    rng, like = np.random.default_rng(0), history.actions[-1]
    if like.ndim == 1:
        history.actions = list(rng.integers(18, size=(steps, *like.shape), dtype=like.dtype))
    else:
        history.actions = list(rng.random((steps, *like.shape)).astype(like.dtype))
    history.length[:] = steps
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="atari-paper")
    parser.add_argument("--env", default="ALE/Breakout-v5")
    parser.add_argument("--method", default="eipo")
    parser.add_argument("--history", type=int, default=10_000, help="steps of Atari since each environment's seed")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="as of eipo train")
    args = parser.parse_args()
    config = eipo.make_config(args.env, method=args.method, preset=args.preset, steps=10**9, settings=args.set)
    training = Training(config)
    with tempfile.TemporaryDirectory(dir=".") as out:
        run = Path(out) / "run"
        with Tracker(config, run, training.envs, training.agent, False) as tracker:
            keeper = Keeper(training, tracker)
            iterations = []
            for _ in range(2):  # moments of the optimizers are there after the first
                began = time.perf_counter()
                tracker.log(*training.iterate())
                iterations.append(time.perf_counter() - began)
            filled, saves = fill(training, args.history), []
            for _ in range(SAVES):
                began = time.perf_counter()
                keeper.saved = None
                keeper.save()
                saves.append(time.perf_counter() - began)
            size = sum(f.stat().st_size for f in Checkpoints(run, 1).all()[-1].iterdir())
    training.close()
    save, every = statistics.median(saves), config.checkpoint.minutes * 60
    print(f"{args.preset}, {args.method}, {args.env}: an iteration takes {min(iterations):.2f} s here")
    if filled:
        print(f"history: {filled} steps of actions of {config.envs.num} environments, simulated")
    print(f"a checkpoint: {size / 1e6:.1f} MB, {save:.2f} s (median of {SAVES}, {min(saves):.2f} to {max(saves):.2f})")
    print(f"one every {config.checkpoint.minutes:g} minutes adds {save / every:.2%}")


if __name__ == "__main__":
    main()
