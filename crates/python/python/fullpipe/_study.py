"""Studies: sweeps over scenarios with replications and claims."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from ._check import boolean, integer, mapping
from ._errors import FolderError, RunError, StudyError, extra, unknown
from ._native import NativeStudy, read_table, to_toml
from ._native import merge as native_merge
from ._scenario import Scenario, Source
from ._tables import to_arrow, to_pandas
from ._worker import execute

if TYPE_CHECKING:
    import xarray


#: The tables of a folder of records.
_TABLES = ("results", "summary", "flow_summary", "robustness", "expectations")

#: The columns of :meth:`Results.means` after those of the axes.
_MEANS = ("n", "mean", "low", "high")

#: The number of values of each axis that :meth:`Study.sweep` checks.
_CHECKED_VALUES = 16


class Study:
    """A study: the path of its file or folder, or the name of an embedded study.

    ``set`` sets parameters, axes (to a list) and values of the scenario (as ``scenario.PATH``), as ``--set`` does. ``runs`` is
    the number of runs per point.

    >>> import fullpipe as fp
    >>> study = fp.Study.sweep(
    ...     fp.Scenario("quick-start"),
    ...     axes={"flow.download.congestion": ["cubic", "bbr3"]},
    ...     metrics={"goodput_bps": 'goodput_bps["download"]'},
    ...     runs=1,
    ... )
    >>> study.axes
    {'sweep': {'congestion': ['cubic', 'bbr3']}}
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        runs: int | None = None,
        seeds: int | None = None,
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,
        quick: bool = False,
    ):
        if not isinstance(source, (str, os.PathLike)) or not isinstance(os.fspath(source), str):
            raise TypeError(f"found a study of type {type(source).__name__}; expected a path or a name")
        native = NativeStudy.find(os.fspath(source))
        self._init(native, runs, seeds, seed, set, quick)

    def _init(
        self,
        native: NativeStudy,
        runs: int | None,
        seeds: int | None,
        seed: int | None,
        set: Mapping[str, Any] | None,
        quick: bool,
    ) -> None:
        table = None if set is None else mapping("set", set, "parameters, axes or paths, and values")
        runs = None if runs is None else integer("runs", runs, 1, 1_000_000)
        seeds = None if seeds is None else integer("seeds", seeds, 1, 1_000_000)
        # TOML integers have 64 bits, but JSON integers are those of a double.
        seed = None if seed is None else integer("seed", seed, 0, 2**53 - 1)
        self._native, self.messages = native.apply(table, runs, seeds, seed, boolean("quick", quick))
        #: The name of the default folder of records.
        self._folder_name = self._native.name

    @classmethod
    def sweep(
        cls,
        scenario: Source,
        axes: Mapping[str, Iterable[Any]],
        metrics: Mapping[str, str] | None = None,
        *,
        runs: int = 10,
        seed: int = 1,
        name: str | None = None,
    ) -> Study:
        """Creates a study that runs a scenario at all combinations of the values of ``axes``.

        The keys of ``axes`` are dotted paths of the scenario; an axis has the name of the last key of its path. To name
        it yourself, write ``"name = path"``. A value can be a dict, such as ``{"kind": "codel"}``. Its label is its
        content as a short text. ``{"label": "CoDel", "value": {"kind": "codel"}}`` sets the label. ``metrics`` are
        expressions as in a study file, by name; the default is the goodput of all flows.

        ``name`` is the name of the study, by default ``sweep``. Without a name, the default folder of records is
        ``fullpipe-out/sweep-HASH``. HASH depends on all arguments except ``runs``, so different sweeps have different
        folders.

        Raises :class:`StudyError` if the scenario or a metric is invalid at the first point, or at a point that differs
        from it in one axis. It checks the first 16 values of each axis; :meth:`run` checks all points.

        >>> import fullpipe as fp
        >>> disciplines = [{"kind": "codel"}, {"kind": "fifo", "limit": "1BDP"}]
        >>> axes = {"aqm = topology.bottleneck.discipline": disciplines}
        >>> fp.Study.sweep("quick-start", axes).axes
        {'sweep': {'aqm': ['codel', 'fifo, limit 1BDP']}}
        """
        if not isinstance(scenario, Scenario):
            scenario = Scenario(scenario)
        tables: list[dict[str, Any]] = []
        for key, values in mapping("axes", axes, "paths of the scenario, and lists of values").items():
            if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
                raise TypeError(f"the axis {key!r} has the values {values!r}; expected a list of values")
            named, _, path = key.rpartition("=")
            path = path.strip()
            values = [_value(value) for value in values]
            if not values:
                raise ValueError(f"the axis {key!r} has no value; expected at least one")
            axis = named.strip() or path.rpartition(".")[2]
            if axis in ("run", *_MEANS):
                raise ValueError(f"the axis {axis!r} has the name of a column of the results; write 'another_name = {path}'")
            tables.append({"name": axis, "paths": [path], "values": values})
        if metrics is None:
            metrics = {"goodput_bps": 'sum(present(goodput_bps["*.main"]))'}
        metrics = mapping("metrics", metrics, "names and expressions")
        units = {"bps": "bit/s", "s": "s", "bytes": "bytes", "packets": "packets"}
        table = {
            "title": f"Sweep over {', '.join(table['name'] for table in tables)}",
            "seed": seed,
            "runs": runs,
            "scenarios": {"scenario": {"origin": "scenario.toml", "text": scenario.text}},
            "experiment": [{"name": "sweep" if name is None else name, "scenario": "scenario", "axis": tables}],
            "metric": [
                {"name": metric, "unit": units.get(metric.rpartition("_")[2], ""), "expression": expression}
                for metric, expression in metrics.items()
            ],
        }
        study = cls.__new__(cls)
        native = NativeStudy.from_text(to_toml(table), "sweep" if name is None else name, scenario.folder)
        study._init(native, None, None, None, None, False)
        study._native.check(_CHECKED_VALUES)
        if name is None:
            # More runs continue in the same folder.
            content = to_toml({**table, "runs": 1})
            study._folder_name = f"sweep-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
        return study

    @property
    def name(self) -> str:
        """The name of the study."""
        return self._native.name

    @property
    def title(self) -> str:
        """The title of the study."""
        return self._native.title

    @property
    def axes(self) -> dict[str, dict[str, list[str]]]:
        """The labels of the values of each axis, by experiment and axis."""
        return {experiment: dict(axes) for experiment, axes in self._native.axes}

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        return self._native.metrics

    def run(
        self,
        *,
        out: str | os.PathLike[str] | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        in_flight: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
        audit: bool = False,
        report: bool = False,
        shard: tuple[int, int] | None = None,
    ) -> Results:
        """Runs the study and returns its results. Runs that the folder ``out`` already contains are reused.

        ``out`` is the folder of records, by default ``fullpipe-out/NAME`` (see :meth:`sweep` for sweeps without a name);
        the command ``fullpipe study run`` can continue it. A folder has one study at a time: another study of the same
        name reuses the runs and replaces the tables, and a study of another name raises :class:`FolderError`. The runs are
        executed on ``jobs`` threads, by default one per core, or on the workers of ``executor``: any executor of
        ``concurrent.futures``, such as ``dask.distributed.Client().get_executor()``. A script that creates a
        ``ProcessPoolExecutor`` needs ``if __name__ == "__main__":``, because its workers may import the script.
        ``in_flight`` is the number of runs that are submitted at the same time, by default 100. ``progress=True`` prints
        the progress. If ``progress`` is a function, it is called with the finished and total number of runs and the label of
        a run. ``shard=(I, N)`` executes only the runs of shard I of N; :func:`merge` combines the folders.

        Raises :class:`RunError` if runs fail; the folder keeps the others. Raises ``KeyboardInterrupt`` if it is
        interrupted; the same call then continues.
        """
        folder = Path("fullpipe-out", self._folder_name) if out is None else Path(out)
        if executor is None:
            submit = None
            if in_flight is not None:
                raise ValueError("in_flight applies only with an executor; use jobs=, or add executor=")
            at_once = integer("jobs", (os.cpu_count() or 1) if jobs is None else jobs, 1, 10_000)
        else:
            submit = _submitter(executor)
            if jobs is not None:
                raise ValueError("jobs applies only without an executor; use in_flight=, or remove executor=")
            at_once = integer("in_flight", 100 if in_flight is None else in_flight, 1, 10_000)
        if not isinstance(progress, bool) and not callable(progress):
            raise TypeError(f"progress is {progress!r}; expected True, False or a function")
        if shard is not None:
            if not isinstance(shard, tuple) or len(shard) != 2:
                raise TypeError(f"shard is {shard!r}; expected a tuple (I, N)")
            shard = (integer("shard[0]", shard[0], 0, 2**32 - 1), integer("shard[1]", shard[1], 0, 2**32 - 1))
        audit, report = boolean("audit", audit), boolean("report", report)
        shown = _Progress() if progress is True else None
        summary = self._native.run(
            folder,
            jobs=at_once,
            audit=audit,
            resume=True,
            report=report,
            shard=shard,
            submit=submit,
            observe=shown or (progress if callable(progress) else None),
        )
        if shown is not None:
            shown.close()
        failed = summary["failed"]
        if failed:
            lines = [f"\n  {label}: {reason}" for label, reason in failed[:10]]
            if len(failed) > len(lines):
                lines.append(f"\n  and {len(failed) - len(lines)} others")
            number = "1 run" if len(failed) == 1 else f"{len(failed)} runs"
            if not summary["made"] and isinstance(executor, ProcessPoolExecutor):
                lines.append(
                    "\n  If no worker process can start, check that the script creates the executor under "
                    'if __name__ == "__main__": because workers of the start methods "spawn" and "forkserver" import it'
                )
            raise RunError(f"{number} failed; the others are kept in {folder}, and the same call reuses them{''.join(lines)}")
        return Results(folder, self, summary)

    def __repr__(self) -> str:
        return f"Study({self.name!r})"


