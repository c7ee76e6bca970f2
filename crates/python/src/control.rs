//! Congestion controls that are written in Python.
//!
//! A control is a subclass of `CongestionControl`. The native base class has the state that the transport reads after
//! each call. The interpreter lock is acquired for each call, so such a control is much slower than one in Rust.

use fullpipe::ConnectionContext;
use fullpipe::congestion::{self as native, ControlRequirements, Controller, RecoveryExit, WindowState};
use fullpipe::scenario::schema::nearest_name;
use fullpipe::units::{Duration, Instant};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// An acknowledgment batch. Times are in seconds, rates in bit/s.
#[pyclass(frozen, get_all, module = "fullpipe")]
pub(crate) struct Ack {
    /// The current time.
    now_s: f64,
    /// Bytes newly acknowledged, cumulatively or selectively.
    newly_acked_bytes: u64,
    /// Bytes by which the cumulative acknowledgment advanced; for QUIC the same as `newly_acked_bytes`.
    cumulative_bytes: u64,
    /// Bytes newly declared lost.
    lost_bytes: u64,
    /// Round-trip sample of this batch, if it has one.
    rtt_s: Option<f64>,
    /// Smoothed round-trip time, if there was a sample.
    smoothed_rtt_s: Option<f64>,
    /// Smallest round-trip time so far, if there was a sample.
    min_rtt_s: Option<f64>,
    /// Bytes in flight after this batch.
    in_flight_bytes: u64,
    /// Bytes in flight before this batch.
    prior_in_flight_bytes: u64,
    /// Bytes delivered on the connection, including this batch.
    delivered_bytes: u64,
    /// Number of rounds so far.
    round_count: u64,
    /// Whether this batch began a new round.
    round_start: bool,
    /// Delivery-rate sample of this batch, if the control requires samples and the batch has one.
    delivery_rate_bps: Option<f64>,
    /// Whether the application limits sending.
    app_limited: bool,
    /// Whether the window limited sending during the last flight.
    cwnd_limited: bool,
    /// Whether the transport is in fast recovery.
    in_recovery: bool,
    /// Packets newly reported as CE-marked.
    ce_packets: u64,
}

/// A loss or an ECN mark that starts a reduction of the window.
#[pyclass(frozen, get_all, module = "fullpipe")]
pub(crate) struct CongestionEvent {
    /// The current time.
    now_s: f64,
    /// Bytes in flight, including the lost packets.
    in_flight_bytes: u64,
    /// Bytes newly declared lost.
    lost_bytes: u64,
    /// Whether the cause is an ECN mark, not a loss.
    ecn: bool,
    /// Whether QUIC's persistent congestion was established.
    persistent: bool,
}

/// The expiry of a retransmission timer.
#[pyclass(frozen, get_all, module = "fullpipe")]
pub(crate) struct Timeout {
    /// The current time.
    now_s: f64,
    /// Bytes in flight before the transport declared them lost.
    in_flight_bytes: u64,
    /// Whether the timer has expired before for the same data.
    repeated: bool,
}

