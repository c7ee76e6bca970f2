//! Where the congestion controls of connections come from: a name of the catalogue with its options, or a program's own
//! function. Whatever can refuse a control does so before the first connection.
//!
//! ```
//! use fullpipe_congestion::catalogue::Options;
//! use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
//!
//! let source = ControlSource::named("cubic", Options::default(), |_| None).expect("the catalogue has it");
//! let client = ConnectionEnd { seed: 7, connection: 0, initiator: true };
//! assert_eq!(source.create(client).name(), "cubic");
//! ```

use crate::catalogue::{Options, create};
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
    /// Controls of this name in the catalogue, unless the transport refuses to drive them. The seed of the options is not used.
    ///
    /// # Errors
    /// Why not, as a sentence: the catalogue has no such name (the nearest one is suggested), or the transport's reason.
    pub fn named(
        name: &str,
        options: Options,
        refusal: impl FnOnce(&dyn Controller) -> Option<String>,
    ) -> Result<Self, String> {
        let control = create(name, &options).map_err(|unknown| unknown.to_string())?;
        ControlSource::accepted(&*control, Kind::Catalogue(options), refusal)
    }

    /// Controls that a program's function makes, unless the transport refuses to drive them. The function is called once, for
    /// the first connection's initiator, to learn the control's name and needs.
    ///
    /// # Errors
    /// The transport's reason, as a sentence.
    pub fn program(
        function: ControlFunction,
        refusal: impl FnOnce(&dyn Controller) -> Option<String>,
    ) -> Result<Self, String> {
        let control = function(ConnectionEnd { seed: 0, connection: 0, initiator: true });
        ControlSource::accepted(&*control, Kind::Program(function), refusal)
    }

    fn accepted(
        control: &dyn Controller,
        kind: Kind,
        refusal: impl FnOnce(&dyn Controller) -> Option<String>,
    ) -> Result<Self, String> {
        refusal(control).map_or(Ok(ControlSource { name: control.name().into(), kind }), Err)
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
            let source = ControlSource::named("cubic", Options { hystart, ..Options::default() }, |_| None).unwrap();
            assert_eq!(values(&*source.create(CLIENT)).contains(&"hystart_phase"), hystart);
        }
    }

    #[test]
    fn seeds_decide_random_choices() {
        let source = ControlSource::named("bbr1", Options::default(), |_| None).unwrap();
        let shown = |seed| format!("{:?}", source.create(ConnectionEnd { seed, ..CLIENT }));
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_one() {
        let error = ControlSource::named("cubik", Options::default(), |_| None).unwrap_err();
        assert!(error.contains("did you mean `cubic`?"), "{error}");
    }

    #[test]
    fn a_program_learns_whose_control_it_makes() {
        let function: ControlFunction = Arc::new(|end| {
            assert!(end == CLIENT || end == ConnectionEnd { seed: 0, connection: 0, initiator: true });
            Box::new(NewReno::new(None))
        });
        let source = ControlSource::program(function, |_| None).unwrap();
        assert_eq!((&**source.name(), source.create(CLIENT).name()), ("newreno", "newreno"));
    }

    #[test]
    fn a_transport_refuses_with_its_reason() {
        let needs_counts = |control: &dyn Controller| control.signals().ecn_counts.then(|| "counts".to_owned());
        assert!(ControlSource::named("cubic", Options::default(), needs_counts).is_ok());
        assert_eq!(ControlSource::named("dctcp", Options::default(), needs_counts).unwrap_err(), "counts");
    }

    #[test]
    fn each_control_of_the_catalogue_names_itself_as_the_catalogue_does() {
        for entry in crate::catalogue::ENTRIES {
            let source = ControlSource::named(entry.name, Options::default(), |_| None).unwrap();
            assert_eq!((&**source.name(), source.create(CLIENT).name()), (entry.name, entry.name));
        }
    }
}
