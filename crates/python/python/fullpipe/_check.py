"""Checks of arguments. Their errors name the argument, what was found and what was expected."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any


def integer(name: str, value: object, least: int, most: int) -> int:
    """Returns an integer argument."""
    expected = f"expected an integer from {least} to {most}"
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} is {reprlib.repr(value)}; {expected}") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {reprlib.repr(number)}; {expected}")
    return number


def number(name: str, value: object, expected: str) -> float:
    """Returns a finite number; ``expected`` describes it."""
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected {expected}") from None
    if not math.isfinite(result):
        raise ValueError(f"{name} is {result}; expected {expected}")
    return result


def boolean(name: str, value: object) -> bool:
    """Returns a boolean argument. Other types are rejected, because the text ``"no"`` would be true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected True or False")
    return value


def strings(name: str, value: object, content: str) -> list[str]:
    """Returns a list of strings; ``content`` describes them. One string is rejected: it is a sequence of letters."""
    expected = f"expected a list of {content}"
    if isinstance(value, str):
        raise TypeError(f"{name} is {reprlib.repr(value)}; {expected}, such as [{reprlib.repr(value)}]")
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} is {reprlib.repr(value)}; {expected}")
    items = list(value)
    for item in items:
        if not isinstance(item, str):
            raise TypeError(f"{name} contains {reprlib.repr(item)}; {expected}")
    return items


def mapping(name: str, value: object, content: str) -> dict[str, Any]:
    """Returns a mapping argument as a dict; ``content`` describes what it contains."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is {reprlib.repr(value)}; expected a dict of {content}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {reprlib.repr(key)}; expected a dict of {content}")
    return dict(value)
