//! Creation of Fullpipe's congestion controls by name, with the defaults of QUIC.

use crate::{Adapter, ControlFactory, NoCongestionControl, unsupported_reason};
use fullpipe_congestion::catalogue::ControlOptions;
use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
use noq_proto::congestion::Controller;
use std::sync::Arc;

/// Initial window in packets (RFC 9002 section 7.2).
pub const INITIAL_WINDOW_PACKETS: u64 = 10;

/// Returns a function that creates the named control, with or without HyStart++ (RFC 9406). Each control gets a new
/// seed for its random choices.
///
/// # Errors
/// Returns an error message if the catalogue has no such control, or if the stack cannot drive it.
pub fn control_factory(
    name: &str,
    hystart: bool,
    seed: impl Fn() -> u64 + Send + Sync + 'static,
) -> Result<ControlFactory, String> {
    let options = ControlOptions { hystart, paced: true, quic: true, ..ControlOptions::default() };
    let source = ControlSource::named(name, options, unsupported_reason)?;
    Ok(Arc::new(move || source.create(ConnectionEnd { seed: seed(), connection: 0, initiator: true })))
}

/// Name of the control that drives a connection: a control of Fullpipe, or `none` without congestion control. Returns
/// `None` for any other controller.
pub fn control_name(controller: Box<dyn Controller>) -> Option<&'static str> {
    let any = controller.into_any();
    match any.downcast_ref::<Adapter>() {
        Some(adapter) => Some(adapter.name()),
        None => any.is::<NoCongestionControl>().then_some("none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> String {
        control_factory(name, true, || 0).err().expect("this control is rejected")
    }

    #[test]
    fn names_are_those_of_the_catalog() {
        for name in ["newreno", "cubic", "vegas", "bbr3"] {
            assert_eq!(control_factory(name, true, || 0).expect("the catalog lists this control")().name(), name);
        }
        assert!(refused("cubik").contains("did you mean `cubic`?"), "{}", refused("cubik"));
        assert!(refused("dctcp").contains("counts of congestion marks"), "{}", refused("dctcp"));
    }

    #[test]
    fn named_control_has_hystart_only_when_requested() {
        for hystart in [false, true] {
            let mut values = Vec::new();
            control_factory("cubic", hystart, || 0).expect("the catalog lists this control")().inspect(&mut values);
            assert_eq!(values.iter().any(|(name, _)| *name == "hystart_phase"), hystart);
        }
    }
}
