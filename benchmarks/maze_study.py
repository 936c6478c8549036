"""The study behind results/maze.csv: six methods on the maze, five seeds each.

    python benchmarks/maze_study.py              train what is missing in runs/maze, then collect and draw
    python benchmarks/maze_study.py --collect    CSVs and figure from the runs that are finished
    python benchmarks/maze_study.py --draw       the figure from the CSVs alone

It can be stopped and started again: finished runs stay, half-finished ones are begun anew.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from eipo import Config, make_config
from eipo.errors import EipoError
from eipo.study.figures import BEST, METHODS, QUIET, STYLE, colour, draw_seeds, label_ends, limits, mark_best, millions
from eipo.study.groups import flatten
from eipo.study.runs import AGENT, CONFIG, RunData, read_run, read_runs

ENV = "eipo/Maze-v0"
ROOT = Path(__file__).resolve().parent.parent
BINS = 60
LAST = 0.05  # share of the iterations that the final return is the mean of
CURVES = ("method", "seed", "steps", "return", "return_E", "return_EI", "alpha")
FINAL = (
    "method", "seed", "steps", "final_return", "final_return_E", "final_return_EI", "best_return", "steps_per_second",
    "seconds", "commit",
)  # fmt: skip


def command(method: str, steps: int, seed: int, out: Path, settings: Sequence[str]) -> list[str]:
    """One run as a process of its own."""
    chosen = [word for setting in settings for word in ("--set", setting)]
    return [
        sys.executable, "-m", "eipo", "train", ENV, "--method", method, "--steps", str(steps), "--seed", str(seed),
        "--out", str(out), *chosen,
    ]  # fmt: skip


def is_done(run: Path, asked: Config) -> bool:
    """Finished as asked for. What is there but unfinished is removed; a finished run of something else is not."""
    if not run.exists():
        return False
    if all((run / name).is_file() for name in AGENT):
        wanted, found = flatten(json.loads(json.dumps(dataclasses.asdict(asked)))), flatten(read_run(run).config)
        other = [key for key in wanted | found if wanted.get(key) != found.get(key)]
        if other:
            raise EipoError(f"{run} was made with another {', '.join(other)}: choose another --out, or remove it")
        return True
    if any(run.iterdir()) and not (run / CONFIG).is_file():
        raise EipoError(f"{run} is in the way, and is not a run")
    shutil.rmtree(run)
    return False


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Two studies in one directory would remove each other's runs."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise EipoError(f"another study is writing to {out}") from e
        yield


def train(args: argparse.Namespace) -> int:
    """Train what is missing, `jobs` at a time; the number of runs that failed."""
    # Seeds are the outer loop, so that what is there after any time compares the methods evenly.
    todo = [(m, s, args.out / f"{m}-{s}") for s in args.seeds for m in args.methods]
    asked = {(m, s): make_config(ENV, method=m, steps=args.steps, seed=s, settings=args.set) for m, s, _ in todo}
    missing = [(m, s, run) for m, s, run in todo if not is_done(run, asked[m, s])]
    print(f"{len(todo)} runs, {len(todo) - len(missing)} of them finished before", flush=True)
    left, failed, ended = list(missing), 0, 0
    running: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
    try:
        while left or running:
            while left and len(running) < args.jobs:
                method, seed, run = left.pop(0)
                with open(run.with_suffix(".log"), "w") as log:
                    call = command(method, args.steps, seed, run, args.set)
                    running[run] = (subprocess.Popen(call, stdout=log, stderr=log, cwd=ROOT), time.monotonic())
            time.sleep(0.2)
            for run, (child, began) in list(running.items()):
                if child.poll() is not None:
                    del running[run]
                    ended += 1
                    failed += child.returncode != 0
                    line = outcome(run, child.returncode, time.monotonic() - began)
                    print(f"{ended}/{len(missing)} {line}", flush=True)
    finally:
        for child, _ in running.values():
            child.terminate()
        for child, _ in running.values():
            child.wait()
    return failed


def outcome(run: Path, code: int, seconds: float) -> str:
    """One plain line about a run that has ended."""
    if code != 0:
        return f"{run.name}: failed with exit code {code}, see {run.with_suffix('.log')}"
    row = final_row(read_run(run))
    return f"{run.name}: final return {row['final_return']}, {row['steps_per_second']} steps/s, {seconds / 60:.1f} min"


def collect(out: Path, results: Path) -> None:
    """results/maze.csv and maze_final.csv from the finished runs below `out`."""
    runs = [run for run in read_runs([out]) if run.finished and run.env == ENV]
    if not runs:
        raise EipoError(f"{out} holds no finished run of {ENV}")
    runs.sort(key=lambda run: (METHODS.index(run.method) if run.method in METHODS else 99, run.method, run.seed))
    results.mkdir(parents=True, exist_ok=True)
    write(results / "maze.csv", CURVES, [row for run in runs for row in curve_rows(run)])
    write(results / "maze_final.csv", FINAL, [final_row(run) for run in runs])
    print(f"{len(runs)} runs collected into {results / 'maze.csv'} and {results / 'maze_final.csv'}")


def curve_rows(run: RunData) -> list[dict[str, Any]]:
    """About 60 points: means over bins of equally many iterations (the first may have less), at their last steps."""
    steps, rows = run.column("steps"), []
    size = 2 * max(1, round(len(run) / BINS / 2))  # even: EIPO's policies often alternate, and shall weigh the same
    for part in np.split(np.arange(len(run)), range(len(run) % size or size, len(run), size)):
        alpha = run.column("alpha")[part]
        rows.append({
            "method": run.method, "seed": run.seed, "steps": int(steps[part[-1]]), **returns(run, part),
            "alpha": text(alpha[-1], 6),
        })  # fmt: skip
    return rows


def returns(run: RunData, part: np.ndarray) -> dict[str, str]:
    """Mean episode returns over some iterations: every episode's, and each policy's own."""
    episodes = run.column("episodes")[part]
    means = {}
    for name in ("return", "return_E", "return_EI"):
        value = run.column(name)[part]
        known = np.isfinite(value)
        means[name] = text(np.average(value[known], weights=episodes[known]) if known.any() else np.nan)
    return means


def final_row(run: RunData) -> dict[str, Any]:
    """A run in one line."""
    last = np.arange(len(run))[-max(1, round(LAST * len(run))) :]
    seconds = (np.diff(run.column("steps"), prepend=0.0) / run.column("steps_per_second")).sum()
    git = run.about.get("git") or {}
    score = run.column("return")
    return {
        "method": run.method, "seed": run.seed, "steps": int(run.column("steps")[-1]),
        **{f"final_{name}": value for name, value in returns(run, last).items()},
        "best_return": text(np.nanmax(score) if np.isfinite(score).any() else np.nan),
        "steps_per_second": round(run.column("steps")[-1] / seconds), "seconds": round(seconds),
        "commit": git.get("commit", "")[:10] + ("+changes" if git.get("dirty") else ""),
    }  # fmt: skip


def text(value: float, digits: int = 2) -> str:
    """Short, and empty where there is nothing."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if np.isfinite(value) else ""


