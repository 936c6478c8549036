"""The error that a user can mend: it says what is wrong, where, and what to do; the command line ends with 2 on it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EipoError(Exception):
    """Something that the caller can put right; the message is one line."""


def unknown(kind: str, name: str, known: Iterable[str]) -> EipoError:
    """An error for a name that does not exist, with the nearest that does, or all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
    return EipoError(f"unknown {kind} {name!r}; {hint}")
