//! The settings of a script, and the values that it can check.

use super::parse::{Check, duration, number};
use crate::common::{Halving, next_deadline};
use fullpipe_congestion::Controller;
use fullpipe_congestion::catalogue;
use fullpipe_tcp::{Config, Connection, EcnFeedback, EcnMode, KeepAlive, LossDetection, State};
use fullpipe_transport::Stream;
use fullpipe_units::{Duration, Instant};

type Parsed<T> = Result<T, String>;

/// A value of a setting.
trait Setting: Sized {
    fn parse(text: &str) -> Parsed<Self>;
}

impl Setting for bool {
    fn parse(text: &str) -> Parsed<bool> {
        text.parse().map_err(|_| format!("{text}: true or false"))
    }
}

impl Setting for u32 {
    fn parse(text: &str) -> Parsed<u32> {
        number(text)
    }
}

impl Setting for u64 {
    fn parse(text: &str) -> Parsed<u64> {
        number(text)
    }
}

impl Setting for Duration {
    fn parse(text: &str) -> Parsed<Duration> {
        duration(text)
    }
}

impl<T: Setting> Setting for Option<T> {
    fn parse(text: &str) -> Parsed<Option<T>> {
        if text == "none" { Ok(None) } else { T::parse(text).map(Some) }
    }
}

impl Setting for LossDetection {
    fn parse(text: &str) -> Parsed<LossDetection> {
        match text {
            "rack" => Ok(LossDetection::Rack),
            "duplicate-acks" => Ok(LossDetection::DuplicateAcks),
            _ => Err(format!("{text}: rack or duplicate-acks")),
        }
    }
}

impl Setting for EcnMode {
    fn parse(text: &str) -> Parsed<EcnMode> {
        match text {
            "off" => Ok(EcnMode::Off),
            "passive" => Ok(EcnMode::Passive),
            "active" => Ok(EcnMode::Active),
            _ => Err(format!("{text}: off, passive or active")),
        }
    }
}

impl Setting for EcnFeedback {
    fn parse(text: &str) -> Parsed<EcnFeedback> {
        match text {
            "classic" => Ok(EcnFeedback::Classic),
            "dctcp" => Ok(EcnFeedback::Dctcp),
            "accurate" => Ok(EcnFeedback::Accurate),
            _ => Err(format!("{text}: classic, dctcp or accurate")),
        }
    }
}

impl Setting for KeepAlive {
    fn parse(text: &str) -> Parsed<KeepAlive> {
        let parts: Vec<_> = text.split('/').collect();
        match parts.as_slice() {
            ["default"] => Ok(KeepAlive::default()),
            [idle, interval, probes] => {
                Ok(KeepAlive { idle: duration(idle)?, interval: duration(interval)?, probes: number(probes)? })
            }
            _ => Err(format!("{text}: default, or idle/interval/probes")),
        }
    }
}

macro_rules! fields {
    ($config:ident, $key:ident, $text:ident: $($field:ident)*) => {
        match $key {
            $(stringify!($field) => $config.$field = Setting::parse($text)?,)*
            _ => return Err(format!("{}: no setting of a connection", $key)),
        }
    };
}

/// Executes `set KEY VALUE`.
pub fn set(config: &mut Config, key: &str, text: &str) -> Parsed<()> {
    fields!(config, key, text:
        mss_bytes initial_window_segments initial_ssthresh_bytes send_buffer_bytes receive_buffer_bytes sack timestamps timestamp_tick
        rtt_from_timestamps window_scaling mss_option delayed_ack_segments delayed_ack_timeout nagle min_rto
        initial_rto max_rto loss_detection tail_loss_probe pacing pacing_quantum_segments idle_restart
        max_syn_retransmissions max_retransmissions time_wait first_segment_acknowledged_at_once quick_ack
        fin_with_data_acknowledged_twice keep_alive user_timeout fin_wait_2_timeout initial_receive_window_bytes
        fast_open black_hole_timeouts
        dsack dsack_undo eifel frto limited_transmit ecn ecn_feedback proportional_ecn_reduction
    );
    Ok(())
}

/// Returns the control with this name.
pub fn control(name: &str) -> Parsed<Box<dyn Controller>> {
    if name == "halving" {
        return Ok(Box::new(Halving));
    }
    let options = catalogue::ControlOptions::default();
    catalogue::create(name, &options).map_err(|unknown| format!("{}: no control", unknown.found))
}

