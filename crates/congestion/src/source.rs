//! Creates the congestion controls of a flow's connections, from a name in the catalogue and options, or with a
//! function of the user's program. A transport that cannot use a control rejects it before the first connection.
//!
//! ```
//! use fullpipe_congestion::catalogue::ControlOptions;
//! use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
//!
//! let source = ControlSource::named("cubic", ControlOptions::default(), |_| None).expect("the catalogue has it");
//! let client = ConnectionEnd { seed: 7, connection: 0, initiator: true };
//! assert_eq!(source.create(client).name(), "cubic");
//! ```

use crate::catalogue::{ControlOptions, create};
use crate::control::Controller;
use std::fmt;
use std::sync::Arc;

/// The end of a connection for which a control is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionEnd {
    /// Seed of the control's random choices.
    pub seed: u64,
    /// Number of the connection within its flow.
    pub connection: u32,
    /// Whether this end opened the connection.
    pub initiator: bool,
}

/// A function of the user's program that creates controls.
pub type ControlFunction = Arc<dyn Fn(ConnectionEnd) -> Box<dyn Controller> + Send + Sync>;

/// A source that creates the controls of a flow's connections. A clone creates equal controls.
#[derive(Clone)]
pub struct ControlSource {
    name: Arc<str>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Catalogue(ControlOptions),
    Program(ControlFunction),
}

impl fmt::Debug for ControlSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ControlSource").field(&self.name).finish()
    }
}

impl ControlSource {
    /// Creates the source of the control with this name in the catalogue. `refusal` returns the reason why the
    /// transport cannot use the control, or `None` if it can. The seed in `options` is not used;
    /// [`ConnectionEnd::seed`] replaces it.
    ///
    /// # Errors
    /// Returns an error message, with the nearest name, if the catalogue does not contain the name. Otherwise returns
    /// the reason from `refusal`, if any.
    pub fn named(
        name: &str,
        options: ControlOptions,
        refusal: impl FnOnce(&dyn Controller) -> Option<String>,
    ) -> Result<Self, String> {
        let control = create(name, &options).map_err(|unknown| unknown.to_string())?;
        ControlSource::accepted(&*control, Kind::Catalogue(options), refusal)
    }

    /// Creates the source of controls that a function of the user's program creates. `refusal` returns the reason why
    /// the transport cannot use them, or `None` if it can. The function is called once in advance, to get the name and
    /// the requirements of the control.
    ///
    /// # Errors
    /// Returns the reason from `refusal`, if any.
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

    /// Creates the control for one end of a connection.
    pub fn create(&self, end: ConnectionEnd) -> Box<dyn Controller> {
        match &self.kind {
            Kind::Catalogue(options) => {
                create(&self.name, &ControlOptions { seed: end.seed, ..*options }).expect("the name was checked before")
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
    fn the_options_apply_to_created_controls() {
        for hystart in [false, true] {
            let source =
                ControlSource::named("cubic", ControlOptions { hystart, ..ControlOptions::default() }, |_| None)
                    .unwrap();
            assert_eq!(values(&*source.create(CLIENT)).contains(&"hystart_phase"), hystart);
        }
    }

    #[test]
    fn the_seed_determines_the_random_choices_of_a_control() {
        let source = ControlSource::named("bbr1", ControlOptions::default(), |_| None).unwrap();
        let shown = |seed| format!("{:?}", source.create(ConnectionEnd { seed, ..CLIENT }));
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
    }

    #[test]
    fn an_unknown_name_is_an_error_with_the_nearest_one() {
        let error = ControlSource::named("cubik", ControlOptions::default(), |_| None).unwrap_err();
        assert!(error.contains("did you mean `cubic`?"), "{error}");
    }

    #[test]
    fn a_program_receives_the_end_of_the_connection() {
        let function: ControlFunction = Arc::new(|end| {
            assert!(end == CLIENT || end == ConnectionEnd { seed: 0, connection: 0, initiator: true });
            Box::new(NewReno::new(None))
        });
        let source = ControlSource::program(function, |_| None).unwrap();
        assert_eq!((&**source.name(), source.create(CLIENT).name()), ("newreno", "newreno"));
    }

    #[test]
    fn a_control_that_the_transport_rejects_is_an_error_with_its_reason() {
        let needs_counts = |control: &dyn Controller| control.requirements().ecn_counts.then(|| "counts".to_owned());
        assert!(ControlSource::named("cubic", ControlOptions::default(), needs_counts).is_ok());
        assert_eq!(ControlSource::named("dctcp", ControlOptions::default(), needs_counts).unwrap_err(), "counts");
    }

    #[test]
    fn each_control_has_the_name_of_its_catalogue_entry() {
        for entry in crate::catalogue::DECLARATIONS {
            let source = ControlSource::named(entry.name, ControlOptions::default(), |_| None).unwrap();
            assert_eq!((&**source.name(), source.create(CLIENT).name()), (entry.name, entry.name));
        }
    }
}
