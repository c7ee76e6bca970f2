"""Simulations in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._check import number
from ._native import NativeResult
from ._result import Result

if TYPE_CHECKING:
    from ._native import NativeScenario, NativeSimulation


#: The accepted pacing rates.
_RATE = "a rate from 1 to 1e15 bit/s, or None for the pacing setting of the transport"


class Simulation:
    """A simulation that runs in steps. Between two steps, a program can inspect and change it.

    :meth:`Scenario.start` starts it. The same steps and changes give the same results. Without changes, the tables are
    those of an uninterrupted run.

    >>> import fullpipe as fp
    >>> simulation = fp.Scenario("quick-start").start(adjustable_links=["bottleneck"])
    >>> simulation.run_until(1.0)
    True
    >>> simulation.flow("download")["rx_packets"] > 0
    True
    >>> simulation.set_link_rate("bottleneck", 1e6)
    >>> simulation.run_until(simulation.now + 1.0)
    True
    >>> simulation.link("bottleneck")["rate_bps"]
    1000000
    >>> simulation.stop().flows["flow"].tolist()
    ['download', 'download.reverse']
    """

    def __init__(
        self,
        native: NativeSimulation,
        scenario: NativeScenario,
        set: dict[str, Any] | None,
        seed: int | None,
    ):
        self._native = native
        self._source = (scenario, set, seed)

    @property
    def now(self) -> float:
        """The current time in seconds."""
        return self._native.now_s

    def run_until(self, time_s: float) -> bool:
        """Processes all events up to a time in seconds. Returns whether the run continues.

        A run ends at the end of its duration, or when no event is left.
        """
        return self._native.run_until(time_s)

    def flow(self, name: str) -> dict[str, Any]:
        """Returns the counters of a flow direction since the start, and the state of its sender.

        The state (``cwnd_bytes``, ``inflight_bytes``, ``srtt_s``, ``min_rtt_s``, ``pacing_bps``) is ``None`` if there is no
        open connection. Raises KeyError with the nearest name.
        """
        return self._native.flow(name)

    def link(self, name: str) -> dict[str, Any]:
        """Returns the counters, the queue and the rate of a link direction."""
        return self._native.link(name)

    def set_window(self, flows: str, window_bytes: int, *, pacing_bps: float | None = None) -> None:
        """Sets the congestion window and the pacing rate of controlled flows. They take effect with the next step.

        ``flows`` is an element of ``controlled_flows`` of :meth:`Scenario.start`. The window is an integer; TCP permits at
        least one segment in flight, and QUIC at least two packets. Without ``pacing_bps``, the pacing setting of the
        transport applies.
        """
        window = number("window_bytes", window_bytes, "an integer of at least 0")
        if window != int(window) or not 0 <= window < 2**64:
            raise ValueError(f"window_bytes is {window_bytes}; expected an integer of at least 0")
        if pacing_bps is not None and not 1 <= number("pacing_bps", pacing_bps, _RATE) < 1e15:
            raise ValueError(f"pacing_bps is {pacing_bps}; expected {_RATE}")
        self._native.set_window(flows, int(window_bytes), pacing_bps)

    def set_link_rate(self, link: str, rate_bps: float) -> None:
        """Sets the rate of an adjustable link from now on; 0 is an outage."""
        self._native.set_link_rate(link, rate_bps)

    def set_link_delay(self, link: str, delay_s: float) -> None:
        """Sets the propagation delay of an adjustable link from now on."""
        self._native.set_link_delay(link, delay_s)

    def start_flow(self, flow: str) -> None:
        """Starts a flow now, before the start time that the scenario sets."""
        self._native.start_flow(flow)

    def finish(self) -> Result:
        """Runs to the end. The simulation cannot be used any more."""
        return self._result(False)

    def stop(self) -> Result:
        """Ends the run now. The simulation cannot be used any more."""
        return self._result(True)

    def _result(self, now: bool) -> Result:
        scenario, set, seed = self._source
        return Result(NativeResult.of_steps(scenario, self._native, set, seed, now))

