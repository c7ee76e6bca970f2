//! `run.json`: key, build, seed, options, packet counts, audit and lateness of a run.

use crate::error::RecordError;
use crate::json::{JsonValue, NamedCounts, Nullable, record};
use crate::warning::Warning;
use serde_json::Value;
use std::path::Path;

/// The number of bytes of each packet in a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketCapture {
    /// No capture.
    #[default]
    None,
    /// Complete packets.
    WholePackets,
    /// At most this number of bytes of each packet.
    Truncated(u64),
}

impl PacketCapture {
    /// Returns whether a capture with this setting contains at least the bytes that `wanted` requires.
    pub fn covers(self, wanted: Self) -> bool {
        match (wanted, self) {
            (PacketCapture::None, _) | (_, PacketCapture::WholePackets) => true,
            (PacketCapture::Truncated(wanted), PacketCapture::Truncated(kept)) => kept >= wanted,
            (PacketCapture::WholePackets | PacketCapture::Truncated(_), _) => false,
        }
    }
}

impl JsonValue for PacketCapture {
    const TYPE: &'static str = "a boolean or a count";

    fn to_json(&self) -> Option<Value> {
        Some(match self {
            PacketCapture::None => Value::Bool(false),
            PacketCapture::WholePackets => Value::Bool(true),
            PacketCapture::Truncated(bytes) => Value::from(*bytes),
        })
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, String> {
        match (value.as_bool(), value.as_u64()) {
            (Some(false), _) => Ok(PacketCapture::None),
            (Some(true), _) => Ok(PacketCapture::WholePackets),
            (None, Some(bytes)) => Ok(PacketCapture::Truncated(bytes)),
            (None, None) => Err(format!("`{path}`: expected {}, found {value}", Self::TYPE)),
        }
    }
}

record! {
    /// The options of a run that are not part of its scenario.
    pub struct RunOptionsRecord;
    audit: bool, "", "Whether every packet was checked (`--audit`).";
    pcap: PacketCapture, "bytes", "Whether packets were captured, and how many bytes of each at most (`--pcap`).";
    qlog: bool, "", "Whether connections were logged (`--qlog`).";
    record: bool, "", "Whether packets from real hosts were recorded for a replay.";
}

record! {
    /// Packet counts of a run.
    pub struct PacketCounts;
    received: u64, "packets", "Packets that reached their destination.";
    received_with_data: u64, "packets", "Of these, packets with transport payload, duplicates included.";
    lost: u64, "packets", "Packets dropped.";
    hops: u64, "packets", "Frames transmitted, summed over all links.";
}

record! {
    /// The counters of a NAT.
    pub struct NatRecord;
    router: String, "", "Name of its router.";
    mappings: u64, "", "Mappings created.";
    expired: u64, "", "Mappings that expired.";
    exhausted: u64, "packets", "Packets from inside dropped because no port was free or the host had reached `ports_per_host`.";
    unopened: u64, "packets", "TCP segments from inside dropped because they neither open a connection nor belong to a mapping.";
    unsolicited: u64, "packets", "Packets from outside dropped because no mapping admits them.";
}

record! {
    /// Hashes of the payload of a flow.
    pub struct ContentRecord;
    flow: String, "", "Name of the flow.";
    sent_sha256: String, "", "SHA-256 of the bytes that the sender wrote, in hexadecimal.";
    received_sha256: String, "", "SHA-256 of the bytes that the receiver read, in hexadecimal.";
}

record! {
    /// The result of the auditor.
    pub struct AuditRecord;
    passed: bool, "", "Whether every check passed.";
    packet_by_packet: bool, "", "Whether every packet was checked, not only sums.";
    checks: NamedCounts, "", "Number of checks of each rule.";
    failures: Vec<String>, "", "The first failures, one sentence each.";
    failures_not_kept: u64, "", "Number of further failures.";
}

record! {
    /// The distribution of the lateness of events of one kind.
    pub struct LatenessSpread;
    count: u64, "", "Number of events.";
    late: u64, "", "Of these, later than the permitted lateness.";
    p50_s: f64, "s", "Median lateness.";
    p90_s: f64, "s", "90th percentile.";
    p99_s: f64, "s", "99th percentile.";
    p999_s: f64, "s", "99.9th percentile.";
    max_s: f64, "s", "Largest lateness.";
}

record! {
    /// The lateness of a real-time run.
    pub struct LatenessRecord;
    on_time: bool, "", "Whether the run kept up with real time.";
    reasons: Vec<String>, "", "Why it did not keep up, one sentence each.";
    packets_late: u64, "packets", "Packets sent later than permitted.";
    packets_p50_us: f64, "us", "Median lateness of packets.";
    packets_p99_us: f64, "us", "99th percentile of the lateness of packets.";
    packets_max_us: f64, "us", "Largest lateness of a packet.";
    stall_count: u64, "", "Number of stalls: intervals longer than `stall_after_s` in which the emulator did not run.";
    longest_stall_s: f64, "s", "Length of the longest stall.";
    own_drops: u64, "packets", "Packets that the emulator itself lost.";
    late_after_s: f64, "s", "Permitted lateness: an event, subframe, packet or arrival is late if it exceeds this.";
    late_share_allowed: f64, "", "Permitted share of late events, subframes, packets and arrivals, for each of the four.";
    stall_after_s: f64, "s", "Permitted interval in which the emulator does not run; a longer one is a stall.";
    ran_s: f64, "s", "Duration of the run.";
    worked_s: f64, "s", "Time during which the emulator was not waiting.";
    processor_s: f64, "s", "CPU time of the emulator's thread.";
    events: LatenessSpread, "", "Lateness of the model's events.";
    subframes: LatenessSpread, "", "Lateness of LTE subframes.";
    packets: LatenessSpread, "", "Lateness of packets sent to real hosts.";
    arrivals: LatenessSpread, "", "Time from the arrival of packets of real hosts until they were read.";
    stalls_s: Vec<f64>, "s", "Length of each stall.";
}

record! {
    /// ICMP and TCP packets that nodes of the model send to real hosts.
    pub struct IcmpRecord;
    errors: u64, "packets", "ICMP errors sent.";
    errors_limited: u64, "packets", "ICMP errors not sent because of their rate limit.";
    echo_replies: u64, "packets", "Echo replies sent.";
    resets: u64, "packets", "TCP resets sent.";
}

record! {
    /// Frames from real hosts that did not enter the model, by reason.
    pub struct RefusedFrames;
    malformed: u64, "", "Frames that are shorter than their headers, have contradictory lengths, or have a wrong header checksum.";
    not_ip: u64, "", "Frames that are neither IPv4 nor IPv6, such as ARP.";
    unroutable: u64, "", "Frames for an address that no node of the scenario has.";
    spoofed: u64, "", "Frames from an address other than the sender's (RFC 2827).";
    expired: u64, "", "Frames with a hop limit that reaches zero before the destination.";
    fragments: u64, "", "Fragments that contradict each other.";
    too_many_conversations: u64, "", "Frames of conversations beyond the permitted number.";
    unwritable: u64, "", "Frames from the model to a real host, with content that no header can encode; not sent.";
    unexpected: u64, "", "Frames for an endpoint of the model that are neither valid TCP segments nor valid UDP datagrams.";
}

record! {
    /// A real program that a run started.
    pub struct ProgramRecord;
    name: String, "", "Name in the scenario.";
    ended: String, "", "How it ended.";
    started_s: Nullable<f64>, "s", "Time at which it started.";
    ended_s: Nullable<f64>, "s", "Time at which it ended.";
}

record! {
    /// The TCP options that the kernel and its peer negotiated.
    pub struct NegotiatedRecord;
    timestamps: bool, "", "Whether both ends use timestamps.";
    sack: bool, "", "Whether both ends use selective acknowledgements.";
    window_scaling: bool, "", "Whether both ends scale their windows.";
    ecn: bool, "", "Whether both ends use ECN.";
}

record! {
    /// A flow endpoint that the kernel's TCP runs.
    pub struct KernelEndRecord;
    flow: String, "", "Name of the flow.";
    end: String, "", "`from` or `to`.";
    congestion: Nullable<String>, "", "Congestion control.";
    received_bytes: u64, "bytes", "Payload received.";
    retransmitted_segments: Nullable<u64>, "packets", "Segments retransmitted.";
    reorderings_seen: Nullable<u64>, "", "Reorderings that it detected.";
    negotiated: Nullable<NegotiatedRecord>, "", "TCP options that both ends use.";
}

record! {
    /// The kernel whose TCP ran flow endpoints.
    pub struct KernelRecord;
    release: String, "", "Release of the kernel.";
    ends: Vec<KernelEndRecord>, "", "The flow endpoints in this kernel.";
}

record! {
    /// A queue limit that the scenario states as a multiple of a bandwidth-delay product.
    pub struct BdpLimitRecord;
    link: String, "", "Name of the direction of the link, or of the segment.";
    key: String, "", "Key of the link that states the limit.";
    rate_bps: u64, "bit/s", "Rate of the link; the mean, if it varies.";
    round_trip_s: f64, "s", "Round-trip time of the product.";
    bytes: u64, "bytes", "The limit.";
}

record! {
    /// The content of `run.json`.
    pub struct RunRecord;
    key: String, "", "Key of the run: a hash of the resolved scenario, the content of its files, the seed and the build.";
    build: String, "", "Build that made the run: version of the package, and a hash of its sources.";
    seed: u64, "", "Seed of all random streams.";
    options: RunOptionsRecord, "", "Options of the run that are not part of its scenario.";
    title: String, "", "Title of the scenario.";
    clock: String, "", "`virtual`, `real`, or `replay` (a real-time run replayed in virtual time).";
    duration_s: f64, "s", "Time at which the run ended.";
    measurement_from_s: f64, "s", "Start of the measured interval.";
    packets: PacketCounts, "", "Packets of the whole run.";
    events: u64, "", "Events that the simulator processed.";
    bdp_limits: Option<Vec<BdpLimitRecord>>, "", "Limits of queues that the scenario states in BDP, in bytes; absent if there are none.";
    nat: Vec<NatRecord>, "", "The address translators, in the order of the scenario.";
    content: Vec<ContentRecord>, "", "The flows whose content is compared.";
    audit: AuditRecord, "", "The auditor's result.";
    random_streams: Option<NamedCounts>, "", "Draws from each random stream, `ENTITY: PURPOSE` with `#` for numbers; none: the run is \
        deterministic. Only in virtual time.";
    timeouts: Option<NamedCounts>, "", "Retransmission timeouts of TCP and probe timeouts of the QUIC model, for each direction of a flow \
        that had any; absent if none had. The real QUIC stack, tunnels and kernels do not report them.";
    scenario: String, "", "The resolved scenario, as TOML.";
    lateness: Option<LatenessRecord>, "", "Lateness of a real-time run.";
    arrivals: Option<u64>, "packets", "Recorded packets of real hosts that a replay read.";
    arrivals_not_recorded: Option<u64>, "packets", "Packets of real hosts that a real-time run could not record.";
    icmp: Option<IcmpRecord>, "", "ICMP and TCP packets that nodes of the model sent to real hosts.";
    refused_frames: Option<RefusedFrames>, "", "Frames of real hosts that did not enter the model.";
    programs: Option<Vec<ProgramRecord>>, "", "The programs that a real-time run started.";
    kernel: Option<Nullable<KernelRecord>>, "", "The flow endpoints in the kernel's TCP.";
    distrust: Vec<String>, "", "Reasons not to trust the run, one sentence each; empty if there are none.";
    warnings: Option<Vec<Warning>>, "", "What makes the results suspicious although nothing failed.";
}

impl RunRecord {
    /// The file's name.
    pub const FILE: &'static str = "run.json";

    /// Returns the content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Writing to memory cannot fail.
        let mut text = serde_json::to_vec_pretty(&self.to_json()).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Parses the content of the file; `file` is its name in messages.
    ///
    /// # Errors
    /// If the content is not JSON, lacks a key, or has a value of another type than declared.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, RecordError> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let problem = if error.is_eof() { "ends in the middle of its JSON" } else { "is not valid JSON" };
            RecordError::invalid(file, Some(error.line() as u64), problem)
        })?;
        RunRecord::from_json(&value, "").map_err(|problem| RecordError::invalid(file, None, problem))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// The errors of [`RunRecord::parse`], or an error if the file cannot be read.
    pub fn read(file: &Path) -> Result<Self, RecordError> {
        RunRecord::parse(file, &std::fs::read(file).map_err(|cause| RecordError::read(file, cause))?)
    }
}
