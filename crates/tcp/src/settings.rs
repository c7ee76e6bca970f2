//! Settings of both ends of a TCP flow: connection, congestion control, TLS and applications; the keys of the scenario
//! table `tcp`, its presets, and the checks for contradictory keys.
//!
//! A value comes from the first of these that sets it: the flow's own key, the preset that the flow's `[flow.tcp]`
//! names, the key in `[tcp]`, the preset that `[tcp]` names.

use crate::config::{BY_PRESET, Config, KEYS};
use fullpipe_congestion::catalogue::CHOICES;
use fullpipe_schema::component::choices;
use fullpipe_schema::quantity::format_readable_size;
use fullpipe_schema::settings::{
    FieldAccess, SettingKey, SettingsPart, SettingsTable, choice_name, fields, set_from_choice,
};
use fullpipe_schema::{
    Choice, DefaultValue, Diagnostics, Field, FieldKind, Table, Tree, Value, ValueData, at, named, resolved_toml,
    setting_keys,
};
use fullpipe_transport::tls;

/// Settings of both ends of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name of the congestion control.
    pub congestion: String,
    /// Whether controls that have slow start use HyStart++ (RFC 9406).
    pub hystart: bool,
    /// Whether HyStart++ is enabled in all loss-based controls with the standard slow start.
    pub hystart_all: bool,
    /// Whether controls use the HyStart behavior of Linux instead of HyStart++.
    pub linux_hystart: bool,
    /// Alternative Backoff with ECN (RFC 8511) in NewReno, Linux's Reno and CUBIC.
    pub abe: bool,
    /// Whether Prague falls back if it detects classic marking.
    pub classic_ecn_fallback: bool,
    /// Whether the window grows by the rules of draft-ietf-ccwg-ratelimited-increase.
    pub rate_limited_increase: bool,
    /// Whether Copa stays in its default mode, with a fixed delta.
    pub copa_fixed_delta: bool,
    /// Whether the client has a Fast Open cookie from the start (RFC 7413).
    pub fast_open_known: bool,
    /// Type of the client's TLS handshake (RFC 8446); `None`: no TLS.
    pub tls: Option<tls::HandshakeMode>,
    /// Size of the server's certificate chain in bytes.
    pub tls_certificate_bytes: u64,
    /// Whether the receiver closes its side after the sender has closed.
    pub receiver_closes: bool,
    /// Settings of the connections.
    pub connection: Config,
}

impl Settings {
    /// The preset `linux`: [`Config::linux_large_buffers`] with CUBIC.
    pub fn linux() -> Settings {
        Settings {
            congestion: "cubic".into(),
            hystart: true,
            hystart_all: false,
            linux_hystart: false,
            abe: false,
            classic_ecn_fallback: false,
            rate_limited_increase: false,
            copa_fixed_delta: false,
            fast_open_known: false,
            tls: None,
            tls_certificate_bytes: 3000,
            receiver_closes: true,
            connection: Config::linux_large_buffers(),
        }
    }

    /// The preset `ns3`: [`Config::ns3`] with NewReno; the receiver does not close its socket. HyStart is disabled,
    /// because in ns-3 only `TcpCubic` has HyStart. [`fill`] enables it for CUBIC.
    pub fn ns3() -> Settings {
        Settings {
            congestion: "newreno".into(),
            hystart: false,
            receiver_closes: false,
            connection: Config::ns3(),
            ..Settings::linux()
        }
    }

    /// Settings of the TLS sessions; `None` if TLS is not used.
    pub fn tls(&self) -> Option<tls::Settings> {
        let certificate_bytes = self.tls_certificate_bytes;
        self.tls.map(|mode| tls::Settings { mode, certificate_bytes, ..tls::Settings::default() })
    }
}

impl std::default::Default for Settings {
    fn default() -> Settings {
        Settings::linux()
    }
}

static PRESETS: [(Choice, fn() -> Settings); 2] = [
    (Choice::new("linux", "a Linux host with buffers of 32 MiB and TCP_NODELAY."), Settings::linux),
    (Choice::new("ns3", "the defaults of ns-3 (3.33 to 3.37)."), Settings::ns3),
];

