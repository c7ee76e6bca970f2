//! What every QUIC endpoint has, whether our model or the real stack plays it: what protects its packets, and the keys that
//! scenarios have for several of them.

use fullpipe_schema::component::choices;
use fullpipe_schema::settings::{Access, Key};
use fullpipe_schema::{Choice, Kind};
use fullpipe_units::Duration;

/// What protects packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cryptography {
    /// Nothing, in the sizes of TLS 1.3.
    #[default]
    Null,
    /// TLS 1.3, with all that is random in it from the run's seed.
    Tls,
}

/// Names of [`Cryptography`].
pub static CRYPTOGRAPHY: [(Choice, Cryptography); 2] = [
    (Choice::new("null", "nothing, in the sizes of TLS 1.3."), Cryptography::Null),
    (Choice::new("tls", "TLS 1.3, with keys that follow from the seed."), Cryptography::Tls),
];

static CRYPTOGRAPHY_NAMES: [Choice; 2] = choices(&CRYPTOGRAPHY);

/// A UDP payload that QUIC may send: RFC 9000 section 14, and what IPv4 and UDP can carry.
pub const DATAGRAM: Kind = Kind::size(1200, 65_507);

/// Between ticks of a program's timers.
pub const GRANULARITY: Kind = Kind::duration(Duration::ZERO, Duration::from_secs(1));

/// The key of what protects packets.
pub const fn cryptography<S>(access: Access<S>) -> Key<S> {
    Key::setting(
        "cryptography",
        Kind::Choice(&CRYPTOGRAPHY_NAMES),
        "What protects packets. Sizes and instants are the same; with `tls` the same seed gives the same encrypted bytes.",
        access,
    )
}

/// The key of HyStart++.
pub const fn hystart<S>(access: Access<S>) -> Key<S> {
    Key::setting("hystart", Kind::Boolean, "HyStart++ (RFC 9406) in controls that have slow start.", access)
}

/// The key of the initial window.
pub const fn initial_window<S>(access: Access<S>) -> Key<S> {
    Key::setting("initial_window", Kind::integer(1, 1000), "Initial window (RFC 9002: 10).", access).unit("packets")
}

/// The key of the largest MTU.
pub const fn largest_mtu<S>(access: Access<S>) -> Key<S> {
    Key::setting(
        "largest_mtu",
        DATAGRAM,
        "Largest UDP payload that the path is probed for (RFC 8899); not above `initial_mtu`: it is not probed.",
        access,
    )
}
