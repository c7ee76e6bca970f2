//! Packet filters, by which an access network classifies packets: addresses, ports and direction.
//!
//! The keys of a filter and their conversion are declared here, so that all access networks have the same ones. Addresses
//! and ports are those at the station. "Local" refers to the station, and "remote" to its peer. Packets of the models have
//! no type of service, so it is 0.

use crate::access::AccessContext;
use crate::medium::{MediumDirection, MediumFrame};
use fullpipe_schema::component::{InvalidSettings, SettingsReader, choices};
use fullpipe_schema::{Choice, Field, FieldKind, keys};
use std::fmt;
use std::net::IpAddr;

/// An invalid packet filter or address set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterError {
    /// A prefix is longer than the addresses of its family.
    PrefixTooLong {
        /// Length of the prefix in bits.
        bits: u8,
        /// Length of an address in bits.
        most: u8,
    },
    /// An IPv4 address with an IPv6 mask, or the reverse.
    MixedFamilies,
    /// A port range whose first port exceeds its last.
    ReversedPortRange {
        /// The first port.
        first: u16,
        /// The last port.
        last: u16,
    },
}

impl fmt::Display for FilterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FilterError::PrefixTooLong { bits, most } => {
                write!(formatter, "the prefix length is {bits}, but the address has {most} bits")
            }
            FilterError::MixedFamilies => {
                formatter.write_str("an address and its mask: expected both IPv4 or both IPv6")
            }
            FilterError::ReversedPortRange { first, last } => {
                write!(formatter, "ports {first} to {last} are not in ascending order")
            }
        }
    }
}

impl std::error::Error for FilterError {}

/// The set of addresses that equal one address in the bits of a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressMask {
    is_ipv6: bool,
    bits: u128,
    mask: u128,
}

/// The family, length and bits of an address.
const fn bits_of(address: IpAddr) -> (bool, u8, u128) {
    match address {
        IpAddr::V4(address) => (false, 32, address.to_bits() as u128),
        IpAddr::V6(address) => (true, 128, address.to_bits()),
    }
}

impl AddressMask {
    /// Returns the addresses that share the first `prefix_bits` bits with this address.
    ///
    /// # FilterErrors
    /// If the prefix is longer than the address.
    pub const fn prefix(address: IpAddr, prefix_bits: u8) -> Result<AddressMask, FilterError> {
        let (is_ipv6, most, bits) = bits_of(address);
        if prefix_bits > most {
            return Err(FilterError::PrefixTooLong { bits: prefix_bits, most });
        }
        let all = u128::MAX >> (128 - most);
        let low = (most - prefix_bits) as u32;
        let mask = if low == 128 { 0 } else { all >> low << low };
        Ok(AddressMask { is_ipv6, bits: bits & mask, mask })
    }

    /// Returns the addresses that equal this address in the bits of the mask.
    ///
    /// # FilterErrors
    /// If the address and the mask have different families.
    pub fn with_mask(address: IpAddr, mask: IpAddr) -> Result<AddressMask, FilterError> {
        let ((is_ipv6, _, bits), (mask_is_ipv6, _, mask)) = (bits_of(address), bits_of(mask));
        if is_ipv6 != mask_is_ipv6 {
            return Err(FilterError::MixedFamilies);
        }
        Ok(AddressMask { is_ipv6, bits: bits & mask, mask })
    }

    /// Whether the address is in the set.
    pub const fn contains(&self, address: IpAddr) -> bool {
        let (is_ipv6, _, bits) = bits_of(address);
        is_ipv6 == self.is_ipv6 && bits & self.mask == self.bits
    }
}

/// A range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// All ports. This range also matches packets without ports.
    pub const ANY: PortRange = PortRange { first: 0, last: u16::MAX };

    /// Returns the ports from `first` to `last`, inclusive.
    ///
    /// # FilterErrors
    /// If `first` exceeds `last`.
    pub const fn new(first: u16, last: u16) -> Result<PortRange, FilterError> {
        if first <= last { Ok(PortRange { first, last }) } else { Err(FilterError::ReversedPortRange { first, last }) }
    }

    /// Returns a range of a single port.
    pub const fn one(port: u16) -> PortRange {
        PortRange { first: port, last: port }
    }

    /// Whether the port is in the range.
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// The directions to which a packet filter applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FilterDirection {
    /// To the station.
    Downlink,
    /// From the station.
    Uplink,
    /// Both directions.
    #[default]
    Both,
}