class Results:
    """The results of a study: its folder of records.

    If another call has changed the tables in the folder since, reading them raises :class:`FolderError`. Tables that were
    already read do not change.
    """

    def __init__(self, folder: Path, study: Study, summary: dict[str, Any]):
        self.folder = folder
        self._study = study
        #: The number of runs that were executed.
        self.made: int = summary["made"]
        #: The number of earlier runs that were reused.
        self.reused: int = summary["reused"]
        #: Untrusted runs and verdicts, each with the reason.
        self.untrusted: list[tuple[str, str]] = summary["untrusted"]
        #: Conditions that make results suspicious although no check failed.
        self.warnings: list[str] = summary["warnings"]
        self._written = _hashes(folder)

    def arrow(self, table: str = "results") -> pa.Table:
        """Returns a table of the folder as a table of pyarrow: ``results``, ``summary`` or ``flow_summary``.

        A study with several seeds also has ``robustness``, and one with expectations has ``expectations``.
        """
        if table not in _TABLES:
            raise StudyError(unknown("table", table, _TABLES))
        file = f"{table}.csv"
        if file not in self._written:
            known = [name for name in _TABLES if f"{name}.csv" in self._written]
            raise FolderError(f"{self.folder} has no {file} (one of: {', '.join(known) or 'none'})")
        content = to_arrow(read_table(self.folder / file))
        now = _hashes(self.folder, file)
        if changed := [name for name in ("study.toml", file) if now.get(name) != self._written.get(name)]:
            raise FolderError(
                f"{self.folder} no longer has the records of this study: another call changed {' and '.join(changed)}; "
                "run the study again, and give each study its own folder with out="
            )
        return content

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: the experiment, its axes, the seed, the key, and one column per metric."""
        return to_pandas(self.arrow("results"))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row per point and metric, and one per claim: the columns of summary.csv."""
        return to_pandas(self.arrow("summary"))

    @property
    def claims(self) -> pd.DataFrame:
        """The claims with their verdicts, support and intervals."""
        rows = self.summary[self.summary["metric"].str.startswith("claim:")].copy()
        rows["metric"] = rows["metric"].str.removeprefix("claim:")
        columns = ["claim", "verdict", "support", "n", "low", "high", "source", "note"]
        return rows.rename(columns={"metric": "claim"})[columns].reset_index(drop=True)

    def means(self, metric: str, experiment: str | None = None) -> pd.DataFrame:
        """Returns the means of a metric: the columns of the axes, then ``n``, ``mean``, ``low`` and ``high``.

        ``n`` is the number of runs. ``low`` and ``high`` bound the 95 % interval of the mean over runs. If the runs of a
        point draw no random numbers, they are equal: ``n`` is 1, and the point has no interval (NaN). If all values
        of a point are equal, it has no interval either.

        If all labels of an axis are numbers, its column contains numbers. For a study with several experiments, the table
        has the column ``experiment``, unless the argument ``experiment`` selects one.

        >>> import tempfile
        >>> import fullpipe as fp
        >>> axes = {"rate = topology.bottleneck.rate": ["5Mbit/s", "10Mbit/s"]}
        >>> results = fp.Study.sweep("quick-start", axes, runs=1).run(out=tempfile.mkdtemp())
        >>> results.means("goodput_bps")[["rate", "n"]].values.tolist()
        [['5Mbit/s', 1], ['10Mbit/s', 1]]
        """
        rows = self.summary[self.summary["metric"] == metric]
        if metric not in self._study.metrics or rows.empty:
            raise ValueError(unknown("metric", metric, self._study.metrics))
        if experiment is not None:
            self._select(experiment)
        pairs = [[part.split("=", 1) for part in point.split(";") if part] for point in rows["point"]]
        table = pd.DataFrame([dict(pair) for pair in pairs], index=rows.index)
        for axis in table.columns:
            if axis in _MEANS:
                raise StudyError(f"the axis {axis!r} has the name of a column of means (one of: {', '.join(_MEANS)})")
            try:
                table[axis] = pd.to_numeric(table[axis])
            except (TypeError, ValueError):
                pass
        if experiment is not None and "experiment" in table.columns:
            table = table[table["experiment"] == experiment].drop(columns="experiment")
            if table.empty:
                raise ValueError(f"the experiment {experiment!r} does not have the metric {metric!r}")
        # Another experiment may have other axes.
        table = table.dropna(axis="columns", how="all")
        return table.join(rows[list(_MEANS)]).reset_index(drop=True)

    def _select(self, experiment: str | None) -> str:
        """Returns the name of an experiment, by default that of the only one."""
        names = list(self._study.axes)
        if experiment is None:
            if len(names) != 1:
                raise StudyError(f"the study has {len(names)} experiments; expected experiment= one of {', '.join(names)}")
            return names[0]
        if experiment not in names:
            raise StudyError(unknown("experiment", experiment, names))
        return experiment

    def to_xarray(self, experiment: str | None = None) -> xarray.Dataset:
        """Returns the metrics of an experiment as a Dataset with a dimension for each axis, and ``run``.

        The variables have the attributes ``units`` and ``long_name``, which plots of xarray show. Axes whose labels are
        all numbers have numbers as coordinates. Combinations without a run have NaN. If a study has several experiments,
        ``experiment`` must name one of them.
        """
        xr = extra("xarray", "xarray")
        experiment = self._select(experiment)
        axes = [axis for axis in self._study.axes[experiment] if axis in self.runs.columns]
        rows = self.runs
        if "experiment" in rows.columns:
            rows = rows[rows["experiment"] == experiment]
        metrics = [metric for metric in self._study.metrics if metric in rows.columns]
        if "run" in (*axes, *metrics):
            raise StudyError("an axis or metric has the name run, which is a dimension of the Dataset; expected another name")
        frame = rows[[*axes, *metrics]].copy()
        for axis in axes:
            try:
                frame[axis] = pd.to_numeric(frame[axis])
            except (TypeError, ValueError):
                frame[axis] = frame[axis].astype(str)
        frame["run"] = frame.groupby(axes, sort=False).cumcount() if axes else range(len(frame))
        data = frame.set_index([*axes, "run"])[metrics].dropna(axis="columns", how="all")
        dataset: xarray.Dataset = xr.Dataset.from_dataframe(data)
        # Restores the order of the study, because `from_dataframe` sorts the labels.
        order = {axis: list(dict.fromkeys(frame[axis])) for axis in axes}
        dataset = dataset.reindex(order) if axes else dataset
        dataset.attrs["title"] = self._study.title
        for name, unit, text in self._study._native.metric_texts:
            if name in dataset:
                dataset[name].attrs.update(units=unit, long_name=text or name)
        return dataset

    def _repr_html_(self) -> str:
        parts = [self.claims.to_html(index=False, na_rep="", border=0)] if len(self.claims) else []
        columns = ["point", "metric", "unit", "n", "mean", "low", "high", "verdict"]
        metrics = self.summary[~self.summary["metric"].str.startswith("claim:")][columns]
        parts.append(metrics.head(50).to_html(index=False, na_rep="", border=0))
        parts += [plot.read_text(encoding="utf-8") for plot in sorted((self.folder / "plots").glob("*.svg"))[:4]]
        return "\n".join(parts)

    def __repr__(self) -> str:
        return f"Results({str(self.folder)!r}, made={self.made}, reused={self.reused})"


