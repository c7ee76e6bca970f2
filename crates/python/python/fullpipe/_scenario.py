"""Scenarios."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Union

from ._check import boolean, integer, mapping, strings
from ._control import CongestionControl
from ._native import NativeScenario, to_toml
from ._result import Result
from ._steps import Simulation

#: A value that :class:`Scenario` accepts, or a :class:`Scenario`.
Source = Union["Scenario", str, "os.PathLike[str]", Mapping[str, Any]]


class Scenario:
    """A scenario: the path of a file, the name of an embedded scenario, TOML text, or a dict.

    A text with a line break or an equals sign is TOML. Paths of files in a text or dict are relative to ``folder``, by
    default the current folder.

    >>> import fullpipe as fp
    >>> link = {"rate": "10Mbit/s", "delay": "10ms"}
    >>> scenario = fp.Scenario({
    ...     "duration": "5s",
    ...     "topology": {"kind": "chain", "link": [link]},
    ...     "flow": [{"name": "data", "from": "source", "to": "sink", "size": "1MB"}],
    ... })
    >>> slow = scenario.run(set={"topology.link.0.rate": "1Mbit/s"})
    >>> bool(slow.flows.loc[0, "goodput_bps"] < 1e6)
    True
    >>> fp.Scenario("quick-strat")
    Traceback (most recent call last):
        ...
    fullpipe.ScenarioError: "quick-strat" is neither a file nor an embedded scenario; did you mean "quick-start"? ...
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Mapping[str, Any],
        *,
        folder: str | os.PathLike[str] = ".",
    ):
        if isinstance(source, Mapping):
            self._native = NativeScenario.from_text(to_toml(dict(source)), "scenario", Path(folder))
        elif isinstance(source, str) and ("\n" in source or "=" in source) and not os.path.exists(source):
            self._native = NativeScenario.from_text(source, "scenario", Path(folder))
        elif isinstance(source, (str, os.PathLike)):
            self._native = NativeScenario.find(os.fspath(source))
        else:
            kind = type(source).__name__
            raise TypeError(f"found a scenario of type {kind}; expected a path, a name, TOML text or a dict")

    @property
    def name(self) -> str:
        """The name of the file or of the embedded scenario."""
        return self._native.name

    @property
    def folder(self) -> Path:
        """The folder of the files to which the scenario refers."""
        return self._native.folder or Path(".")

    @property
    def text(self) -> str:
        """The text of the scenario as TOML."""
        return self._native.text

    def resolve(self, set: Mapping[str, Any] | None = None) -> str:
        """Returns the scenario with overrides and all defaults as TOML.

        Raises :class:`ScenarioError` with all errors.
        """
        text, hints = self._native.resolved(_table(set))
        for hint in hints:
            warnings.warn(hint, stacklevel=2)
        return text

    def run(
        self,
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,
        *,
        controls: Mapping[str, Callable[[], CongestionControl]] | None = None,
        audit: bool = False,
    ) -> Result:
        """Runs the scenario in virtual time, and returns its result. Other Python threads continue to run.

        ``seed`` replaces the scenario's seed. ``set`` overrides values by dotted paths, as ``--set`` does. ``controls``
        maps names or patterns of flows to subclasses of :class:`CongestionControl`, which replace the flows' congestion
        controls. Instead of a subclass, it accepts a function without arguments that returns a new control. ``audit`` checks
        every packet.

        Hints about the scenario, such as former names of keys, are issued as warnings. So are the warnings of the result, in
        one warning.

        Raises :class:`ScenarioError` if the scenario is invalid, and :class:`RunError` if the run fails. An exception of
        a control ends the run and is raised.
        """
        pairs = list(mapping("controls", controls or {}, "flows and subclasses of CongestionControl").items())
        result = Result(self._native.run(_seed(seed), _table(set), boolean("audit", audit), pairs))
        for hint in result._native.hints:
            warnings.warn(hint, stacklevel=2)
        if result.warnings:
            warnings.warn(f"{self.name}: {'; '.join(result.warnings)}", stacklevel=2)
        return result

    def start(
        self,
        seed: int | None = None,
        set: Mapping[str, Any] | None = None,
        *,
        controlled_flows: Iterable[str] = (),
        adjustable_links: Iterable[str] = (),
    ) -> Simulation:
        """Starts the scenario in steps.

        ``controlled_flows`` are names or patterns of flows whose congestion window the program sets.
        ``adjustable_links`` are names or patterns of links whose rate and delay the program sets.
        """
        table, seed = _table(set), _seed(seed)
        flows = strings("controlled_flows", controlled_flows, "names or patterns of flows")
        links = strings("adjustable_links", adjustable_links, "names or patterns of links")
        native = self._native.start(seed, table, flows, links)
        return Simulation(native, self._native, table, seed)

    def __repr__(self) -> str:
        return f"Scenario({self.name!r})"


def _seed(seed: int | None) -> int | None:
    return None if seed is None else integer("seed", seed, 0, 2**64 - 1)


def _table(set: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if set is None else mapping("set", set, "paths of the scenario, and values")