impl FilterDirection {
    /// Whether a filter applies to this direction.
    pub const fn contains(self, way: MediumDirection) -> bool {
        match self {
            FilterDirection::Downlink => matches!(way, MediumDirection::Downlink),
            FilterDirection::Uplink => matches!(way, MediumDirection::Uplink),
            FilterDirection::Both => true,
        }
    }
}

/// A packet filter. A packet matches if it matches all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFilter {
    /// Directions to which the filter applies.
    pub ways: FilterDirection,
    /// Evaluation precedence, which the model ignores.
    pub precedence: u8,
    /// Addresses of the station's peer; `None` if any address of either family matches.
    pub remote: Option<AddressMask>,
    /// Addresses of the station; `None` if any address of either family matches.
    pub local: Option<AddressMask>,
    /// Ports of the station's peer.
    pub remote_ports: PortRange,
    /// Ports of the station.
    pub local_ports: PortRange,
    /// Required value of the type of service (traffic class) in the bits of the mask.
    pub type_of_service: u8,
    /// Bits of the type of service that are compared.
    pub type_of_service_mask: u8,
}

impl PacketFilter {
    /// A filter that matches every packet.
    pub const ANY: PacketFilter = PacketFilter {
        ways: FilterDirection::Both,
        precedence: 255,
        remote: None,
        local: None,
        remote_ports: PortRange::ANY,
        local_ports: PortRange::ANY,
        type_of_service: 0,
        type_of_service_mask: 0,
    };

    /// Whether the filter matches a packet in this direction.
    pub fn matches(&self, way: MediumDirection, headers: &PacketHeaders) -> bool {
        let ((remote, remote_port), (local, local_port)) = match way {
            MediumDirection::Downlink => (headers.source, headers.destination),
            MediumDirection::Uplink => (headers.destination, headers.source),
        };
        self.ways.contains(way)
            && self.remote.is_none_or(|addresses| addresses.contains(remote))
            && self.local.is_none_or(|addresses| addresses.contains(local))
            && self.remote_ports.contains(remote_port)
            && self.local_ports.contains(local_port)
            && (headers.type_of_service ^ self.type_of_service) & self.type_of_service_mask == 0
    }
}

/// The fields of a packet that filters compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeaders {
    /// Source address and port; port 0 if the protocol has none. For a fragment, the address and port of the whole
    /// datagram.
    pub source: (IpAddr, u16),
    /// Destination address and port.
    pub destination: (IpAddr, u16),
    /// Type of service (IPv4) or traffic class (IPv6).
    pub type_of_service: u8,
}

impl PacketHeaders {
    /// Returns the fields of a frame; `None` if the frame has no header fields.
    pub fn from_frame(frame: &MediumFrame) -> Option<PacketHeaders> {
        let envelope = frame.envelope?;
        Some(PacketHeaders {
            source: (envelope.source, envelope.ends.source.port),
            destination: (envelope.destination, envelope.ends.destination.port),
            type_of_service: 0,
        })
    }
}

/// The directions of packets that a filter matches.
static DIRECTIONS: [(Choice, FilterDirection); 3] = [
    (Choice::new("both", "both."), FilterDirection::Both),
    (Choice::new("downlink", "to the station."), FilterDirection::Downlink),
    (Choice::new("uplink", "from the station."), FilterDirection::Uplink),
];

static DIRECTION_NAMES: [Choice; 3] = choices(&DIRECTIONS);

const PORTS: FieldKind = FieldKind::List(&FieldKind::integer(0, 65_535));

