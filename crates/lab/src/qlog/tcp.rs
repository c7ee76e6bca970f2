//! Writes the events of TCP connections, which no draft defines. Their names are those of the QUIC events, and so are
//! the names of fields that have a counterpart in QUIC.

use super::words::word_of;
use fullpipe_record::qlog::ObjectWriter;
use fullpipe_tcp::{Config, LostSegment, State};
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{SegmentOptions, TcpHeader};

/// The schema of these events.
pub(super) const SCHEMA: &str = "urn:fullpipe:qlog:events:tcp-1";

const FLAGS: [(u16, &str); 9] = [
    (flags::SYN, "syn"),
    (flags::FIN, "fin"),
    (flags::RST, "rst"),
    (flags::PSH, "psh"),
    (flags::ACK, "ack"),
    (flags::URG, "urg"),
    (flags::ECE, "ece"),
    (flags::CWR, "cwr"),
    (flags::AE, "ae"),
];

/// Writes a segment that was sent or received.
pub(super) fn segment(
    data: &mut ObjectWriter<'_>,
    header: &TcpHeader,
    beside: Option<&SegmentOptions>,
    codepoint: EcnCodepoint,
    datagram_id: u64,
) {
    let has = |option: u8| header.options & option != 0;
    data.object("header", |out| {
        out.unsigned("sequence_number", u64::from(header.sequence));
        if header.has_flag(flags::ACK) {
            out.unsigned("acknowledgement_number", u64::from(header.acknowledgement));
        }
        out.array("flags", |set| {
            FLAGS.iter().filter(|(flag, _)| header.has_flag(*flag)).for_each(|(_, name)| set.text(name));
        });
        out.unsigned("window", u64::from(header.window));
        if has(options::MSS) {
            out.unsigned("maximum_segment_size", u64::from(header.mss));
        }
        if has(options::WINDOW_SCALE) {
            out.unsigned("window_scale", u64::from(header.window_scale));
        }
        if has(options::SACK_PERMITTED) {
            out.boolean("sack_permitted", true);
        }
        if has(options::TIMESTAMPS) {
            out.unsigned("timestamp_value", u64::from(header.timestamp));
            out.unsigned("timestamp_echo_reply", u64::from(header.timestamp_echo));
        }
        if let Some(beside) = beside.filter(|_| header.sack_count > 0) {
            out.array("sack", |blocks| {
                for block in beside.sacks.iter().take(usize::from(header.sack_count)) {
                    blocks.array(|ends| {
                        ends.unsigned(u64::from(block.start));
                        ends.unsigned(u64::from(block.end));
                    });
                }
            });
        }
    });
    data.object("raw", |raw| {
        raw.unsigned("length", u64::from(header.header_bytes() + u32::from(header.payload_bytes)));
        raw.unsigned("payload_length", u64::from(header.payload_bytes));
    });
    data.text("ecn", word_of(codepoint));
    data.unsigned("packet_id", datagram_id);
}

/// Writes a segment that was declared lost; `timeout` if the retransmission timer expired.
pub(super) fn lost(data: &mut ObjectWriter<'_>, segment: &LostSegment, timeout: bool) {
    data.object("header", |header| header.unsigned("sequence_number", u64::from(segment.sequence)));
    data.unsigned("stream_offset", segment.offset);
    data.object("raw", |raw| raw.unsigned("payload_length", u64::from(segment.length)));
    if timeout {
        data.text("trigger", "rto_expired");
    }
}

/// Writes the settings of one endpoint, some of which it offers to its peer.
pub(super) fn parameters(data: &mut ObjectWriter<'_>, config: &Config, control: &str) {
    data.text("initiator", "local");
    data.text("congestion_control", control);
    data.unsigned("maximum_segment_size", u64::from(config.mss_bytes));
    data.unsigned("initial_congestion_window", u64::from(config.mss_bytes) * u64::from(config.initial_window_segments));
    data.unsigned("receive_buffer", config.receive_buffer_bytes);
    data.unsigned("send_buffer", config.send_buffer_bytes);
    data.boolean("sack_permitted", config.sack);
    data.boolean("timestamps", config.timestamps);
    data.boolean("window_scaling", config.window_scaling);
}

pub(super) fn state(state: State) -> &'static str {
    match state {
        State::Listen => "listen",
        State::SynSent => "syn_sent",
        State::SynReceived => "syn_received",
        State::Established => "established",
        State::FinWait1 => "fin_wait_1",
        State::FinWait2 => "fin_wait_2",
        State::CloseWait => "close_wait",
        State::Closing => "closing",
        State::LastAck => "last_ack",
        State::TimeWait => "time_wait",
        State::Closed => "closed",
    }
}
