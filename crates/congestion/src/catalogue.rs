//! The controls there are, by name.

use crate::bbr1::Bbr1;
use crate::bbr3::Bbr3;
use crate::bic::Bic;
use crate::control::{Codepoint, Controller};
use crate::cubic::{Cubic, CubicConfig};
use crate::dctcp::Dctcp;
use crate::highspeed::HighSpeed;
use crate::htcp::Htcp;
use crate::hybla::Hybla;
use crate::hystart::HyStart;
use crate::illinois::Illinois;
use crate::law::Governed;
use crate::linux_reno::LinuxReno;
use crate::newreno::NewReno;
use crate::scalable::Scalable;
use crate::vegas::Vegas;
use crate::veno::Veno;
use crate::westwood::Westwood;
use crate::yeah::Yeah;
use fullpipe_units::Stream;
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
    Entry {
        name: "bic",
        version: "Xu, Harfoush and Rhee (2004)",
        source: "INFOCOM 2004",
        summary: "Searches by halves for the window between the last loss and what it left; takes an eighth on loss.",
    },
    Entry {
        name: "highspeed",
        version: "RFC 3649 (2003)",
        source: "RFC 3649 section 5",
        summary: "Above 38 segments the larger the window, the faster it grows and the less a loss takes.",
    },
    Entry {
        name: "htcp",
        version: "draft-leith-tcp-htcp-06 (2008)",
        source: "draft-leith-tcp-htcp-06 section 2",
        summary: "Grows faster the longer ago the last loss; a loss takes what stands in queues, a fifth to a half.",
    },
    Entry {
        name: "hybla",
        version: "Caini and Firrincieli (2004), as in Linux 6.12",
        source: "IJSCN 22(5), 2004; Linux net/ipv4/tcp_hybla.c",
        summary: "Sends as fast on a long path as Reno at 25 ms round-trip time.",
    },
    Entry {
        name: "illinois",
        version: "Liu, Basar and Srikant (2008), as in Linux 6.12",
        source: "Performance Evaluation 65(6-7), 2008; Linux net/ipv4/tcp_illinois.c",
        summary: "The longer the queueing delay, the slower the growth and the more a loss takes.",
    },
    Entry {
        name: "scalable",
        version: "Kelly (2003), as in Linux 6.12",
        source: "ACM CCR 33(2), 2003; Linux net/ipv4/tcp_scalable.c",
        summary: "A hundredth of a segment per segment acknowledged; takes an eighth on loss.",
    },
    Entry {
        name: "vegas",
        version: "Brakmo and Peterson (1995), as in Linux 6.12",
        source: "IEEE JSAC 13(8), 1995; Linux net/ipv4/tcp_vegas.c",
        summary: "Keeps two to four segments in queues, told by the round-trip time; Reno on loss.",
    },
    Entry {
        name: "veno",
        version: "Fu and Liew (2003), as in Linux 6.12",
        source: "IEEE JSAC 21(2), 2003; Linux net/ipv4/tcp_veno.c",
        summary: "Reno that takes a fifth, not half, on a loss with fewer than three segments in queues.",
    },
    Entry {
        name: "westwood",
        version: "Westwood+, Grieco and Mascolo (2004), as in Linux 6.12",
        source: "ACM CCR 34(2), 2004; Linux net/ipv4/tcp_westwood.c",
        summary: "Reno that falls on loss to measured bandwidth times smallest round-trip time.",
    },
    Entry {
        name: "yeah",
        version: "Baiocchi, Castellani and Vacirca (2007), as in Linux 6.12",
        source: "PFLDnet 2007; Linux net/ipv4/tcp_yeah.c",
        summary: "Scalable while fewer than 80 segments are queued, Reno and emptying the queue beyond.",
    },
    Entry {
        name: "dctcp",
        version: "RFC 8257 (2017)",
        source: "RFC 8257 sections 3.3 to 3.5",
        summary: "Reduces the window by half the share of bytes that queues have marked; Reno on loss.",
    },
    Entry {
        name: "bbr1",
        version: "draft-cardwell-iccrg-bbr-congestion-control-00 (2017), as in Linux 6.12",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00; Linux net/ipv4/tcp_bbr.c",
        summary: "Paces at the measured bandwidth, probing for more every eight round-trip times, whatever is lost.",
    },
    Entry {
        name: "bbr3",
        version: "draft-ietf-ccwg-bbr-06 (2026)",
        source: "draft-ietf-ccwg-bbr-06",
        summary: "Paces at the measured bandwidth, probing for more every few seconds, within bounds learnt from \
                  losses above 2 %.",
    },
];

