"""The exceptions of the package."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

from ._native import Error, FolderError, RunError, ScenarioError, StudyError, SystemError


class MissingExtraError(Error, ImportError):
    """A library of an extra is not installed."""

    __module__ = "fullpipe"


def extra(module: str, name: str) -> ModuleType:
    """Returns a module that the extra ``name`` installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"the module {module.partition('.')[0]} is not installed; run pip install './crates/python[{name}]' in a clone of "
            f"Fullpipe, or pip install 'fullpipe[{name}]' if your package index has Fullpipe"
        ) from error


def unknown(kind: str, found: object, known: Iterable[str]) -> str:
    """Returns the message about an unknown name, with the nearest valid name."""
    names = list(known)
    near = difflib.get_close_matches(str(found), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {found!r}{hint} (one of: {', '.join(names) or 'none'})"


__all__ = [
    "Error",
    "FolderError",
    "MissingExtraError",
    "RunError",
    "ScenarioError",
    "StudyError",
    "SystemError",
    "extra",
    "unknown",
]