/// The keys of a packet filter. A packet matches if it matches all keys that are given.
pub const FILTER_KEYS: &[Field] = keys! {
    /// Direction of packets that the filter matches.
    "direction": FieldKind::Choice(&DIRECTION_NAMES), default "both";
    /// Peer of the station: a host or router, an address, or a prefix such as `"10.0.0.0/8"`.
    "remote": FieldKind::Text, optional "any address";
    /// Address on the station's side, in the same form. Useful if the station is a router with hosts behind it.
    "local": FieldKind::Text, optional "any address";
    /// Port of the station's peer, or the first and the last port.
    "remote_ports": PORTS, optional "any";
    /// Port on the station's side, or the first and the last port.
    "local_ports": PORTS, optional "any";
};

/// Reads a packet filter from [`FILTER_KEYS`]. The result has one filter per pair of addresses, since a host has one
/// address of each IP version.
///
/// # Errors
/// If a key is invalid.
pub fn read_filters(
    reader: &mut SettingsReader<'_, '_>,
    context: &AccessContext<'_>,
) -> Result<Vec<PacketFilter>, InvalidSettings> {
    let [remote, local] = ["remote", "local"].map(|key| addresses(reader, key, context));
    let [remote_ports, local_ports] = ["remote_ports", "local_ports"].map(|key| ports(reader, key));
    let (remote, local) = (remote?, local?);
    let filter = PacketFilter {
        ways: reader.tree.choice_value("direction", &DIRECTIONS),
        remote_ports: remote_ports?,
        local_ports: local_ports?,
        ..PacketFilter::ANY
    };
    let same_version = |remote: &Option<(bool, AddressMask)>, local: &Option<(bool, AddressMask)>| {
        remote.zip(*local).is_none_or(|((remote, _), (local, _))| remote == local)
    };
    let pairs = remote.iter().flat_map(|remote| local.iter().map(move |local| (remote, local)));
    let filters = pairs.filter(|(remote, local)| same_version(remote, local)).map(|(remote, local)| PacketFilter {
        remote: remote.map(|(_, addresses)| addresses),
        local: local.map(|(_, addresses)| addresses),
        ..filter
    });
    let filters: Vec<PacketFilter> = filters.collect();
    if filters.is_empty() {
        let message = format!("{} matches no packet, because one address is IPv4 and the other IPv6", reader.path);
        reader.add_error("local", message, "two addresses of one IP version");
    }
    Ok(filters)
}

/// Reads the addresses of a packet filter's key, each with whether it is IPv4. `None` matches any address.
fn addresses(
    reader: &mut SettingsReader<'_, '_>,
    key: &str,
    context: &AccessContext<'_>,
) -> Result<Vec<Option<(bool, AddressMask)>>, InvalidSettings> {
    let Some(value) = reader.tree.get(key) else { return Ok(vec![None]) };
    let text = value.text();
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let prefix = |address: IpAddr, bits| AddressMask::prefix(address, bits).map(|some| Some((address.is_ipv4(), some)));
    if let Ok(address) = address.parse::<IpAddr>() {
        let bits =
            bits.map_or(Ok(whole(address)), |bits| bits.parse().map_err(|_| "the length is not a number".to_string()));
        let one = bits.and_then(|bits| prefix(address, bits).map_err(|reason| reason.to_string()));
        return one.map(|one| vec![one]).map_err(|reason| {
            let message = format!(
                "{} = {} is not a valid prefix: {reason}",
                reader.path_of(key),
                reader.check.sources.excerpt(value.place)
            );
            reader.add_error(key, message, "a prefix such as \"10.0.0.0/8\"")
        });
    }
    let own = context.nodes.addresses(context.node(reader, key)?);
    Ok(own.into_iter().filter_map(|address| prefix(address, whole(address)).ok()).collect())
}

