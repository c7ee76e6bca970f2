//! The vectors of `tests/data`, and the checks of their rows.

pub(crate) mod saturated;

use fullpipe_wifi::phy::{
    Band, ChannelWidth, DsssRate, DurationRule, GuardInterval, MultiStreamRate, OfdmRate, PhyRate, Preamble,
};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A row of `test_vectors.csv`.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) group: String,
    pub(crate) inputs: Values,
    pub(crate) expected: Values,
    tolerance: String,
}

/// `key=value` pairs, and words without a value.
#[derive(Debug)]
pub(crate) struct Values(BTreeMap<String, String>);

impl Values {
    fn parse(text: &str) -> Self {
        let pairs = text.split("; ").map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key.trim().to_owned(), value.trim().to_owned())
        });
        Values(pairs.collect())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).unwrap_or_else(|| panic!("no `{key}` in {self:?}"))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The number at the beginning of a value: `3 (22 MHz)` is 3.
    pub(crate) fn number(&self, key: &str) -> f64 {
        first_number(self.text(key))
    }

    /// Whether a key contains these words.
    pub(crate) fn has_key_with(&self, words: &str) -> bool {
        self.0.keys().any(|key| key.contains(words))
    }

    /// The numbers at the beginning of a value, up to the first word that is none.
    pub(crate) fn numbers(&self, key: &str) -> Vec<f64> {
        self.text(key).split_whitespace().map_while(|word| word.parse().ok()).collect()
    }

    /// The first key that begins with `prefix`.
    pub(crate) fn key(&self, prefix: &str) -> &str {
        self.0.keys().find(|key| key.starts_with(prefix)).unwrap_or_else(|| panic!("no `{prefix}` in {self:?}"))
    }

    pub(crate) fn integer(&self, key: &str) -> u64 {
        self.number(key) as u64
    }
}

pub(crate) fn first_number(text: &str) -> f64 {
    let word = text.split([' ', '/']).next().unwrap();
    word.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Splits a line of a CSV file at commas outside of quotes.
fn columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            other => columns.last_mut().unwrap().push(other),
        }
    }
    columns
}

/// Returns the rows of the vectors in a group, without those of 802.11ax.
pub(crate) fn vectors(group: &str) -> Vec<Row> {
    let rows = include_str!("../data/test_vectors.csv").lines().skip(1).map(columns);
    let rows = rows.map(|row| Row {
        id: row[0].clone(),
        group: row[1].clone(),
        inputs: Values::parse(&row[2]),
        expected: Values::parse(&row[3]),
        tolerance: row[4].clone(),
    });
    let rows: Vec<Row> = rows.filter(|row| row.group == group && !row.is_ax()).collect();
    assert!(!rows.is_empty(), "no rows in group {group}");
    rows
}

/// Returns the rows of a CSV file with a header as maps from column to value.
pub(crate) fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = text.lines().map(columns);
    let header = lines.next().unwrap();
    lines.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

impl Row {
    fn is_ax(&self) -> bool {
        let phy = |key| self.inputs.get(key).unwrap_or_default();
        phy("phy") == "he" || phy("phy") == "ax" || phy("answers").starts_with("he")
    }

    /// A relative tolerance such as `0.6 %`.
    pub(crate) fn tolerance(&self) -> f64 {
        assert!(self.tolerance.ends_with(" %"), "{}", self.tolerance);
        first_number(&self.tolerance) / 100.0
    }

    /// The rate of the inputs `phy`, `rate`, `mcs`, ...
    pub(crate) fn rate(&self) -> PhyRate {
        let inputs = &self.inputs;
        let preamble = if inputs.get("preamble") == Some("short") { Preamble::Short } else { Preamble::Long };
        match inputs.text("phy") {
            "dsss" | "b" => dsss(inputs.number("rate"), preamble),
            "ofdm" | "a" | "g" => ofdm(inputs.number("rate")),
            phy => {
                let number = |key| inputs.integer(key);
                let gi = inputs.number("gi_ns");
                multi_stream(phy, number("mcs"), number("width_mhz"), number("nss"), gi)
            }
        }
    }

