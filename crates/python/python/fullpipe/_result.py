"""The result of a run of a scenario."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa

from ._errors import Error
from ._tables import to_arrow, to_pandas

if TYPE_CHECKING:
    from ._native import NativeResult


class SeriesTable(Mapping[tuple[str, str], pd.Series]):
    """The samples of the probes of a run, by flow (or link) and metric.

    >>> import fullpipe as fp
    >>> result = fp.Scenario("quick-start").run()
    >>> series = result.series["download", "cwnd_bytes"]
    >>> series.index.name, series.name
    ('time_s', 'cwnd_bytes')
    """

    def __init__(self, native: NativeResult):
        self._native = native

    def __getitem__(self, key: tuple[str, str]) -> pd.Series:
        """Returns a Series indexed by time in seconds. Raises KeyError with the nearest name."""
        if not isinstance(key, tuple) or len(key) != 2:
            raise KeyError(f"found {key!r}; expected a flow or link and a metric, such as 'download', 'cwnd_bytes'")
        subject, metric = key
        table = to_arrow(self._native.series(str(subject), str(metric)))
        index = pd.Index(table["time_s"].to_numpy(), name="time_s")
        return pd.Series(table["value"].to_numpy(), index=index, name=metric)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._native.series_names())

    def __len__(self) -> int:
        return len(self._native.series_names())

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All samples, with the columns of series.csv."""
        return to_pandas(to_arrow(self._native.table("series.csv")))

    def __repr__(self) -> str:
        names = ", ".join(f"({subject!r}, {metric!r})" for subject, metric in self)
        return f"SeriesTable({names})"


class Result:
    """The result of a run, in memory. :meth:`save` writes it as ``fullpipe run --out`` does.

    >>> import fullpipe as fp
    >>> result = fp.Scenario("quick-start").run(seed=1)
    >>> result
    Result(title='...', seed=1, audit='passed')
    >>> bool(result.flows.loc[0, "goodput_bps"] > 5e6)
    True
    """

    def __init__(self, native: NativeResult):
        self._native = native

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self._native.title

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._native.seed

    @property
    def scenario(self) -> str:
        """The scenario as TOML, with every default."""
        return self._native.scenario

    @property
    def audit_failures(self) -> list[str]:
        """The errors that the auditor found; without errors the list is empty."""
        return self._native.audit[1]

    @property
    def warnings(self) -> list[str]:
        """Conditions that make the results suspicious although no check failed."""
        return self._native.warnings

    @cached_property
    def flows(self) -> pd.DataFrame:
        """The columns of flows.csv: one row for each direction of each flow."""
        return self.table("flows")

    @cached_property
    def links(self) -> pd.DataFrame:
        """The columns of links.csv; empty if the scenario measures no link."""
        return self.table("links") if "links.csv" in self.files else pd.DataFrame()

    @property
    def series(self) -> SeriesTable:
        """The samples of the probes: ``result.series["download", "cwnd_bytes"]``."""
        return SeriesTable(self._native)

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The tables of the record, byte for byte as the command writes them, by file name."""
        return dict(self._native.files())

    def arrow(self, table: str = "flows") -> pa.Table:
        """Returns a table of the record as a table of pyarrow.

        Fields have the metadata ``unit`` and ``description``. Other libraries read the table without a copy:
        ``polars.from_arrow(result.arrow("series"))``.

        >>> import fullpipe as fp
        >>> fp.Scenario("quick-start").run().arrow().schema.field("goodput_bps").metadata[b"unit"]
        b'bit/s'
        """
        return to_arrow(self._native.table(_file(table)))

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table of the record as a DataFrame: ``flows``, ``series``, ``links``, ``completions`` and others."""
        return to_pandas(self.arrow(name))

    def save(self, folder: str | os.PathLike[str], *, report: bool = True) -> Path:
        """Writes the folder of records, with the report unless ``report=False``. Returns the folder.

        A run of the same scenario with another seed is added to the folder.
        """
        self._native.save(Path(folder), report)
        return Path(folder)

    def __repr__(self) -> str:
        passed = "passed" if self._native.audit[0] else "failed"
        count = len(self.warnings)
        suffix = f", warnings={count}" if count else ""
        return f"Result(title={self.title!r}, seed={self.seed}, audit={passed!r}{suffix})"

    def _repr_html_(self) -> str:
        parts = [f"<h4>{html.escape(self.title)}</h4>"]
        if self.warnings:
            parts.append(f"<p>Warnings: {len(self.warnings)}</p>")
        parts += [f"<p>Warning: {html.escape(text)}</p>" for text in self.warnings + self.audit_failures]
        columns = ["flow", "congestion", "goodput_bps", "completion_s", "lost_packets", "retransmitted_packets"]
        # The default format of pandas has an exponent if any value of the column has many digits.
        table = self.flows[columns].dropna(axis="columns", how="all")
        parts.append(table.to_html(index=False, na_rep="", border=0, float_format=_decimal))
        with tempfile.TemporaryDirectory() as folder:
            try:
                plots = sorted((self.save(folder) / "plots").glob("*.svg"))
            except Error:  # A run with a control in Python has no records, and therefore no plots.
                plots = []
            parts += [plot.read_text(encoding="utf-8") for plot in plots[:4]]
        return "\n".join(parts)


def _decimal(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _file(table: str) -> str:
    return table if table.endswith(".csv") else f"{table}.csv"