def merge(
    folders: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str], *, report: bool = False
) -> Path:
    """Combines the folders of all shards of a study in the folder ``out``, as ``fullpipe study merge`` does."""
    if isinstance(folders, (str, bytes, os.PathLike)) or not isinstance(folders, Iterable):
        raise TypeError(f"folders is {folders!r}; expected a list of the folders of all shards")
    native_merge([Path(folder) for folder in folders], Path(out), report)
    return Path(out)


def _hashes(folder: Path, *tables: str) -> dict[str, str]:
    """Returns the hashes of ``study.toml`` and of tables of a folder, by default all. Files that do not exist are omitted."""
    names = ["study.toml", *(tables or [f"{table}.csv" for table in _TABLES])]
    files = [(name, folder / name) for name in names]
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files if file.is_file()}


def _value(value: Any) -> Any:
    """Returns a value of an axis as a study file has it: a dict is a table of the scenario, and needs a label."""
    if not isinstance(value, Mapping) or {"label", "set"} & value.keys():
        return value
    return {"label": _label(value), "value": dict(value)}


def _label(value: Any) -> str:
    """Returns a value as a short text: ``codel, target 5ms`` for ``{"kind": "codel", "target": "5ms"}``."""
    if isinstance(value, Mapping):
        kind = [_label(value["kind"])] if "kind" in value else []
        return ", ".join([*kind, *(f"{key} {_label(item)}" for key, item in value.items() if key != "kind")])
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_label, value))}]"
    # A semicolon separates the axes of a point.
    return str(value).lower() if isinstance(value, bool) else str(value).replace(";", " ")