    pub(crate) fn band(&self) -> Band {
        let band = if self.inputs.get("band") == Some("2.4") { Band::Ghz2 } else { Band::Ghz5 };
        match self.inputs.get("phy") {
            Some("g" | "b") => Band::Ghz2,
            _ => band,
        }
    }

    pub(crate) fn rule(&self) -> DurationRule {
        if self.inputs.get("mode") == Some("ns3") { DurationRule::Ns3 } else { DurationRule::Standard }
    }

    /// The basic rates, such as `6/12/24`, or 6, 12 and 24 Mbit/s if none are given.
    pub(crate) fn basic(&self) -> Vec<PhyRate> {
        let dsss_basic =
            self.inputs.get("phy") == Some("b") || self.inputs.get("answers").is_some_and(|a| a.starts_with("dsss"));
        let rates = self.inputs.get("basic").unwrap_or("6/12/24").split('/').map(first_number);
        rates.map(|rate| if dsss_basic { dsss(rate, Preamble::Long) } else { ofdm(rate) }).collect()
    }
}

pub(crate) fn dsss(mbps: f64, preamble: Preamble) -> PhyRate {
    let rate = DsssRate::ALL.into_iter().find(|rate| rate.kbps() as f64 == 1e3 * mbps);
    PhyRate::Dsss(rate.unwrap_or_else(|| panic!("no DSSS rate {mbps}")), preamble)
}

pub(crate) fn ofdm(mbps: f64) -> PhyRate {
    let rate = OfdmRate::ALL.into_iter().find(|rate| f64::from(rate.mbps()) == mbps);
    PhyRate::Ofdm(rate.unwrap_or_else(|| panic!("no OFDM rate {mbps}")))
}

pub(crate) fn multi_stream(phy: &str, mcs: u64, width_mhz: u64, streams: u64, guard_ns: f64) -> PhyRate {
    let guard = if guard_ns == 400.0 { GuardInterval::Short } else { GuardInterval::Long };
    let width = ChannelWidth::from_mhz(width_mhz as u32).unwrap();
    let rate = MultiStreamRate { mcs: mcs as u8, streams: streams as u8, width, guard };
    match phy {
        "ht" => PhyRate::Ht(rate),
        "vht" => PhyRate::Vht(rate),
        other => panic!("unknown PHY {other}"),
    }
}

/// Compares the rows of a group and prints the largest deviation.
pub(crate) struct Check {
    name: String,
    rows: usize,
    largest: f64,
    misses: Vec<String>,
}

impl Check {
    pub(crate) fn new(name: &str) -> Self {
        Check { name: name.to_owned(), rows: 0, largest: 0.0, misses: Vec::new() }
    }

    pub(crate) fn equal<T: PartialEq + Debug>(&mut self, id: &str, found: T, expected: T) {
        self.rows += 1;
        if found != expected {
            self.misses.push(format!("{id}: {found:?}, expected {expected:?}"));
        }
    }

    pub(crate) fn absolute(&mut self, id: &str, found: f64, expected: f64, tolerance: f64) {
        self.deviation(id, found, expected, (found - expected).abs(), tolerance);
    }

    pub(crate) fn relative(&mut self, id: &str, found: f64, expected: f64, tolerance: f64) {
        self.deviation(id, found, expected, (found - expected).abs() / expected.abs(), tolerance);
    }

    fn deviation(&mut self, id: &str, found: f64, expected: f64, deviation: f64, tolerance: f64) {
        self.rows += 1;
        self.largest = self.largest.max(deviation);
        // A missing number must fail, too.
        if !matches!(deviation.partial_cmp(&tolerance), Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)) {
            self.misses.push(format!("{id}: {found}, expected {expected} within {tolerance}: {deviation:.3e}"));
        }
    }

    /// Fails if a comparison failed, or if there were fewer than `least` comparisons.
    pub(crate) fn finish(self, least: usize) {
        println!("{}: {} comparisons, largest deviation {:.2e}", self.name, self.rows, self.largest);
        assert!(self.misses.is_empty(), "{}:\n{}", self.name, self.misses.join("\n"));
        assert!(self.rows >= least, "{}: only {} comparisons", self.name, self.rows);
    }
}
