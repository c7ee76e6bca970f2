//! Parser for scripts.

use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::AccurateEcn;
use fullpipe_wire::tcp::flags;

/// The time of a line.
#[derive(Clone, Copy, Debug)]
pub enum When {
    At(Instant),
    After(Duration),
    Any,
}

/// A packet as written in a script.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    pub codepoint: EcnCodepoint,
    pub flags: u16,
    pub start: u32,
    pub length: u16,
    pub ack: Option<u32>,
    pub window: Option<u16>,
    pub options: Option<Vec<Written>>,
}

/// An option as written in a script; an omitted value is `None`.
#[derive(Clone, Debug, PartialEq)]
pub enum Written {
    Mss(Option<u16>),
    WindowScale(Option<u8>),
    SackPermitted,
    Timestamps(Option<u32>, Option<u32>),
    NoTimestamps,
    Sack(Vec<(u32, u32)>),
    FastOpen(Vec<u8>),
    AccurateEcn(AccurateEcn),
}

/// A value to compare.
#[derive(Clone, Debug)]
pub struct Check {
    pub key: String,
    pub comparison: String,
    pub value: String,
}

#[derive(Clone, Debug)]
pub enum What {
    Set { key: String, value: String },
    Handshake { rtt: Duration, window: Option<u16>, options: Option<Vec<Written>> },
    In(Packet),
    Out(Packet),
    Write { bytes: u64, takes: u64 },
    Read(u64),
    Finish,
    Abort,
    TooBig { mtu: u32, sequence: u32 },
    Assert(Vec<Check>),
    Events(Vec<String>),
}

#[derive(Clone, Debug)]
pub struct Line {
    pub number: usize,
    pub text: String,
    pub when: When,
    pub what: What,
}

type Parsed<T> = Result<T, String>;

/// Parses all lines, or returns the number of the first invalid line and the reason.
pub fn script(text: &str) -> Result<Vec<Line>, (usize, String)> {
    let mut lines = Vec::new();
    for (index, raw) in text.lines().enumerate() {
        let text = raw.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            let (when, what) = line(text).map_err(|why| (index + 1, why))?;
            lines.push(Line { number: index + 1, text: text.to_owned(), when, what });
        }
    }
    Ok(lines)
}

fn line(text: &str) -> Parsed<(When, What)> {
    let (first, rest) = split(text);
    let (when, text) = match first.chars().next() {
        Some('*') => (When::Any, rest),
        Some('+') => (When::After(duration(&first[1..])?), rest),
        Some('0'..='9') => (When::At(Instant::ZERO + duration(first)?), rest),
        _ => (When::After(Duration::ZERO), text),
    };
    let (word, rest) = split(text);
    let words: Vec<_> = rest.split_whitespace().collect();
    let what = match (word, words.as_slice()) {
        ("preset" | "control" | "side" | "cookie", [value]) => What::Set { key: word.into(), value: (*value).into() },
        ("set", [key, value]) => What::Set { key: format!("set {key}"), value: (*value).into() },
        ("handshake", _) => handshake(rest)?,
        ("<", _) => What::In(packet(rest)?),
        (">", _) => What::Out(packet(rest)?),
        ("write", [bytes]) => What::Write { bytes: number(bytes)?, takes: number(bytes)? },
        ("write", [bytes, "takes", takes]) => What::Write { bytes: number(bytes)?, takes: number(takes)? },
        ("read", ["all"]) => What::Read(u64::MAX),
        ("read", [bytes]) => What::Read(number(bytes)?),
        ("finish", []) => What::Finish,
        ("abort", []) => What::Abort,
        ("toobig", [mtu, "seq", sequence]) => What::TooBig { mtu: number(mtu)?, sequence: sequence_number(sequence)? },
        ("assert", _) => What::Assert(rest.split(',').map(check).collect::<Parsed<_>>()?),
        ("events", _) => What::Events(words.iter().map(|word| (*word).to_owned()).collect()),
        _ => return Err(format!("not understood: {text}")),
    };
    if matches!(when, When::Any) && !matches!(what, What::Out(_)) {
        return Err("`*` is for packets that go out".into());
    }
    Ok((when, what))
}

fn split(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

fn handshake(text: &str) -> Parsed<What> {
    let (text, options) = options_at_end(text)?;
    let words: Vec<_> = text.split_whitespace().collect();
    let (rtt, window) = match words.as_slice() {
        [rtt] => (rtt, None),
        [rtt, "win", window] => (rtt, Some(number(window)?)),
        _ => return Err("handshake TIME [win N] [<options>]".into()),
    };
    Ok(What::Handshake { rtt: duration(rtt)?, window, options })
}

fn packet(text: &str) -> Parsed<Packet> {
    let (text, options) = options_at_end(text)?;
    let mut packet = Packet { options, ..Packet::default() };
    let mut words = text.split_whitespace().peekable();
    if let Some(word) = words.next_if(|word| word.starts_with('[')) {
        packet.codepoint = match word {
            "[ect0]" => EcnCodepoint::Ect0,
            "[ect1]" => EcnCodepoint::Ect1,
            "[ce]" => EcnCodepoint::Ce,
            _ => return Err(format!("{word}: no codepoint")),
        };
    }
    packet.flags = flag_letters(words.next().unwrap_or_default())?;
    let range = words.next().unwrap_or_default();
    let parts = range
        .strip_suffix(')')
        .and_then(|range| range.split_once('('))
        .and_then(|(ends, length)| Some((ends.split_once(':')?, length)));
    let Some(((start, end), length)) = parts else { return Err(format!("{range}: not of the form 1:1001(1000)")) };
    packet.start = sequence_number(start)?;
    packet.length = number(length)?;
    if packet.start.wrapping_add(u32::from(packet.length)) != sequence_number(end)? {
        return Err(format!("{range} does not add up"));
    }
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word}: a value is missing"))?;
        match word {
            "ack" => packet.ack = Some(sequence_number(value)?),
            "win" => packet.window = Some(number(value)?),
            _ => return Err(format!("{word}: ack or win")),
        }
    }
    if packet.ack.is_some() != (packet.flags & flags::ACK != 0) {
        return Err("`ack N` goes with the flag `.`".into());
    }
    Ok(packet)
}