static PRESET: [Field; 1] = [Field::optional(
    "preset",
    FieldKind::Choice(&choices(&PRESETS)),
    "`\"linux\"`; in a flow as `[tcp]`",
    "Preset of defaults for the other keys.",
)];

/// Whether Fast Open is used, and whether the client has a cookie.
static FAST_OPEN: [(Choice, (bool, bool)); 3] = [
    (Choice::new("off", "data are sent after the handshake."), (false, false)),
    (Choice::new("ask", "the first connection between two hosts requests a cookie; later ones use it."), (true, false)),
    (Choice::new("known", "the client has a cookie from the start."), (true, true)),
];

static TLS: [(Choice, Option<tls::HandshakeMode>); 4] = [
    (Choice::new("none", "no TLS."), None),
    (
        Choice::new("full", "full handshake with a certificate: one additional round trip (RFC 8446)."),
        Some(tls::HandshakeMode::Full),
    ),
    (
        Choice::new("resumed", "session resumption: a pre-shared key instead of a certificate."),
        Some(tls::HandshakeMode::Resumption),
    ),
    (
        Choice::new("early-data", "session resumption, and early data (0-RTT) in the first flight."),
        Some(tls::HandshakeMode::EarlyData),
    ),
];

/// Whether HyStart is that of Linux.
static HYSTART_VARIANTS: [(Choice, bool); 2] = named! {
    /// HyStart++ (RFC 9406).
    "rfc" => false;
    /// HyStart of Linux's CUBIC: by acknowledgement trains and delay, then growth by a twentieth per round trip until
    /// the first loss. `linux-reno` then has no HyStart without `hystart_all`.
    "linux" => true;
};

/// Whether Copa has a fixed delta.
static COPA_MODES: [(Choice, bool); 2] = named! {
    /// Default mode only, with delta 0.5.
    "fixed-delta" => true;
    /// Mode detection: delta becomes smaller while others fill the queue.
    "switching" => false;
};

static CONGESTION: [SettingKey<Settings>; 1] = setting_keys! {
    /// Congestion control.
    "congestion": FieldKind::Choice(CHOICES), optional BY_PRESET => at!(congestion);
};

static CONNECTION: SettingsPart<Settings, Config> =
    SettingsPart { keys: &KEYS, get: |settings| &settings.connection, get_mut: |settings| &mut settings.connection };

