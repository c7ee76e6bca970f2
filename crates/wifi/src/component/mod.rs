//! Wi-Fi as an access network of a scenario: its keys and its settings.

mod keys;
mod read;
mod settings;

pub use settings::WifiSettings;

use crate::metrics::STATION;
use crate::records::STATIONS;
use fullpipe_network::access::AccessNetworkComponent;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::metric::ProbeMetric;

/// The Wi-Fi component.
pub static WIFI: AccessNetworkComponent = AccessNetworkComponent {
    declaration: Declaration {
        name: "wifi",
        version: "IEEE 802.11b, a, g, n and ac",
        source: "IEEE Std 802.11-2020",
        text: "Wi-Fi networks: an access point and its stations, in any network.",
        fields: &[],
    },
    table: &keys::NETWORK,
    station: keys::STATION_DECLARATION,
    metrics: || ProbeMetric::declarations(&STATION).collect(),
    choices: &[],
    tables: || vec![STATIONS.reference()],
    fill: keys::fill,
    read: read::read,
};
