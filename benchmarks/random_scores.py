"""What a random policy earns: the zero of normalized scores.

    python benchmarks/random_scores.py ENV...                     prints task,random,human,source
    python benchmarks/random_scores.py --study cpu-suite -o FILE  the tasks of a study, with its options, into FILE

Actions are uniform over the action space. Every environment plays its episodes to their end, so short ones do not count
more often than long ones. Environments are made as `eipo train` makes them, by the preset's options.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eipo import Config, make_config
from eipo.envs.make import make_batch
from eipo.errors import EipoError

NUM = 10  # environments


def random_scores(config: Config, episodes: int, seed: int) -> list[float]:
    """Raw scores of the first episodes of each of NUM environments; `episodes` in all, rounded up to whole tens."""
    each = -(-episodes // NUM)
    envs = make_batch(config.env, dataclasses.replace(config.envs, num=NUM))
    try:
        envs.reset(seed)
        envs.action_space.seed(seed)
        running, scores = np.zeros(NUM), [[] for _ in range(NUM)]  # type: tuple[np.ndarray, list[list[float]]]
        while min(map(len, scores)) < each:
            step = envs.step(np.stack([np.asarray(envs.action_space.sample()) for _ in range(NUM)]))
            running += step.score
            for i in np.flatnonzero(step.over):
                scores[i].append(float(running[i]))
                running[i] = 0.0
        return [score for mine in scores for score in mine[:each]]
    finally:
        envs.close()


def configs(envs: Sequence[str], study: str | None) -> list[tuple[str, Config]]:
    """(task, configuration) of each environment, or of each task of a study."""
    if study is None:
        return [(env, make_config(env, steps=10**9)) for env in envs]
    from eipo.study.plan import plan, read_study

    runs = plan(read_study(study), Path("unused"))
    return list({run.task: run.config for run in runs}.items())  # a task is the same for every method


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("env", nargs="*", help="ids of environments")
    p.add_argument("--study", help="a study of `eipo sweep`")
    p.add_argument("--episodes", type=int, default=100)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("-o", "--out", type=Path, help="file to write; else it is printed")
    args = p.parse_args()
    try:
        rows = ["task,random,human,source"]
        for task, config in configs(args.env, args.study):
            mean = float(np.mean(random_scores(config, args.episodes, args.seed)))
            rows.append(f"{task},{mean:.4g},,benchmarks/random_scores.py {args.episodes} episodes")
            print(rows[-1], file=sys.stderr, flush=True)
    except EipoError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    text = "\n".join(rows) + "\n"
    if args.out is None:
        print(text, end="")
    else:
        args.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