def _submitter(executor: Executor) -> Callable[[dict[str, Any], dict[str, bytes]], Any]:
    """Returns a function that submits a request to an executor."""
    if isinstance(executor, type):
        name = executor.__name__
        raise TypeError(f"executor is the class {name}; expected an object, such as {name}()")
    if not callable(getattr(executor, "submit", None)):
        kind = type(executor).__name__
        raise TypeError(f"found an executor of type {kind}; expected an executor of concurrent.futures")

    def submit(request: dict[str, Any], contents: dict[str, bytes]) -> Any:
        return executor.submit(execute, request, contents)

    return submit


class _Progress:
    """Prints the progress on standard error: at most once per second, and only the last line on a terminal."""

    def __init__(self) -> None:
        self._begun = self._shown = time.monotonic()
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, finished: int, total: int, label: str) -> None:
        now = time.monotonic()
        if finished < total and (now - self._shown < 1 or not finished):
            return
        self._shown = now
        left = (now - self._begun) / finished * (total - finished) if finished else 0.0
        text = f"[{finished}/{total}, {left:.0f} s left] {label}"
        print(f"\r\x1b[K{text}" if self._is_terminal else text, end="" if self._is_terminal else "\n", file=sys.stderr)

    def close(self) -> None:
        if self._is_terminal:
            print(file=sys.stderr)


