//! The declared properties of a run, which together with the events are the only input of the auditor.
//!
//! The terms are those of the scenario. The simulator supplies no derived numbers: this module computes the times that
//! follow from a declaration (the transmission time of a frame, and the minimum delay of a path).

use fullpipe_units::LinkId;

/// One direction of a point-to-point link, a shared medium, or one direction of a scheduled medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredLink {
    /// The name of the link, for failure messages.
    pub name: String,
    /// The access rule of the link.
    pub medium: MediumAccess,
    /// Rate in bits per second; 0 means that no rate is declared or checked.
    pub rate_bps: u64,
    /// Propagation delay in nanoseconds, the same for every frame. For [`MediumAccess::Scheduled`], the minimum time
    /// from offer to arrival.
    pub delay_ns: u64,
    /// Whether the propagation delay of a frame can exceed `delay_ns` (jitter). The delay is never shorter than
    /// `delay_ns`.
    pub delay_varies: bool,
    /// Bytes that framing adds to each IP packet on the wire.
    pub framing_bytes: u32,
    /// Minimum frame size on the wire in bytes, including framing; 0 if there is no minimum. Shorter frames are padded.
    /// On a link with a minimum (Ethernet), a sender may delay a packet until address resolution is complete.
    pub min_frame_bytes: u32,
    /// Largest IP packet in one frame, in bytes.
    pub mtu_bytes: u32,
    /// Deviations from a constant rate and from in-order delivery. If there are any, `rate_bps` is the highest rate and
    /// `delay_ns` is the minimum delay.
    pub varies: LinkVariation,
    /// Limit of the queue, which only [`PacketAuditor`](crate::PacketAuditor) checks; `None` means no limit.
    pub queue: Option<DeclaredQueueLimit>,
}

/// The access rule, which determines when each sender may transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumAccess {
    /// One sender transmits one frame after another.
    PointToPoint,
    /// Several stations share one medium, which is busy until a frame has reached the far end. (With full duplex, each
    /// station has a separate medium, which is a point-to-point link.)
    HalfDuplex,
    /// A scheduler decides which station transmits and when (a radio cell). Frames share transmissions, and frames of
    /// different stations overtake each other. Only the offer and the arrival of a frame are reported. `delay_ns` is
    /// the minimum time between the two. `rate_bps` limits the rate of arrivals since the medium was last empty.
    Scheduled,
}

/// Deviations of a link from a constant rate and from one in-order arrival per frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkVariation {
    /// The rate over time.
    pub course: RateProfile,
    /// Whether frames can overtake each other.
    pub reorders: bool,
    /// Whether frames can arrive twice.
    pub duplicates: bool,
}

/// The maximum rate of a link over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RateProfile {
    /// The rate is constant.
    #[default]
    Constant,
    /// The rate changes in steps.
    Steps {
        /// Rate in bits per second before the first step.
        first_bps: u64,
        /// Time of each step since the start of the run (or of a period) in nanoseconds, and the rate in bits per
        /// second from then on. The steps are in order of time.
        steps: Vec<(u64, u64)>,
        /// Period in nanoseconds with which the steps repeat; `None` if they do not repeat. Each period begins with the
        /// rate at the end of the previous one.
        repeat_ns: Option<u64>,
    },
    /// Bytes may depart only at certain instants.
    Opportunities {
        /// The instants in nanoseconds, in order, at most `period_ns`.
        at_ns: Vec<u64>,
        /// Period in nanoseconds with which the instants repeat, not zero.
        period_ns: u64,
        /// Maximum number of bytes at each instant.
        bytes: u32,
    },
}

/// The maximum number of packets and bytes that may be queued at a link, in all queues of one sender together. With a
/// discipline above a device queue, this is the sum of both limits. The frame in transmission does not count. On a
/// shared medium, each flow is assumed to have its own sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeclaredQueueLimit {
    /// Maximum number of packets; `None` means no limit.
    pub packets: Option<u64>,
    /// Maximum number of bytes on the wire; `None` means no limit.
    pub bytes: Option<u64>,
}

/// One direction of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredFlow {
    /// All links that the packets of this direction pass, in order, each once. If the list is empty, the path is
    /// unknown and not checked.
    pub path: Vec<LinkId>,
    /// Whether the packets are IPv6 packets, which only their source may fragment (RFC 8200 section 5).
    pub ipv6: bool,
}

/// Number of fractional bits of a nanosecond in the auditor's arithmetic. The resolution of 2^-20 ns represents the
/// time of a byte at 100 Gbit/s (0.08 ns) to one part in 80 000.
pub(crate) const FRACTION_BITS: u32 = 20;

