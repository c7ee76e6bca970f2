//! Runs a script against a connection.

use super::parse::{self, LETTERS, Line, Packet, What, When, Written};
use super::settings;
use crate::common::{Segment, deliver, drain, next_deadline};
use fullpipe_congestion::Controller;
use fullpipe_tcp::{Config, Connection, Cookie, FastOpenEntry, SegmentContents, Transmit};
use fullpipe_transport::{Payload, Stream as _, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{AccurateEcn, SackBlock, SegmentOptions, TcpHeader};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

/// The numbers of our SYN and of the peer's: ours wraps soon.
const INITIAL: u32 = u32::MAX - 3_000;
const PEER_INITIAL: u32 = 77;
/// Maximum wait of `*`.
const PATIENCE: Duration = Duration::from_secs(100_000);

/// Runs the script. The error is a report: position, expected and actual result, and the preceding packets.
pub fn run(name: &str, text: &str) -> Result<(), String> {
    let lines = parse::script(text).map_err(|(number, why)| format!("{name}:{number}: {why}"))?;
    let mut setup = Setup::new();
    let mut run = None;
    for line in &lines {
        let done = match &line.what {
            What::Set { key, value } if run.is_none() => setup.set(key, value).map_err(|why| ("a setting".into(), why)),
            What::Set { .. } => Err(("settings at the head".into(), "one after the start".into())),
            _ => run.get_or_insert_with(|| setup.start()).line(line),
        };
        if let Err((expected, got)) = done {
            return Err(report(name, line, run.as_ref(), &expected, &got));
        }
    }
    run.iter_mut().for_each(Run::collect);
    let left = run.as_ref().and_then(|run| run.out.front().map(|(at, segment)| run.show_at(*at, '>', segment)));
    match (left, lines.last()) {
        (Some(left), Some(last)) => Err(report(name, last, run.as_ref(), "the end of the script", &left)),
        _ => Ok(()),
    }
}

fn report(name: &str, line: &Line, run: Option<&Run>, expected: &str, got: &str) -> String {
    let time = run.map_or(Duration::ZERO, |run| run.now - Instant::ZERO);
    let mut text = format!("{name}:{}: at {time}\n    {}\n", line.number, line.text);
    let _ = write!(text, "expected  {expected}\ngot       {got}\nbefore:\n");
    if let Some(run) = run {
        for entry in run.log.iter().rev().take(12).rev() {
            let _ = writeln!(text, "    {entry}");
        }
        let _ = writeln!(text, "state {:?}, {:?}", run.connection.state(), run.connection.inspect());
    }
    text
}

/// The settings at the start of a script.
struct Setup {
    config: Config,
    control: Option<Box<dyn Controller>>,
    passive: bool,
    cookie: Option<Cookie>,
}

impl Setup {
    fn new() -> Setup {
        Setup { config: Config::linux(), control: None, passive: false, cookie: None }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match (key, value) {
            ("preset", "linux") => self.config = Config::linux(),
            ("preset", "ns3") => self.config = Config::ns3(),
            ("side", "client" | "server") => self.passive = value == "server",
            ("cookie", digits) => self.cookie = Some(Cookie::new(&parse::hexadecimal(digits)?).ok_or("no cookie")?),
            ("control", name) => self.control = Some(settings::control(name)?),
            _ => match key.strip_prefix("set ") {
                Some(field) => settings::set(&mut self.config, field, value)?,
                None => return Err(format!("{key} {value}: no setting")),
            },
        }
        Ok(())
    }

    fn start(&mut self) -> Run {
        let config = Arc::new(self.config.clone());
        let control = self.control.take().unwrap_or_else(|| Box::new(crate::common::Halving));
        let open = if self.passive { Connection::server } else { Connection::client };
        let mut connection = open(config, control, INITIAL, Instant::ZERO);
        match self.cookie {
            Some(cookie) if self.passive => connection.set_fast_open_cookie(cookie),
            Some(cookie) => connection.set_fast_open_entry(FastOpenEntry { cookie, mss_bytes: Some(1460) }),
            None => {}
        }
        Run {
            connection,
            passive: self.passive,
            now: Instant::ZERO,
            out: VecDeque::new(),
            events: Vec::new(),
            window: u16::MAX,
            our_syn_options: 0,
            peer_syn_options: 0,
            newest_timestamp: 0,
            log: Vec::new(),
        }
    }
}

/// The expected and the actual result.
type Failure = (String, String);

struct Run {
    connection: Connection,
    passive: bool,
    now: Instant,
    /// Sent packets that no line has matched yet.
    out: VecDeque<(Instant, Segment)>,
    events: Vec<&'static str>,
    window: u16,
    our_syn_options: u8,
    peer_syn_options: u8,
    newest_timestamp: u32,
    log: Vec<String>,
}

impl Run {
    fn line(&mut self, line: &Line) -> Result<(), Failure> {
        let until = match line.when {
            When::At(at) if at < self.now => return Err((format!("a time from {} on", self.now), at.to_string())),
            When::At(at) => at,
            When::After(wait) => self.now + wait,
            When::Any => return self.next_packet(line),
        };
        // Calls at one time are executed before the host polls for output, as with an application that reads when data arrives.
        let called = matches!(line.what, What::Write { .. } | What::Read(_) | What::Finish | What::Abort);
        if until > self.now || !called {
            self.collect();
        }
        self.pass(until);
        match &line.what {
            What::Out(packet) => return self.expect(packet, until, &line.text),
            What::Handshake { rtt, window, options } => return self.handshake(*rtt, *window, options.as_deref()),
            _ => {}
        }
        let only_looks = matches!(line.what, What::Assert(_) | What::Events(_));
        if let Some((at, segment)) = self.out.front().filter(|(at, _)| !only_looks || *at < until) {
            return Err(("no packet before this".into(), self.show_at(*at, '>', segment)));
        }
        self.act(&line.what)
    }

    /// Advances the time, and executes all timers that become due.
    fn pass(&mut self, until: Instant) {
        while next_deadline(&self.connection) <= until {
            self.now = next_deadline(&self.connection).max(self.now);
            self.connection.handle_timeout(self.now);
            self.collect();
            assert!(next_deadline(&self.connection) > self.now, "the host would spin");
        }
        self.now = until;
    }

    fn collect(&mut self) {
        while let Some(event) = self.connection.poll_event() {
            let name = match event {
                TransportEvent::Connected => "connected",
                TransportEvent::Writable => "writable",
                TransportEvent::Readable => "readable",
                TransportEvent::PeerFinished => "peer-finished",
                TransportEvent::Closed(reason) => match reason {
                    fullpipe_transport::CloseReason::Finished => "closed-finished",
                    fullpipe_transport::CloseReason::Reset => "closed-reset",
                    fullpipe_transport::CloseReason::Refused => "closed-refused",
                    fullpipe_transport::CloseReason::TimedOut => "closed-timed-out",
                    fullpipe_transport::CloseReason::Aborted => "closed-aborted",
                },
            };
            self.events.push(name);
        }
        for segment in drain(&mut self.connection, self.now) {
            if segment.header.options & options::TIMESTAMPS != 0 {
                self.newest_timestamp = segment.header.timestamp;
            }
            if segment.header.has_flag(flags::SYN) {
                self.our_syn_options = segment.header.options;
            }
            self.out.push_back((self.now, segment));
        }
    }

    fn agreed_timestamps(&self) -> bool {
        self.our_syn_options & self.peer_syn_options & options::TIMESTAMPS != 0
    }

    fn note(&mut self, entry: String) {
        self.log.push(entry);
    }

    fn show_at(&self, at: Instant, direction: char, segment: &Segment) -> String {
        format!("{}  {direction} {}", at - Instant::ZERO, show(segment, direction == '<'))
    }

    // Packets out ------------------------------------------------------------------------------------------------

    fn next_packet(&mut self, line: &Line) -> Result<(), Failure> {
        let What::Out(packet) = &line.what else { unreachable!("the parser returns no other line here") };
        let limit = self.now + PATIENCE;
        self.collect();
        while self.out.is_empty() {
            let due = next_deadline(&self.connection);
            if due > limit {
                return Err((line.text.clone(), "nothing, ever".into()));
            }
            self.pass(due);
        }
        self.expect(packet, self.now, &line.text)
    }

    fn expect(&mut self, packet: &Packet, at: Instant, text: &str) -> Result<(), Failure> {
        let expected = format!("{}  {text}", at - Instant::ZERO);
        let Some((sent_at, segment)) = self.out.pop_front() else {
            let deadline = next_deadline(&self.connection);
            return Err((expected, format!("nothing (the next deadline is {deadline})")));
        };
        let shown = self.show_at(sent_at, '>', &segment);
        if sent_at != at {
            return Err((expected, shown));
        }
        self.matches(packet, &segment).map_err(|what| (expected, format!("{shown}\n          {what}")))?;
        self.note(shown);
        Ok(())
    }

    fn matches(&self, packet: &Packet, segment: &Segment) -> Result<(), String> {
        let header = &segment.header;
        let mut wrong = Vec::new();
        let mut same = |name: &str, agrees: bool| {
            if !agrees {
                wrong.push(name.to_owned());
            }
        };
        same("flags", packet.flags == header.flags);
        same("sequence number", packet.start == header.sequence.wrapping_sub(INITIAL));
        same("length", packet.length == header.payload_bytes);
        same("ack", packet.ack.is_none_or(|ack| ack == header.acknowledgement.wrapping_sub(PEER_INITIAL)));
        same("win", packet.window.is_none_or(|window| window == header.window));
        same("codepoint", packet.codepoint == segment.codepoint);
        match &packet.options {
            None if header.has_flag(flags::SYN) => {}
            None => {
                let reset = header.has_flag(flags::RST);
                let usual = if self.agreed_timestamps() && !reset { options::TIMESTAMPS } else { 0 };
                same("options", header.options == usual && header.sack_count == 0);
            }
            Some(written) => self.match_options(written, segment, &mut same),
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("differs in: {}", wrong.join(", "))) }
    }

    fn match_options(&self, written: &[Written], segment: &Segment, same: &mut dyn FnMut(&str, bool)) {
        let header = &segment.header;
        let mut present = 0;
        let mut sacks = 0;
        for option in written {
            match option {
                Written::Mss(value) => {
                    present |= options::MSS;
                    same("mss", value.is_none_or(|value| value == header.mss));
                }
                Written::WindowScale(value) => {
                    present |= options::WINDOW_SCALE;
                    same("wscale", value.is_none_or(|value| value == header.window_scale));
                }
                Written::SackPermitted => present |= options::SACK_PERMITTED,
                Written::Timestamps(value, echo) => {
                    present |= options::TIMESTAMPS;
                    same("TS val", value.is_none_or(|value| value == header.timestamp));
                    same("TS ecr", echo.is_none_or(|echo| echo == header.timestamp_echo));
                }
                Written::NoTimestamps => {}
                Written::Sack(blocks) => {
                    sacks = blocks.len();
                    same("sack", relative(&segment.sacks, PEER_INITIAL) == *blocks);
                }
                Written::FastOpen(cookie) => {
                    present |= options::FAST_OPEN;
                    same("FO", *cookie == segment.cookie);
                }
                Written::AccurateEcn(counters) => {
                    present |= options::ACCURATE_ECN;
                    same("ECN counters", *counters == segment.accurate_ecn);
                }
            }
        }
        same("which options", present == header.options && sacks == segment.sacks.len());
    }

    // Packets in, calls, values ----------------------------------------------------------------------------------

    fn act(&mut self, what: &What) -> Result<(), Failure> {
        let exactly = |name: &str, expected: u64, got: u64| {
            if expected == got { Ok(()) } else { Err((format!("{name} {expected}"), format!("{name} {got}"))) }
        };
        match what {
            What::In(packet) => {
                let segment = self.incoming(packet);
                self.give(&segment);
            }
            What::Write { bytes, takes } => {
                exactly("taken", *takes, self.connection.write(Payload::Length(*bytes)))?;
            }
            What::Read(most) => {
                let got = self.connection.read(*most).map_or(0, |payload| payload.len());
                if *most != u64::MAX {
                    exactly("read", *most, got)?;
                }
            }
            What::Finish => self.connection.finish(),
            What::Abort => self.connection.abort(),
            What::TooBig { mtu, sequence } => {
                self.connection.on_packet_too_big(self.now, mtu - 20, INITIAL.wrapping_add(*sequence));
            }
            What::Assert(checks) => {
                for check in checks {
                    settings::compare(&self.connection, check)?;
                }
            }
            What::Events(expected) => {
                let got = std::mem::take(&mut self.events);
                if *expected != got {
                    return Err((expected.join(" "), got.join(" ")));
                }
            }
            What::Out(_) | What::Handshake { .. } | What::Set { .. } => unreachable!("handled before"),
        }
        Ok(())
    }

    fn give(&mut self, segment: &Segment) {
        if segment.header.has_flag(flags::SYN) {
            self.peer_syn_options = segment.header.options;
        }
        self.note(self.show_at(self.now, '<', segment));
        deliver(&mut self.connection, self.now, segment);
    }

    fn incoming(&mut self, packet: &Packet) -> Segment {
        self.window = packet.window.unwrap_or(self.window);
        let mut header = TcpHeader {
            sequence: PEER_INITIAL.wrapping_add(packet.start),
            acknowledgement: packet.ack.map_or(0, |ack| INITIAL.wrapping_add(ack)),
            flags: packet.flags,
            window: self.window,
            payload_bytes: packet.length,
            ..TcpHeader::default()
        };
        let written = packet.options.as_deref().unwrap_or_default();
        let mut side = SegmentOptions::default();
        let usual = self.agreed_timestamps()
            && packet.flags & flags::SYN == 0
            && !written.iter().any(|option| matches!(option, Written::Timestamps(..) | Written::NoTimestamps));
        if usual {
            self.put(&Written::Timestamps(None, None), &mut header, &mut side);
        }
        for option in written {
            self.put(option, &mut header, &mut side);
        }
        let transmit =
            Transmit { header, beside: SegmentContents { options: side, payload: None, codepoint: packet.codepoint } };
        Segment::from(&transmit)
    }

    fn put(&self, option: &Written, header: &mut TcpHeader, side: &mut SegmentOptions) {
        match option {
            Written::Mss(value) => {
                header.options |= options::MSS;
                header.mss = value.unwrap_or(1460);
            }
            Written::WindowScale(value) => {
                header.options |= options::WINDOW_SCALE;
                header.window_scale = value.unwrap_or(7);
            }
            Written::SackPermitted => header.options |= options::SACK_PERMITTED,
            Written::Timestamps(value, echo) => {
                header.options |= options::TIMESTAMPS;
                header.timestamp = value.unwrap_or(1000 + (self.now.as_nanos() / 1_000_000) as u32);
                header.timestamp_echo = echo.unwrap_or(self.newest_timestamp);
            }
            Written::NoTimestamps => {}
            Written::Sack(blocks) => {
                header.sack_count = blocks.len() as u8;
                for (block, (start, end)) in side.sacks.iter_mut().zip(blocks) {
                    *block = SackBlock { start: INITIAL.wrapping_add(*start), end: INITIAL.wrapping_add(*end) };
                }
            }
            Written::FastOpen(cookie) => {
                header.options |= options::FAST_OPEN;
                header.other_option_bytes += 2 + cookie.len() as u8;
                side.fast_open_bytes = cookie.len() as u8;
                side.fast_open_cookie.iter_mut().zip(cookie).for_each(|(to, from)| *to = *from);
            }
            Written::AccurateEcn(counters) => {
                header.options |= options::ACCURATE_ECN;
                header.other_option_bytes += 2 + 3 * counters.fields;
                side.accurate_ecn = *counters;
            }
        }
    }

    /// The three segments of a handshake. The peer offers the given options, otherwise those of a Linux host (as the acceptor: those that
    /// it was offered).
    fn handshake(&mut self, rtt: Duration, window: Option<u16>, written: Option<&[Written]>) -> Result<(), Failure> {
        let usual =
            [Written::Mss(None), Written::SackPermitted, Written::Timestamps(None, None), Written::WindowScale(None)];
        let syn = |ack, wanted: Vec<Written>| Packet {
            flags: flags::SYN | if ack { flags::ACK } else { 0 },
            ack: ack.then_some(1),
            window: Some(window.unwrap_or(u16::MAX)),
            options: Some(wanted),
            ..Packet::default()
        };
        let all = || written.unwrap_or(&usual).to_vec();
        let mut ack = Packet { flags: flags::ACK, start: 1, ack: Some(1), ..Packet::default() };
        if self.passive {
            let first = self.incoming(&syn(false, all()));
            self.give(&first);
            self.collect();
            self.expect_kind(flags::SYN | flags::ACK)?;
            self.pass(self.now + rtt);
            let last = self.incoming(&ack);
            self.give(&last);
        } else {
            let offered = self.our_syn_options;
            self.expect_kind(flags::SYN)?;
            let agreed = |option: &Written| match option {
                Written::Mss(_) => offered & options::MSS != 0,
                Written::SackPermitted => offered & options::SACK_PERMITTED != 0,
                Written::Timestamps(..) => offered & options::TIMESTAMPS != 0,
                Written::WindowScale(_) => offered & options::WINDOW_SCALE != 0,
                _ => true,
            };
            let mut answered = all();
            if written.is_none() {
                answered.retain(agreed);
            }
            self.pass(self.now + rtt);
            let answer = self.incoming(&syn(true, answered));
            self.give(&answer);
            self.collect();
            ack.window = None;
            self.expect(&ack, self.now, "the last acknowledgement of the handshake")?;
        }
        self.collect();
        if self.events != ["connected"] {
            return Err(("connected".into(), self.events.join(" ")));
        }
        self.events.clear();
        Ok(())
    }

    fn expect_kind(&mut self, kind: u16) -> Result<(), Failure> {
        match self.out.pop_front() {
            Some((at, segment)) if segment.header.flags == kind => {
                self.note(self.show_at(at, '>', &segment));
                Ok(())
            }
            other => Err(("the handshake".into(), format!("{other:?}"))),
        }
    }
}