/// Controls whose first slow start can use HyStart++ ([`Options::hystart`]); the others leave it aside.
pub const WITH_HYSTART: &[&str] = &["newreno", "linux-reno", "cubic"];

/// Names of the contract that are not in this version.
pub const LATER: &[&str] = &["lp", "ledbat", "copa", "prague"];

/// How to create a control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// HyStart++ (RFC 9406) in the first slow start, for the controls of [`WITH_HYSTART`].
    pub hystart: bool,
    /// That HyStart is Linux's: its own in CUBIC, with Linux's growth after it ([`CubicConfig::early_growth`]), and none in
    /// `linux-reno`.
    pub linux_hystart: bool,
    /// Whether the transport paces; HyStart++ then leaves growth per acknowledgement unlimited.
    pub paced: bool,
    /// Whether NewReno is QUIC's (RFC 9002), whose growth counts bytes, and not TCP's.
    pub quic: bool,
    /// DCTCP sends its packets as ECT(1), for queues that treat L4S traffic apart (RFC 9331), instead of ECT(0).
    pub ect1: bool,
    /// Seed of the random choices that a control makes (BBR's phases and waits). Connections that shall not choose
    /// alike need seeds of their own.
    pub seed: u64,
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
        "newreno" if options.quic => Box::new(NewReno::new(hystart).of_quic()),
        "newreno" => Box::new(NewReno::new(hystart)),
        "linux-reno" => Box::new(LinuxReno::new(hystart.filter(|_| !options.linux_hystart))),
        "cubic" => {
            let linux = || HyStart::linux(options.paced);
            let hystart = hystart.map(|standard| if options.linux_hystart { linux() } else { standard });
            let early_growth = options.linux_hystart;
            Box::new(Cubic::new(CubicConfig { hystart, early_growth, ..CubicConfig::default() }))
        }
        "bic" => Box::new(Governed::<Bic>::default()),
        "highspeed" => Box::new(Governed::<HighSpeed>::default()),
        "htcp" => Box::new(Governed::<Htcp>::default()),
        "hybla" => Box::new(Governed::<Hybla>::default()),
        "illinois" => Box::new(Governed::<Illinois>::default()),
        "scalable" => Box::new(Governed::<Scalable>::default()),
        "vegas" => Box::new(Vegas::new()),
        "veno" => Box::new(Governed::<Veno>::default()),
        "westwood" => Box::new(Governed::<Westwood>::default()),
        "yeah" => Box::new(Governed::<Yeah>::default()),
        "dctcp" => Box::new(Dctcp::new(if options.ect1 { Codepoint::Ect1 } else { Codepoint::Ect0 })),
        "bbr1" => Box::new(Bbr1::new(Stream::new(options.seed, "bbr1", "cycle phase"))),
        "bbr3" => Box::new(Bbr3::new(Stream::new(options.seed, "bbr3", "probe wait"))),
        _ => return Err(unknown(name)),
    })
}

