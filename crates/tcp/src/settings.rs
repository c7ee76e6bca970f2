//! Settings of both ends of a TCP flow: connection, congestion control, TLS and applications; the keys of the scenario
//! table `tcp`, its presets, and the checks for contradictory keys.
//!
//! A value comes from the first of these that sets it: the flow's own key, the preset that the flow's `[flow.tcp]`
//! names, the key in `[tcp]`, the preset that `[tcp]` names.

use crate::config::{BY_PRESET, Config, KEYS};
use fullpipe_congestion::catalogue::CHOICES;
use fullpipe_congestion::component::ControlOptions;
use fullpipe_congestion::keys::OPTION_KEYS;
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
    /// Options of the congestion control. [`Settings::connection`] determines `paced` and `ect1`.
    pub control: ControlOptions,
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
            control: ControlOptions { hystart: true, ..ControlOptions::default() },
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
            control: ControlOptions::default(),
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

static CONGESTION: [SettingKey<Settings>; 1] = setting_keys! {
    /// Congestion control.
    "congestion": FieldKind::Choice(CHOICES), optional BY_PRESET => at!(congestion);
};

static CONNECTION: SettingsPart<Settings, Config> =
    SettingsPart { keys: &KEYS, get: |settings| &settings.connection, get_mut: |settings| &mut settings.connection };

static ABOVE: [SettingKey<Settings>; 5] = setting_keys! {
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
    "hystart": FieldKind::Boolean, optional BY_PRESET => at!(control.hystart);
    /// Variant of HyStart.
    "hystart_variant": FieldKind::Choice(&choices(&HYSTART_VARIANTS)), default "rfc" => at!(control.linux_hystart, HYSTART_VARIANTS);
};

static CONTROL: SettingsPart<Settings, ControlOptions> =
    SettingsPart { keys: &OPTION_KEYS, get: |settings| &settings.control, get_mut: |settings| &mut settings.control };

static APPLICATIONS: [SettingKey<Settings>; 1] = setting_keys! {
    /// Whether the receiver closes its side when the sender has closed.
    "receiver_closes": FieldKind::Boolean, optional BY_PRESET => at!(receiver_closes);
};

/// The table `tcp` of a scenario file.
pub static TCP: Table = Table {
    name: "tcp",
    text: "Settings of TCP at both ends. `[tcp]` applies to all flows, `[flow.tcp]` after a `[[flow]]` to that flow. A flow \
           with its own preset starts from that preset; otherwise it starts from `[tcp]`.",
    fields: &[
        &PRESET,
        &fields(&CONGESTION),
        &fields(&KEYS),
        &fields(&ABOVE),
        &fields(&OPTION_KEYS),
        &fields(&APPLICATIONS),
    ],
    ..Table::EMPTY
};

/// The table `tcp`, and the settings that its keys set.
pub static SETTINGS: SettingsTable<Settings> =
    SettingsTable { table: &TCP, keys: &[&CONGESTION, &CONNECTION, &ABOVE, &CONTROL, &APPLICATIONS] };

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