/// The base class of congestion controls. The transport reads the attributes after each call of a method.
///
/// Attributes are in bytes and bit/s, and may have fractions, which are kept between calls.
///
/// A control in Python is slow: each acknowledgment calls Python with the interpreter lock, so a run takes several times the
/// CPU time of the same control in Rust. The page on Python has measured values. Write a control for a study in Rust.
///
/// A subclass may have arguments. `controls` of :meth:`Scenario.run` accepts a subclass, or a function without arguments that
/// returns a control, such as `lambda: Mine(3)`. It is called for each end of each connection.
///
/// The transport sets the attributes before it calls `on_established`. TCP permits at least one segment in flight, and QUIC
/// at least two packets, also if `cwnd_bytes` is smaller.
///
/// The class attribute `requirements` is a tuple of the signals that the control needs:
///
/// * `"delivery_rate"`: the transport measures the delivery rate. `Ack.delivery_rate_bps` is otherwise `None`.
/// * `"pacing"`: the transport paces packets, at the rate `pacing_bps` if the control sets it. Only a control with this
///   signal can set `pacing_bps`.
/// * `"ecn_counts"`: the control responds to the number of CE marks, `Ack.ce_packets`. TCP then calls `on_congestion` for a loss
///   also if a mark in the same window has reduced the window (RFC 8257 section 3.5). The scenario must enable ECN.
/// * `"own_recovery"`: the control sets the window during loss recovery and after a timeout. Otherwise the transport sets it.
///
/// A public method whose name begins with `on_` must be one of the methods below, so that a misspelled name is an error.
#[pyclass(subclass, dict, module = "fullpipe")]
#[derive(Clone, Copy)]
pub(crate) struct CongestionControl {
    /// Congestion window.
    #[pyo3(get)]
    cwnd_bytes: f64,
    /// Slow-start threshold; infinite until the first reduction.
    #[pyo3(get)]
    ssthresh_bytes: f64,
    /// Pacing rate; 0 if the pacing setting of the transport applies. Needs the requirement `"pacing"`.
    #[pyo3(get)]
    pacing_bps: f64,
    /// Largest segment payload.
    #[pyo3(get)]
    mss_bytes: u64,
    /// Whether the control requires pacing; `None` before a transport uses the control.
    paces: Option<bool>,
}

/// The state before a transport uses the control.
const INITIAL: CongestionControl =
    CongestionControl { cwnd_bytes: 0.0, ssthresh_bytes: f64::INFINITY, pacing_bps: 0.0, mss_bytes: 0, paces: None };

/// The methods that the transport calls.
const HOOKS: [&str; 5] = ["on_established", "on_ack", "on_congestion", "on_recovery_exit", "on_timeout"];

#[pymethods]
impl CongestionControl {
    /// The arguments are those of the `__init__` of a subclass.
    #[new]
    #[classmethod]
    #[pyo3(signature = (*args, **keywords))]
    fn new(
        class: &Bound<'_, PyType>,
        args: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let has_arguments = !args.is_empty() || keywords.is_some_and(|keywords| !keywords.is_empty());
        let name = intern!(class.py(), "__init__");
        if has_arguments && class.getattr(name)?.is(&class.py().get_type::<PyAny>().getattr(name)?) {
            return Err(PyTypeError::new_err(format!("{} has no __init__ with arguments", class.name()?)));
        }
        Ok(INITIAL)
    }

    // The setters raise an error at the line of the control that assigns an invalid value.
    #[setter]
    fn set_cwnd_bytes(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cwnd_bytes = quantity(value, "cwnd_bytes")?;
        Ok(())
    }

    #[setter]
    fn set_ssthresh_bytes(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.ssthresh_bytes = quantity(value, "ssthresh_bytes")?;
        Ok(())
    }

    #[setter]
    fn set_pacing_bps(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let rate_bps = quantity(value, "pacing_bps")?;
        if rate_bps > 0.0 && rate_bps < 1.0 {
            return Err(PyValueError::new_err(format!(
                "pacing_bps is {rate_bps}; expected at least 1 bit/s, or 0 for the pacing setting of the transport"
            )));
        }
        if rate_bps > 0.0 && self.paces == Some(false) {
            return Err(unpaced());
        }
        self.pacing_bps = rate_bps;
        Ok(())
    }

    /// Called when the connection is established. `rtt_s` is the round-trip sample of the handshake, or `None`.
    fn on_established(&mut self, now_s: f64, rtt_s: Option<f64>) {
        let _ = (now_s, rtt_s);
    }

    /// Called for each acknowledgment batch. A subclass must define it.
    fn on_ack(&mut self, ack: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = ack;
        Err(pyo3::exceptions::PyNotImplementedError::new_err("a congestion control must define on_ack(self, ack)"))
    }

