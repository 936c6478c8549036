"""The command line. A command is a dataclass in a file of its own; only one that needs torch imports it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from .. import __version__
from ..errors import EipoError, unknown
from .compare import Compare
from .demo import Demo
from .ending import Stopped, exit_code, terminable
from .evaluate import Evaluate, Export
from .listing import List, settings_text
from .report import Report
from .sweep import Sweep
from .train import Train

COMMANDS: dict[str, type] = {
    "train": Train,
    "evaluate": Evaluate,
    "export": Export,
    "list": List,
    "report": Report,
    "compare": Compare,
    "sweep": Sweep,
    "demo": Demo,
}
Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Evaluate, subcommand("evaluate")]
    | Annotated[Export, subcommand("export")]
    | Annotated[List, subcommand("list")]
    | Annotated[Report, subcommand("report")]
    | Annotated[Compare, subcommand("compare")]
    | Annotated[Sweep, subcommand("sweep")]
    | Annotated[Demo, subcommand("demo")]
)
DESCRIPTION = "Reinforcement learning with a second reward whose weight needs no tuning. `eipo --version`: the version."


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
