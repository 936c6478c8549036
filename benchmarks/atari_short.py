"""Short runs on Atari: EO, EN and EIPO on four games, for so many minutes each.

    python benchmarks/atari_short.py --minutes 60 [--jobs 2] [--games Breakout Pong] [--methods eo en eipo]
    python benchmarks/atari_short.py --collect      makes results/atari_short.csv from what there is so far

They are short, and say so: an hour on two cores is a few million steps, the paper's runs are 49 million. The command
can be stopped and started again: it goes on where checkpoints are kept, and trains what its minutes are not full of.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import eipo
from eipo.envs.make import make_batch
from eipo.study.episodes import last_episodes

ROOT = Path(__file__).resolve().parent.parent
GAMES, METHODS = ("Breakout", "Pong", "MontezumaRevenge", "Venture"), ("eo", "en", "eipo")
LAST = 100  # episodes whose scores are given; as many of random play
FOREVER = 10**10  # steps: the clock ends a run
NEAR = 0.98  # share of the minutes that counts as all of them
COLUMNS = (
    "game", "method", "kind", "steps", "minutes", "episodes", "mean", "median", "mean_E", "mean_EI",
    "random_mean", "random_median",
)  # fmt: skip


def minutes(run: Path) -> float:
    """Spent in training, from the metrics that the run has written."""
    spent, before = 0.0, 0
    for m in metrics(run):
        spent += (m["steps"] - before) / m["steps_per_second"]
        before = m["steps"]
    return spent / 60.0


def metrics(run: Path) -> list[dict[str, Any]]:
    """One dictionary an iteration; what the last line has half of is left out."""
    file = run / "metrics.jsonl"
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def command(run: Path, game: str, method: str, threads: int) -> list[str]:
    """Begin a run, or go on with it where it keeps checkpoints."""
    start = [sys.executable, "-m", "eipo", "train"]
    if any((run / "checkpoints").glob("*")):
        return [*start, "--resume", str(run)]
    if run.exists():
        shutil.rmtree(run)
    return [
        *start, f"ALE/{game}-v5", "--method", method, "--preset", "atari-paper", "--steps", str(FOREVER),
        "--out", str(run), "--set", f"compute.threads={threads}",
    ]  # fmt: skip


def train(todo: list[tuple[str, str]], out: Path, limit: float, jobs: int, threads: int) -> int:
    """All runs, `jobs` at a time, each stopped when its minutes are over; how many failed."""
    left = [(game, method) for game, method in todo if minutes(out / f"{game}-{method}") < NEAR * limit]
    running: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
    failed = 0
    try:
        while left or running:
            while left and len(running) < jobs:
                game, method = left.pop(0)
                run = out / f"{game}-{method}"
                words, until = command(run, game, method, threads), time.monotonic() + 60.0 * (limit - minutes(run))
                with open(run.with_name(f"{run.name}.log"), "a") as log:
                    running[run] = (subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT), until)
            time.sleep(1.0)
            for run, (child, until) in list(running.items()):
                over = time.monotonic() > until
                if over:
                    child.send_signal(signal.SIGTERM)
                    child.wait()
                if child.poll() is not None:
                    del running[run]
                    failed += not over
                    print(
                        f"{run.name}: {minutes(run):.1f} minutes" + ("" if over else ", failed; see its log"),
                        flush=True,
                    )
    finally:
        for child, _ in running.values():
            child.terminate()
            child.wait()
    return failed


def random_scores(game: str, out: Path) -> list[float]:
    """The scores of as many games played at random, each environment's first."""
    file = out / f"{game}-random.json"
    if not file.is_file():
        config = eipo.make_config(f"ALE/{game}-v5", preset="atari-paper", steps=1, settings={"envs.num": LAST})
        envs = make_batch(config.env, config.envs)
        envs.reset(0)
        rng = np.random.default_rng(0)
        score, over = np.zeros(LAST), np.zeros(LAST, bool)
        while not over.all():
            step = envs.step(rng.integers(envs.action_space.n, size=LAST))
            score += step.score * ~over
            over |= step.over
        envs.close()
        file.write_text(json.dumps(score.tolist()))
    return json.loads(file.read_text())


def rows(todo: list[tuple[str, str]], out: Path) -> Iterator[dict[str, Any]]:
    for game, method in todo:
        run = out / f"{game}-{method}"
        done = metrics(run)
        if not done:
            continue
        every, chance = last_episodes(run, LAST).score, random_scores(game, out)
        own = {p: last_episodes(run, LAST, policy=p).score for p in ("E", "EI")}
        yield {
            "game": game, "method": method, "kind": "short", "steps": done[-1]["steps"],
            "minutes": f"{minutes(run):.1f}", "episodes": sum(m["episodes"] for m in done),
            "mean": said(np.mean, every), "median": said(np.median, every),
            **{f"mean_{p}": said(np.mean, scores) for p, scores in own.items()},
            "random_mean": said(np.mean, chance), "random_median": said(np.median, chance),
        }  # fmt: skip


def said(of: Any, scores: Any) -> str:
    return f"{of(scores):.4g}" if len(scores) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of training, each run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--threads", type=int, default=1, help="of each run")
    parser.add_argument("--games", nargs="+", default=GAMES)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--out", type=Path, default=ROOT / "runs" / "atari_short")
    parser.add_argument("--csv", type=Path, default=ROOT / "results" / "atari_short.csv")
    parser.add_argument("--collect", action="store_true", help="train nothing, collect what there is")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    todo = [(game, method) for game in args.games for method in args.methods]
    failed = 0 if args.collect else train(todo, args.out, args.minutes, args.jobs, args.threads)
    with open(args.csv, "w", newline="") as f:
        writer = csv.DictWriter(f, COLUMNS)
        writer.writeheader()
        writer.writerows(rows(todo, args.out))
    print(f"{args.csv}: {'short runs' if not failed else f'{failed} runs failed'}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
