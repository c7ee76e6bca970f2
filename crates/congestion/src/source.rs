//! Where the congestion controls of connections come from: a name of the catalogue with its options, or a program's own
//! function. Whatever can refuse a control does so before the first connection.
//!
//! ```
//! use fullpipe_congestion::catalogue::Options;
//! use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
//!
//! let source = ControlSource::named("cubic", Options::default()).expect("the catalogue has it");
//! let client = ConnectionEnd { seed: 7, connection: 0, initiator: true };
//! assert_eq!(source.create(client).name(), "cubic");
//! ```

use crate::catalogue::{Options, UnknownControl, create};
use crate::control::Controller;
use std::fmt;
use std::sync::Arc;

/// Which end of which connection gets a control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// Decides the random choices that the control may make.
    pub seed: u64,
    /// Number of the connection within its flow.
    pub connection: u32,
    /// Whether this end opened the connection.
    pub initiator: bool,
}

/// A program's function that makes controls.
pub type ControlFunction = Arc<dyn Fn(ConnectionEnd) -> Box<dyn Controller> + Send + Sync>;

/// Creates the controls of a flow's connections; a clone creates the same ones.
#[derive(Clone)]
pub struct ControlSource {
    name: Arc<str>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Catalogue(Options),
    Program(ControlFunction),
}

impl fmt::Debug for ControlSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ControlSource").field(&self.name).finish()
    }
}

impl ControlSource {
    /// Controls of this name in the catalogue. The seed of the options is not used.
    ///
    /// # Errors
    /// [`UnknownControl`] if the catalogue has no such name.
    pub fn named(name: &str, options: Options) -> Result<ControlSource, UnknownControl> {
        let control = create(name, &options)?;
        Ok(ControlSource { name: control.name().into(), kind: Kind::Catalogue(options) })
    }

    /// Controls that a program's function makes. Their name is that of the first connection's initiator.
    pub fn program(function: ControlFunction) -> ControlSource {
        let first = ConnectionEnd { seed: 0, connection: 0, initiator: true };
        ControlSource { name: function(first).name().into(), kind: Kind::Program(function) }
    }

    /// The same, unless the transport refuses to drive such a control.
    ///
    /// # Errors
    /// The transport's reason, as a sentence.
    pub fn accepted_by(self, refusal: impl FnOnce(&dyn Controller) -> Option<String>) -> Result<ControlSource, String> {
        let control = self.create(ConnectionEnd { seed: 0, connection: 0, initiator: true });
        refusal(&*control).map_or(Ok(self), Err)
    }

    /// Name of the control.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// A control for one end of a connection.
    pub fn create(&self, end: ConnectionEnd) -> Box<dyn Controller> {
        match &self.kind {
            Kind::Catalogue(options) => {
                create(&self.name, &Options { seed: end.seed, ..*options }).expect("its name was found before")
            }
            Kind::Program(function) => function(end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::newreno::NewReno;

    const CLIENT: ConnectionEnd = ConnectionEnd { seed: 7, connection: 3, initiator: true };

    fn values(control: &dyn Controller) -> Vec<&'static str> {
        let mut values = Vec::new();
        control.inspect(&mut values);
        values.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn options_reach_every_control_of_the_catalogue() {
        for hystart in [false, true] {
            let source = ControlSource::named("cubic", Options { hystart, ..Options::default() }).unwrap();
            assert_eq!(values(&*source.create(CLIENT)).contains(&"hystart_phase"), hystart);
        }
    }

    #[test]
    fn seeds_decide_random_choices() {
        let source = ControlSource::named("bbr1", Options::default()).unwrap();
        let shown = |seed| format!("{:?}", source.create(ConnectionEnd { seed, ..CLIENT }));
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_one() {
        let error = ControlSource::named("cubik", Options::default()).unwrap_err();
        assert_eq!(error.nearest, Some("cubic"));
    }

    #[test]
    fn a_program_learns_whose_control_it_makes() {
        let source = ControlSource::program(Arc::new(|end| {
            assert!(end == CLIENT || end == ConnectionEnd { seed: 0, connection: 0, initiator: true });
            Box::new(NewReno::new(None))
        }));
        assert_eq!((&**source.name(), source.create(CLIENT).name()), ("newreno", "newreno"));
    }

    #[test]
    fn a_transport_refuses_with_its_reason() {
        let source = ControlSource::named("dctcp", Options::default()).unwrap();
        assert!(source.clone().accepted_by(|_| None).is_ok());
        let needs_counts = |control: &dyn Controller| control.signals().ecn_counts.then(|| "counts".to_owned());
        assert_eq!(source.accepted_by(needs_counts).unwrap_err(), "counts");
    }
}
