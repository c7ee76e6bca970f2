"""The function that a worker of an executor runs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ._native import run_request


def cache_folder() -> Path:
    """The folder in which a worker keeps files of scenarios, by content: ``FULLPIPE_CACHE``, or a temporary folder."""
    folder = os.environ.get("FULLPIPE_CACHE")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(folder) if folder else Path(tempfile.gettempdir(), f"fullpipe-{user}")


def execute(request: dict[str, Any], contents: dict[str, bytes]) -> dict[str, Any]:
    """Executes the run of a request. Returns its records, or the hashes of files that this worker needs."""
    return run_request(request, contents, cache_folder())