fn unknown(name: &str) -> UnknownControl {
    let later = LATER.contains(&name);
    let known: Vec<&'static str> = ENTRIES.iter().map(|entry| entry.name).collect();
    // A name of a later version was no slip of the finger. Else it is a part of a name, or up to a third of the letters
    // may differ, at least two but not all.
    let letters = name.chars().count();
    let most = (letters / 3).max(2);
    let nearest = known
        .iter()
        .map(|candidate| (!(letters >= 3 && candidate.contains(name)), distance(name, candidate), *candidate))
        .filter(|(no_part, distance, _)| !later && (!no_part || *distance <= most && *distance < letters))
        .min()
        .map(|(_, _, candidate)| candidate);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn every_entry_is_created_under_its_name() {
        for entry in ENTRIES {
            for hystart in [false, true] {
                let options = Options { hystart, ..Options::default() };
                let control = create(entry.name, &options).expect("a known name");
                assert_eq!(control.name(), entry.name);
                let mut values = Vec::new();
                control.inspect(&mut values);
                let with = hystart && WITH_HYSTART.contains(&entry.name);
                assert_eq!(values.iter().any(|(name, _)| *name == "hystart_phase"), with);
            }
        }
    }

    #[test]
    fn the_contract_names_them_all_once() {
        // The list of the command line's contract; both lists are in its order.
        let contract = "newreno linux-reno cubic bic highspeed htcp hybla illinois scalable vegas veno westwood yeah \
                        lp ledbat dctcp bbr1 bbr3 copa prague";
        let known: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
        let (now, later): (Vec<&str>, Vec<&str>) = contract.split_whitespace().partition(|name| known.contains(name));
        assert_eq!((now, later), (known, LATER.to_vec()));
    }

    fn error(name: &str) -> UnknownControl {
        create(name, &Options::default()).expect_err("not a name")
    }

    #[test]
    fn a_slip_of_the_finger_is_answered_with_the_nearest_name() {
        for (found, nearest) in [
            ("cubik", Some("cubic")),
            ("CUBIC", Some("cubic")),
            ("qubic", Some("cubic")),
            ("cubi", Some("cubic")),
            ("new-reno", Some("newreno")),
            ("linux_reno", Some("linux-reno")),
            ("linux", Some("linux-reno")),
            ("reno", Some("newreno")),
            // Thirteen letters, of which four may differ.
            ("linux-rennnno", Some("linux-reno")),
            // Part of a name before one that differs by a letter.
            ("westwod", Some("westwood")),
            ("h-tcp", Some("htcp")),
            ("cubbic-x", None),
            ("", None),
            ("no", None),
            ("quicksilver", None),
        ] {
            assert_eq!(error(found).nearest, nearest, "{found}");
        }
        assert_eq!(
            error("cubik").to_string(),
            "unknown congestion control `cubik`; did you mean `cubic`? (expected one of newreno, linux-reno, cubic, \
             bic, highspeed, htcp, hybla, illinois, scalable, vegas, veno, westwood, yeah, dctcp, bbr1, bbr3)"
        );
    }

    #[test]
    fn a_control_of_a_later_version_is_said_to_be_one() {
        for name in LATER {
            let error = error(name);
            assert!(error.later && error.nearest.is_none());
            assert_eq!(
                error.to_string(),
                format!(
                    "congestion control `{name}` is not in this version (expected one of newreno, linux-reno, cubic, \
                     bic, highspeed, htcp, hybla, illinois, scalable, vegas, veno, westwood, yeah, dctcp, bbr1, bbr3)"
                )
            );
        }
        assert!(!error("cubik").later);
    }

    #[test]
    fn dctcp_sends_what_it_is_told() {
        for (ect1, codepoint) in [(false, Codepoint::Ect0), (true, Codepoint::Ect1)] {
            let mut dctcp = create("dctcp", &Options { ect1, ..Options::default() }).expect("a known name");
            let mut control = crate::Control::new(1_448, 14_480);
            dctcp.on_established(&mut control, fullpipe_units::Instant::ZERO, None);
            assert_eq!(control.codepoint, codepoint);
        }
    }

    #[test]
    fn distances_by_hand() {
        for (from, to, letters) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2), ("a_B", "A-b", 0)]
        {
            assert_eq!(distance(from, to), letters, "{from} {to}");
        }
    }

    #[test]
    fn the_initial_window_of_rfc_6928() {
        // min(10 MSS, max(2 MSS, 14600)).
        for (mss, window) in [(536, 5_360), (1_448, 14_480), (1_460, 14_600), (1_500, 14_600), (8_948, 17_896)] {
            assert_eq!(initial_window_bytes(mss), window);
        }
        assert_eq!(initial_window_bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_hundred_thousand_connections_have_small_controls() {
        assert!(size_of::<NewReno>() <= 128, "{}", size_of::<NewReno>());
        assert!(size_of::<LinuxReno>() <= 128, "{}", size_of::<LinuxReno>());
        assert!(size_of::<Cubic>() <= 128, "{}", size_of::<Cubic>());
    }
}
