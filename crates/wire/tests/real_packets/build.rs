//! Builder of test packets, with an independent computation of checksums. The `etherparse` library computes the sums,
//! and this file determines the positions of fields from its own recipe.

use etherparse::checksum::Sum16BitWords;
use proptest::collection::vec;
use proptest::prelude::*;

/// The Internet checksum as computed by another library.
pub(crate) fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let all = parts.concat();
    u16::from_be_bytes(Sum16BitWords::new().add_slice(&all).ones_complement().to_ne_bytes())
}

/// Content after the IP headers.
#[derive(Clone, Debug)]
pub(crate) enum Upper {
    Tcp { ports: (u16, u16), options: Vec<u8>, payload: Vec<u8> },
    Udp { ports: (u16, u16), checksum: bool, payload: Vec<u8> },
    Echo { request: bool, identifier: u16, payload: Vec<u8> },
    Error { kind: u8, quoted: Box<Recipe>, keep: usize },
    Other { protocol: u8, payload: Vec<u8> },
}

/// Range of the whole payload that a packet carries: start and length.
pub(crate) type Part = Option<(usize, usize)>;

/// Description of a packet to build.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) v6: bool,
    pub(crate) source: [u8; 16],
    pub(crate) destination: [u8; 16],
    pub(crate) traffic_class: u8,
    pub(crate) hop_limit: u8,
    pub(crate) identification: u16,
    pub(crate) dont_fragment: bool,
    /// IPv4 options, or IPv6 hop-by-hop, destination and routing headers, each a multiple of eight bytes.
    pub(crate) extras: Vec<u8>,
    pub(crate) upper: Upper,
    pub(crate) part: Part,
}

impl Recipe {
    pub(crate) fn addresses(&self) -> (&[u8], &[u8]) {
        let length = if self.v6 { 16 } else { 4 };
        (&self.source[..length], &self.destination[..length])
    }

    pub(crate) fn protocol(&self) -> u8 {
        match (&self.upper, self.v6) {
            (Upper::Tcp { .. }, _) => 6,
            (Upper::Udp { .. }, _) => 17,
            (Upper::Echo { .. } | Upper::Error { .. }, false) => 1,
            (Upper::Echo { .. } | Upper::Error { .. }, true) => 58,
            (Upper::Other { protocol, .. }, _) => *protocol,
        }
    }

