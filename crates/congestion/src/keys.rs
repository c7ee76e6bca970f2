//! Scenario keys of congestion controls that the tables of several transports contain.

use crate::component::ControlOptions;
use fullpipe_schema::component::choices;
use fullpipe_schema::settings::{FieldAccess, SettingKey, set_from_choice};
use fullpipe_schema::{Choice, FieldKind, Value, ValueData, named, setting_keys};

/// Whether Copa has a fixed delta.
static COPA_MODES: [(Choice, bool); 2] = named! {
    /// Default mode only, with delta 0.5.
    "fixed-delta" => true;
    /// Mode detection: delta becomes smaller while competing flows fill the queue.
    "switching" => false;
};

/// Accesses an option that resolved scenarios contain only if it is set.
macro_rules! optional {
    ($option:ident) => {
        FieldAccess {
            get: |options, _| options.$option.then_some(ValueData::Boolean(true)),
            set: |options, value| options.$option = value.map_or(options.$option, Value::boolean),
        }
    };
}

/// The keys of options that TCP and QUIC share. `hystart` is not among them, because its default depends on the transport.
pub static OPTION_KEYS: [SettingKey<ControlOptions>; 5] = setting_keys! {
    /// Whether all loss-based controls with the standard slow start use HyStart++ (RFC 9406), including those that
    /// `hystart` does not affect: `bic`, `highspeed`, `htcp`, `illinois`, `scalable`, `veno`, `westwood` and `yeah`.
    "hystart_all": FieldKind::Boolean, optional "false" => optional!(hystart_all);
    /// Whether a congestion mark reduces the window less than a loss (Alternative Backoff with ECN, RFC 8511), in `newreno`,
    /// `linux-reno` (0.8 of the window) and `cubic` (0.85).
    "abe": FieldKind::Boolean, optional "false" => optional!(abe);
    /// Whether `prague` reduces its window as a classic control does if it detects a queue with classic marking
    /// (arXiv:1911.00710).
    "classic_ecn_fallback": FieldKind::Boolean, optional "false" => optional!(classic_ecn_fallback);
    /// Whether the window also grows while the application or flow control limits sending
    /// (draft-ietf-ccwg-ratelimited-increase). It grows at most to the window that one round trip with the largest
    /// flight so far would reach. Without this option, the window grows only while it limits sending; in `newreno` over
    /// TCP, it always grows. `copa` and BBR do not use the option.
    "rate_limited_increase": FieldKind::Boolean, optional "false" => optional!(rate_limited_increase);
    /// Modes that `copa` may use. With `"switching"`, its mode detection can mistake the queue of Copa flows for that
    /// of a competing flow.
    "copa_mode": FieldKind::Choice(&choices(&COPA_MODES)), optional "`\"switching\"`" => FieldAccess {
        get: |options, _| options.copa_fixed_delta.then_some(ValueData::Choice("fixed-delta")),
        set: |options, value| set_from_choice(&mut options.copa_fixed_delta, value, &COPA_MODES),
    };
};
