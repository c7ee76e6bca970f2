//! The keys of `[[event]]`: a condition on a metric, a change of a link or of an application, and metrics to record.

use crate::schema::{FieldKind, Table, keys};
use fullpipe_network::link::DELAY;

const ANY_NUMBER: FieldKind = FieldKind::number(f64::NEG_INFINITY, f64::INFINITY);

static WHEN: Table = Table {
    name: "condition",
    text: "A metric of a flow or of a link, and the values for which the condition is met. Exactly one of `is`, `above` and `below` \
           is given with `metric`.",
    fields: &[keys! {
        /// The flow, by its name.
        "flow": FieldKind::Text, optional "`link` is given";
        /// The direction of a link, by its name.
        "link": FieldKind::Text, optional "`flow` is given";
        /// Of a flow: the end whose metric is read: `client` (the host of `from`), `server`, or the name of one of these hosts.
        "end": FieldKind::Text, optional "the sender of the main direction";
        /// The metric, as in a probe; no rates and delays, which are means over an interval.
        "metric": FieldKind::Text, optional "none: the condition is always met";
        /// The value, or the name of a state of the congestion control, such as `probe_bw_up`.
        "is": FieldKind::Either(&ANY_NUMBER, &FieldKind::Text), optional "another key is given";
        /// The metric must be larger than this number, in its unit.
        "above": ANY_NUMBER, optional "another key is given";
        /// The metric must be smaller than this number, in its unit.
        "below": ANY_NUMBER, optional "another key is given";
        /// Whether the condition must first be unmet, so that it is met by a change after `from`.
        "entry": FieldKind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

static SET: Table = Table {
    name: "change",
    text: "A change of a direction of a link, or of the rate at which the application of a flow writes. Exactly one of `link` and \
           `flow` is given, and at least one of the keys for it.",
    fields: &[
        keys! {
            /// The direction of a link, by its name: `bottleneck`, `bottleneck.reverse`. It has no `trace` and no `schedule_repeat`.
            "link": FieldKind::Text, optional "`flow` is given";
            /// Of a link: its new rate. A frame in transmission continues at this rate.
            "rate": FieldKind::RATE, optional "unchanged";
            /// Of a link: whether it stops transmitting, instead of `rate`.
            "outage": FieldKind::Boolean, default "false";
            /// Of a link: its new delay. A frame has the delay at the end of its transmission.
            "delay": DELAY, optional "unchanged";
            /// Of a link: the probability with which frames are lost at random from then on, in addition to `loss`.
            /// The link has no `loss_schedule_repeat`.
            "loss": FieldKind::PROBABILITY, optional "unchanged";
        },
        keys! {
            /// The flow, by its name. Its workload is `bulk`.
            "flow": FieldKind::Text, optional "`link` is given";
            /// Of a flow: the rate at which its application writes from then on, as in `limits`.
            "write_rate": FieldKind::RATE, optional "unchanged";
            /// Of a flow: whether its application writes nothing from then on, instead of `write_rate`.
            "pause": FieldKind::Boolean, default "false";
            /// Of a flow: whether its application is no longer limited, instead of `write_rate`.
            "unlimited": FieldKind::Boolean, default "false";
            /// Of a flow: time after which its application is not limited again.
            "for": FieldKind::INTERVAL, optional "to the end of the run";
        },
    ],
    ..Table::EMPTY
};

pub(super) static EVENT: Table = Table {
    name: "event",
    text: "An event happens once, at a time that the run determines: `after` the first time at which `when` is met, and at least 1 ns later. \
           It changes a link or an application, records metrics, or both. Each event is a row of \
           [`events.csv`](records.md#eventscsv), also if it does not happen. A condition is checked after every event of the \
           simulation; it does not see a value that lasts for no time. An event without `set` does not change the run. The run is \
           repeated from its start for each change, so its cost is multiplied by the number of changes plus one. Events require \
           virtual time.",
    fields: &[keys! {
        /// Its name, unique among events.
        "name": FieldKind::Name, required;
        /// The condition.
        "when": FieldKind::Table(&WHEN), optional "none: it is met at `from`";
        /// Earliest time at which the condition can be met.
        "from": FieldKind::DURATION, default "0s";
        /// Another event that must have happened before the condition can be met.
        "follows": FieldKind::Text, optional "none";
        /// Time from the condition to the event: a duration, or a number of smoothed round-trip times of the condition's flow at the
        /// time of the condition, such as `"1rtt"`.
        "after": FieldKind::Text, default "0s";
        /// The change.
        "set": FieldKind::Table(&SET), optional "none";
        /// Metrics of the condition's flow or link whose values at the time of the event are recorded.
        "record": FieldKind::List(&FieldKind::Text), default "[]";
    }],
    ..Table::EMPTY
};