/// Reads one port, or the first and the last.
fn ports(reader: &mut SettingsReader<'_, '_>, key: &str) -> Result<PortRange, InvalidSettings> {
    let Some(value) = reader.tree.get(key) else { return Ok(PortRange::ANY) };
    let numbers: Vec<u16> = value.list().iter().filter_map(|port| u16::try_from(port.integer()).ok()).collect();
    let ports = match numbers[..] {
        [one] => Ok(PortRange::one(one)),
        [first, last] => PortRange::new(first, last).map_err(|_| "is not in ascending order"),
        _ => Err("is neither one port nor two"),
    };
    ports.map_err(|reason| {
        let message = format!("{} = {} {reason}", reader.path_of(key), reader.check.sources.excerpt(value.place));
        reader.add_error(key, message, "one port such as [5004], or the first and the last such as [5000, 5999]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
        Ipv4Addr::new(a, b, c, d).into()
    }

    fn headers(source: IpAddr, source_port: u16, destination: IpAddr, destination_port: u16) -> PacketHeaders {
        PacketHeaders {
            source: (source, source_port),
            destination: (destination, destination_port),
            type_of_service: 0,
        }
    }

    #[test]
    fn addresses_match_in_the_bits_of_the_mask() {
        let net = AddressMask::prefix(v4(10, 1, 255, 3), 12).unwrap();
        assert!(net.contains(v4(10, 15, 0, 0)) && !net.contains(v4(10, 16, 0, 0)));
        assert!(AddressMask::prefix(v4(1, 2, 3, 4), 0).unwrap().contains(v4(200, 0, 0, 1)));
        let one = AddressMask::prefix(v4(1, 2, 3, 4), 32).unwrap();
        assert!(one.contains(v4(1, 2, 3, 4)) && !one.contains(v4(1, 2, 3, 5)));
        assert_eq!(AddressMask::prefix(v4(1, 2, 3, 4), 33), Err(FilterError::PrefixTooLong { bits: 33, most: 32 }));
        // A mask need not be a prefix.
        let odd = AddressMask::with_mask(v4(0, 0, 0, 1), v4(0, 0, 0, 1)).unwrap();
        assert!(odd.contains(v4(9, 9, 9, 9)) && !odd.contains(v4(9, 9, 9, 8)));
        assert_eq!(AddressMask::with_mask(v4(1, 2, 3, 4), v4(255, 0, 0, 0)), AddressMask::prefix(v4(1, 0, 0, 0), 8));

        let six = |last| IpAddr::from(Ipv6Addr::new(0x7777, 0xf00d, 0, 0, 0, 0, 0, last));
        let net = AddressMask::prefix(six(1), 64).unwrap();
        assert!(net.contains(six(9)) && !net.contains(Ipv6Addr::new(0x7777, 0xf00d, 0, 1, 0, 0, 0, 1).into()));
        assert!(AddressMask::prefix(six(1), 0).unwrap().contains(Ipv6Addr::LOCALHOST.into()));
        assert!(!AddressMask::prefix(six(1), 128).unwrap().contains(six(2)));
        assert!(AddressMask::prefix(six(1), 129).is_err());
        assert_eq!(AddressMask::with_mask(six(1), v4(255, 0, 0, 0)), Err(FilterError::MixedFamilies));
        // Addresses of different families never match, whatever the mask.
        assert!(!AddressMask::prefix(six(1), 0).unwrap().contains(v4(1, 1, 1, 1)));
        assert!(!AddressMask::prefix(v4(1, 1, 1, 1), 0).unwrap().contains(six(1)));
    }

    #[test]
    fn filter_compares_direction_and_type_of_service() {
        let mut packet = headers(v4(9, 9, 9, 9), 80, v4(7, 0, 0, 2), 4000);
        let down = PacketFilter { ways: FilterDirection::Downlink, ..PacketFilter::ANY };
        assert!(down.matches(MediumDirection::Downlink, &packet) && !down.matches(MediumDirection::Uplink, &packet));
        let up = PacketFilter { ways: FilterDirection::Uplink, ..PacketFilter::ANY };
        assert!(!up.matches(MediumDirection::Downlink, &packet) && up.matches(MediumDirection::Uplink, &packet));
        let expedited = PacketFilter { type_of_service: 0xb8, type_of_service_mask: 0xfc, ..PacketFilter::ANY };
        assert!(!expedited.matches(MediumDirection::Downlink, &packet));
        packet.type_of_service = 0xb9;
        assert!(expedited.matches(MediumDirection::Downlink, &packet));
    }

    #[test]
    fn port_range_in_descending_order_is_rejected() {
        assert_eq!(PortRange::new(5, 4), Err(FilterError::ReversedPortRange { first: 5, last: 4 }));
        assert!(FilterError::MixedFamilies.to_string().contains("expected"));
    }
}