pub const LETTERS: [(char, u16); 9] = [
    ('S', flags::SYN),
    ('F', flags::FIN),
    ('R', flags::RST),
    ('P', flags::PSH),
    ('U', flags::URG),
    ('E', flags::ECE),
    ('W', flags::CWR),
    ('A', flags::AE),
    ('.', flags::ACK),
];

fn flag_letters(text: &str) -> Parsed<u16> {
    let mut bits = 0;
    for letter in text.chars().filter(|letter| *letter != '-') {
        let found = LETTERS.iter().find(|(known, _)| *known == letter);
        bits |= found.ok_or_else(|| format!("{text}: no flags"))?.1;
    }
    Ok(bits)
}

fn options_at_end(text: &str) -> Parsed<(&str, Option<Vec<Written>>)> {
    let Some((before, list)) = text.split_once('<') else { return Ok((text, None)) };
    let list = list.strip_suffix('>').ok_or("the list of options does not end with >")?;
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    Ok((before, Some(items.map(option).collect::<Parsed<_>>()?)))
}

fn option(text: &str) -> Parsed<Written> {
    let words: Vec<_> = text.split_whitespace().collect();
    Ok(match words.as_slice() {
        ["mss"] => Written::Mss(None),
        ["mss", value] => Written::Mss(Some(number(value)?)),
        ["wscale"] => Written::WindowScale(None),
        ["wscale", value] => Written::WindowScale(Some(number(value)?)),
        ["sackOK"] => Written::SackPermitted,
        ["noTS"] => Written::NoTimestamps,
        ["TS"] => Written::Timestamps(None, None),
        ["TS", "val", value] => Written::Timestamps(Some(number(value)?), None),
        ["TS", "ecr", echo] => Written::Timestamps(None, Some(number(echo)?)),
        ["TS", "val", value, "ecr", echo] => Written::Timestamps(Some(number(value)?), Some(number(echo)?)),
        ["sack", blocks @ ..] => Written::Sack(blocks.iter().map(|block| range(block)).collect::<Parsed<_>>()?),
        ["FO"] => Written::FastOpen(Vec::new()),
        ["FO", cookie] => Written::FastOpen(hexadecimal(cookie)?),
        [kind @ ("ECN0" | "ECN1"), counters @ ..] => Written::AccurateEcn(accurate_ecn(*kind == "ECN1", counters)?),
        _ => return Err(format!("{text}: no option")),
    })
}

fn range(text: &str) -> Parsed<(u32, u32)> {
    let (start, end) = text.split_once(':').ok_or_else(|| format!("{text}: not of the form 1:5"))?;
    Ok((sequence_number(start)?, sequence_number(end)?))
}

pub fn hexadecimal(text: &str) -> Parsed<Vec<u8>> {
    let byte = |at: usize| {
        text.get(at..at + 2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| format!("{text}: not pairs of hexadecimal digits"))
    };
    (0..text.len()).step_by(2).map(byte).collect()
}

fn accurate_ecn(ect1_first: bool, counters: &[&str]) -> Parsed<AccurateEcn> {
    let mut option = AccurateEcn { ect1_first, fields: counters.len() as u8, ..AccurateEcn::default() };
    let values: Vec<u32> = counters.iter().map(|counter| number(counter)).collect::<Parsed<_>>()?;
    for (place, value) in values.into_iter().enumerate() {
        match (place, ect1_first) {
            (0, false) | (2, true) => option.ect0_bytes = value,
            (1, _) => option.ce_bytes = value,
            (2, false) | (0, true) => option.ect1_bytes = value,
            _ => return Err("at most three counters".into()),
        }
    }
    Ok(option)
}

fn check(text: &str) -> Parsed<Check> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (key, comparison, value) = match words.as_slice() {
        [key, value] => (key, "=", value),
        [key, comparison @ ("=" | "<" | "<=" | ">" | ">="), value] => (key, *comparison, value),
        _ => return Err(format!("{text}: not of the form `key value` or `key >= value`")),
    };
    Ok(Check { key: (*key).into(), comparison: comparison.into(), value: (*value).into() })
}

pub fn number<T: TryFrom<u64>>(text: &str) -> Parsed<T> {
    let digits: String = text.chars().filter(|letter| *letter != '_').collect();
    let value: u64 = digits.parse().map_err(|_| format!("{text}: no number"))?;
    T::try_from(value).map_err(|_| format!("{text}: too large"))
}

/// A relative sequence number; may be negative.
fn sequence_number(text: &str) -> Parsed<u32> {
    match text.strip_prefix('-') {
        Some(text) => Ok(number::<u32>(text)?.wrapping_neg()),
        None => number(text),
    }
}

pub fn duration(text: &str) -> Parsed<Duration> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let digits = &text[..text.len() - unit.len()];
    let scale = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "h" => 3_600_000_000_000,
        "" if digits == "0" => 1,
        _ => return Err(format!("{text}: no duration")),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut nanos = number::<u64>(if whole.is_empty() { "0" } else { whole })? * scale;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        nanos += place * u64::from(digit - b'0');
    }
    Ok(Duration::from_nanos(nanos))
}
