"""Studies: many runs as processes of their own, what is finished kept, CSVs collected from them. Shared by *_study.py.

A study can be stopped and started again: finished runs stay, half-finished ones are begun anew. It can be filled in
sittings on several machines: a row of the CSV whose run is not there is kept.
"""

from __future__ import annotations

import argparse
import csv
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eipo import Config, make_config
from eipo.errors import EipoError
from eipo.study.plan import Planned, progress, refuse_another
from eipo.study.runs import RunData, read_run

ROOT = Path(__file__).resolve().parent.parent
SHARE = ("compute.threads=1", "compute.shards=1")  # so that runs share the machine fairly
LAST = 0.05  # share of the iterations that the final return is the mean of
FINAL = (
    "method", "seed", "steps", "final_return", "final_return_E", "final_return_EI", "best_return", "steps_per_second",
    "seconds", "commit",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One run of a study."""

    run: Path
    env: str
    method: str
    seed: int
    steps: int
    settings: Sequence[str]

    def config(self) -> Config:
        return make_config(self.env, method=self.method, steps=self.steps, seed=self.seed, settings=self.settings)

    def command(self) -> list[str]:
        """The run as a process of its own."""
        chosen = [word for setting in self.settings for word in ("--set", setting)]
        return [
            sys.executable, "-m", "eipo", "train", self.env, "--method", self.method, "--steps", str(self.steps),
            "--seed", str(self.seed), "--out", str(self.run), *chosen,
        ]  # fmt: skip


def is_done(run: Path, asked: Config) -> bool:
    """Finished as asked for, as `eipo sweep` sees it. What is there but unfinished is removed."""
    planned = Planned("", asked.method_name, asked, run)
    refuse_another(planned)
    if progress(planned) == 1.0:
        return True
    if run.exists():
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


def train(todo: Sequence[Job], at_a_time: int) -> int:
    """Train what is missing, in this order; the number of runs that failed."""
    missing = [job for job in todo if not is_done(job.run, job.config())]
    print(f"{len(todo)} runs, {len(todo) - len(missing)} of them finished before", flush=True)
    left, failed, ended = list(missing), 0, 0
    running: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
    try:
        while left or running:
            while left and len(running) < at_a_time:
                job = left.pop(0)
                with open(job.run.with_name(f"{job.run.name}.log"), "w") as log:
                    child = subprocess.Popen(job.command(), stdout=log, stderr=log, cwd=ROOT)
                    running[job.run] = (child, time.monotonic())
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
        return f"{run.name}: failed with exit code {code}, see {run.with_name(f'{run.name}.log')}"
    row = final_row(read_run(run))
    return f"{run.name}: final return {row['final_return']}, {row['steps_per_second']} steps/s, {seconds / 60:.1f} min"


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


def with_former(file: Path, names: Sequence[str], key: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[Any]:
    """`rows`, then those that a table has of runs that are not among them: of another sitting, on another machine."""
    former = read(file) if file.exists() else []
    if former and list(former[0]) != list(names):
        raise EipoError(f"{file} has other columns than {','.join(names)}: move it, and collect again")
    there = {tuple(str(row[k]) for k in key) for row in rows}
    return [*rows, *(row for row in former if tuple(row[k] for k in key) not in there)]


def not_recorded(todo: Sequence[Job], file: Path, key: Callable[[Job], dict[str, str]]) -> list[Job]:
    """The jobs of which a table has no row of as many steps."""
    rows = read(file) if file.exists() else []
    left = []
    for job in todo:
        config = job.config()
        sought = key(job) | {"steps": str(config.iterations * config.steps_per_iteration)}
        if not any(sought.items() <= row.items() for row in rows):
            left.append(job)
    skipped = [job.run.name for job in todo if job not in left]
    if skipped:
        print(f"{len(skipped)} runs skipped, in {file}: {', '.join(skipped)}", flush=True)
    return left


def parser(about: str | None, out: str) -> argparse.ArgumentParser:
    """The options that every study has."""
    p = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=ROOT / "runs" / out, help="directory of the runs")
    p.add_argument("--steps", type=int, default=6_000_000, metavar="N", help="of each run")
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="runs at a time")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as for eipo train; for all runs")
    p.add_argument("--results", type=Path, default=ROOT / "results", help="directory of the CSVs and the figure")
    p.add_argument("--collect", action="store_true", help="train nothing: CSVs and figure from the finished runs")
    p.add_argument("--draw", action="store_true", help="train nothing: the figure from the CSVs")
    return p


def main(
    args: argparse.Namespace,
    jobs: Callable[[argparse.Namespace], Sequence[Job]],
    collect: Callable[[Path, Path], None],
    draw: Callable[[Path], None],
) -> int:
    """Train, collect and draw, or what of it was asked for; an exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the runs under way are ended too
    args.out = args.out.resolve()  # the runs' processes have another working directory
    args.set = [*SHARE, *args.set]
    failed = 0
    try:
        if not (args.collect or args.draw):
            with alone(args.out):
                failed = train(jobs(args), args.jobs)
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
