//! Bearers: quality of service, the classification of packets, tunnel headers and buffer status reports.
//!
//! A **QCI** (QoS class identifier) identifies a class of service (3GPP TS 23.203, table 6.1.7). It determines the RLC
//! mode ([`RlcModeSelection`]), the logical channel group in which a UE reports its buffer status, and the parameters
//! that schedulers use.
//!
//! A **traffic flow template** is a bearer's list of packet filters (TS 24.008, clause 10.5.6.12). The UE classifies
//! uplink packets, the PGW downlink packets ([`Classifier`]). As in the reference model (ns-3's `lte` module), bearers
//! are tried from the highest number to the lowest. A packet belongs to the first bearer with a matching filter. The
//! default bearer, number 1, matches every packet and is tried last. The specification orders the filters of all
//! bearers by precedence; the model stores the precedence but ignores it. A packet without a matching bearer is
//! dropped. "Local" refers to the UE, and "remote" to its peer.
//!
//! Between eNB, SGW and PGW a packet is in a **tunnel**, which adds [`TUNNEL_BYTES`].
//!
//! A **buffer status report** (TS 36.321, clause 6.1.3.1) reports to the eNB the number of waiting bytes of a logical
//! channel group, in 64 steps.

use crate::rlc::RlcMode;
use fullpipe_network::MediumDirection;
use fullpipe_network::filter::{PacketFilter, PacketHeaders};
use fullpipe_units::Duration;
use std::fmt;

/// Size of the GTP-U header in bytes: 8 mandatory bytes, and 4 optional bytes (TS 29.281, clause 5.1) that the
/// reference model always sends.
pub const GTP_U_HEADER_BYTES: u32 = 12;

/// Bytes that the tunnel adds to a packet: GTP-U (12), UDP (8) and IPv4 (20).
pub const TUNNEL_BYTES: u32 = GTP_U_HEADER_BYTES + 8 + 20;

/// Maximum number of data bearers of a UE: logical channels 3 to 10 carry data (TS 36.331, clause 6.3.2).
pub const MAX_BEARERS: u8 = 8;

/// Maximum number of packet filters of a bearer (TS 24.008, clause 10.5.6.12).
pub const MAX_FILTERS: usize = 16;

/// An invalid bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The number is not a QCI from 1 to 9.
    UnknownQci(u8),
    /// The bearer number is not from 1 to [`MAX_BEARERS`].
    InvalidBearerNumber(u8),
    /// Two bearers have this number.
    DuplicateBearer(u8),
    /// A bearer has this number of packet filters, which exceeds [`MAX_FILTERS`].
    TooManyFilters(usize),
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
        }
    }
}

impl std::error::Error for Error {}

/// A QoS class identifier (QCI), from 1 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Qci(u8);

/// The parameters of a class of service (3GPP TS 23.203, table 6.1.7).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QosClass {
    /// Whether a bit rate is guaranteed.
    pub guaranteed: bool,
    /// Priority; 1 is the highest.
    pub priority: u8,
    /// Upper bound of the delay between UE and PGW for 98 % of packets.
    pub delay_budget: Duration,
    /// Highest permitted packet loss rate without congestion, from 0 to 1.
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
    /// The QCI of the default bearer: 9.
    pub const DEFAULT: Qci = Qci(9);

    /// Returns the QCI with this number.
    ///
    /// # Errors
    /// If the number is not from 1 to 9.
    pub const fn new(qci: u8) -> Result<Qci, Error> {
        if qci >= 1 && qci <= 9 { Ok(Qci(qci)) } else { Err(Error::UnknownQci(qci)) }
    }

    /// Returns the number, from 1 to 9.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the parameters of the class of service.
    pub const fn class(self) -> &'static QosClass {
        &CLASSES[self.0 as usize - 1]
    }

    /// Returns the logical channel group for buffer status reports: 1 with a guaranteed bit rate, 2 without one. Group
    /// 0 is for signaling.
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
    /// UM if the QCI permits a packet loss rate above 10^-5, otherwise AM.
    ByLossRate,
    /// Always [`RlcMode::Saturated`]: a source with unlimited data, for tests of the radio.
    Saturated,
}

impl RlcModeSelection {
    /// Highest permitted share of lost packets for which AM is chosen.
    const RELIABLE_LOSS_RATE: f64 = 1e-5;

    /// Returns the RLC mode of a bearer of this class.
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

/// Returns the logical channel of a bearer: 3 for bearer 1 to 10 for bearer 8. Lower channels are for signaling.
///
/// # Errors
/// If the bearer number is not from 1 to [`MAX_BEARERS`].
pub const fn logical_channel(bearer: u8) -> Result<u8, Error> {
    if bearer >= 1 && bearer <= MAX_BEARERS { Ok(bearer + 2) } else { Err(Error::InvalidBearerNumber(bearer)) }
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
    ///
    /// # Errors
    /// If the number is invalid or already in use, or if there are too many filters.
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

    /// Returns the number of a packet's bearer in this direction; `None` if no filter matches and the packet is
    /// dropped.
    pub fn classify(&self, way: MediumDirection, headers: &PacketHeaders) -> Option<u8> {
        let takes = |filters: &[PacketFilter]| filters.iter().any(|filter| filter.matches(way, headers));
        self.bearers.iter().find(|(_, filters)| takes(filters)).map(|&(number, _)| number)
    }
}

/// Steps of a buffer status report.
const STEPS: usize = 64;

/// Upper bounds of the steps, bytes. The last step has no bound and repeats the one before (see `data/README.md`). The
/// bound of step 59 is that of ns-3, 93749; the rule by which the specification computes the others gives 93479.
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

/// Returns the step with which a UE reports this number of bytes: the first step whose upper bound is at least this
/// number. Without such a step, it is the last step.
#[inline]
pub fn buffer_status_index(bytes: u32) -> u8 {
    STEP_BYTES.partition_point(|&edge| edge < bytes).min(STEPS - 1) as u8
}

/// Returns the number of bytes that an eNB assumes for a step: its upper bound. For the last step, which has no upper
/// bound, it is the lower bound. An index above the last step counts as the last step.
#[inline]
pub fn buffer_status_bytes(index: u8) -> u32 {
    STEP_BYTES[usize::from(index).min(STEPS - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_network::filter::{FilterDirection, PortRange};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

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
    fn invalid_bearers_and_filters_are_rejected_with_the_accepted_values() {
        let mut classifier = Classifier::with_default_bearer();
        assert_eq!(classifier.add(2, &[PacketFilter::ANY; 16]), Ok(()));
        assert_eq!(classifier.add(3, &[PacketFilter::ANY; 17]), Err(Error::TooManyFilters(17)));
        assert_eq!(classifier.add(1, &[]), Err(Error::DuplicateBearer(1)));
        assert_eq!(classifier.add(9, &[]), Err(Error::InvalidBearerNumber(9)));
        // The other messages are completed by the scenario key to which they refer.
        for error in [Error::UnknownQci(0), Error::InvalidBearerNumber(9), Error::TooManyFilters(17)] {
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
        assert_eq!(classifier.classify(MediumDirection::Downlink, &down), Some(2));
        assert_eq!(
            classifier.classify(MediumDirection::Uplink, &headers(v4(7, 0, 0, 2), 4000, v4(9, 9, 9, 9), 80)),
            Some(5)
        );
        assert_eq!(classifier.classify(MediumDirection::Uplink, &down), Some(1));
        assert_eq!(Classifier::new().classify(MediumDirection::Uplink, &down), None);
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
