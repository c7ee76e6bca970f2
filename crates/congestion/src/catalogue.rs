//! The catalogue of congestion controls, by name.

use crate::component::ControlComponent;
use crate::control::Controller;
use crate::controls::CONTROLS;
use crate::rate_limited::RateLimitedIncrease;
use fullpipe_schema::Choice;
use fullpipe_schema::component::Declaration;
use std::fmt;

pub use crate::component::{ControlOptions, HyStartSupport};
pub use crate::window::initial_window_bytes;

/// The declarations of all controls, in the order in which they are listed.
pub const DECLARATIONS: &[Declaration] = &{
    let mut list = [Declaration::EMPTY; CONTROLS.len()];
    let mut n = 0;
    while n < CONTROLS.len() {
        list[n] = CONTROLS[n].declaration;
        n += 1;
    }
    list
};

/// The names of controls that a scenario file can use.
pub const CHOICES: &[Choice] = &{
    let mut list = [DECLARATIONS[0].choice(); DECLARATIONS.len()];
    let mut n = 0;
    while n < DECLARATIONS.len() {
        list[n] = DECLARATIONS[n].choice();
        n += 1;
    }
    list
};

/// The error for a name that is not in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownControl {
    /// The name that was requested.
    pub found: String,
    /// The most similar name in `known`; `None` if no name is similar.
    pub nearest: Option<&'static str>,
    /// The names of all controls in this version.
    pub known: Vec<&'static str>,
}

impl fmt::Display for UnknownControl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown congestion control `{}`", self.found)?;
        if let Some(nearest) = self.nearest {
            write!(formatter, "; did you mean `{nearest}`?")?;
        }
        write!(formatter, " (expected one of {})", self.known.join(", "))
    }
}

impl std::error::Error for UnknownControl {}

/// Creates a control with this name for one connection.
///
/// # Errors
/// Returns [`UnknownControl`] if this version has no control with this name.
///
/// ```
/// use fullpipe_congestion::catalogue::{ControlOptions, create};
/// assert_eq!(create("cubic", &ControlOptions::default()).unwrap().name(), "cubic");
/// assert_eq!(create("cubik", &ControlOptions::default()).unwrap_err().nearest, Some("cubic"));
/// ```
pub fn create(name: &str, options: &ControlOptions) -> Result<Box<dyn Controller>, UnknownControl> {
    let control = (find_component(name).ok_or_else(|| unknown(name))?.create)(options);
    Ok(if options.rate_limited_increase { RateLimitedIncrease::wrap(control) } else { control })
}

/// Returns the component with this name; `None` if the catalogue does not contain the name.
pub fn find_component(name: &str) -> Option<&'static ControlComponent> {
    CONTROLS.iter().copied().find(|control| control.declaration.name == name)
}

/// Returns the name of the control in the Linux kernel. A name that is not in the catalogue is returned unchanged,
/// because the kernel may have such a control.
pub fn linux_name(name: &str) -> &str {
    find_component(name).and_then(|control| control.linux_name).unwrap_or(name)
}

fn unknown(name: &str) -> UnknownControl {
    let known: Vec<&'static str> = DECLARATIONS.iter().map(|entry| entry.name).collect();
    // A name is similar if it is part of a known name, or if up to a
    // third of its letters differ. In a short name, up to two letters may differ, but not all.
    let letters = name.chars().count();
    let most = (letters / 3).max(2);
    let nearest = known
        .iter()
        .map(|candidate| (!(letters >= 3 && candidate.contains(name)), distance(name, candidate), *candidate))
        .filter(|(no_part, distance, _)| !no_part || *distance <= most && *distance < letters)
        .min()
        .map(|(_, _, candidate)| candidate);
    UnknownControl { found: name.to_owned(), nearest, known }
}