    /// Transport header and payload of the whole packet, with a correct checksum.
    pub(crate) fn upper_bytes(&self) -> Vec<u8> {
        let (mut bytes, checksum_at) = match &self.upper {
            Upper::Tcp { ports, options, payload } => {
                let words = (20 + options.len() as u8) / 4;
                let fixed = [1, 2, 3, 4, 5, 6, 7, 8, words << 4, 0x18, 0x10, 0, 0, 0, 0, 0];
                let ports = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
                ([&ports[..], &fixed, options, payload].concat(), 16)
            }
            Upper::Udp { ports, payload, .. } => {
                let fields = [ports.0, ports.1, 8 + payload.len() as u16, 0];
                let header: Vec<u8> = fields.into_iter().flat_map(u16::to_be_bytes).collect();
                ([&header[..], payload].concat(), 6)
            }
            Upper::Echo { request, identifier, payload } => {
                let kind = match (self.v6, request) {
                    (false, true) => 8,
                    (false, false) => 0,
                    (true, true) => 128,
                    (true, false) => 129,
                };
                let [high, low] = identifier.to_be_bytes();
                ([&[kind, 0, 0, 0, high, low, 0, 0][..], payload].concat(), 2)
            }
            Upper::Error { kind, quoted, keep } => {
                let quoted = quoted.bytes();
                let keep = (*keep).min(quoted.len());
                ([&[*kind, 0, 0, 0, 0, 0, 0, 0], &quoted[..keep]].concat(), 2)
            }
            Upper::Other { payload, .. } => return payload.clone(),
        };
        let (source, destination) = self.addresses();
        let length = (bytes.len() as u32).to_be_bytes();
        let pseudo = [source, destination, &length, &[0, 0, 0, self.protocol()]].concat();
        let pseudo = if self.protocol() == 1 { &[][..] } else { &pseudo };
        let checksum = match (&self.upper, internet_checksum(&[pseudo, &bytes])) {
            (Upper::Udp { checksum: false, .. }, _) => 0,
            (Upper::Udp { .. }, 0) => 0xffff,
            (_, checksum) => checksum,
        };
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Size of the headers before the transport header in bytes.
    pub(crate) fn header_bytes(&self) -> usize {
        (if self.v6 { 40 } else { 20 }) + self.extras.len() + if self.v6 && self.part.is_some() { 8 } else { 0 }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let whole = self.upper_bytes();
        let (from, length) = self.part.unwrap_or((0, whole.len()));
        let (more, offset) = (from + length < whole.len(), from as u16);
        let payload = &whole[from..from + length];
        let (source, destination) = self.addresses();
        let [id_high, id_low] = self.identification.to_be_bytes();
        if !self.v6 {
            let [total_high, total_low] = ((self.header_bytes() + length) as u16).to_be_bytes();
            let flags = u16::from(self.dont_fragment) << 14 | u16::from(more) << 13 | (offset / 8);
            let words = 5 + self.extras.len() as u8 / 4;
            let mut header = vec![0x40 | words, self.traffic_class, total_high, total_low, id_high, id_low];
            header.extend(flags.to_be_bytes());
            header.extend([self.hop_limit, self.protocol(), 0, 0]);
            header.extend([source, destination, &self.extras[..]].concat());
            let checksum = internet_checksum(&[&header]);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            return [&header[..], payload].concat();
        }
        let fragment_header = match self.part {
            None => Vec::new(),
            Some(_) => {
                let flags = (offset | u16::from(more)).to_be_bytes();
                vec![self.protocol(), 0, flags[0], flags[1], 0, 0, id_high, id_low]
            }
        };
        let after = if self.part.is_some() { 44 } else { self.protocol() };
        let (first, extras) = chained(&self.extras, after);
        let length = (extras.len() + fragment_header.len() + length) as u16;
        let mut header = vec![0x60 | self.traffic_class >> 4, self.traffic_class << 4 | 5, 0xab, 0xcd];
        header.extend(length.to_be_bytes());
        header.extend([first, self.hop_limit]);
        [&header[..], source, destination, &extras, &fragment_header, payload].concat()
    }
}

/// Chains extension headers given by their number and length, with destination options (60) filled with padding.
/// Returns the number of the first header and the bytes, with the Next Header fields filled in.
fn chained(extras: &[u8], after: u8) -> (u8, Vec<u8>) {
    let mut out = extras.to_vec();
    let mut at = 0;
    while at < out.len() {
        let length = 8 + usize::from(out[at + 1]) * 8;
        out[at] = if at + length < out.len() { 60 } else { after };
        at += length;
    }
    (if extras.is_empty() { after } else { 60 }, out)
}

fn payload() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..200), vec(0..=0_u8, 0..40), vec(0xff..=0xff_u8, 0..40)].boxed()
}

fn long_payload() -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), 100..400).boxed()
}

fn ports() -> impl Strategy<Value = (u16, u16)> {
    let port = || prop_oneof![any::<u16>(), Just(0), Just(0xffff)];
    (port(), port())
}

