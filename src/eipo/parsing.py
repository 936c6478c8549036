"""Values of settings, as text or from Python, in the types that they are declared with."""

from __future__ import annotations

import operator
import typing
from typing import Any, Literal

from .errors import EipoError


def literal(value: Any) -> Any:
    """A value without a declared type: true, false, a number, or the text itself."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    for number in (int, float):
        try:
            return number(value)
        except ValueError:
            pass
    return value


EXPECTED = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "dict": "a dictionary; as text, one value a key: envs.options.NAME=VALUE",
}


def whole(key: str, value: Any) -> int:
    """A whole number from Python, where 4e6 and NumPy's integers are some too."""
    try:
        return operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    except TypeError:
        raise EipoError(f"{key}={value!r}: expected {EXPECTED['int']}") from None


def parse(key: str, kind: Any, value: Any) -> Any:
    """`value` (text from the command line, or a Python value) as the type that the setting declares."""
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        if value in choices:
            return value
        raise EipoError(f"{key}={value!r}: choose one of {', '.join(map(str, choices))}")
    value = literal(value) if kind is not str else value
    if kind is float and type(value) is int:
        value = float(value)
    origin = typing.get_origin(kind) or kind
    if type(value) is not origin:
        raise EipoError(f"{key}={value!r}: expected {EXPECTED[origin.__name__]}")
    return value