/// The number of letters to insert, delete or replace to convert one word into the other (Levenshtein 1966). Case and
/// underscores are ignored.
fn distance(from: &str, to: &str) -> usize {
    let fold = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    strsim::levenshtein(&fold(from), &fold(to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::EcnCodepoint;
    use crate::cubic::Cubic;
    use crate::linux_reno::LinuxReno;
    use crate::newreno::NewReno;
    use std::mem::size_of;

    #[test]
    fn every_entry_creates_a_control_with_its_name() {
        for component in CONTROLS {
            for (hystart, hystart_all) in [(false, false), (true, false), (false, true)] {
                let options = ControlOptions { hystart, hystart_all, ..ControlOptions::default() };
                let control = create(component.declaration.name, &options).expect("the name is in the catalogue");
                assert_eq!(control.name(), component.declaration.name);
                let mut values = Vec::new();
                control.inspect(&mut values);
                let with = match component.hystart {
                    HyStartSupport::None => false,
                    HyStartSupport::Standard => hystart || hystart_all,
                    HyStartSupport::OnRequest => hystart_all,
                };
                assert_eq!(values.iter().any(|(name, _)| *name == "hystart_phase"), with);
                for value in component.values {
                    let name = value.name.strip_prefix("control_").expect("the metric has the prefix `control_`");
                    assert!(values.iter().any(|(given, _)| *given == name), "{} has no {name}", control.name());
                }
            }
        }
    }

    #[test]
    fn every_name_of_the_command_line_contract_is_listed_once() {
        // The list in the contract of the command line. Both lists have the same order.
        let contract = "newreno linux-reno cubic bic highspeed htcp hybla illinois scalable vegas veno westwood yeah \
                        lp ledbat copa dctcp bbr1 bbr3 prague";
        let known: Vec<_> = DECLARATIONS.iter().map(|entry| entry.name).collect();
        assert_eq!(contract.split_whitespace().collect::<Vec<_>>(), known);
    }

    fn error(name: &str) -> UnknownControl {
        create(name, &ControlOptions::default()).expect_err("the name is not in the catalogue")
    }

    #[test]
    fn a_misspelled_name_is_rejected_with_the_nearest_name() {
        for (found, nearest) in [
            ("cubik", Some("cubic")),
            ("CUBIC", Some("cubic")),
            ("qubic", Some("cubic")),
            ("cubi", Some("cubic")),
            ("new-reno", Some("newreno")),
            ("linux_reno", Some("linux-reno")),
            ("linux", Some("linux-reno")),
            ("reno", Some("newreno")),
            // Of thirteen letters, four may differ.
            ("linux-rennnno", Some("linux-reno")),
            // A name that contains the input has precedence over one that differs in a letter.
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
             bic, highspeed, htcp, hybla, illinois, scalable, vegas, veno, westwood, yeah, lp, ledbat, copa, dctcp, bbr1, bbr3, prague)"
        );
    }

    #[test]
    fn hystart_is_available_for_every_loss_based_control_with_the_standard_slow_start() {
        let with = |support| {
            let having = CONTROLS.iter().filter(|component| component.hystart == support);
            having.map(|component| component.declaration.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(with(HyStartSupport::Standard), "newreno linux-reno cubic");
        assert_eq!(with(HyStartSupport::OnRequest), "bic highspeed htcp illinois scalable veno westwood yeah");
        // The slow start of Hybla does not double the window. The delay ends that of Vegas, TCP-LP, LEDBAT++ and Copa, a mark that of
        // DCTCP and Prague, and the bandwidth that of BBR.
        assert_eq!(with(HyStartSupport::None), "hybla vegas lp ledbat copa dctcp bbr1 bbr3 prague");
    }

    #[test]
    fn dctcp_sends_the_configured_codepoint() {
        for (ect1, codepoint) in [(false, EcnCodepoint::Ect0), (true, EcnCodepoint::Ect1)] {
            let mut dctcp = create("dctcp", &ControlOptions { ect1, ..ControlOptions::default() })
                .expect("the name is in the catalogue");
            let mut control = crate::WindowState::new(1_448, 14_480);
            dctcp.on_established(&mut control, fullpipe_units::Instant::ZERO, None);
            assert_eq!(control.codepoint, codepoint);
        }
    }

    #[test]
    fn with_abe_a_mark_reduces_the_window_less_than_a_loss() {
        // RFC 8511 section 3.1: 0.8 for Reno and 0.85 for CUBIC after a mark. After a loss, and without the option, 0.5 and 0.7.
        for (name, after_mark, after_loss) in
            [("newreno", 80_000, 50_000), ("linux-reno", 80_000, 50_000), ("cubic", 85_000, 70_000)]
        {
            for (abe, ecn, expected) in [
                (true, true, after_mark),
                (true, false, after_loss),
                (false, true, after_loss),
                (false, false, after_loss),
            ] {
                let options = ControlOptions { abe, ..ControlOptions::default() };
                let mut controller = create(name, &options).expect("the name is in the catalogue");
                let mut control = crate::WindowState::new(1_000, 100_000);
                controller.on_established(&mut control, fullpipe_units::Instant::ZERO, None);
                let congestion = crate::CongestionEvent {
                    now: fullpipe_units::Instant::from_nanos(1),
                    in_flight_bytes: 100_000,
                    lost_bytes: if ecn { 0 } else { 1_000 },
                    ecn,
                    persistent: false,
                };
                controller.on_congestion(&mut control, &congestion);
                assert_eq!(control.ssthresh_bytes, expected, "{name}: abe {abe}, ecn {ecn}");
            }
        }
    }

    #[test]
    fn distances_match_values_computed_by_hand() {
        for (from, to, letters) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2), ("a_B", "A-b", 0)]
        {
            assert_eq!(distance(from, to), letters, "{from} {to}");
        }
    }

    #[test]
    fn the_initial_window_matches_rfc_6928() {
        // min(10 MSS, max(2 MSS, 14600)).
        for (mss, window) in [(536, 5_360), (1_448, 14_480), (1_460, 14_600), (1_500, 14_600), (8_948, 17_896)] {
            assert_eq!(initial_window_bytes(mss), window);
        }
        assert_eq!(initial_window_bytes(u64::MAX), u64::MAX);
    }

    #[test]
    fn controls_are_small_enough_for_100_000_connections() {
        assert!(size_of::<NewReno>() <= 128, "{}", size_of::<NewReno>());
        assert!(size_of::<LinuxReno>() <= 128, "{}", size_of::<LinuxReno>());
        assert!(size_of::<Cubic>() <= 104, "{}", size_of::<Cubic>());
    }
}
