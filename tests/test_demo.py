"""The demo, end to end, with tiny networks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TINY = ["envs.num=8", "envs.steps=50", "ppo.epochs=1", "net.dense=8", "net.width=8", "bonus.features=8"]


def start(where: Path, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "eipo", "demo", *args],
        cwd=where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def nobody_is_left(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_three_runs_and_a_picture(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine").write_text("kept")
    process = start(tmp_path, "--steps", "2000", "--seed", "7", "--set", *TINY)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert err.startswith("EIPO, EN and EO on eipo/Maze-v0, 2.00k steps each, side by side; kept in demo-2\n")
    for name in ("eipo", "en", "eo"):
        assert len((tmp_path / "demo-2" / name / "metrics.jsonl").read_text().splitlines()) == 5
        assert any(line.startswith(name.upper()) and "100%" in line for line in err.splitlines())
    picture = tmp_path / out.splitlines()[-1].removeprefix("report: ")
    assert picture.suffix == ".png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in (tmp_path / "demo").iterdir()] == ["mine"]
    assert nobody_is_left(process.pid)


def test_one_run_that_fails_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    process = start(tmp_path, "--steps", "1e8", "--set", *TINY, "envs.options.observation=smell")
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("eipo: error: the run demo/")
    assert "smell" in last
    assert nobody_is_left(process.pid)
    assert list(tmp_path.iterdir()) == []


def test_a_demo_that_is_stopped_stops_its_runs(tmp_path: Path) -> None:
    process = start(tmp_path, "--steps", "1e8", "--set", *TINY)
    began = time.monotonic()
    while not list(tmp_path.glob("demo/*/metrics.jsonl")):
        assert time.monotonic() - began < 300
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # to the demo alone; Ctrl-C reaches the runs by itself
    _, err = process.communicate(timeout=300)
    assert process.returncode == 143
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "eipo: stopped; demo keeps what the runs have written"
    assert nobody_is_left(process.pid)
