//! Settings of both endpoints of a QUIC flow (stack, congestion control and connection), the keys of the scenario table
//! `quic`, and the checks for contradictory keys.

use crate::config::{CERTIFICATE_KEYS, CONNECTION_KEYS, Config, MODEL_KEYS};
use crate::scheduler::{self, SCHEDULERS};
use fullpipe_congestion::catalogue::CHOICES;
use fullpipe_congestion::component::ControlOptions;
use fullpipe_congestion::keys::OPTION_KEYS;
use fullpipe_schema::component::{InvalidSettings, SettingsReader, choices};
use fullpipe_schema::distributions::{TIME_OR_RANDOM, check_distribution};
use fullpipe_schema::settings::{SettingKey, SettingKeys, SettingsPart, SettingsTable, fields};
use fullpipe_schema::{
    self as schema, Choice, Diagnostics, Field, FieldKind, SourceLocation, Table, Tree, ValueData, at, named,
    parse_default, setting_keys,
};
use fullpipe_transport::quic::{self, Cryptography, GRANULARITY};
use fullpipe_units::{Distribution, Duration};

/// The implementation of the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicStack {
    /// The real stack: noq.
    Noq,
    /// The model of this crate.
    Model,
}

/// Settings of both endpoints of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The implementation of the endpoints.
    pub stack: QuicStack,
    /// Name of the congestion control algorithm.
    pub congestion: String,
    /// Options of the congestion control. The transport determines `paced` and `quic`.
    pub control: ControlOptions,
    /// Time in seconds from the arrival of a datagram at an endpoint of the real stack to the reaction of the endpoint.
    pub reaction: Distribution,
    /// The interval between timer ticks at an endpoint of the real stack; zero if timers are exact.
    pub timer_granularity: Duration,
    /// The protection of packets; the model supports only [`Cryptography::Null`].
    pub cryptography: Cryptography,
    /// Settings of the connections. The real stack uses only those for the MTU, initial window, stream buffers, idle
    /// timeout and certificates.
    pub connection: Config,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            stack: QuicStack::Noq,
            congestion: "cubic".into(),
            control: ControlOptions { hystart: true, ..ControlOptions::default() },
            reaction: Distribution::Constant { value: 0.0 },
            timer_granularity: Duration::ZERO,
            cryptography: Cryptography::Null,
            connection: Config::default(),
        }
    }
}

/// The implementations of the endpoints.
pub static STACKS: [(Choice, QuicStack); 2] = named! {
    /// the real stack noq, in virtual time.
    "noq" => QuicStack::Noq;
    /// the model: streams, schedulers, any congestion control; no cryptography, sizes as on the wire.
    "model" => QuicStack::Model;
};

static ENDS: [SettingKey<Settings>; 3] = setting_keys! {
    /// The implementation of both ends.
    "stack": FieldKind::Choice(&choices(&STACKS)), setting => at!(stack, STACKS);
    /// Congestion control. noq always paces. It does not report the number of marked packets, so controls that need it
    /// (`dctcp`, `prague`) are rejected.
    "congestion": FieldKind::Choice(CHOICES), setting => at!(congestion);
    quic::hystart(at!(control.hystart));
};

static CONTROL: SettingsPart<Settings, ControlOptions> =
    SettingsPart { keys: &OPTION_KEYS, get: |settings| &settings.control, get_mut: |settings| &mut settings.control };

static PROGRAM: [SettingKey<Settings>; 2] = setting_keys! {
    /// Time that an end takes from the arrival of a datagram to its reaction (`stack = "noq"`), constant or random.
    /// Datagrams that arrive in this time are processed together, as in a program that reads its socket: packets that
    /// arrive at once cause fewer acknowledgements.
    "reaction": TIME_OR_RANDOM, setting => at!(reaction);
    /// Interval between ticks of the timers of an end (`stack = "noq"`), which delay mainly pacing. A timer expires at
    /// the first tick after its deadline; 0s: exact timers. Programs with tokio have 1 ms.
    "timer_granularity": GRANULARITY, setting => at!(timer_granularity);
};

static CRYPTOGRAPHY: [SettingKey<Settings>; 1] = [quic::cryptography(at!(cryptography, quic::CRYPTOGRAPHY))];

/// The key that names a stream scheduler.
static SCHEDULER: [Field; 1] = [Field::setting(
    SCHEDULERS.key,
    FieldKind::Choice(&scheduler::NAMES),
    "The scheduler that selects the stream that sends next. This key and all below apply to the model only.",
)];

/// The keys that select a stream scheduler. When settings are written, the scheduler's further keys have their
/// defaults.
struct SchedulerKeys;

impl SettingKeys<Config> for SchedulerKeys {
    fn fields(&self) -> Vec<Field> {
        SCHEDULER.to_vec()
    }