static ABOVE: [SettingKey<Settings>; 11] = setting_keys! {
    /// TCP Fast Open: data on the SYN (RFC 7413).
    "fast_open": FieldKind::Choice(&choices(&FAST_OPEN)), default "off" => FieldAccess {
        get: |settings, _| choice_name(&(settings.connection.fast_open, settings.fast_open_known), &FAST_OPEN),
        set: |settings, value| {
            let mut both = (false, false);
            set_from_choice(&mut both, value, &FAST_OPEN);
            (settings.connection.fast_open, settings.fast_open_known) = both;
        },
    };
    /// TLS 1.3 over the connection, modeled as round trips and sizes, without cryptography.
    "tls": FieldKind::Choice(&choices(&TLS)), default "none" => at!(tls, TLS);
    /// Size of the server's certificate chain.
    "tls_certificates": FieldKind::size(0, 1 << 20), default "3000B" => at!(tls_certificate_bytes);
    /// Whether `newreno`, `linux-reno` and `cubic` use HyStart++ (RFC 9406). With the preset `ns3`, only `cubic` does by default.
    "hystart": FieldKind::Boolean, optional BY_PRESET => at!(hystart);
    /// Whether all loss-based controls with the standard slow start use HyStart++ (RFC 9406), also those that `hystart` does not
    /// affect: `bic`, `highspeed`, `htcp`, `illinois`, `scalable`, `veno`, `westwood` and `yeah`.
    "hystart_all": FieldKind::Boolean, optional "false" => FieldAccess {
        // Absent from resolved scenarios that do not use it.
        get: |settings, _| settings.hystart_all.then_some(ValueData::Boolean(true)),
        set: |settings, value| settings.hystart_all = value.map_or(settings.hystart_all, Value::boolean),
    };
    /// Variant of HyStart.
    "hystart_variant": FieldKind::Choice(&choices(&HYSTART_VARIANTS)), default "rfc" => at!(linux_hystart, HYSTART_VARIANTS);
    /// Whether a congestion mark reduces the window less than a loss (Alternative Backoff with ECN, RFC 8511), in `newreno`,
    /// `linux-reno` (0.8 of the window) and `cubic` (0.85).
    "abe": FieldKind::Boolean, optional "false" => FieldAccess {
        // Absent from resolved scenarios that do not use it.
        get: |settings, _| settings.abe.then_some(ValueData::Boolean(true)),
        set: |settings, value| settings.abe = value.map_or(settings.abe, Value::boolean),
    };
    /// Whether `prague` reduces its window as a classic control does if it detects a queue with classic marking
    /// (arXiv:1911.00710).
    "classic_ecn_fallback": FieldKind::Boolean, optional "false" => FieldAccess {
        // Absent from resolved scenarios that do not use it.
        get: |settings, _| settings.classic_ecn_fallback.then_some(ValueData::Boolean(true)),
        set: |settings, value| settings.classic_ecn_fallback = value.map_or(settings.classic_ecn_fallback, Value::boolean),
    };
    /// Whether the window also grows while the application or flow control limits sending, at most to the window that one round trip
    /// with the largest flight so far would reach (draft-ietf-ccwg-ratelimited-increase). Without it, the window grows only while
    /// it limits sending, and in `newreno` always. `copa` and BBR do not use it.
    "rate_limited_increase": FieldKind::Boolean, optional "false" => FieldAccess {
        // Absent from resolved scenarios that do not use it.
        get: |settings, _| settings.rate_limited_increase.then_some(ValueData::Boolean(true)),
        set: |settings, value| settings.rate_limited_increase = value.map_or(settings.rate_limited_increase, Value::boolean),
    };
    /// Modes that `copa` may use. With `"switching"`, its mode detection can take the queue of Copa flows for a competitor.
    "copa_mode": FieldKind::Choice(&choices(&COPA_MODES)), optional "`\"switching\"`" => FieldAccess {
        // Absent from resolved scenarios that do not use it.
        get: |settings, _| settings.copa_fixed_delta.then_some(ValueData::Choice("fixed-delta")),
        set: |settings, value| set_from_choice(&mut settings.copa_fixed_delta, value, &COPA_MODES),
    };
    /// Whether the receiver closes its side when the sender has closed.
    "receiver_closes": FieldKind::Boolean, optional BY_PRESET => at!(receiver_closes);
};

/// The table `tcp` of a scenario file.
pub static TCP: Table = Table {
    name: "tcp",
    text: "Settings of TCP at both ends. `[tcp]` applies to all flows, `[flow.tcp]` after a `[[flow]]` to that flow. A flow \
           with its own preset starts from that preset; otherwise it starts from `[tcp]`.",
    fields: &[&PRESET, &fields(&CONGESTION), &fields(&KEYS), &fields(&ABOVE)],
    ..Table::EMPTY
};

/// The table `tcp`, and the settings that its keys set.
pub static SETTINGS: SettingsTable<Settings> = SettingsTable { table: &TCP, keys: &[&CONGESTION, &CONNECTION, &ABOVE] };

