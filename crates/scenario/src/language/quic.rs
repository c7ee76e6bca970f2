//! QUIC's keys.
//!
//! Where a value comes from, first found wins: the flow's own key, the key in `[quic]`, the default.

use super::tcp::CONGESTION;
use crate::description::Quic;
use crate::schema::{Choice, Data, Field, Kind, Table, Tree, default_data};

/// A UDP payload that QUIC may send: RFC 9000 section 14, and what IPv4 and UDP can carry.
pub(super) const DATAGRAM: Kind = Kind::Size { min: 1200, max: 65_507 };

const fn field(key: &'static str, kind: Kind, default: &'static str, text: &'static str) -> Field {
    Field::optional(key, kind, default, text)
}

/// What protects packets.
pub(super) const CRYPTOGRAPHY: Field = field(
    "cryptography",
    Kind::Choice(&[
        Choice::new("null", "nothing, in the sizes of TLS 1.3."),
        Choice::new("tls", "TLS 1.3, with keys that follow from the seed."),
    ]),
    "`\"null\"`",
    "What protects packets. Sizes and instants are the same; with `tls` the same seed gives the same encrypted bytes.",
);

pub(crate) static QUIC: Table = Table {
    name: "quic",
    text: "Settings of QUIC (RFC 9000) at both ends. `[quic]` holds for all flows, `[flow.quic]` after a `[[flow]]` for that \
           one. Each connection of a flow has one stream. The ends take no time to do what they do.",
    fields: &[&[
        field(
            "stack",
            Kind::Choice(&[
                Choice::new("noq", "the real stack of that name, on virtual time."),
                Choice::later("model"),
            ]),
            "`\"noq\"`",
            "Who plays the ends.",
        ),
        field(
            "congestion",
            Kind::Choice(CONGESTION),
            "`\"cubic\"`",
            "Congestion control. The stack paces all; it does not tell how many packets were marked, so that controls which \
             need that (`dctcp`) are refused.",
        ),
        field("hystart", Kind::Boolean, "`true`", "HyStart++ (RFC 9406) in controls that have slow start."),
        field("initial_window", Kind::Integer { min: 1, max: 1000 }, "`10`", "Initial window (RFC 9002: 10).")
            .unit("packets"),
        field(
            "initial_mtu",
            DATAGRAM,
            "`\"1200B\"`",
            "UDP payload of a full packet before the path is known to carry more.",
        ),
        field(
            "largest_mtu",
            DATAGRAM,
            "`\"1452B\"`",
            "Largest UDP payload that the path is probed for (RFC 8899); not above `initial_mtu`: it is not probed.",
        ),
        field(
            "send_buffer",
            Kind::Size { min: 16, max: 16 << 30 },
            "`\"8MiB\"`",
            "What the stack keeps until it is acknowledged; as much again waits for room there.",
        ),
        field(
            "receive_buffer",
            Kind::Size { min: 1200, max: 1 << 30 },
            "`\"8MiB\"`",
            "What of a stream may be on its way or unread (flow control).",
        ),
        field("idle_timeout", Kind::DURATION, "`\"30s\"`", "Silence after which the connection is over; 0s: never."),
        field(
            "certificates",
            Kind::Size { min: 0, max: 1 << 20 },
            "`\"3000B\"`",
            "Size of the server's certificate chain; with `cryptography = \"tls\"` 400 to 60 000 bytes.",
        ),
        CRYPTOGRAPHY,
    ]],
    ..Table::EMPTY
};

/// The defaults, as a file would write them.
const DEFAULTS: &[(&str, &str)] = &[
    ("stack", "noq"),
    ("congestion", "cubic"),
    ("hystart", "true"),
    ("initial_window", "10"),
    ("initial_mtu", "1200B"),
    ("largest_mtu", "1452B"),
    ("send_buffer", "8MiB"),
    ("receive_buffer", "8MiB"),
    ("idle_timeout", "30s"),
    ("certificates", "3000B"),
    ("cryptography", "null"),
];

/// Fills in every key of a QUIC table, from `inherited` if there is one.
pub(crate) fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    if let Some(inherited) = inherited {
        for (key, value) in inherited.iter() {
            tree.fill(key, value.data.clone());
        }
    }
    for field in QUIC.common() {
        if let Some((_, value)) = DEFAULTS.iter().find(|(key, _)| *key == field.key) {
            tree.fill(field.key, default_data(&field.kind, value));
        }
    }
}

/// A filled table with nothing of its own.
pub(crate) fn defaults(like: &Tree) -> Tree {
    let mut tree = Tree::at(like.place);
    fill(&mut tree, None);
    tree
}

/// The settings of a filled table.
pub(crate) fn settings(tree: &Tree) -> Quic {
    // The schema's bounds keep them within their types.
    let datagram = |key: &str| u16::try_from(tree.size(key)).unwrap_or(u16::MAX);
    let initial_mtu_bytes = datagram("initial_mtu");
    Quic {
        congestion: tree.choice("congestion").to_string(),
        hystart: tree.boolean("hystart"),
        initial_window_packets: u64::try_from(tree.integer("initial_window")).unwrap_or(1),
        initial_mtu_bytes,
        largest_mtu_bytes: Some(datagram("largest_mtu")).filter(|largest| *largest > initial_mtu_bytes),
        send_buffer_bytes: tree.size("send_buffer"),
        receive_buffer_bytes: tree.size("receive_buffer"),
        idle_timeout: tree.duration("idle_timeout"),
        certificate_bytes: tree.size("certificates"),
        tls: tree.choice("cryptography") == "tls",
    }
}

/// The filled `[quic]`, for flows.
pub(crate) fn common(root: &Tree) -> Tree {
    match root.get("quic").map(|value| &value.data) {
        Some(Data::Table(tree)) => {
            let mut tree = tree.clone();
            fill(&mut tree, None);
            tree
        }
        _ => defaults(root),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_default_and_no_other() {
        let keys: Vec<&str> = QUIC.common().map(|field| field.key).collect();
        assert_eq!(keys, DEFAULTS.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    }
}