    fn write(&self, config: &Config, tree: &mut Tree) {
        tree.fill(SCHEDULERS.key, ValueData::Choice(config.scheduler.create().name()));
        for field in &scheduler::KEYS {
            if let schema::DefaultValue::Inherited(value) = field.default {
                tree.fill(field.key, parse_default(&field.kind, value));
            }
        }
    }

    fn read(&self, config: &mut Config, reader: &mut SettingsReader<'_, '_>) -> Result<(), InvalidSettings> {
        config.scheduler = SCHEDULERS.read(reader, &())?;
        Ok(())
    }
}

const fn of_connection(keys: &'static dyn SettingKeys<Config>) -> SettingsPart<Settings, Config> {
    SettingsPart { keys, get: |settings| &settings.connection, get_mut: |settings| &mut settings.connection }
}

/// The table `quic` of a scenario file.
pub static QUIC: Table = Table {
    name: "quic",
    text: "Settings of QUIC (RFC 9000) at both ends. `[quic]` applies to all flows, `[flow.quic]` after a `[[flow]]` to that \
           flow. Each connection of a flow has one stream, except for web pages over the model. The processing time of the ends is 0.",
    fields: &[
        &fields(&ENDS),
        &fields(&OPTION_KEYS),
        &fields(&CONNECTION_KEYS),
        &fields(&PROGRAM),
        &fields(&CERTIFICATE_KEYS),
        &fields(&CRYPTOGRAPHY),
        &SCHEDULER,
        &scheduler::KEYS,
        &fields(&MODEL_KEYS),
    ],
    defaults: Some(|| SETTINGS.defaults(SourceLocation::default())),
    ..Table::EMPTY
};

/// The table `quic`, with the settings that it contains.
pub static SETTINGS: SettingsTable<Settings> = SettingsTable {
    table: &QUIC,
    keys: &[
        &ENDS,
        &CONTROL,
        &PROGRAM,
        &CRYPTOGRAPHY,
        &of_connection(&CONNECTION_KEYS),
        &of_connection(&CERTIFICATE_KEYS),
        &of_connection(&SchedulerKeys),
        &of_connection(&MODEL_KEYS),
    ],
};

/// max_ack_delay is less than 2^14 ms.
const MOST_ACK_DELAY: Duration = Duration::from_millis(1 << 14);

/// The keys that apply only to the model.
fn of_model() -> impl Iterator<Item = &'static Field> {
    SCHEDULER.iter().chain(&scheduler::KEYS).chain(MODEL_KEYS.iter().map(|key| &key.field))
}

/// Whether a key applies only to the model and not to the real stack.
pub fn is_model_key(key: &str) -> bool {
    of_model().any(|field| field.key == key)
}

/// Checks a table in which all keys are present for contradictory keys; `path` is the path of the table.
pub fn check(tree: &Tree, path: &str, check: &mut Diagnostics) {
    if tree.choice_value("stack", &STACKS) == QuicStack::Model {
        if tree.choice_value("cryptography", &quic::CRYPTOGRAPHY) != Cryptography::Null {
            let message = "the QUIC model does not support cryptography".to_string();
            let expected = vec!["cryptography = \"null\"".into(), "stack = \"noq\"".into()];
            check.add_error(tree.location_of("cryptography"), &format!("{path}.cryptography"), message, expected);
        }
        if tree.duration("max_ack_delay") >= MOST_ACK_DELAY {
            let message = format!("{path}.max_ack_delay = {} is too long", tree.duration("max_ack_delay"));
            let expected = vec!["less than 16.384s (RFC 9000 section 18.2)".into()];
            check.add_error(tree.location_of("max_ack_delay"), &format!("{path}.max_ack_delay"), message, expected);
        }
        return;
    }
    check_distribution(tree, "reaction", path, check);
    let untouched = SETTINGS.defaults(tree.place);
    for field in of_model().filter(|field| tree.get(field.key) != untouched.get(field.key)) {
        let message = format!("{} applies to the QUIC model only, but {path} has stack = \"noq\"", field.key);
        let expected = vec!["stack = \"model\"".into()];
        check.add_error(tree.location_of(field.key), &format!("{path}.{}", field.key), message, expected);
    }
}

/// Inserts every missing key of a table, with its value in `inherited` or otherwise its default. If the stack is not
/// the model, missing keys that apply only to the model get their defaults.
pub fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    // The stack is first, because a flow with another stack does not inherit keys of the model.
    if let Some(stack) = inherited.and_then(|inherited| inherited.get("stack")) {
        tree.fill("stack", stack.data.clone());
    }
    let model = tree.get("stack").is_some_and(|stack| stack.choice_value(&STACKS) == QuicStack::Model);
    SETTINGS.fill(tree, inherited, |key| model || !is_model_key(key));
}