/// Sets all missing keys of a TCP table. The values are those of the preset that the table names, otherwise those of
/// `inherited`, otherwise those of the preset `linux`.
pub fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    let own_preset = tree.get("preset").map(Value::choice);
    // Tail loss probes require RACK, so a key here that selects the other loss detection also disables the inherited
    // default.
    if tree.get("loss_detection").is_some_and(|value| value.choice() == "duplicate-acks") {
        tree.fill("tail_loss_probe", ValueData::Boolean(false));
    }
    // DCTCP requires ECN feedback, so a key here that selects DCTCP also sets the ECN settings that it needs.
    if tree.get("congestion").is_some_and(|value| value.choice() == "dctcp") {
        tree.fill("ecn", ValueData::Choice("active"));
        tree.fill("ecn_feedback", ValueData::Choice("dctcp"));
    }
    // A sender of ECT(1) needs accurate feedback (RFC 9331 section 4.2).
    if tree.get("congestion").is_some_and(|value| value.choice() == "prague") {
        tree.fill("ecn", ValueData::Choice("active"));
        tree.fill("ecn_feedback", ValueData::Choice("accurate"));
    }
    // In ns-3 only CUBIC has HyStart, so a key here that selects the control also sets HyStart.
    let preset = own_preset.or(inherited.map(|inherited| inherited.choice("preset")));
    let inherits_hystart = own_preset.is_none() && inherited.is_some_and(|inherited| inherited.is_given("hystart"));
    if let (Some("ns3"), Some(congestion), false) = (preset, tree.get("congestion"), inherits_hystart) {
        let is_cubic = congestion.choice() == "cubic";
        tree.fill("hystart", ValueData::Boolean(is_cubic));
    }
    match (own_preset, inherited) {
        (None, Some(inherited)) => {
            for (key, value) in inherited.iter() {
                tree.fill(key, value.data.clone());
            }
        }
        (preset, _) => {
            let preset = preset.unwrap_or("linux");
            tree.fill("preset", ValueData::Choice(preset));
            SETTINGS.fill_from(tree, &tree.choice_value("preset", &PRESETS)());
        }
    }
}

/// Checks a resolved table for keys that contradict each other, and adds an error to `check` for each conflict. `path`
/// is the path of the table.
pub fn check(tree: &Tree, path: &str, check: &mut Diagnostics) {
    let conflict = |check: &mut Diagnostics, key: &str, other: &str, message: String, expected: String| {
        // The error is reported at the key that the file sets.
        let at = if tree.is_given(key) { key } else { other };
        check.add_error(tree.location_of(at), &format!("{path}.{at}"), message, vec![expected]);
    };
    if tree.boolean("tail_loss_probe") && tree.choice("loss_detection") != "rack" {
        let message = format!(
            "{path}.tail_loss_probe = true requires loss_detection = \"rack\", but {path} has loss_detection = \"{}\"",
            tree.choice("loss_detection")
        );
        let expected = "loss_detection = \"rack\" or tail_loss_probe = false";
        conflict(check, "tail_loss_probe", "loss_detection", message, expected.into());
    }
    for key in ["min_rto", "initial_rto"] {
        if tree.duration(key) > tree.duration("max_rto") {
            let [own, largest] = [key, "max_rto"].map(|key| tree.duration(key));
            let message = format!("{path}.{key} = {own} is above max_rto = {largest}");
            conflict(check, key, "max_rto", message, format!("{key} at most max_rto"));
        }
    }
    for key in ["send_buffer", "receive_buffer"] {
        if tree.size(key) < tree.size("mss") {
            let message =
                format!("{path}.{key} = {} is smaller than one full segment", format_readable_size(tree.size(key)));
            conflict(check, key, "mss", message, format!("at least mss = {}", format_readable_size(tree.size("mss"))));
        }
    }
}

/// Returns a Markdown table of the presets, for the reference page.
pub fn presets_markdown() -> String {
    let mut page = String::from("### Presets\n\n| key |");
    let mut columns = Vec::new();
    for (choice, preset) in &PRESETS {
        page.push_str(&format!(" `{}` |", choice.name));
        columns.push(resolved_toml(&TCP, &SETTINGS.write(&preset())));
    }
    page.push_str("\n|---|---|---|\n");
    for field in TCP.common_fields().filter(|field| matches!(field.default, DefaultValue::Absent(BY_PRESET))) {
        page.push_str(&format!("| `{}` |", field.key));
        for column in &columns {
            let value = column.lines().find_map(|line| line.strip_prefix(field.key)?.strip_prefix(" = "));
            page.push_str(&format!(" {} |", value.unwrap_or_default().trim_matches('"')));
        }
        page.push('\n');
    }
    page
}
