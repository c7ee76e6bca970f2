//! The list of access networks that a scenario can have. No other code contains such a list.

use fullpipe_network::access::AccessNetworkComponent;

/// All kinds of access networks, in the order of the reference page.
pub static ACCESS_NETWORKS: &[&AccessNetworkComponent] =
    &[&fullpipe_lte::component::LTE, &fullpipe_wifi::component::WIFI];
