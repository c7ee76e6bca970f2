//! The controls there are, by name.

use crate::component::ControlComponent;
use crate::control::Controller;
use crate::controls::CONTROLS;
use fullpipe_schema::Choice;
use fullpipe_schema::component::Declaration;
use std::fmt;

pub use crate::component::Options;
pub use crate::window::initial_window_bytes;

/// What every control declares, in the order of lists.
pub const ENTRIES: &[Declaration] = &{
    let mut list = [Declaration::EMPTY; CONTROLS.len()];
    let mut n = 0;
    while n < CONTROLS.len() {
        list[n] = CONTROLS[n].declaration;
        n += 1;
    }
    list
};

/// Names of the contract that are not in this version.
pub const LATER: &[&str] = &["lp", "ledbat", "copa", "prague"];

const KNOWN: usize = ENTRIES.len() + LATER.len();

/// What a file can name: the controls, and those of later versions.
pub const CHOICES: &[Choice] = &{
    let mut list = [Choice::later(""); KNOWN];
    let mut n = 0;
    while n < KNOWN {
        list[n] = if n < ENTRIES.len() { ENTRIES[n].choice() } else { Choice::later(LATER[n - ENTRIES.len()]) };
        n += 1;
    }
    list
};

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
    Ok((component(name).ok_or_else(|| unknown(name))?.create)(options))
}

/// What the control of that name declares; `None` for a control of the user's program.
pub fn component(name: &str) -> Option<&'static ControlComponent> {
    CONTROLS.iter().copied().find(|control| control.declaration.name == name)
}

/// What the kernel of Linux calls a control of ours; another name may be one of its own.
pub fn linux_name(name: &str) -> &str {
    component(name).and_then(|control| control.linux_name).unwrap_or(name)
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
    let fold = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    strsim::levenshtein(&fold(from), &fold(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Codepoint;
    use crate::cubic::Cubic;
    use crate::linux_reno::LinuxReno;
    use crate::newreno::NewReno;
    use std::mem::size_of;

    #[test]
    fn every_entry_is_created_under_its_name() {
        for component in CONTROLS {
            for hystart in [false, true] {
                let options = Options { hystart, ..Options::default() };
                let control = create(component.declaration.name, &options).expect("a known name");
                assert_eq!(control.name(), component.declaration.name);
                let mut values = Vec::new();
                control.inspect(&mut values);
                let with = hystart && component.hystart;
                assert_eq!(values.iter().any(|(name, _)| *name == "hystart_phase"), with);
                for value in component.values {
                    let name = value.name.strip_prefix("control_").expect("a metric of a control");
                    assert!(values.iter().any(|(given, _)| *given == name), "{} has no {name}", control.name());
                }
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
        assert!(size_of::<Cubic>() <= 104, "{}", size_of::<Cubic>());
    }
}