    /// Called when a loss or an ECN mark starts a reduction. The default sets the threshold to half of the bytes in flight,
    /// at least two segments (RFC 5681 equation 4).
    fn on_congestion(&mut self, event: &Bound<'_, CongestionEvent>) {
        self.halve(event.get().in_flight_bytes);
        if event.get().ecn {
            self.cwnd_bytes = self.ssthresh_bytes;
        }
    }

    /// Called when recovery ends. The transport has set the window to the threshold. `undone`: whether the reduction
    /// was spurious.
    fn on_recovery_exit(&mut self, now_s: f64, in_flight_bytes: u64, undone: bool) {
        let _ = (now_s, in_flight_bytes, undone);
    }

    /// Called when the retransmission timer expires. The default sets the threshold as `on_congestion` does. The transport
    /// then sets the window to one segment.
    fn on_timeout(&mut self, timeout: &Bound<'_, Timeout>) {
        if !timeout.get().repeated {
            self.halve(timeout.get().in_flight_bytes);
        }
    }
}

impl CongestionControl {
    fn halve(&mut self, in_flight_bytes: u64) {
        self.ssthresh_bytes = (in_flight_bytes as f64 / 2.0).max(2.0 * self.mss_bytes as f64);
    }
}

/// The first error of a control, which ends the run.
#[derive(Clone, Default)]
pub(crate) struct Failure {
    error: Arc<Mutex<Option<PyErr>>>,
    stop: Arc<AtomicBool>,
}

impl Failure {
    /// Creates an empty failure; `stop` ends the run.
    pub(crate) fn new(stop: Arc<AtomicBool>) -> Self {
        Failure { error: Arc::default(), stop }
    }

    fn set(&self, error: PyErr) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Removes and returns the error.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Runs `work` on this thread with one Python thread state. Otherwise, each call of a control would create and delete a
/// thread state and the memory of its stack.
pub(crate) fn with_thread_state<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    Python::attach(|py| py.detach(work))
}

/// The control of one end of a connection, which calls a Python object.
struct PythonControl {
    /// `None` if the object could not be created.
    object: Option<Py<PyAny>>,
    requirements: ControlRequirements,
    failure: Failure,
}

impl fmt::Debug for PythonControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PythonControl")
    }
}

/// Returns a function that creates controls of a class. An error ends the run.
pub(crate) fn factory(
    class: Py<PyAny>,
    failure: Failure,
) -> impl Fn(&ConnectionContext<'_>) -> Box<dyn Controller> + Send + Sync {
    move |_| {
        let made = Python::attach(|py| {
            let class = class.bind(py);
            if !class.is_callable() {
                return Err(PyTypeError::new_err(format!(
                    "found a control of type {}; expected a subclass of fullpipe.CongestionControl, not an instance",
                    class.get_type().name()?
                )));
            }
            let object = class.call0()?;
            let control = object.cast::<CongestionControl>().map_err(|_| {
                let kind = object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
                PyTypeError::new_err(format!(
                    "found a control of type {kind}; expected a subclass of fullpipe.CongestionControl"
                ))
            })?;
            check_hooks(&object.get_type())?;
            let requirements = requirements(&object.get_type())?;
            let mut state = control.borrow_mut();
            if state.paces.is_some() {
                return Err(PyTypeError::new_err(
                    "the function of `controls` returned the same control twice; expected a new control for each end of \
                     each connection",
                ));
            }
            if state.pacing_bps > 0.0 && !requirements.pacing {
                return Err(unpaced());
            }
            let before = [
                ("cwnd_bytes", state.cwnd_bytes, INITIAL.cwnd_bytes),
                ("ssthresh_bytes", state.ssthresh_bytes, INITIAL.ssthresh_bytes),
                ("pacing_bps", state.pacing_bps, INITIAL.pacing_bps),
            ];
            if let Some((name, ..)) = before.into_iter().find(|(_, value, initial)| value != initial) {
                return Err(PyValueError::new_err(format!(
                    "{name} was set before the connection was established, which has no effect; set it in \
                     on_established(self, now_s, rtt_s)"
                )));
            }
            state.paces = Some(requirements.pacing);
            drop(state);
            Ok((requirements, object.clone().unbind()))
        });
        let (requirements, object) = match made {
            Ok((requirements, object)) => (requirements, Some(object)),
            Err(error) => {
                failure.set(error);
                (ControlRequirements::default(), None)
            }
        };
        Box::new(PythonControl { object, requirements, failure: failure.clone() })
    }
}

