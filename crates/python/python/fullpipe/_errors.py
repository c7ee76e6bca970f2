"""The exceptions of the package."""

from __future__ import annotations

import importlib
from types import ModuleType

from ._native import Error, FolderError, RunError, ScenarioError, StudyError, SystemError


class MissingExtraError(Error, ImportError):
    """A library of an extra is not installed."""


def extra(module: str, name: str) -> ModuleType:
    """Returns a module that the extra ``name`` installs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"the module {module.partition('.')[0]} is not installed; run: pip install 'fullpipe[{name}]'"
        ) from error


__all__ = [
    "Error",
    "FolderError",
    "MissingExtraError",
    "RunError",
    "ScenarioError",
    "StudyError",
    "SystemError",
    "extra",
]
