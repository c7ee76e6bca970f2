//! Settings that all QUIC endpoints share, in the QUIC model and in the real stack: packet protection, and scenario keys that several
//! tables use.

use fullpipe_schema::component::choices;
use fullpipe_schema::settings::{FieldAccess, SettingKey};
use fullpipe_schema::{Choice, FieldKind};
use fullpipe_units::Duration;

/// The packet protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cryptography {
    /// No encryption. Packets have the same sizes as with TLS 1.3.
    #[default]
    Null,
    /// TLS 1.3; all its random values are derived from the seed of the run.
    Tls,
}

/// Scenario names of the variants of [`Cryptography`].
pub static CRYPTOGRAPHY: [(Choice, Cryptography); 2] = [
    (Choice::new("null", "nothing, in the sizes of TLS 1.3."), Cryptography::Null),
    (Choice::new("tls", "TLS 1.3, with keys that follow from the seed."), Cryptography::Tls),
];

static CRYPTOGRAPHY_NAMES: [Choice; 2] = choices(&CRYPTOGRAPHY);

/// Valid sizes of a UDP payload in bytes: from the minimum of RFC 9000 section 14 to the maximum of UDP over IPv4.
pub const DATAGRAM: FieldKind = FieldKind::size(1200, 65_507);

/// Valid intervals between the ticks of a program's timers: 0 to 1 s.
pub const GRANULARITY: FieldKind = FieldKind::duration(Duration::ZERO, Duration::from_secs(1));

/// Returns the scenario key `cryptography`.
pub const fn cryptography<S>(access: FieldAccess<S>) -> SettingKey<S> {
    SettingKey::setting(
        "cryptography",
        FieldKind::Choice(&CRYPTOGRAPHY_NAMES),
        "What protects packets. Sizes and instants are the same; with `tls` the same seed gives the same encrypted bytes.",
        access,
    )
}

/// Returns the scenario key `hystart`.
pub const fn hystart<S>(access: FieldAccess<S>) -> SettingKey<S> {
    SettingKey::setting("hystart", FieldKind::Boolean, "HyStart++ (RFC 9406) in controls that have slow start.", access)
}

/// Returns the scenario key `initial_window`.
pub const fn initial_window<S>(access: FieldAccess<S>) -> SettingKey<S> {
    SettingKey::setting("initial_window", FieldKind::integer(1, 1000), "Initial window (RFC 9002: 10).", access)
        .with_unit("packets")
}

/// Returns the scenario key `largest_mtu`, the largest UDP payload that path MTU discovery probes.
pub const fn largest_mtu<S>(access: FieldAccess<S>) -> SettingKey<S> {
    SettingKey::setting(
        "largest_mtu",
        DATAGRAM,
        "Largest UDP payload that the path is probed for (RFC 8899); not above `initial_mtu`: it is not probed.",
        access,
    )
}