/// SACK blocks relative to the number of a SYN.
fn relative(sacks: &[SackBlock], initial: u32) -> Vec<(u32, u32)> {
    sacks.iter().map(|block| (block.start.wrapping_sub(initial), block.end.wrapping_sub(initial))).collect()
}

/// A segment in the format of scripts.
fn show(segment: &Segment, from_peer: bool) -> String {
    let header = &segment.header;
    let (own, other) = if from_peer { (PEER_INITIAL, INITIAL) } else { (INITIAL, PEER_INITIAL) };
    let mut text = match segment.codepoint {
        EcnCodepoint::NotEct => String::new(),
        EcnCodepoint::Ect0 => "[ect0] ".into(),
        EcnCodepoint::Ect1 => "[ect1] ".into(),
        EcnCodepoint::Ce => "[ce] ".into(),
    };
    text.extend(LETTERS.iter().filter(|(_, bit)| header.has_flag(*bit)).map(|(letter, _)| letter));
    let start = header.sequence.wrapping_sub(own);
    let end = start.wrapping_add(u32::from(header.payload_bytes));
    let _ = write!(text, " {}:{}({})", start as i32, end as i32, header.payload_bytes);
    if header.has_flag(flags::ACK) {
        let _ = write!(text, " ack {}", header.acknowledgement.wrapping_sub(other) as i32);
    }
    let _ = write!(text, " win {} <{}>", header.window, show_options(segment, other).join(", "));
    text
}

