"""Tests of congestion controls in Python."""

from __future__ import annotations

import os

import pytest

import fullpipe as fp

SCENARIO = {
    "duration": "20s",
    "topology": {"kind": "chain", "link": [{"rate": "10Mbit/s", "delay": "20ms", "queue": "30kB"}]},
    "tcp": {"congestion": "newreno", "hystart": False, "idle_restart": False},
    "flow": [{"name": "data", "from": "source", "to": "sink"}],
    "probe": [{"flow": "data", "metrics": ["cwnd_bytes", "ssthresh_bytes"], "interval": "10ms"}],
}


class Fixed(fp.CongestionControl):
    """A window of ten segments."""

    def on_ack(self, ack: fp.Ack) -> None:
        self.cwnd_bytes = 10 * self.mss_bytes


def test_fixed_window_has_its_rate() -> None:
    result = fp.Scenario(SCENARIO).run(controls={"data": Fixed})
    # The receiver acknowledges every second segment. A round trip has 40 ms of propagation, two packets of 1518 bytes with
    # framing (2.429 ms at 10 Mbit/s) and an acknowledgment of 70 bytes (0.056 ms): 42.485 ms for ten segments of 1448 bytes.
    expected = 10 * 1448 * 8 / 0.042485
    assert abs(result.flows.loc[0, "goodput_bps"] / expected - 1) < 0.005


class Reno(fp.CongestionControl):
    """RFC 5681 with fractions of 2**-16 bytes, as the control `newreno` has them."""

    def __init__(self) -> None:
        self.fraction = 0

    def on_ack(self, ack: fp.Ack) -> None:
        if ack.in_recovery or not ack.cumulative_bytes:
            return
        if self.cwnd_bytes < self.ssthresh_bytes:
            self.cwnd_bytes += min(ack.cumulative_bytes, self.mss_bytes)
        else:
            self.fraction += (self.mss_bytes * self.mss_bytes << 16) // int(self.cwnd_bytes)
            self.cwnd_bytes += self.fraction >> 16
            self.fraction &= 0xFFFF

    def on_congestion(self, event: fp.CongestionEvent) -> None:
        super().on_congestion(event)
        self.fraction = 0

    def on_timeout(self, timeout: fp.Timeout) -> None:
        super().on_timeout(timeout)
        self.fraction = 0


def test_control_in_python_has_the_trace_of_the_same_control_in_rust() -> None:
    native = fp.Scenario(SCENARIO).run()
    ours = fp.Scenario(SCENARIO).run(controls={"data": Reno})
    # The queue of 30 kB overflows several times in 20 s.
    assert native.flows.loc[0, "retransmitted_packets"] > 0
    assert ours.files["series.csv"] == native.files["series.csv"]
    assert len(native.series["data", "cwnd_bytes"].unique()) > 100


class Failing(fp.CongestionControl):
    """Raises an exception after some acknowledgments."""

    count = 0

    def on_ack(self, ack: fp.Ack) -> None:
        Failing.count += 1
        if Failing.count > 20:
            raise ZeroDivisionError("in my control")


def test_exception_of_a_control_ends_the_run() -> None:
    with pytest.raises(ZeroDivisionError, match="in my control"):
        fp.Scenario(SCENARIO).run(controls={"data": Failing})


@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_invalid_window_raises(value: float) -> None:
    class Invalid(fp.CongestionControl):
        def on_ack(self, ack: fp.Ack) -> None:
            self.cwnd_bytes = value

    with pytest.raises(ValueError, match="cwnd_bytes"):
        fp.Scenario(SCENARIO).run(controls={"data": Invalid})


def test_class_that_is_no_control_raises() -> None:
    with pytest.raises(TypeError, match="expected a subclass"):
        fp.Scenario(SCENARIO).run(controls={"data": dict})  # type: ignore[dict-item]


def test_control_without_on_ack_raises() -> None:
    with pytest.raises(NotImplementedError, match="on_ack"):
        fp.Scenario(SCENARIO).run(controls={"data": fp.CongestionControl})


def test_unknown_requirement_raises() -> None:
    class Wrong(Fixed):
        requirements = ("delivery_rates",)

    with pytest.raises(ValueError, match="delivery_rate"):
        fp.Scenario(SCENARIO).run(controls={"data": Wrong})


def test_run_with_an_own_control_is_not_saved(tmp_path: os.PathLike[str]) -> None:
    result = fp.Scenario(SCENARIO).run(controls={"data": Fixed})
    with pytest.raises(fp.RunError, match="has no key"):
        result.save(tmp_path)