fn unpaced() -> PyErr {
    PyValueError::new_err(
        "pacing_bps has an effect only if the control requires pacing; add it to the class: requirements = (\"pacing\",)",
    )
}

/// Returns an error if a public method has the form of a hook's name, but is no hook: the transport would never call it.
fn check_hooks(class: &Bound<'_, PyType>) -> PyResult<()> {
    for name in class.dir()? {
        let name: String = name.extract()?;
        if name.starts_with("on_") && !HOOKS.contains(&name.as_str()) && class.getattr(&*name)?.is_callable() {
            let hint = nearest_name(&name, HOOKS).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Err(PyTypeError::new_err(format!(
                "{}.{name} is not a method that the transport calls{hint} (one of: {}); names of other methods must not \
                 begin with on_",
                class.name()?,
                HOOKS.join(", ")
            )));
        }
    }
    Ok(())
}

/// A signal that a control can require, and the function that requires it.
type Signal = (&'static str, fn(&mut ControlRequirements));

/// The signals that a control can require.
const SIGNALS: [Signal; 4] = [
    ("delivery_rate", |requirements| requirements.delivery_rate = true),
    ("pacing", |requirements| requirements.pacing = true),
    ("ecn_counts", |requirements| requirements.ecn_counts = true),
    ("own_recovery", |requirements| requirements.own_recovery = true),
];

fn signals() -> String {
    SIGNALS.map(|(signal, _)| signal).join(", ")
}

/// Reads the class attribute `requirements`.
fn requirements(class: &Bound<'_, PyType>) -> PyResult<ControlRequirements> {
    let mut requirements = ControlRequirements::default();
    let Ok(names) = class.getattr("requirements") else { return Ok(requirements) };
    let wrong = |found: &Bound<'_, PyAny>| {
        PyTypeError::new_err(format!(
            "requirements: found {}; expected a tuple of signals ({})",
            found.repr().map_or_else(|_| "another value".to_owned(), |text| text.to_string()),
            signals()
        ))
    };
    if names.is_instance_of::<PyString>() {
        return Err(wrong(&names));
    }
    for name in names.try_iter().map_err(|_| wrong(&names))? {
        let name = name?;
        let name: String = name.extract().map_err(|_| wrong(&name))?;
        let Some((_, require)) = SIGNALS.iter().find(|(signal, _)| *signal == name) else {
            return Err(PyValueError::new_err(format!(
                "requirements: unknown signal {name:?} (one of: {})",
                signals()
            )));
        };
        require(&mut requirements);
    }
    Ok(requirements)
}

/// Returns a time in seconds; `None` for zero, which means that there was no sample.
fn known(time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| time.as_secs_f64())
}

/// Returns the value of an attribute that a control assigns.
fn quantity(value: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    let number: f64 = value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{name}: the integer is too large; expected a number of at least 0"));
        }
        let kind = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("{name}: found a value of type {kind}; expected a number of at least 0"))
    })?;
    if number.is_nan() || number < 0.0 {
        return Err(PyValueError::new_err(format!("{name} is {number}; expected a number of at least 0")));
    }
    Ok(number)
}

/// Returns the Python value of an integer of the transport. Keeps the earlier fraction if the integer has not changed.
fn exact(value: u64, before: f64) -> f64 {
    if value == u64::MAX {
        f64::INFINITY
    } else if before as u64 == value {
        before
    } else {
        value as f64
    }
}

