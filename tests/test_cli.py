"""The command line, as a user meets it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import eipo
from eipo import cli, display
from eipo.errors import EipoError

EIPO = [sys.executable, "-m", "eipo"]
SMALL = ["--set", "envs.num=4", "envs.steps=16", "--set", "ppo.epochs=1", "compute.threads=1", "net.dense=8"]


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_train_says_where_the_run_is_and_what_comes_next(capsys: pytest.CaptureFixture[str]) -> None:
    for again in ("", "-2"):
        assert cli.main(["train", "CartPole-v1", "--steps", "6_40", "--method", "en", "--seed", "3", *SMALL]) == 0
        out, err = capsys.readouterr()
        run = Path(f"runs/CartPole-v1-en-3{again}")
        assert re.fullmatch(
            rf"{run}: 640 steps in 0:\d\d; return over the last 10 iterations: EI \d+(\.\d+)?\n"
            rf"next: eipo report {run} -o report\n",
            out,
        )
        first, *_, last = err.splitlines()
        assert first == (f"en on CartPole-v1, preset classic, seed 3: 10 iterations of 64 steps, kept in {run}")
        assert re.fullmatch(r"en 100%  640 of 640 steps  return EI [\d.]+  [\d.]+k steps/s  took 0:\d\d", last)
        assert len((run / "metrics.jsonl").read_text().splitlines()) == 10
        config = json.loads((run / "config.json").read_text())["config"]
        assert (config["steps"], config["envs"]["num"], config["ppo"]["epochs"]) == (640, 4, 1)
        assert eipo.load(run).policies == ("EI",)


def test_help_names_every_option_and_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    out = capsys.readouterr().out
    assert all(f" {name} " in out for name in cli.COMMANDS)
    assert cli.main(["train", "--help"]) == 0
    out = capsys.readouterr().out
    for word in ("ENV", "--steps", "--method", "--seed", "--out", "--preset", "--set", "eo, rnd, en, dy, dc, eipo"):
        assert word in out
    for key in eipo.config.settings():  # type: ignore[attr-defined]
        assert key in out
    for command in ("report", "demo", "list"):
        assert cli.main([command, "--help"]) == 0
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f"eipo {eipo.__version__}\n")


def test_list_shows_all_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    for name in (*eipo.METHODS, *eipo.PRESETS, *eipo.config.BONUSES, *cli.listing.OWN_ENVS):  # type: ignore[attr-defined]
        assert f"\n  {name}" in out
    assert set(cli.listing.OWN_ENVS) == {name for name in gym.registry if name.startswith("eipo/")}
    assert cli.main(["list", "settings"]) == 0
    assert "  ppo.lr " in capsys.readouterr().out


@pytest.mark.parametrize("args", [["--help"], ["list"], ["list", "settings"], ["train", "--help"], ["train", "X"]])
def test_what_does_not_train_does_not_load_torch(args: list[str]) -> None:
    code = f"import sys; from eipo.cli import main; main({args!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_an_environment_of_your_own_beside_which_the_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_world.py").write_text(
        "import gymnasium as gym\n"
        "gym.register('My-v0', entry_point='gymnasium.envs.classic_control:CartPoleEnv', max_episode_steps=20)\n"
    )
    try:
        assert cli.main(["train", "my_world:My-v0", "--steps", "128", "--method", "eo", *SMALL]) == 0
    finally:
        gym.registry.pop("My-v0", None)
        sys.path.remove("")
    assert Path("runs/my_world-My-v0-eo-0/agent.json").is_file()


@pytest.mark.parametrize(
    ("text", "number"),
    [("4000000", 4_000_000), ("4_000_000", 4_000_000), ("4e6", 4_000_000), ("1.5e3", 1500), ("0", 0), ("2E+2", 200)],
)
def test_whole_numbers(text: str, number: int) -> None:
    assert cli.words.whole(text) == number


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, 10**17), st.integers(0, 12))
def test_whole_numbers_are_exact(digits: int, exponent: int) -> None:
    assert cli.words.whole(f"{digits}e{exponent}") == digits * 10**exponent


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e-3", "1.55e1", "inf", "nan", "0x10", "1e", "e6", "1e999"])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(EipoError, match="not a whole number"):
        cli.words.whole(text)


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with cli.one_line_warnings():
        warnings.warn("\x1b[33mWARN: old\x1b[0m", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "eipo: warning: old\n"


def start(args: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([*EIPO, *args], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


LONG = ["train", "CartPole-v1", "--steps", "1e8", "--method", "eo", "--out", "run", *SMALL]


def wait_for(path: Path) -> None:
    began = time.monotonic()
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() - began < 300
        time.sleep(0.05)


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_stopped_says_what_is_kept(sign: signal.Signals, code: int) -> None:
    process = start(LONG)
    wait_for(Path("run/metrics.jsonl"))
    process.send_signal(sign)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in err
    done = len(Path("run/metrics.jsonl").read_text().splitlines())
    assert err.splitlines()[-1] == (
        f"eipo: stopped; run keeps a checkpoint of iteration {done}; to go on: eipo train --resume run"
    )


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    process = subprocess.Popen([*EIPO, "list", "settings"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(read)
    os.close(write)
    assert process.communicate(timeout=300)[1] == ""
    assert process.returncode == 141


def test_a_run_goes_on_when_nobody_reads_its_progress() -> None:
    process = start(["train", "CartPole-v1", "--steps", "640", "--method", "eo", "--out", "run", *SMALL])
    assert process.stderr is not None
    process.stderr.close()
    assert process.wait(300) == 0
    assert Path("run/agent.json").is_file()


def test_a_terminal_sees_one_live_line() -> None:
    main, side = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    args = ["train", "CartPole-v1", "--steps", "1280", "--method", "eipo", "--out", "run", *SMALL]
    process = subprocess.Popen([*EIPO, *args], stderr=side, stdout=subprocess.DEVNULL, env=env)
    os.close(side)
    shown = b""
    try:
        while part := os.read(main, 4096):
            shown += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(main)
    assert process.wait(300) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    lines = [line for line in re.split(r"[\r\n]+", text) if line]
    assert lines[0].startswith("eipo on CartPole-v1")
    assert all("%" in line and len(line) <= 80 - 3 for line in lines[1:])
    assert "100%" in lines[-1]
    assert "alpha" in lines[-1]
    assert shown.count(b"\n") == 2  # of the first line, and at the end: the live one stays where it is
    assert "\x1b[?25h" in shown.decode()  # the cursor is back


@settings(deadline=None)  # the machine may be busy
@given(
    st.integers(1, 200), st.floats(-1e5, 1e5), st.floats(0, 99), st.integers(1, 10**6), st.integers(1, 10**9),
    st.sampled_from(["all", "E", "none"]),
)  # fmt: skip
def test_the_line_fits_into_any_terminal(
    width: int, value: float, alpha: float, iterations: int, size: int, which: str
) -> None:
    progress = display.Progress(iterations, iterations * size)
    progress.began -= 12345.0
    console = Console(width=width, color_system=None)
    metrics = {
        "iteration": (iterations + 1) // 2, "steps": (iterations + 1) // 2 * size, "steps_per_second": 123456.0,
        "return_E": None if which == "none" else value, "return_EI": value if which == "all" else None,
        "return_mixed": None, "alpha": alpha, "stage": "max",
    }  # fmt: skip
    for known in (False, True):
        if known:
            progress.update(metrics)
        with console.capture() as shown:
            console.print(progress.line(console.width - display.FREE))
        assert shown.get().count("\n") == 1
        assert len(shown.get()) - 1 <= width


def test_eighty_columns_have_room_for_all() -> None:
    progress = display.Progress(125, 4_000_000)
    progress.update(
        {"iteration": 52, "steps": 1_664_000, "steps_per_second": 23123.0, "return_E": 212.3, "return_EI": 198.4,
         "return_mixed": 150.2, "alpha": 0.43212, "stage": "max"}
    )  # fmt: skip
    progress.began -= 72.0
    console = Console(width=80, color_system=None)
    with console.capture() as shown:
        console.print(progress.line(76))
    for fact in ("42%", "1.66M/4.00M", "E 212.3", "EI 198.4", "alpha 0.432", "max", "23.1k/s", "ETA 1:41"):
        assert fact in shown.get()


def test_numbers_for_people() -> None:
    assert [display.count(n) for n in (0, 999, 1000, 99_940, 1_680_000, 123_456_789, 2e9)] == [
        "0", "999", "1.00k", "99.9k", "1.68M", "123M", "2.00G",
    ]  # fmt: skip
    assert [display.duration(s) for s in (0.4, 59.6, 103, 3725)] == ["0:00", "1:00", "1:43", "1:02:05"]
