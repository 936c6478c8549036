"""The command line: `eipo train`, `list`, `report`, `demo`. Only a command that needs torch imports it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import os
import re
import signal
import sys
import textwrap
import time
import typing
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, UseAppendAction, arg, subcommand
from tyro.constructors import PrimitiveConstructorSpec

from . import __version__
from .config import BONUSES, Config, settings
from .demo import DEMO_STEPS
from .display import count, duration
from .errors import EipoError, unknown
from .presets import METHODS, PRESETS, Preset

OWN_ENVS = ("eipo/Maze-v0", "eipo/AlignedMaze-v0")
LAST = 10  # iterations whose mean return is shown at the end


def whole(text: str) -> int:
    """An exact whole number: 4000000, 4_000_000 or 4e6."""
    plain = text.replace("_", "")
    try:
        return int(plain)
    except ValueError:
        pass
    # Not through float, which would round what does not fit into its 53 bits.
    parts = re.fullmatch(r"\+?(\d+)(?:\.(\d*))?[eE]\+?(\d{1,2})", plain)
    if parts:
        digits, fraction, exponent = parts[1], (parts[2] or "").rstrip("0"), int(parts[3])
        if len(fraction) <= exponent:
            return int(digits + fraction) * 10 ** (exponent - len(fraction))
    raise EipoError(f"{text!r} is not a whole number; write it as 4000000, 4_000_000 or 4e6")


Whole = Annotated[
    int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="N",
        instance_from_str=lambda given: whole(given[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]


@dataclass(frozen=True)
class Train:
    """Train an agent and keep the run in a directory."""

    env: Positional[Annotated[str, arg(metavar="ENV", help="id of the environment; `eipo list` shows which")]]
    steps: Annotated[Whole, arg(help="environment steps to train for, as 4000000, 4_000_000 or 4e6")]
    method: Annotated[str, arg(metavar="NAME", help=f"one of {', '.join(METHODS)}")] = "eipo"
    seed: Annotated[Whole, arg(help="seed of every generator of the run")] = 0
    out: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="directory of the run; must not hold anything yet",
            help_behavior_hint="(default: runs/ENV-METHOD-SEED)",
        ),
    ] = None
    preset: Annotated[
        str | None,
        arg(
            metavar="NAME",
            help=f"networks, optimization and sizes: one of {', '.join(PRESETS)}",
            help_behavior_hint="(default: the environment's own)",
        ),
    ] = None
    set: UseAppendAction[
        Annotated[
            tuple[tuple[str, ...], ...],
            arg(metavar="KEY=VALUE...", help="change single settings; the list below shows all", help_behavior_hint=""),
        ]
    ] = ()

    def __call__(self) -> None:
        out = self.out if self.out is not None else free(Path("runs") / _run_name(self.env, self.method, self.seed))
        refuse_unusable(out)
        if ":" in self.env and "" not in sys.path:
            sys.path.append("")  # a user's own module:Name-v0, beside which the command runs
        from .config import check
        from .presets import make_config

        config = make_config(
            self.env, method=self.method, preset=self.preset, steps=self.steps, seed=self.seed,
            settings=[pair for group in self.set for pair in group],
        )  # fmt: skip
        check(config)  # before torch is loaded, which takes seconds
        from .training import train_config

        began = time.monotonic()
        try:
            with writing(out):
                run = train_config(config, out, progress=True)
        except KeyboardInterrupt as stop:
            raise Stopped(stop, kept(out, config)) from None
        took = f"{count(run.metrics[-1]['steps'])} steps in {duration(time.monotonic() - began)}"
        print(f"{out}: {took}; {last_returns(run.metrics)}")
        print(f"next: eipo report {out} -o report")


@dataclass(frozen=True)
class List:
    """Show methods, bonuses, presets and environments, or all settings."""

    what: Positional[
        Annotated[Literal["all", "settings"], arg(help="settings: every key of --set with type, default and help")]
    ] = "all"

    def __call__(self) -> None:
        print(settings_text() if self.what == "settings" else names_text())


@dataclass(frozen=True)
class Report:
    """Draw runs side by side: learning curves, alpha, where each agent has been."""

    runs: Positional[
        Annotated[
            tuple[Path, ...],
            arg(metavar="RUN_OR_DIR...", help="runs, or directories that hold runs", help_behavior_hint=""),
        ]
    ] = ()
    out: Annotated[Path, arg(aliases=["-o"], metavar="DIR", help="directory to write the report to")] = Path("report")

    def __call__(self) -> None:
        if not self.runs:
            raise EipoError("name at least one run, or a directory that holds runs: eipo report RUN_OR_DIR... -o DIR")
        from .study.report import report

        with writing(self.out):
            picture = report(self.runs, self.out)
        print(f"report: {picture}")


@dataclass(frozen=True)
class Demo:
    """Train EIPO, EN and EO on the maze side by side, and draw the report."""

    out: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="directory of the runs and the report; must not hold anything yet",
            help_behavior_hint="(default: demo, or demo-2, ... where there is one already)",
        ),
    ] = None
    steps: Annotated[Whole, arg(help="environment steps of each run")] = DEMO_STEPS
    seed: Annotated[Whole, arg(help="seed of the runs")] = 0
    set: UseAppendAction[
        Annotated[
            tuple[tuple[str, ...], ...],
            arg(metavar="KEY=VALUE...", help="change settings of all; see `eipo list settings`", help_behavior_hint=""),
        ]
    ] = ()

    def __call__(self) -> None:
        from .demo import demo

        out = self.out if self.out is not None else free(Path("demo"))
        refuse_unusable(out)
        try:
            with writing(out):
                picture = demo(out, self.steps, self.seed, [pair for group in self.set for pair in group])
        except KeyboardInterrupt as stop:
            left = f"{out} keeps what the runs have written" if out.exists() else "nothing is kept"
            raise Stopped(stop, f"stopped; {left}") from None
        print(f"report: {picture}")


COMMANDS: dict[str, type] = {"train": Train, "list": List, "report": Report, "demo": Demo}
Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[List, subcommand("list")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Demo, subcommand("demo")]
)
DESCRIPTION = "Reinforcement learning with a second reward whose weight needs no tuning. `eipo --version`: the version."


class Stopped(BaseException):
    """The run was stopped from outside; says what is kept."""

    def __init__(self, stop: KeyboardInterrupt, message: str) -> None:
        super().__init__(message)
        self.code = exit_code(stop)


class Terminated(KeyboardInterrupt):
    """SIGTERM, taken as Ctrl-C is."""


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 + signal, as shells have it."""
    return 128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 2 for what the caller can mend, with one line on stderr."""
    try:
        with terminable(), one_line_warnings():
            code = run(list(sys.argv[1:] if argv is None else argv))
            sys.stdout.flush()
            return code
    except EipoError as e:
        return say(f"error: {e}", 2)
    except BrokenPipeError:
        # Nobody reads on (`eipo list | head`). What is still buffered must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except Stopped as e:
        return say(str(e), e.code)
    except KeyboardInterrupt as e:
        return say("interrupted", exit_code(e))


def run(argv: list[str]) -> int:
    """Parse and do."""
    if argv == ["--version"]:
        print(f"eipo {__version__}")
        return 0
    try:
        command = parse(argv or ["--help"])
    except SystemExit as e:  # help was asked for, and shown
        if argv[:1] == ["train"]:
            print("\n" + settings_text())
        return int(e.code or 0)
    command()
    return 0


def parse(argv: list[str]) -> Any:
    """The command with its options. tyro's boxes become one line."""
    if not argv[0].startswith("-"):
        if argv[0] not in COMMANDS:
            raise unknown("command", argv[0], COMMANDS)
        options = [f"--{f.name}" for f in dataclasses.fields(COMMANDS[argv[0]])] + ["--help"]
        for given in argv[1:]:
            name = given.partition("=")[0]
            if name.startswith("--") and not name.startswith("--tyro-") and name not in options:
                raise unknown("option", name, options)
    box = io.StringIO()
    try:
        with contextlib.redirect_stderr(box):
            return tyro.cli(Command, prog="eipo", description=DESCRIPTION, args=argv)
    except SystemExit as e:
        if not e.code:
            raise
        program = "eipo " + argv[0] if argv[0] in COMMANDS else "eipo"
        raise EipoError(f"{unboxed(box.getvalue())} (see {program} --help)") from None


