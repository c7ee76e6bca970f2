//! `fullpipe schema`: the JSON Schema of scenario and study files, for editors.

use crate::arguments::SchemaOf;
use crate::output;
use fullpipe::archive::STUDY;
use fullpipe::scenario;
use fullpipe::scenario::schema;

/// Runs `fullpipe schema`.
pub(crate) fn print(of: SchemaOf) {
    let version = env!("CARGO_PKG_VERSION");
    let (table, title, text) = match of {
        SchemaOf::Scenario => (scenario::root_table(), "Fullpipe scenario", "A network and the flows over it."),
        SchemaOf::Study => (&STUDY, "Fullpipe study", "Scenarios, experiments, metrics, claims and plots."),
    };
    output::json(&schema::json_schema(table, title, &format!("{text} Fullpipe {version}.")));
}