fn show_options(segment: &Segment, other: u32) -> Vec<String> {
    let header = &segment.header;
    let mut list = Vec::new();
    let mut add = |option: u8, text: String| {
        if header.options & option != 0 {
            list.push(text);
        }
    };
    add(options::MSS, format!("mss {}", header.mss));
    add(options::SACK_PERMITTED, "sackOK".into());
    add(options::TIMESTAMPS, format!("TS val {} ecr {}", header.timestamp, header.timestamp_echo));
    add(options::WINDOW_SCALE, format!("wscale {}", header.window_scale));
    let cookie: String = segment.cookie.iter().map(|byte| format!("{byte:02x}")).collect();
    add(options::FAST_OPEN, format!("FO {cookie}"));
    let AccurateEcn { ect0_bytes, ce_bytes, ect1_bytes, fields, ect1_first } = segment.accurate_ecn;
    let order = if ect1_first { [ect1_bytes, ce_bytes, ect0_bytes] } else { [ect0_bytes, ce_bytes, ect1_bytes] };
    let counters: String = order.iter().take(usize::from(fields)).map(|counter| format!(" {counter}")).collect();
    add(options::ACCURATE_ECN, format!("ECN{}{counters}", u8::from(ect1_first)));
    if !segment.sacks.is_empty() {
        let blocks = relative(&segment.sacks, other);
        list.push(blocks.iter().fold("sack".into(), |text, (start, end)| format!("{text} {start}:{end}")));
    }
    list
}