/// Largest IP packet in bytes (RFC 791).
const MAX_IP_BYTES: u64 = 65_535;

/// Returns the time of one byte at a rate in units of 2^-20 ns, rounded down (in favor of the link). Also returns
/// whether the exact time is not a whole number of nanoseconds.
fn byte_time(rate_bps: u64) -> (u64, bool) {
    const BITS_TIMES_NANOSECONDS: u64 = 8_000_000_000;
    if rate_bps == 0 {
        return (0, false);
    }
    let scaled = (u128::from(BITS_TIMES_NANOSECONDS) << FRACTION_BITS) / u128::from(rate_bps);
    (scaled as u64, !BITS_TIMES_NANOSECONDS.is_multiple_of(rate_bps))
}

impl DeclaredLink {
    /// Returns the size of the largest frame on the wire.
    pub(crate) fn max_wire_bytes(&self) -> u32 {
        self.mtu_bytes.saturating_add(self.framing_bytes).max(self.min_frame_bytes)
    }

    /// Returns the time of one byte in units of 2^-20 ns, bounded so that the time of a whole frame stays below 2^63
    /// units. With frames of 1500 bytes the bound affects only rates below 2 bit/s, which are checked as if they were
    /// higher.
    pub(crate) fn byte_time(&self) -> u64 {
        byte_time(self.rate_bps).0.min((u64::MAX >> 1) / u64::from(self.max_wire_bytes().max(1)))
    }
}

/// The minimum delay of a packet over a path of store-and-forward links.
///
/// For a packet of b bytes, this is `fixed_ns` + `fixed_fraction` + b x `byte_time`. Fragments are transmitted in
/// parallel on several links. The minimum delay of a fragmented packet is therefore the sum of the propagation delays
/// and the time of all its bytes on the slowest link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MinimumPathDelay {
    /// Signed, because the allowance for rounding can exceed the fixed time.
    fixed_ns: i64,
    /// The fractional part of `fixed_ns`, in units of 2^-20 ns.
    fixed_fraction: u64,
    /// Time per byte at the IP layer in units of 2^-20 ns, summed over the links.
    byte_time: u64,
    propagation_ns: u64,
    slowest_byte_time: u64,
    /// The smallest MTU of the links; larger packets are fragmented on the path.
    mtu_bytes: u32,
}

