"""What checkpoints cost a run: seconds and megabytes of one, and their share of the time at the default interval.

python benchmarks/checkpointing.py [--preset atari-paper] [--env ALE/Breakout-v5] [--method eipo]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import eipo
from eipo.checkpoint import Checkpoints
from eipo.keeping import Keeper
from eipo.tracking import Tracker
from eipo.training import Training

SAVES = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="atari-paper")
    parser.add_argument("--env", default="ALE/Breakout-v5")
    parser.add_argument("--method", default="eipo")
    args = parser.parse_args()
    config = eipo.make_config(args.env, method=args.method, preset=args.preset, steps=10**9)
    training = Training(config)
    with tempfile.TemporaryDirectory(dir=".") as out:
        run = Path(out) / "run"
        with Tracker(config, run, training.envs, training.agent, False) as tracker:
            keeper = Keeper(training, tracker)
            iterations = []
            for _ in range(2):  # moments of the optimizers, and a history of actions, are there after the first
                began = time.perf_counter()
                tracker.log(*training.iterate())
                iterations.append(time.perf_counter() - began)
            saves = []
            for _ in range(SAVES):
                began = time.perf_counter()
                keeper.saved = None
                keeper.save()
                saves.append(time.perf_counter() - began)
            size = sum(f.stat().st_size for f in Checkpoints(run, 1).all()[-1].iterdir())
    training.close()
    save, every = statistics.median(saves), config.checkpoint.minutes * 60
    print(f"{args.preset}, {args.method}, {args.env}: an iteration takes {min(iterations):.2f} s here")
    print(f"a checkpoint: {size / 1e6:.1f} MB, {save:.2f} s (median of {SAVES}, {min(saves):.2f} to {max(saves):.2f})")
    print(f"one every {config.checkpoint.minutes:g} minutes adds {save / every:.2%}")


if __name__ == "__main__":
    main()
