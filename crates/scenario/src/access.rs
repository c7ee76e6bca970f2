//! The access networks that a scenario can have: the only place that lists them.

use fullpipe_network::access::AccessNetworkComponent;

/// Every kind of access network, in the order of the reference page.
pub static ACCESS_NETWORKS: &[&AccessNetworkComponent] = &[&fullpipe_lte::component::LTE];
