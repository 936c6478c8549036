"""Speed beside installable peers, the machine's matrix product and the bound that it sets: one command, one table.

    python benchmarks/bench.py [--repeats 2] [--seconds 8] [--quick] [--fresh] [--csv results/bench.csv]

Sides alternate, each in a process of its own, and every figure is the best of its repeats: other work on the machine
can only slow a side down. What was measured is written down at once (runs/bench.csv), so the command can be stopped and
started again; --fresh begins anew. --quick: one repeat, short, without the growth with environments.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIDES = Path(__file__).with_name("bench_sides.py")
MACHINE = ["matrix bf16", "matrix fp32", "world atari", "world mujoco"]
WORK = [f"work {p} {m}" for p in ("atari-paper", "atari-ff") for m in ("eo", "eipo")]
GROWTH = [f"atari-paper eipo, {n} games x 64" for n in (8, 32, 128, 512)]
# (our side, the peer that it is held against, how many times as fast it is to be)
PAIRS = [
    ("atari-paper eo", "sb3-contrib RecurrentPPO", 14.0), ("atari-paper eipo", "sb3-contrib RecurrentPPO", 10.0),
    ("atari-ff eo", "sb3 PPO atari", 3.5), ("atari-ff eipo", "sb3 PPO atari", 2.5),
    ("mujoco eo", "sb3 PPO mujoco", None), ("mujoco eipo", "sb3 PPO mujoco", 2.0),
]  # fmt: skip
TRAINED = [
    "sb3-contrib RecurrentPPO", "atari-paper eo", "atari-paper eipo", "sb3 PPO atari", "atari-ff eo", "atari-ff eipo",
    "sb3 PPO mujoco", "mujoco eo", "mujoco eipo",
]  # fmt: skip
LIMIT = 240.0  # seconds that a side may take
Figures = dict[str, float]


def measure(side: str, seconds: float) -> Figures | None:
    """One side in a process of its own; None where it failed or took too long, which is said."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, str(SIDES), side, "--seconds", str(seconds)],
            capture_output=True, text=True, timeout=LIMIT, cwd=ROOT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{side}: more than {LIMIT:g} s, left out", flush=True)
        return None
    if done.returncode != 0:
        print(f"{side}: failed: {done.stderr.strip().splitlines()[-1]}", flush=True)
        return None
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    said = ", ".join(f"{name} {value:,.4g}" for name, value in figures.items())
    print(f"{side}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    return figures


def measured(file: Path) -> dict[tuple[str, int], Figures]:
    """What an earlier call wrote down."""
    if not file.is_file():
        return {}
    with open(file, newline="") as f:
        return {(row["side"], int(row["repeat"])): json.loads(row["figures"]) for row in csv.DictReader(f)}


def measure_all(sides: list[tuple[str, int]], seconds: float, raw: Path) -> dict[str, Figures]:
    """All sides that are not yet measured; of each the best figures."""
    known = measured(raw)
    raw.parent.mkdir(parents=True, exist_ok=True)
    new = not raw.is_file()
    with open(raw, "a", newline="") as f:
        writer = csv.writer(f)
        if new:
            writer.writerow(["side", "repeat", "figures"])
        for side, repeat in sides:
            if (side, repeat) in known:
                continue
            figures = measure(side, seconds)
            if figures is not None:
                known[side, repeat] = figures
                writer.writerow([side, repeat, json.dumps(figures)])
                f.flush()
    best: dict[str, Figures] = {}
    for (side, _), figures in known.items():
        speed = "flops_per_second" if "flops_per_second" in figures else "steps_per_second"
        if side not in best or figures.get(speed, 0.0) > best[side].get(speed, 0.0):
            best[side] = figures
    return best


def table(best: dict[str, Figures]) -> list[dict[str, str]]:
    """One row a side; what could not be measured is empty."""
    speed = {side: figures["steps_per_second"] for side, figures in best.items() if "steps_per_second" in figures}
    peak = best.get("matrix bf16", {}).get("flops_per_second")
    against = {mine: (peer, wanted) for mine, peer, wanted in PAIRS}
    rows = []
    for side in [*MACHINE, *TRAINED, *GROWTH]:
        if side not in best:
            continue
        row = dict.fromkeys(COLUMNS, "") | {"side": side, "peak_mb": f"{best[side]['peak_mb']:.0f}"}
        if side in speed:
            row["steps_per_second"] = f"{speed[side]:.0f}"
        if "flops_per_second" in best[side]:
            row["gflops_per_second"] = f"{best[side]['flops_per_second'] / 1e9:.0f}"
        peer, wanted = against.get(side, ("", None))
        if side in speed and peer in speed:
            row |= {
                "peer": peer,
                "times": f"{speed[side] / speed[peer]:.1f}",
                "wanted": f"{wanted:g}" if wanted else "",
            }
        work = best.get(f"work {side}", {}).get("flops_per_step")
        if side in speed and work and peak:
            row |= {"mflop_per_step": f"{work / 1e6:.0f}", "of_matrix": f"{work * speed[side] / peak:.3f}"}
            if "world atari" in speed:
                bound = 1.0 / (work / peak + 1.0 / speed["world atari"])
                row |= {"bound": f"{bound:.0f}", "of_bound": f"{speed[side] / bound:.3f}"}
        if "acting_share" in best[side]:
            row["acting_share"] = f"{best[side]['acting_share']:.2f}"
        rows.append(row)
    return rows


COLUMNS = (
    "side", "steps_per_second", "gflops_per_second", "peer", "times", "wanted", "mflop_per_step", "of_matrix", "bound",
    "of_bound", "acting_share", "peak_mb",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, at least")
    parser.add_argument("--quick", action="store_true", help="one repeat of a second each, without the growth")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--raw", type=Path, default=ROOT / "runs" / "bench.csv", help="what was measured so far")
    parser.add_argument("--csv", type=Path, help="also write the table there")
    args = parser.parse_args()
    if args.fresh:
        args.raw.unlink(missing_ok=True)
    repeats, seconds = (1, 1.0) if args.quick else (args.repeats, args.seconds)
    sides = [(side, 0) for side in WORK]
    sides += [(side, repeat) for repeat in range(repeats) for side in [*MACHINE, *TRAINED]]
    sides += [] if args.quick else [(side, 0) for side in GROWTH]
    rows = table(measure_all(sides, seconds, args.raw))
    wide = {name: max(len(name), *(len(row[name]) for row in rows)) for name in COLUMNS}
    for row in [dict(zip(COLUMNS, COLUMNS, strict=True)), *rows]:
        print("  ".join(row[name].ljust(wide[name]) for name in COLUMNS).rstrip())
    if args.csv is not None:
        with open(args.csv, "w", newline="") as f:
            writer = csv.DictWriter(f, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
