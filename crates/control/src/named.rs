//! Our controls by their names, as QUIC has them.

use crate::{Adapter, Maker, Uncontrolled, refusal};
use fullpipe_congestion::catalogue::Options;
use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
use noq_proto::congestion::Controller;
use std::sync::Arc;

/// Initial window in packets (RFC 9002 section 7.2).
pub const INITIAL_WINDOW_PACKETS: u64 = 10;

/// What makes the control of this name, with HyStart++ (RFC 9406) or without. Each control gets a seed for the random choices
/// that it may make.
///
/// # Errors
/// If there is no such control, or the stack cannot drive it, as a sentence.
pub fn named(name: &str, hystart: bool, seed: impl Fn() -> u64 + Send + Sync + 'static) -> Result<Maker, String> {
    let options = Options { hystart, paced: true, quic: true, ..Options::default() };
    let source = ControlSource::named(name, options, refusal)?;
    Ok(Arc::new(move || source.create(ConnectionEnd { seed: seed(), connection: 0, initiator: true })))
}

/// The name of the control that drives a connection: one of ours, or `none`; nothing, if it is another.
pub fn name_of(controller: Box<dyn Controller>) -> Option<&'static str> {
    let any = controller.into_any();
    match any.downcast_ref::<Adapter>() {
        Some(adapter) => Some(adapter.name()),
        None => any.is::<Uncontrolled>().then_some("none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(name: &str) -> String {
        named(name, true, || 0).err().expect("refused")
    }

    #[test]
    fn names_are_the_catalogues() {
        for name in ["newreno", "cubic", "vegas", "bbr3"] {
            assert_eq!(named(name, true, || 0).expect("it is there")().name(), name);
        }
        assert!(refused("cubik").contains("did you mean `cubic`?"), "{}", refused("cubik"));
        assert!(refused("dctcp").contains("counts of congestion marks"), "{}", refused("dctcp"));
    }

    #[test]
    fn slow_start_has_hystart_or_not() {
        for hystart in [false, true] {
            let mut values = Vec::new();
            named("cubic", hystart, || 0).expect("it is there")().inspect(&mut values);
            assert_eq!(values.iter().any(|(name, _)| *name == "hystart_phase"), hystart);
        }
    }
}
