"""The study behind results/cpu_suite.csv: six methods on thirteen small tasks (src/eipo/study/ready/cpu-suite.toml).

    eipo sweep cpu-suite                         train what is missing in runs/cpu-suite; it can be stopped
    python benchmarks/cpu_suite.py --collect     results/cpu_suite.csv from the runs that are complete

Rows of the CSV whose runs are not there stay: the study can be filled in sittings on several machines.

A score is the paper's: the median of the last 100 training episodes. Beside it stands their mean.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from eipo.errors import EipoError
from eipo.study.episodes import last_episodes
from eipo.study.plan import Planned, chosen, plan, progress, read_study, refuse_another
from eipo.study.runs import RunData, read_run
from runner import with_former, write

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = (
    "task", "method", "seed", "steps", "score", "mean_return", "episodes", "best_return", "first_reward", "kl_E_EI",
    "bonus_share_EI", "seconds", "commit",
)  # fmt: skip
LAST = 0.1  # share of the iterations that kl_E_EI and bonus_share_EI are the means of
EPISODES = 100


def row(planned: Planned) -> dict[str, Any]:
    """A complete run in one line."""
    run = read_run(planned.out)
    last = last_episodes(planned.out, EPISODES).score
    git = run.about.get("git") or {}
    best, paid = run.column("return"), np.flatnonzero(run.column("reward") > 0)
    return {
        "task": planned.task, "method": planned.variant, "seed": run.seed, "steps": int(run.column("steps")[-1]),
        "score": text(np.median(last)) if len(last) else "", "mean_return": text(np.mean(last)) if len(last) else "",
        "episodes": len(last), "best_return": text(np.nanmax(best)) if np.isfinite(best).any() else "",
        "first_reward": int(run.column("steps")[paid[0]]) if len(paid) else "",
        "kl_E_EI": in_the_end(run, "kl_E_EI"), "bonus_share_EI": in_the_end(run, "bonus_share_EI"),
        "seconds": round(seconds(run)),
        "commit": git.get("commit", "")[:10] + ("+changes" if git.get("dirty") else ""),
    }  # fmt: skip


def seconds(run: RunData) -> float:
    """Of training, on the threads that the run had."""
    return float((np.diff(run.column("steps"), prepend=0.0) / run.column("steps_per_second")).sum())


def in_the_end(run: RunData, name: str) -> str:
    """The mean of a metric over the last iterations that have it; empty where the method has none."""
    values = run.column(name)[-max(1, round(LAST * len(run))) :]
    values = values[np.isfinite(values)]
    return text(values.mean()) if len(values) else ""


def text(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def collect(out: Path, file: Path, study: str = "cpu-suite") -> None:
    """The table of all runs that are complete, in the order of the study; seeds beyond the study's own count too."""
    asked = read_study(study)
    found = {int(p.name.rpartition("-")[2]) for p in out.glob("*/*-*") if p.name.rpartition("-")[2].isdecimal()}
    planned = plan(chosen(asked, [], [], sorted(found | set(asked.seeds))), out)
    done = [run for run in planned if progress(run) == 1.0]
    for run in done:
        refuse_another(run)
    rows = with_former(file, COLUMNS, COLUMNS[:3], [row(run) for run in done])
    if not rows:
        raise EipoError(f"{out} holds no complete run of {study}")
    budget = {t.name: plan(chosen(asked, [t.name], [], [0]), out)[0].config for t in asked.tasks}
    order = [t.name for t in asked.tasks], [v.name for v in asked.variants]
    for r in rows[len(done) :]:
        config = budget.get(r["task"])
        if config is None or r["method"] not in order[1]:
            raise EipoError(f"{file} has a row of {r['task']}, {r['method']}, which {study} has not: remove it")
        if int(r["steps"]) != config.iterations * config.steps_per_iteration:
            raise EipoError(f"{file}, {r['task']}, {r['method']}, seed {r['seed']}: made with another steps; remove it")
    rows.sort(key=lambda r: (order[0].index(r["task"]), order[1].index(r["method"]), int(r["seed"])))
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, COLUMNS, rows)
    kept = f", {len(rows) - len(done)} rows kept whose runs are not there" if len(rows) > len(done) else ""
    print(f"{len(done)} of {len(planned)} runs collected into {file}{kept}")


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--collect", action="store_true", required=True, help="write the CSV")
    p.add_argument("--out", type=Path, default=ROOT / "runs" / "cpu-suite", help="directory of the runs")
    p.add_argument("--results", type=Path, default=ROOT / "results", help="directory of the CSV")
    args = p.parse_args()
    try:
        collect(args.out, args.results / "cpu_suite.csv")
    except EipoError as e:
        print(f"error: {e}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
