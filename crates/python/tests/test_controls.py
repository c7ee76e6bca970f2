"""Tests of congestion controls in Python."""

from __future__ import annotations

import functools
import os
import warnings

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


class Window(fp.CongestionControl):
    """A window of some segments."""

    def __init__(self, segments: int, *, factor: int = 1) -> None:
        self.segments = segments * factor

    def on_ack(self, ack: fp.Ack) -> None:
        self.cwnd_bytes = self.segments * self.mss_bytes


@pytest.mark.parametrize(
    "create", [lambda: Window(10), functools.partial(Window, 10), functools.partial(Window, 5, factor=2)]
)
def test_function_that_returns_a_control_with_arguments_is_a_control(create: object) -> None:
    result = fp.Scenario(SCENARIO).run(set={"duration": "5s"}, controls={"data": create})  # type: ignore[dict-item]
    same = fp.Scenario(SCENARIO).run(set={"duration": "5s"}, controls={"data": Fixed})
    assert result.files == same.files


def test_arguments_without_an_initializer_raise() -> None:
    with pytest.raises(TypeError, match="Fixed has no __init__ with arguments"):
        Fixed(3)  # type: ignore[call-arg]


def test_control_that_is_returned_twice_raises() -> None:
    own = Fixed()
    with pytest.raises(TypeError, match="returned the same control twice"):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": lambda: own})


class Paced(Fixed):
    """A window of ten segments, paced at 1 Mbit/s."""

    requirements = ("pacing",)

    def on_established(self, now_s: float, rtt_s: float | None) -> None:
        self.pacing_bps = 1e6


def test_control_that_requires_pacing_has_its_rate() -> None:
    result = fp.Scenario(SCENARIO).run(controls={"data": Paced})
    # Without pacing, the window of ten segments has 2.7 Mbit/s.
    assert abs(result.flows.loc[0, "goodput_bps"] / 1e6 - 1) < 0.02


def test_pacing_rate_without_the_requirement_raises() -> None:
    class Unpaced(Paced):
        requirements = ()

    with pytest.raises(ValueError, match=r'pacing_bps .* add it to the class: requirements = \("pacing",\)'):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": Unpaced})


@pytest.mark.parametrize("name", ["cwnd_bytes", "ssthresh_bytes", "pacing_bps"])
def test_attribute_that_is_set_before_the_connection_raises(name: str) -> None:
    class Early(Paced):
        def __init__(self) -> None:
            setattr(self, name, 1e5)

    with pytest.raises(ValueError, match=f"{name} was set before the connection was established.* on_established"):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": Early})


@pytest.mark.parametrize("rate_bps", [0.4, 0.999, 1e-300])
def test_pacing_rate_below_one_bit_per_second_raises(rate_bps: float) -> None:
    class Slow(Paced):
        def on_established(self, now_s: float, rtt_s: float | None) -> None:
            self.pacing_bps = rate_bps

    with pytest.raises(ValueError, match="pacing_bps is .*; expected at least 1 bit/s, or 0"):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": Slow})


def test_attributes_of_a_control_without_a_transport_can_be_set() -> None:
    own = Paced()
    own.cwnd_bytes = 20_000
    own.on_established(0.0, None)
    assert (own.cwnd_bytes, own.pacing_bps) == (20_000, 1e6)


@pytest.mark.parametrize(
    ("name", "near"), [("on_congestio", "on_congestion"), ("on_time_out", "on_timeout"), ("on_loss", None)]
)
def test_method_with_a_misspelled_name_raises(name: str, near: str | None) -> None:
    own = type("Own", (Fixed,), {name: lambda self, event: None})
    hint = rf"; did you mean {near}\?" if near else ""
    with pytest.raises(TypeError, match=rf"Own.{name} is not a method that the transport calls{hint} \(one of: on_est"):
        fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": own})


def test_other_names_of_methods_and_attributes_are_accepted() -> None:
    own = type("Own", (Fixed,), {"_on_loss": lambda self: None, "onwards": lambda self: None, "on_off": 5})
    fp.Scenario(SCENARIO).run(set={"duration": "2s"}, controls={"data": own})


def test_window_below_a_segment_sends_one_segment_per_round_trip() -> None:
    class Small(fp.CongestionControl):
        def on_established(self, now_s: float, rtt_s: float | None) -> None:
            self.cwnd_bytes = 1

        def on_ack(self, ack: fp.Ack) -> None:
            self.cwnd_bytes = 1

    run = {"duration": "5s", "tcp.delayed_ack_segments": 1}
    result = fp.Scenario(SCENARIO).run(set=run, controls={"data": Small})
    # 40 ms of propagation, a packet of 1518 bytes (1.214 ms) and an acknowledgment (0.056 ms).
    assert abs(result.flows.loc[0, "goodput_bps"] / (1448 * 8 / 0.04127) - 1) < 0.05


def test_result_with_warnings_shows_them_and_issues_one_warning() -> None:
    class Stalled(Paced):
        def on_ack(self, ack: fp.Ack) -> None:
            self.pacing_bps = 1

    with pytest.warns(UserWarning) as issued:
        result = fp.Scenario(SCENARIO).run(controls={"data": Stalled})
    assert result.warnings and len(issued) == 1
    assert all(text in str(issued[0].message) for text in result.warnings)
    assert f"warnings={len(result.warnings)}" in repr(result)
    assert f"Warnings: {len(result.warnings)}" in result._repr_html_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "warnings" not in repr(fp.Scenario(SCENARIO).run(controls={"data": Fixed}))