impl MinimumPathDelay {
    /// Returns the minimum delay of a path; `link` returns the declaration of a link. A link without a declaration adds
    /// no time.
    pub(crate) fn over<'a>(path: &[LinkId], link: impl Fn(LinkId) -> Option<&'a DeclaredLink>) -> MinimumPathDelay {
        let mut promise = MinimumPathDelay { mtu_bytes: u32::MAX, ..MinimumPathDelay::default() };
        let mut framing = 0u64;
        let mut inexact_links = 0u64;
        for link in path.iter().filter_map(|&id| link(id)) {
            // At an opportunity, a frame departs without a transmission time. On a scheduled medium, the minimum delay
            // includes the transmission.
            let at_once = matches!(link.varies.course, RateProfile::Opportunities { .. })
                || link.medium == MediumAccess::Scheduled;
            let (exact, inexact) = byte_time(if at_once { 0 } else { link.rate_bps });
            promise.byte_time = promise.byte_time.saturating_add(exact);
            promise.slowest_byte_time = promise.slowest_byte_time.max(exact);
            promise.propagation_ns = promise.propagation_ns.saturating_add(link.delay_ns);
            promise.mtu_bytes = promise.mtu_bytes.min(link.mtu_bytes);
            framing = framing.saturating_add(exact.saturating_mul(u64::from(link.framing_bytes)));
            inexact_links += u64::from(inexact);
        }
        let bound = (u64::MAX >> 1) / MAX_IP_BYTES;
        promise.byte_time = promise.byte_time.min(bound);
        promise.slowest_byte_time = promise.slowest_byte_time.min(bound);
        // Clocks count whole nanoseconds. On each link whose byte time is not an integer, rounding can reduce the time
        // by less than one nanosecond. The time on k such links is therefore more than the exact sum - k, that is, at
        // least the sum rounded down - (k - 1).
        let whole = promise.propagation_ns.saturating_add(framing >> FRACTION_BITS).min(u64::MAX >> 2);
        promise.fixed_ns = whole as i64 - inexact_links.saturating_sub(1) as i64;
        promise.fixed_fraction = framing & ((1 << FRACTION_BITS) - 1);
        promise
    }

    /// Returns the minimum delay of an unfragmented packet in nanoseconds; negative if the allowance for rounding
    /// exceeds the delay.
    #[inline(always)]
    pub(crate) fn least_ns(&self, ip_bytes: u32) -> i64 {
        let bytes = self.byte_time.wrapping_mul(u64::from(ip_bytes)).wrapping_add(self.fixed_fraction);
        self.fixed_ns.wrapping_add((bytes >> FRACTION_BITS) as i64)
    }

    /// Returns the minimum delay of any packet in nanoseconds, fragmented or not.
    pub(crate) fn least_ns_of_any(&self, ip_bytes: u32) -> u64 {
        if ip_bytes <= self.mtu_bytes {
            return self.least_ns(ip_bytes).max(0) as u64;
        }
        let slowest = self.slowest_byte_time.saturating_mul(u64::from(ip_bytes)) >> FRACTION_BITS;
        // For each fragment, rounding can reduce the time by a fraction of a nanosecond. An IP header has at most 60
        // bytes.
        let fragments = ip_bytes.div_ceil(self.mtu_bytes.saturating_sub(60).max(8));
        self.propagation_ns.saturating_add(slowest.saturating_sub(u64::from(fragments)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rate_bps: u64, delay_ns: u64) -> DeclaredLink {
        DeclaredLink {
            name: String::from("link"),
            medium: MediumAccess::PointToPoint,
            rate_bps,
            delay_ns,
            delay_varies: false,
            framing_bytes: 2,
            min_frame_bytes: 0,
            mtu_bytes: 1500,
            queue: None,
            varies: LinkVariation::default(),
        }
    }

    fn over(path: &[u32], links: &[DeclaredLink]) -> MinimumPathDelay {
        let path: Vec<LinkId> = path.iter().map(|&id| LinkId(id)).collect();
        MinimumPathDelay::over(&path, |id| links.get(id.index()))
    }

    #[test]
    fn least_time_over_three_links_matches_a_calculation_by_hand() {
        // The chain of `tcp-1`: 1 Gbit/s 0.5 ms, 100 Mbit/s 9 ms, 1 Gbit/s 0.5 ms, 2 bytes of framing. 1500 bytes:
        // 1502 x 8 = 12 016 bits: 12 016 + 120 160 + 12 016 = 144 192 ns, and 10 ms of propagation.
        let links = [link(1_000_000_000, 500_000), link(100_000_000, 9_000_000), link(1_000_000_000, 500_000)];
        let promise = over(&[0, 1, 2], &links);
        assert_eq!(promise.least_ns(1500), 10_144_192);
        assert_eq!(promise.least_ns_of_any(1500), 10_144_192);
        // 3000 bytes at 100 Mbit/s take 240 000 ns, minus one for each of three fragments (1480 + 1480 + 20).
        assert_eq!(promise.least_ns_of_any(3000), 10_239_997);
    }

    #[test]
    fn one_inexact_link_may_round_down_and_two_may_lose_one_more() {
        // 98 + 2 bytes at 7 Mbit/s: 800 / 7e6 s = 114 285.714 ns; twice: 228 571.43 (each rounded down: 228 570).
        let links = [link(7_000_000, 0), link(7_000_000, 0)];
        assert_eq!(over(&[0], &links).least_ns(98), 114_285);
        assert_eq!(over(&[0, 1], &links).least_ns(98), 228_570);
    }

    #[test]
    fn allowance_for_rounding_may_exceed_the_fixed_time() {
        // 31 bytes at 10 Gbit/s without framing: 24.8 ns; two links: 49.6, each rounded down to 24: 48.
        let bare = DeclaredLink { framing_bytes: 0, ..link(10_000_000_000, 0) };
        let links = [bare.clone(), bare];
        assert_eq!(over(&[0, 1], &links).least_ns(31), 48);
        // An empty packet takes no time.
        assert_eq!(over(&[0, 1], &links).least_ns_of_any(0), 0);
    }

    #[test]
    fn extreme_or_missing_values_promise_little_and_do_not_overflow() {
        assert_eq!(over(&[], &[]).least_ns(1500), 0);
        assert_eq!(over(&[3], &[]).least_ns(1500), 0);
        assert_eq!(over(&[0], &[link(0, 5)]).least_ns(1500), 5);
        let slow = DeclaredLink { mtu_bytes: u32::MAX, framing_bytes: u32::MAX, ..link(1, u64::MAX) };
        let promise = over(&[0, 0], std::slice::from_ref(&slow));
        assert!(promise.least_ns_of_any(u32::MAX) > 0);
        assert!(u128::from(slow.byte_time()) * u128::from(slow.max_wire_bytes()) < 1 << 63);
    }
}