impl PythonControl {
    fn call(&mut self, window: &mut WindowState, method: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<()>) {
        if self.failure.stop.load(Ordering::Relaxed) {
            return;
        }
        let Some(object) = &self.object else { return };
        let called = Python::attach(|py| {
            let object = object.bind(py);
            let state = object.cast::<CongestionControl>().map_err(PyErr::from)?;
            let before = *state.borrow();
            *state.borrow_mut() = CongestionControl {
                cwnd_bytes: exact(window.cwnd_bytes, before.cwnd_bytes),
                ssthresh_bytes: exact(window.ssthresh_bytes, before.ssthresh_bytes),
                pacing_bps: exact(window.pacing_bps, before.pacing_bps),
                mss_bytes: window.mss_bytes,
                paces: before.paces,
            };
            method(py, object)?;
            let after = *state.borrow();
            // The transport uses integers. The conversion saturates: infinity is the largest integer.
            window.cwnd_bytes = after.cwnd_bytes as u64;
            window.ssthresh_bytes = after.ssthresh_bytes as u64;
            window.pacing_bps = after.pacing_bps as u64;
            Ok(())
        });
        if let Err(error) = called {
            self.failure.set(error);
        }
    }
}

impl Controller for PythonControl {
    fn name(&self) -> &'static str {
        "python"
    }

    fn requirements(&self) -> ControlRequirements {
        self.requirements
    }

    fn on_established(&mut self, control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        let arguments = (now.as_secs_f64(), rtt.map(Duration::as_secs_f64));
        self.call(control, |py, object| object.call_method1(intern!(py, "on_established"), arguments).map(drop));
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &native::Ack) {
        let ack = Ack {
            now_s: ack.now.as_secs_f64(),
            newly_acked_bytes: ack.acked_bytes,
            cumulative_bytes: ack.cumulative_bytes,
            lost_bytes: ack.lost_bytes,
            rtt_s: ack.rtt.map(Duration::as_secs_f64),
            smoothed_rtt_s: known(ack.smoothed_rtt),
            min_rtt_s: known(ack.min_rtt),
            in_flight_bytes: ack.in_flight_bytes,
            prior_in_flight_bytes: ack.prior_in_flight_bytes,
            delivered_bytes: ack.delivered_bytes,
            round_count: ack.round_count,
            round_start: ack.round_start,
            delivery_rate_bps: ack.rate.map(|rate| rate.bits_per_second() as f64),
            app_limited: ack.app_limited,
            cwnd_limited: ack.cwnd_limited,
            in_recovery: ack.in_recovery,
            ce_packets: ack.ce_packets,
        };
        self.call(control, |py, object| object.call_method1(intern!(py, "on_ack"), (Py::new(py, ack)?,)).map(drop));
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &native::CongestionEvent) {
        let event = CongestionEvent {
            now_s: congestion.now.as_secs_f64(),
            in_flight_bytes: congestion.in_flight_bytes,
            lost_bytes: congestion.lost_bytes,
            ecn: congestion.ecn,
            persistent: congestion.persistent,
        };
        self.call(control, |py, object| {
            object.call_method1(intern!(py, "on_congestion"), (Py::new(py, event)?,)).map(drop)
        });
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        let arguments = (exit.now.as_secs_f64(), exit.in_flight_bytes, exit.undone);
        self.call(control, |py, object| object.call_method1(intern!(py, "on_recovery_exit"), arguments).map(drop));
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &native::Timeout) {
        let event = Timeout {
            now_s: timeout.now.as_secs_f64(),
            in_flight_bytes: timeout.in_flight_bytes,
            repeated: timeout.repeated,
        };
        self.call(control, |py, object| {
            object.call_method1(intern!(py, "on_timeout"), (Py::new(py, event)?,)).map(drop)
        });
    }
}