/// A value of the connection.
enum Measured {
    Count(u64),
    Time(Duration),
    At(Instant),
    Word(String),
}

fn state_name(state: State) -> &'static str {
    match state {
        State::Listen => "LISTEN",
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}

fn measure(connection: &Connection, key: &str) -> Option<Measured> {
    let inspect = connection.inspect();
    let statistics = connection.statistics();
    Some(match key {
        "state" => Measured::Word(state_name(connection.state()).to_owned()),
        "cookie" => {
            Measured::Word(connection.fast_open_entry().map_or("none".into(), |entry| {
                entry.cookie.as_slice().iter().map(|byte| format!("{byte:02x}")).collect()
            }))
        }
        "cached_mss" => {
            Measured::Count(connection.fast_open_entry().and_then(|entry| entry.mss_bytes).map_or(0, u64::from))
        }
        "syn_payload" => Measured::Count(statistics.syn_payload_bytes),
        "closed" => Measured::Word(connection.is_closed().to_string()),
        "in_recovery" => Measured::Word(inspect.in_recovery.to_string()),
        "deadline" => Measured::At(next_deadline(connection)),
        "rto" => Measured::Time(inspect.rto),
        "srtt" => Measured::Time(inspect.smoothed_rtt),
        "min_rtt" => Measured::Time(inspect.min_rtt),
        "latest_rtt" => Measured::Time(inspect.latest_rtt),
        "cwnd" => Measured::Count(inspect.cwnd_bytes),
        "ssthresh" => Measured::Count(inspect.ssthresh_bytes),
        "in_flight" => Measured::Count(inspect.in_flight_bytes),
        "mss" => Measured::Count(inspect.mss_bytes),
        "peer_window" => Measured::Count(inspect.peer_window_bytes),
        "send_buffer" => Measured::Count(inspect.send_buffer_bytes),
        "readable" => Measured::Count(connection.readable_bytes()),
        "writable" => Measured::Count(connection.writable_bytes()),
        "data_segments_sent" => Measured::Count(statistics.data_segments_sent),
        "retransmitted_segments" => Measured::Count(statistics.retransmitted_segments),
        "timeouts" => Measured::Count(statistics.timeouts),
        "tail_loss_probes" => Measured::Count(statistics.tail_loss_probes),
        "window_probes" => Measured::Count(statistics.window_probes),
        "recoveries" => Measured::Count(statistics.recoveries),
        "undone_reductions" => Measured::Count(statistics.undone_reductions),
        "syn_retransmissions" => Measured::Count(statistics.syn_retransmissions),
        "received" => Measured::Count(statistics.received_bytes),
        "acknowledged" => Measured::Count(statistics.acknowledged_bytes),
        "duplicates_received" => Measured::Count(statistics.duplicate_segments_received),
        _ => return None,
    })
}

/// Compares a value. The error is the expected and the actual value.
pub fn compare(connection: &Connection, check: &Check) -> Result<(), (String, String)> {
    let Check { key, comparison, value } = check;
    let wrong = |why: String| (format!("{key} {comparison} {value}"), why);
    let measured = measure(connection, key).ok_or_else(|| wrong(format!("no value is called {key}")))?;
    let never = value == "never" || value == "none";
    let (expected, found, shown) = match measured {
        Measured::Word(word) if comparison == "=" && word == *value => return Ok(()),
        Measured::Word(word) => return Err(wrong(word)),
        Measured::Count(count) if never => (u64::MAX, count, count.to_string()),
        Measured::Count(count) => (number(value).map_err(wrong)?, count, count.to_string()),
        Measured::Time(time) => (duration(value).map_err(wrong)?.as_nanos(), time.as_nanos(), time.to_string()),
        Measured::At(at) if never => (Instant::NEVER.as_nanos(), at.as_nanos(), at.to_string()),
        Measured::At(at) => (duration(value).map_err(wrong)?.as_nanos(), at.as_nanos(), at.to_string()),
    };
    let holds = match comparison.as_str() {
        "<" => found < expected,
        "<=" => found <= expected,
        ">" => found > expected,
        ">=" => found >= expected,
        _ => found == expected,
    };
    if holds { Ok(()) } else { Err(wrong(format!("{key} {shown}"))) }
}
