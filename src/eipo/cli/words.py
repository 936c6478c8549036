"""What the commands share: numbers as people write them, directories that can take a run."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec

from ..errors import EipoError


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


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """What the system says of files becomes one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as e:
        raise EipoError(f"{e.filename or out}: {e.strerror or e}") from e


def follows() -> bool:
    """Whether torchrun has started this process beside another, which keeps the run and shows it."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


@contextlib.contextmanager
def said_once() -> Iterator[None]:
    """What every process of a run finds wrong, process 0 says."""
    try:
        yield
    except EipoError:
        if follows():
            raise SystemExit(2) from None
        raise


def free(wish: Path) -> Path:
    """`wish`, or wish-2, wish-3, ... where there is something already."""
    found, n = wish, 1
    while found.exists() or found.is_symlink():
        n += 1
        found = wish.with_name(f"{wish.name}-{n}")
    return found


def own_modules() -> None:
    """A user's own module:Name-v0 lies beside where the command runs."""
    if "" not in sys.path:
        sys.path.append("")


def newest(run: Path) -> int | None:
    """The iteration of a run's newest checkpoint."""
    from ..checkpoint import Checkpoints  # which loads torch: only called where a run has loaded it

    return Checkpoints(run, 1).iteration()


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
