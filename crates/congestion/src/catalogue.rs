//! The controls there are, by name.

use crate::control::Controller;
use crate::cubic::{Cubic, CubicConfig};
use crate::hystart::HyStart;
use crate::linux_reno::LinuxReno;
use crate::newreno::NewReno;
use std::fmt;

pub use crate::window::initial_window_bytes;

/// A control as a list shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name by which scenarios choose it.
    pub name: &'static str,
    /// Which version of it this is.
    pub version: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
}

/// Every control that [`create`] knows, in the order of lists.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "newreno",
        version: "RFC 5681 (2009), RFC 6582 (2012)",
        source: "RFC 5681 section 3.1; RFC 6582; as ns-3's TcpNewReno",
        summary: "One segment per acknowledgement in slow start, SMSS*SMSS/window after it; half of what is in flight \
                  on loss.",
    },
    Entry {
        name: "linux-reno",
        version: "Linux 6.12",
        source: "Linux net/ipv4/tcp_cong.c; as ns-3's TcpLinuxReno",
        summary: "Reno by bytes acknowledged, growing only while the window limits sending; half the window on loss.",
    },
    Entry {
        name: "cubic",
        version: "RFC 9438 (2023)",
        source: "RFC 9438; HyStart++: RFC 9406",
        summary: "Window as a cubic function of time since the last loss, never below Reno's; 0.7 of the window on \
                  loss.",
    },
];

/// Names of the contract that are not in this version.
pub const LATER: &[&str] = &[
    "bic",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
    "lp",
    "ledbat",
    "dctcp",
    "bbr1",
    "bbr3",
    "copa",
    "prague",
];

/// How to create a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// HyStart++ (RFC 9406) in the first slow start.
    pub hystart: bool,
    /// Whether the transport paces; HyStart++ then leaves growth per acknowledgement unlimited.
    pub paced: bool,
}

/// A name that [`create`] does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownControl {
    /// What was asked for.
    pub found: String,
    /// The known name that resembles it most, if one does.
    pub nearest: Option<&'static str>,
    /// Every known name.
    pub known: Vec<&'static str>,
    /// Whether the name is one of [`LATER`].
    pub later: bool,
}

impl fmt::Display for UnknownControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.later {
            write!(formatter, "congestion control `{}` is not in this version", self.found)?;
        } else {
            write!(formatter, "unknown congestion control `{}`", self.found)?;
        }
        if let Some(nearest) = self.nearest {
            write!(formatter, "; did you mean `{nearest}`?")?;
        }
        write!(formatter, " (expected one of {})", self.known.join(", "))
    }
}

impl std::error::Error for UnknownControl {}

/// A new control, for one connection.
///
/// # Errors
/// If there is no control of that name in this version.
///
/// ```
/// use fullpipe_congestion::catalogue::{Options, create};
/// assert_eq!(create("cubic", &Options::default()).unwrap().name(), "cubic");
/// assert_eq!(create("cubik", &Options::default()).unwrap_err().nearest, Some("cubic"));
/// ```
pub fn create(name: &str, options: &Options) -> Result<Box<dyn Controller>, UnknownControl> {
    let hystart = options.hystart.then(|| HyStart::new(options.paced));
    Ok(match name {
        "newreno" => Box::new(NewReno::new(hystart)),
        "linux-reno" => Box::new(LinuxReno::new(hystart)),
        "cubic" => Box::new(Cubic::new(CubicConfig { hystart, ..CubicConfig::default() })),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> UnknownControl {
    let later = LATER.contains(&name);
    let known: Vec<&'static str> = ENTRIES.iter().map(|entry| entry.name).collect();
    // A name of a later version was no slip of the finger. Else up to a third of the letters may differ, at least two,
    // or it is a part of a name.
    let letters = name.chars().count();
    let near =
        |distance: usize, candidate: &str| distance <= (letters / 3).max(2) || letters >= 3 && candidate.contains(name);
    let nearest = known
        .iter()
        .map(|candidate| (distance(name, candidate), *candidate))
        .filter(|(distance, candidate)| !later && near(*distance, candidate))
        .min()
        .map(|(_, candidate)| candidate);
    UnknownControl { found: name.to_owned(), nearest, known, later }
}

/// Letters to insert, delete or exchange to turn one word into the other, capitals and underscores forgiven
/// (Levenshtein 1966).
fn distance(from: &str, to: &str) -> usize {
    let fold = |c: char| if c == '_' { '-' } else { c.to_ascii_lowercase() };
    let to: Vec<char> = to.chars().map(fold).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().map(fold).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let exchange = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = exchange.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