fn simple_upper(payload: fn() -> BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Upper> {
    let options = (0..=10_usize).prop_flat_map(|words| vec(1..=1_u8, words * 4));
    prop_oneof![
        (ports(), options, payload()).prop_map(|(ports, options, payload)| Upper::Tcp { ports, options, payload }),
        (ports(), any::<bool>(), payload()).prop_map(|(ports, checksum, payload)| Upper::Udp {
            ports,
            checksum,
            payload
        }),
        (any::<bool>(), ports(), payload()).prop_map(|(request, ports, payload)| Upper::Echo {
            request,
            identifier: ports.0,
            payload
        }),
        payload().prop_map(|payload| Upper::Other { protocol: 132, payload }),
    ]
}

fn extras(v6: bool) -> BoxedStrategy<Vec<u8>> {
    if v6 {
        // Destination options, filled with one PadN option (RFC 8200 section 4.2).
        let one = (0..3_u8).prop_map(|more| {
            let length = 8 + usize::from(more) * 8;
            let mut header = vec![0; length];
            (header[1], header[2], header[3]) = (more, 1, length as u8 - 4);
            header
        });
        vec(one, 0..4).prop_map(|headers| headers.concat()).boxed()
    } else {
        // Router alert (RFC 2113), record route (not copied to fragments), then NOPs.
        prop_oneof![
            Just(Vec::new()),
            Just(vec![148, 4, 0, 0]),
            Just(vec![7, 7, 4, 0, 0, 0, 0, 1]),
            Just(vec![148, 4, 0, 0, 7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            (1..=10_usize).prop_map(|words| vec![1; words * 4]),
        ]
        .boxed()
    }
}

fn with_upper(v6: bool, upper: impl Strategy<Value = Upper>) -> impl Strategy<Value = Recipe> {
    let numbers = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<u8>(), any::<u8>(), any::<u16>(), any::<bool>());
    (numbers, extras(v6), upper).prop_map(move |(numbers, extras, upper)| {
        let (source, destination, traffic_class, hop_limit, identification, dont_fragment) = numbers;
        Recipe {
            v6,
            source,
            destination,
            traffic_class,
            hop_limit,
            identification,
            dont_fragment,
            extras,
            upper,
            part: None,
        }
    })
}

/// A whole packet that quotes no other packet.
pub(crate) fn simple() -> impl Strategy<Value = Recipe> {
    any::<bool>().prop_flat_map(|v6| with_upper(v6, simple_upper(payload)))
}

/// Such a packet with at least 100 bytes of payload.
pub(crate) fn long() -> impl Strategy<Value = Recipe> {
    any::<bool>().prop_flat_map(|v6| with_upper(v6, simple_upper(long_payload)))
}

/// An ICMP error. The quoted packet is truncated after the first eight bytes of its transport header, or later.
pub(crate) fn error() -> impl Strategy<Value = Recipe> {
    any::<bool>().prop_flat_map(|v6| {
        let kind = if v6 { prop::sample::select(vec![1, 2, 3, 4]) } else { prop::sample::select(vec![3, 11, 12]) };
        let quoted =
            with_upper(v6, simple_upper(payload)).prop_filter("eight bytes", |quoted| quoted.upper_bytes().len() >= 8);
        // Half of the TCP checksum, up to byte 17, cannot be changed without the other half.
        let beyond =
            (0..300_usize).prop_filter("the checksum is quoted completely or not at all", |beyond| *beyond != 9);
        let upper = (kind, quoted, beyond).prop_map(|(kind, quoted, beyond)| Upper::Error {
            kind,
            keep: quoted.header_bytes() + 8 + beyond,
            quoted: Box::new(quoted),
        });
        with_upper(v6, upper)
    })
}

/// A whole packet of any kind.
pub(crate) fn whole() -> impl Strategy<Value = Recipe> {
    prop_oneof![3 => simple(), 1 => error()]
}

/// Damage: bytes to overwrite and their positions.
pub(crate) fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    vec((any::<prop::sample::Index>(), any::<u8>()), 0..6)
}

/// Damaged bytes, truncated or with trailing bytes.
pub(crate) fn damaged(
    mut bytes: Vec<u8>,
    damage: &[(prop::sample::Index, u8)],
    cut: Option<prop::sample::Index>,
) -> Vec<u8> {
    for (place, value) in damage {
        // Half of the damage affects headers.
        let reach = if value % 2 == 0 { bytes.len() } else { bytes.len().min(64) };
        let place = place.index(reach);
        bytes[place] = *value;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len() + 1));
    }
    bytes
}