def unboxed(box: str) -> str:
    """The sentence in a box that tyro draws: what stands above its rule, without the options' help texts."""
    body = [line[2:].rstrip(" │") for line in box.splitlines()[1:]]
    rule = re.compile("[─-]+╯?")
    if body and rule.fullmatch(body[0]):  # where the terminal has no UTF-8, one stands under the title as well
        body = body[1:]
    above = itertools.takewhile(lambda line: not rule.fullmatch(line), body)
    return " ".join(" ".join(line for line in above if not line.startswith(8 * " ")).split()).rstrip(".")


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """What the system says of files becomes one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        raise EipoError(f"{e.filename or out}: {e.strerror or e}") from e


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: files closed, terminal clean."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: whoever called from Python keeps the signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Warnings as one line each, without the source line."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        # Gymnasium colours its warnings by itself.
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(message)).replace("WARN: ", "")
        say(f"warning: {text}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore", DeprecationWarning)
        warnings.showwarning = show
        yield


def say(text: str, code: int = 0) -> int:
    """One line on stderr."""
    with contextlib.suppress(OSError):
        print("eipo: " + " ".join(text.split()), file=sys.stderr, flush=True)
    return code


def free(wish: Path) -> Path:
    """`wish`, or wish-2, wish-3, ... where there is something already."""
    found, n = wish, 1
    while found.exists() or found.is_symlink():
        n += 1
        found = wish.with_name(f"{wish.name}-{n}")
    return found


def refuse_unusable(out: Path) -> None:
    """Refuse a directory that cannot take a run, before anything is made."""
    try:
        if out.is_symlink() or out.exists():
            if not out.is_dir():
                raise EipoError(f"{out} is a file: choose a directory")
            if any(out.iterdir()):
                raise EipoError(f"{out} is not empty: choose another directory, or remove it first")
        above = next(p for p in (out, *out.absolute().parents) if p.exists())
    except OSError as e:
        raise EipoError(f"{out}: {e.strerror}") from e
    if not above.is_dir():
        raise EipoError(f"{out}: {above} is a file, not a directory")
    if not os.access(above, os.W_OK | os.X_OK):
        raise EipoError(f"{out}: no permission to write in {above}")


def _run_name(env: str, method: str, seed: int) -> str:
    return re.sub(r"[^\w.-]+", "-", f"{env.removeprefix('eipo/')}-{method}-{seed}")


def last_returns(metrics: list[dict[str, Any]]) -> str:
    """The mean return of each policy over the last iterations in which an episode of it ended."""
    parts = []
    for policy in ("E", "EI", "mixed"):
        values = [m[f"return_{policy}"] for m in metrics[-LAST:] if m[f"return_{policy}"] is not None]
        if values:
            parts.append(f"{policy} {sum(values) / len(values):.4g}")
    if not parts:
        return "no episode ended"
    return f"return over the last {min(LAST, len(metrics))} iterations: {', '.join(parts)}"


def kept(out: Path, config: Config) -> str:
    """What a run that was stopped leaves behind."""
    try:
        with open(out / "metrics.jsonl") as lines:
            done = sum(1 for _ in lines)
    except OSError:
        return "stopped before the first iteration; nothing is kept"
    return (
        f"stopped after {done} of {config.iterations} iterations; "
        f"{out} keeps the configuration and the metrics so far, but no agent"
    )


def names_text() -> str:
    """What there is to choose from."""
    default_for = {name: ", ".join(p.for_envs) or None for name, p in PRESETS.items()}
    presets = [
        (name, p.doc + (f" (default for {default_for[name]})" if default_for[name] else ""))
        for name, p in PRESETS.items()
    ]
    return "\n\n".join(
        [
            _table("methods (--method)", [(name, m.doc) for name, m in METHODS.items()]),
            _table("bonuses (--set bonus.name=...)", list(BONUSES.items())),
            _table("presets (--preset)", presets),
            _table(
                "environments (ENV)",
                [(name, "") for name in OWN_ENVS]
                + [
                    ("any Gymnasium id", "as CartPole-v1, with a discrete action space; its package must be installed"),
                    ("module:Name-v0", "imports `module` first, which registers your own environment"),
                ],
            ),
            "settings (--set): see `eipo list settings`",
        ]
    )


def settings_text() -> str:
    """Every key of --set, from the typed configuration."""
    defaults = Config(env="", steps=0)
    rows = []
    for key, (kind, doc) in settings().items():
        section, name = key.split(".")
        value = getattr(getattr(defaults, section), name)
        others = [f"{n}: {_text(v)}" for n, v in _elsewhere(section, name) if v != value]
        default = f"default {_text(value)}" + (f" ({', '.join(others)})" if others else "")
        rows.append((key, f"{doc}. {_kind(kind)}; {default}"))
    return _table("settings (--set KEY=VALUE); defaults, and where a preset or method has another", rows)


def _elsewhere(section: str, name: str) -> Iterator[tuple[str, Any]]:
    """The value of a setting in each method or preset that has a say in it."""
    if section == "method":
        yield from ((n, getattr(m.method, name)) for n, m in METHODS.items())
    elif section in {f.name for f in dataclasses.fields(Preset)}:
        yield from ((n, getattr(getattr(p, section), name)) for n, p in PRESETS.items())


def _kind(kind: Any) -> str:
    if typing.get_origin(kind) is Literal:
        return " | ".join(typing.get_args(kind))
    return {"dict": "any", "bool": "true | false"}.get(name := (typing.get_origin(kind) or kind).__name__, name)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={_text(v)}" for k, v in value.items()) or "none"
    return json.dumps(value) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    """Two columns, the second wrapped."""
    wide = max(len(name) for name, _ in rows)
    lines = [title]
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(30, 112 - wide), break_on_hyphens=False) or [""]
        lines.append(f"  {name:<{wide}}  {wrapped[0]}".rstrip())
        lines += [f"  {'':<{wide}}  {more}" for more in wrapped[1:]]
    return "\n".join(lines)
