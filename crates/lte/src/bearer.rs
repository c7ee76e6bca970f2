//! Bearers: quality of service, the classification of packets, tunnel headers and buffer status reports.
//!
//! A **QCI** identifies a class of service (3GPP TS 23.203 table 6.1.7). It determines the RLC mode ([`RlcModeSelection`]), the logical
//! channel group in which a UE reports its buffer status, and the parameters that schedulers use.
//!
//! A **traffic flow template** is a bearer's list of packet filters (24.008 section 10.5.6.12). The UE classifies uplink packets,
//! the PGW downlink packets ([`Classifier`]). As in the reference model, bearers are tried from the highest number to the
//! lowest, and a packet belongs to the first one with a matching filter. The default bearer, number 1, matches every packet and
//! is tried last. The specification orders the filters of all bearers by precedence; the model stores precedence and ignores
//! it. A packet without a matching bearer is dropped. "Local" is the UE, "remote" its peer.
//!
//! Between eNB, SGW and PGW a packet is in a **tunnel**, which adds [`TUNNEL_BYTES`].
//!
//! A **buffer status report** (36.321 section 6.1.3.1) gives the eNB the bytes that wait in a group, in 64 steps.

use crate::rlc::{LinkDirection, RlcMode};
use fullpipe_units::Duration;
use std::fmt;
use std::net::IpAddr;

/// GTP-U header: 8 mandatory bytes, and the 4 optional ones (29.281 section 5.1), which the reference model always sends.
pub const GTP_U_HEADER_BYTES: u32 = 12;

/// Bytes that the tunnel adds to a packet: GTP-U, UDP (8) and IPv4 (20).
pub const TUNNEL_BYTES: u32 = GTP_U_HEADER_BYTES + 8 + 20;

/// Most bearers of a UE: logical channels 3 to 10 carry data (36.331 section 6.3.2).
pub const MAX_BEARERS: u8 = 8;

/// Most packet filters of a bearer (24.008 section 10.5.6.12).
pub const MAX_FILTERS: usize = 16;

/// An invalid bearer, packet filter or address set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No class of service has this number.
    UnknownQci(u8),
    /// No bearer can have this number.
    InvalidBearerNumber(u8),
    /// Two bearers were given this number.
    DuplicateBearer(u8),
    /// A bearer has too many packet filters.
    TooManyFilters(usize),
    /// A prefix is longer than the addresses of its family.
    PrefixTooLong {
        /// Length of the prefix, bits.
        bits: u8,
        /// Length of an address, bits.
        most: u8,
    },
    /// An IPv4 address with an IPv6 mask, or the reverse.
    MixedFamilies,
    /// A range of ports whose first exceeds its last.
    ReversedPortRange {
        /// The first.
        first: u16,
        /// The last.
        last: u16,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::UnknownQci(qci) => write!(formatter, "QCI {qci}: expected 1 to 9"),
            Error::InvalidBearerNumber(number) => write!(formatter, "bearer {number}: expected 1 to {MAX_BEARERS}"),
            Error::DuplicateBearer(number) => write!(formatter, "duplicate bearer {number}"),
            Error::TooManyFilters(count) => {
                write!(formatter, "{count} packet filters of a bearer: expected at most {MAX_FILTERS}")
            }
            Error::PrefixTooLong { bits, most } => {
                write!(formatter, "the prefix length is {bits}, but the address has {most} bits")
            }
            Error::MixedFamilies => formatter.write_str("an address and its mask: expected both IPv4 or both IPv6"),
            Error::ReversedPortRange { first, last } => {
                write!(formatter, "ports {first} to {last} are not in ascending order")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A QoS class identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Qci(u8);

/// The parameters of a class of service (3GPP TS 23.203 table 6.1.7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QosClass {
    /// Whether a bit rate is guaranteed.
    pub guaranteed: bool,
    /// Priority; 1 is the highest.
    pub priority: u8,
    /// Upper bound of the delay between UE and PGW for 98 % of packets.
    pub delay_budget: Duration,
    /// Permitted share of lost packets without congestion.
    pub loss_rate: f64,
}

/// The classes of QCI 1 to 9, release 11.
const CLASSES: [QosClass; 9] = [
    class(true, 2, 100, 1e-2),
    class(true, 4, 150, 1e-3),
    class(true, 3, 50, 1e-3),
    class(true, 5, 300, 1e-6),
    class(false, 1, 100, 1e-6),
    class(false, 6, 300, 1e-6),
    class(false, 7, 100, 1e-3),
    class(false, 8, 300, 1e-6),
    class(false, 9, 300, 1e-6),
];

const fn class(guaranteed: bool, priority: u8, delay_ms: u64, loss_rate: f64) -> QosClass {
    QosClass { guaranteed, priority, delay_budget: Duration::from_millis(delay_ms), loss_rate }
}

impl Qci {
    /// The class of the default bearer.
    pub const DEFAULT: Qci = Qci(9);

    /// The class of this number, 1 to 9.
    pub const fn new(qci: u8) -> Result<Qci, Error> {
        if qci >= 1 && qci <= 9 { Ok(Qci(qci)) } else { Err(Error::UnknownQci(qci)) }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its parameters.
    pub const fn class(self) -> &'static QosClass {
        &CLASSES[self.0 as usize - 1]
    }

    /// The logical channel group for buffer status reports: 1 with a guaranteed bit rate, 2 without; 0 is for signaling.
    pub const fn logical_channel_group(self) -> u8 {
        if self.class().guaranteed { 1 } else { 2 }
    }
}

/// How the RLC mode of a data bearer is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RlcModeSelection {
    /// Always UM.
    #[default]
    AlwaysUnacknowledged,
    /// Always AM.
    AlwaysAcknowledged,
    /// UM if more than 1 in 100,000 packets may be lost, otherwise AM.
    ByLossRate,
    /// Always a source with unlimited data, for tests of the radio.
    Saturated,
}

