"""The error that a user can mend: it says what is wrong, where, and what to do; the command line ends with 2 on it."""

from __future__ import annotations

import contextlib
import difflib
import traceback
from collections.abc import Iterable, Iterator


class EipoError(Exception):
    """Something that the caller can put right; the message is one line."""


@contextlib.contextmanager
def said_by(who: str, when: str) -> Iterator[None]:
    """What somebody else's code raises becomes one line that says who, when, what and where in it."""
    try:
        yield
    except EipoError:
        raise
    except Exception as e:
        frames = traceback.extract_tb(e.__traceback__)
        where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        what = " ".join(str(e).split())[:300]
        raise EipoError(f"{who} raised {type(e).__name__} {when}: {what}{where}") from e


def unknown(kind: str, name: str, known: Iterable[str]) -> EipoError:
    """An error for a name that does not exist, with the nearest that does, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return EipoError(f"unknown {kind} {name!r}; {hint}")