def write(file: Path, names: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    with open(file, "w", newline="") as f:
        table = csv.DictWriter(f, names, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def read(file: Path) -> list[dict[str, str]]:
    try:
        with open(file, newline="") as f:
            return list(csv.DictReader(f))
    except OSError as e:
        raise EipoError(f"{file} cannot be read: {e.strerror}; `--collect` makes it from the runs") from e


def draw(results: Path) -> None:
    """results/maze.png and .svg from the CSVs alone."""
    points, finals = read(results / "maze.csv"), read(results / "maze_final.csv")
    known = {row["method"] for row in finals}
    methods = [m for m in METHODS if m in known] + sorted(known - set(METHODS))
    with matplotlib.style.context(STYLE):
        figure = Figure((10, 4.9), facecolor="white")
        FigureCanvasAgg(figure)
        left = figure.add_axes((0.072, 0.185, 0.5, 0.63))
        right = figure.add_axes((0.705, 0.185, 0.275, 0.63), sharey=left)
        figure.text(0.02, 0.95, f"{', '.join(methods)} on {ENV}", fontsize=15, fontweight="bold", va="center")
        draw_curves(left, points, methods)
        draw_finals(right, finals, methods)
        seeds = len({row["seed"] for row in finals})
        steps = max(int(row["steps"]) for row in finals)
        caption = (
            f"{steps / 1e6:.3g} M steps, {seeds} seeds. Left, thin lines: one seed each; thick: their mean; band: its "
            f"standard error. Right: mean of each run's last {100 * LAST:g} %; bar: mean of the seeds."
        )
        figure.text(0.02, 0.03, caption, color=QUIET, fontsize=8.5)
        figure.savefig(results / "maze.png", dpi=160)
        figure.savefig(results / "maze.svg", metadata={"Date": None})
    print(f"drawn: {results / 'maze.png'}")


def draw_curves(ax: Any, points: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
    scale, ends = millions(ax, max(float(row["steps"]) for row in points)), []
    for i, method in enumerate(reversed(methods)):
        rows = [row for row in points if row["method"] == method and row["return"]]
        curves = []
        for seed in sorted({row["seed"] for row in rows}):
            own = [(float(row["steps"]) * scale, float(row["return"])) for row in rows if row["seed"] == seed]
            x, y = np.array(own).T
            curves.append((x, y))
        wide = 2.8 if method == "eipo" else 2.0
        last = draw_seeds(ax, curves, colour(method), zorder=3 + i, linewidth=wide)
        if last is not None:
            ends.append((last, method, colour(method)))
    limits(ax, BEST[ENV])
    mark_best(ax, BEST[ENV])
    label_ends(ax, ends)
    ax.set_ylabel("return")
    ax.set_title("Task return of an episode, by the policy that acted", pad=9)


def draw_finals(ax: Any, finals: Sequence[dict[str, str]], methods: Sequence[str]) -> None:
    """Each seed's final return as a point, beside one another where they would hide each other."""
    for i, method in enumerate(methods):
        y = sorted(float(row["final_return"]) for row in finals if row["method"] == method and row["final_return"])
        x = i + (np.arange(len(y)) - (len(y) - 1) / 2) * 0.12
        ax.plot(x, y, "o", color=colour(method), ms=6, mec="white", mew=0.7, clip_on=False, zorder=4)
        if y:
            ax.plot([i - 0.34, i + 0.34], [np.mean(y)] * 2, color=colour(method), linewidth=1.6, alpha=0.6, zorder=3)
    ax.axhline(BEST[ENV], color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    ax.set_xticks(range(len(methods)), methods)
    for tick, method in zip(ax.get_xticklabels(), methods, strict=True):
        tick.set_color(colour(method))
        tick.set_fontweight("bold" if method == "eipo" else "normal")
    ax.set_xlim(-0.6, len(methods) - 0.4)
    ax.tick_params(axis="x", length=0, labelsize=10)
    ax.set_title("Final return of each seed", pad=9)


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=ROOT / "runs" / "maze", help="directory of the runs")
    p.add_argument("--methods", nargs="+", default=["eo", "rnd", "en", "dy", "dc", "eipo"], metavar="NAME")
    p.add_argument("--seeds", nargs="+", type=int, default=list(range(5)), metavar="N")
    p.add_argument("--steps", type=int, default=6_000_000, metavar="N", help="of each run")
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="runs at a time")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for eipo train; for all runs")
    p.add_argument("--results", type=Path, default=ROOT / "results", help="directory of the CSVs and the figure")
    p.add_argument("--collect", action="store_true", help="train nothing: CSVs and figure from the finished runs")
    p.add_argument("--draw", action="store_true", help="train nothing: the figure from the CSVs")
    args = p.parse_args()
    args.out = args.out.resolve()  # the runs' processes have another working directory
    args.set = ["compute.threads=1", "compute.shards=1", *args.set]  # so that --jobs runs share the machine fairly
    return args


def main() -> int:
    args = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the runs under way are ended too
    failed = 0
    try:
        if not (args.collect or args.draw):
            with alone(args.out):
                failed = train(args)
        if not args.draw:
            collect(args.out, args.results)
        draw(args.results)
    except EipoError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
