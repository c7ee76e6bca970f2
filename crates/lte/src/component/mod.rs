//! LTE as an access network of a scenario: its keys, its settings, and the medium that is built from the settings.

mod antenna;
mod fading;
mod keys;
mod medium;
mod path_loss;
mod preset;
mod read;
mod settings;

pub use fading::FadingSource;
pub use settings::LteSettings;

use crate::records::{BEARERS, UES};
use crate::scheduler::catalogue;
use fullpipe_network::access::{AccessNetworkComponent, ChoiceList};
use fullpipe_schema::FieldKind;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::ProbeMetric;

const DISTANCE: FieldKind = FieldKind::number(0.0, 1e6);
const DECIBELS: FieldKind = FieldKind::number(-200.0, 300.0);

/// The LTE component.
pub static LTE: AccessNetworkComponent = AccessNetworkComponent {
    declaration: Declaration {
        name: "lte",
        version: "3GPP release 8 to 11, FDD",
        source: "3GPP TS 36 series",
        text: "LTE access networks, in any network.",
        fields: &[],
    },
    table: &keys::NETWORK,
    station: keys::STATION,
    metrics: || ProbeMetric::declarations(&medium::UE).collect(),
    choices: &[
        ChoiceList { list: "schedulers", kind: "lte", declarations: || catalogue::declarations().collect() },
        ChoiceList { list: "channels", kind: "path-loss", declarations: || path_loss::MODELS.declarations().collect() },
        ChoiceList { list: "channels", kind: "fading", declarations: || fading::KINDS.declarations().collect() },
    ],
    tables: || vec![UES.reference(), BEARERS.reference()],
    fill: preset::fill,
    read: read::read,
};