impl RlcModeSelection {
    /// Highest permitted share of lost packets for which AM is chosen.
    const RELIABLE_LOSS_RATE: f64 = 1e-5;

    /// The mode of a bearer of this class.
    pub fn mode(self, qci: Qci) -> RlcMode {
        match self {
            RlcModeSelection::AlwaysUnacknowledged => RlcMode::Unacknowledged,
            RlcModeSelection::AlwaysAcknowledged => RlcMode::Acknowledged,
            RlcModeSelection::ByLossRate if qci.class().loss_rate > Self::RELIABLE_LOSS_RATE => RlcMode::Unacknowledged,
            RlcModeSelection::ByLossRate => RlcMode::Acknowledged,
            RlcModeSelection::Saturated => RlcMode::Saturated,
        }
    }
}

/// The logical channel of a bearer with this number, counted from 1: 3 to 10, after those of signaling.
pub const fn logical_channel(bearer: u8) -> Result<u8, Error> {
    if bearer >= 1 && bearer <= MAX_BEARERS { Ok(bearer + 2) } else { Err(Error::InvalidBearerNumber(bearer)) }
}

/// A set of addresses: those equal to one address in the bits of a mask.
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
    /// Returns the addresses that share a prefix with this address.
    pub const fn prefix(address: IpAddr, prefix_bits: u8) -> Result<AddressMask, Error> {
        let (is_ipv6, most, bits) = bits_of(address);
        if prefix_bits > most {
            return Err(Error::PrefixTooLong { bits: prefix_bits, most });
        }
        let all = u128::MAX >> (128 - most);
        let low = (most - prefix_bits) as u32;
        let mask = if low == 128 { 0 } else { all >> low << low };
        Ok(AddressMask { is_ipv6, bits: bits & mask, mask })
    }

    /// Returns the addresses that equal this address in the bits of the mask.
    pub fn with_mask(address: IpAddr, mask: IpAddr) -> Result<AddressMask, Error> {
        let ((is_ipv6, _, bits), (mask_is_ipv6, _, mask)) = (bits_of(address), bits_of(mask));
        if is_ipv6 != mask_is_ipv6 {
            return Err(Error::MixedFamilies);
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
    /// All ports, and packets without ports.
    pub const ANY: PortRange = PortRange { first: 0, last: u16::MAX };

    /// Returns the ports from `first` to `last`, inclusive.
    pub const fn new(first: u16, last: u16) -> Result<PortRange, Error> {
        if first <= last { Ok(PortRange { first, last }) } else { Err(Error::ReversedPortRange { first, last }) }
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
    /// To the UE.
    Downlink,
    /// From the UE.
    Uplink,
    /// Both.
    #[default]
    Both,
}

impl FilterDirection {
    /// Whether the direction is included.
    pub const fn contains(self, way: LinkDirection) -> bool {
        match self {
            FilterDirection::Downlink => matches!(way, LinkDirection::Downlink),
            FilterDirection::Uplink => matches!(way, LinkDirection::Uplink),
            FilterDirection::Both => true,
        }
    }
}

/// A packet filter of a bearer. A packet matches if it matches all fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFilter {
    /// Directions.
    pub ways: FilterDirection,
    /// Evaluation precedence; ignored.
    pub precedence: u8,
    /// Addresses of the UE's peer; `None`: any address of either family.
    pub remote: Option<AddressMask>,
    /// Addresses of the UE.
    pub local: Option<AddressMask>,
    /// Ports of the UE's peer.
    pub remote_ports: PortRange,
    /// Ports of the UE.
    pub local_ports: PortRange,
    /// Type of service (traffic class) in the bits of the mask.
    pub type_of_service: u8,
    /// Bits of the type of service that are compared.
    pub type_of_service_mask: u8,
}

impl PacketFilter {
    /// Matches every packet.
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
    pub fn matches(&self, way: LinkDirection, headers: &PacketHeaders) -> bool {
        let ((remote, remote_port), (local, local_port)) = match way {
            LinkDirection::Downlink => (headers.source, headers.destination),
            LinkDirection::Uplink => (headers.destination, headers.source),
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
    /// Source address and port; port 0 if the protocol has none. For a fragment, those of the whole datagram.
    pub source: (IpAddr, u16),
    /// Destination address and port.
    pub destination: (IpAddr, u16),
    /// Type of service (IPv4) or traffic class (IPv6).
    pub type_of_service: u8,
}

/// The traffic flow templates of a UE's bearers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classifier {
    /// Bearers and their filters, highest number first.
    bearers: Vec<(u8, Vec<PacketFilter>)>,
}

impl Classifier {
    /// Creates the classifier of a UE without bearers.
    pub fn new() -> Classifier {
        Classifier::default()
    }

    /// Creates the classifier of a UE with the default bearer, which matches every packet.
    pub fn with_default_bearer() -> Classifier {
        Classifier { bearers: vec![(1, vec![PacketFilter::ANY])] }
    }

    /// Adds a bearer with this number (1 to [`MAX_BEARERS`]) and at most [`MAX_FILTERS`] filters.
    pub fn add(&mut self, bearer: u8, filters: &[PacketFilter]) -> Result<(), Error> {
        logical_channel(bearer)?;
        if filters.len() > MAX_FILTERS {
            return Err(Error::TooManyFilters(filters.len()));
        }
        match self.bearers.binary_search_by(|(number, _)| bearer.cmp(number)) {
            Ok(_) => Err(Error::DuplicateBearer(bearer)),
            Err(place) => {
                self.bearers.insert(place, (bearer, filters.to_vec()));
                Ok(())
            }
        }
    }

    /// The bearer of a packet in this direction; `None` if the packet is dropped.
    pub fn classify(&self, way: LinkDirection, headers: &PacketHeaders) -> Option<u8> {
        let takes = |filters: &[PacketFilter]| filters.iter().any(|filter| filter.matches(way, headers));
        self.bearers.iter().find(|(_, filters)| takes(filters)).map(|&(number, _)| number)
    }
}

/// Steps of a buffer status report.
const STEPS: usize = 64;

/// Upper bounds of the steps, bytes. The last step has no bound and repeats the one before (see `data/README.md`). The bound of
/// step 59 is that of ns-3, 93749; the rule by which the specification computes the others gives 93479.
const STEP_BYTES: [u32; STEPS] = edges(include_bytes!("../data/buffer_status.csv"));

/// The second column of a table of whole numbers with a header line.
const fn edges(text: &[u8]) -> [u32; STEPS] {
    let mut edges = [0; STEPS];
    let (mut k, mut row, mut column) = (0, 0, 0);
    while k < text.len() {
        match text[k] {
            b'\n' => (row, column) = (row + 1, 0),
            b',' => column += 1,
            digit if row > 0 && column == 1 => edges[row - 1] = edges[row - 1] * 10 + (digit - b'0') as u32,
            _ => {}
        }
        k += 1;
    }
    assert!(row == STEPS + 1, "64 rows and a header");
    edges
}

/// The step with which a UE reports this number of bytes: the first whose upper bound is not less.
#[inline]
pub fn buffer_status_index(bytes: u32) -> u8 {
    STEP_BYTES.partition_point(|&edge| edge < bytes).min(STEPS - 1) as u8
}

/// The number of bytes that an eNB assumes for a step: its upper bound, or the lower bound of the last step, which has no upper
/// one. Larger steps count as the last.
#[inline]
pub fn buffer_status_bytes(index: u8) -> u32 {
    STEP_BYTES[usize::from(index).min(STEPS - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn classes_have_the_parameters_of_the_table() {
        assert_eq!(Qci::new(0), Err(Error::UnknownQci(0)));
        assert_eq!(Qci::new(10), Err(Error::UnknownQci(10)));
        assert_eq!(Qci::new(9), Ok(Qci::DEFAULT));
        let classes: Vec<&QosClass> = (1..=9).map(|qci| Qci::new(qci).unwrap().class()).collect();
        assert_eq!(classes.iter().filter(|class| class.guaranteed).count(), 4);
        // Each priority belongs to one class.
        let mut priorities: Vec<u8> = classes.iter().map(|class| class.priority).collect();
        priorities.sort_unstable();
        assert_eq!(priorities, (1..=9).collect::<Vec<u8>>());
        let voice = Qci::new(1).unwrap();
        assert_eq!((voice.number(), voice.logical_channel_group(), Qci::DEFAULT.logical_channel_group()), (1, 1, 2));
    }

    #[test]
    fn rlc_mode_follows_the_loss_rate_if_selected() {
        let modes: String = (1..=9)
            .map(|qci| match RlcModeSelection::ByLossRate.mode(Qci::new(qci).unwrap()) {
                RlcMode::Unacknowledged => 'u',
                RlcMode::Acknowledged => 'a',
                _ => '?',
            })
            .collect();
        // 1e-2, 1e-3, 1e-3, 1e-6, 1e-6, 1e-6, 1e-3, 1e-6, 1e-6.
        assert_eq!(modes, "uuuaaauaa");
        assert_eq!(RlcModeSelection::default().mode(Qci::DEFAULT), RlcMode::Unacknowledged);
        assert_eq!(RlcModeSelection::AlwaysAcknowledged.mode(Qci(1)), RlcMode::Acknowledged);
        assert_eq!(RlcModeSelection::Saturated.mode(Qci(1)), RlcMode::Saturated);
    }

    #[test]
    fn data_bearers_have_logical_channels_3_to_10() {
        assert_eq!([1, 8].map(logical_channel), [Ok(3), Ok(10)]);
        assert_eq!(
            [0, 9].map(logical_channel),
            [Err(Error::InvalidBearerNumber(0)), Err(Error::InvalidBearerNumber(9))]
        );
    }

    #[test]
    fn tunnel_adds_forty_bytes() {
        assert_eq!(TUNNEL_BYTES, 40);
    }

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
        assert_eq!(AddressMask::prefix(v4(1, 2, 3, 4), 33), Err(Error::PrefixTooLong { bits: 33, most: 32 }));
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
        assert_eq!(AddressMask::with_mask(six(1), v4(255, 0, 0, 0)), Err(Error::MixedFamilies));
        // Addresses of different families never match, whatever the mask.
        assert!(!AddressMask::prefix(six(1), 0).unwrap().contains(v4(1, 1, 1, 1)));
        assert!(!AddressMask::prefix(v4(1, 1, 1, 1), 0).unwrap().contains(six(1)));
    }

    #[test]
    fn filter_compares_direction_and_type_of_service() {
        let mut packet = headers(v4(9, 9, 9, 9), 80, v4(7, 0, 0, 2), 4000);
        let down = PacketFilter { ways: FilterDirection::Downlink, ..PacketFilter::ANY };
        assert!(down.matches(LinkDirection::Downlink, &packet) && !down.matches(LinkDirection::Uplink, &packet));
        let up = PacketFilter { ways: FilterDirection::Uplink, ..PacketFilter::ANY };
        assert!(!up.matches(LinkDirection::Downlink, &packet) && up.matches(LinkDirection::Uplink, &packet));
        let expedited = PacketFilter { type_of_service: 0xb8, type_of_service_mask: 0xfc, ..PacketFilter::ANY };
        assert!(!expedited.matches(LinkDirection::Downlink, &packet));
        packet.type_of_service = 0xb9;
        assert!(expedited.matches(LinkDirection::Downlink, &packet));
    }

    #[test]
    fn invalid_bearers_and_filters_are_rejected_with_the_accepted_values() {
        let mut classifier = Classifier::with_default_bearer();
        assert_eq!(classifier.add(2, &[PacketFilter::ANY; 16]), Ok(()));
        assert_eq!(classifier.add(3, &[PacketFilter::ANY; 17]), Err(Error::TooManyFilters(17)));
        assert_eq!(classifier.add(1, &[]), Err(Error::DuplicateBearer(1)));
        assert_eq!(classifier.add(9, &[]), Err(Error::InvalidBearerNumber(9)));
        assert_eq!(PortRange::new(5, 4), Err(Error::ReversedPortRange { first: 5, last: 4 }));
        // The other messages are completed by the scenario key to which they refer.
        for error in
            [Error::UnknownQci(0), Error::InvalidBearerNumber(9), Error::TooManyFilters(17), Error::MixedFamilies]
        {
            assert!(error.to_string().contains("expected"), "{error}");
        }
    }

    #[test]
    fn bearers_are_tried_from_the_highest_number() {
        let web = PacketFilter { remote_ports: PortRange::one(80), ..PacketFilter::ANY };
        let mut classifier = Classifier::new();
        for (bearer, filter) in
            [(2, web), (1, PacketFilter::ANY), (5, PacketFilter { ways: FilterDirection::Uplink, ..web })]
        {
            classifier.add(bearer, &[filter]).unwrap();
        }
        let down = headers(v4(9, 9, 9, 9), 80, v4(7, 0, 0, 2), 4000);
        assert_eq!(classifier.classify(LinkDirection::Downlink, &down), Some(2));
        assert_eq!(
            classifier.classify(LinkDirection::Uplink, &headers(v4(7, 0, 0, 2), 4000, v4(9, 9, 9, 9), 80)),
            Some(5)
        );
        assert_eq!(classifier.classify(LinkDirection::Uplink, &down), Some(1));
        assert_eq!(Classifier::new().classify(LinkDirection::Uplink, &down), None);
    }

    #[test]
    fn steps_grow_by_the_ratio_of_the_specification() {
        // 36.321: 61 steps of one ratio from 10 to 150000.
        let ratio = fullpipe_units::math::exp(fullpipe_units::math::ln(15_000.0) / 61.0);
        let mut exact = 10.0;
        let mut others = vec![];
        for index in 1..=62 {
            let edge = buffer_status_bytes(index);
            if (f64::from(edge) - exact).abs() > 1.0 {
                others.push((index, edge, exact as u32));
            }
            exact *= ratio;
        }
        // Two digits are swapped in the reference model.
        assert_eq!(others, [(59, 93_749, 93_478)]);
        assert_eq!((buffer_status_bytes(0), buffer_status_bytes(63), buffer_status_bytes(200)), (0, 150_000, 150_000));
    }

    proptest! {
        #[test]
        fn a_report_is_never_too_small_but_for_the_open_end(bytes in 0_u32..200_000) {
            let index = buffer_status_index(bytes);
            if bytes <= 150_000 {
                prop_assert!(buffer_status_bytes(index) >= bytes);
                prop_assert!(index == 0 || buffer_status_bytes(index - 1) < bytes);
            } else {
                prop_assert_eq!(index, 63);
            }
        }
    }
}
