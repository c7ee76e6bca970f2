//! Flows that go through a tunnel.

use super::Diagnostics;
use super::reach::Reachability;
use super::traffic::FlowGroups;
use crate::description::{QuicStack, Transport, TunnelMode};
use crate::schema::{SourceLocation, Tree, Value};
use std::collections::BTreeSet;

/// Returns the tunnel that a `[[flow]]` refers to.
pub(super) fn tunnel_of(flow: &Tree) -> Option<&Value> {
    flow.get("via").filter(|name| !name.text().is_empty())
}

/// A `[[flow]]` through a tunnel: the name of the tunnel, the places of `via` and `via_mode`, the path of the table for
/// errors, and the flows.
pub(crate) struct TunneledFlow {
    pub(crate) name: String,
    pub(crate) place: SourceLocation,
    pub(crate) mode_place: SourceLocation,
    pub(crate) path: String,
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// The number of clients of a tunnel that an error names.
const SHOWN_CLIENTS: usize = 8;

/// Finds the tunnel of each flow that uses one. If several tunnels have the name, it is the first that begins at the
/// flow's host `from`. If there is none, it is the first that begins at its host `to`. In the latter case the flow is a
/// download, which the host at `to` opens.
pub(crate) fn find_tunnels(
    wanted: &[TunneledFlow],
    flows: &mut FlowGroups,
    names: &[&str],
    reach: &Reachability,
    check: &mut Diagnostics,
) {
    for TunneledFlow { name, place, mode_place, path: flow_path, first, end } in wanted {
        let path = &format!("{flow_path}.via");
        let group = flows.groups.iter().find(|(group, _, _)| group == name).map(|(_, first, end)| *first..*end);
        let is_tunnel = |index: &usize| matches!(flows.list[*index].transport, Transport::Masque(_));
        let Some(group) = group.filter(|group| group.clone().all(|index| is_tunnel(&index))) else {
            let tunnels = flows.groups.iter().filter(|(_, first, _)| is_tunnel(first));
            let is_flow = flows.groups.iter().any(|(group, _, _)| group == name);
            let message =
                if is_flow { format!("flow \"{name}\" is not a tunnel") } else { format!("unknown tunnel \"{name}\"") };
            let mut expected: Vec<String> = tunnels.map(|(name, _, _)| format!("\"{name}\"")).collect();
            if expected.is_empty() {
                expected.push("a [[flow]] with protocol = \"masque\"".into());
            }
            check.add_error(*place, path, message, expected);
            continue;
        };
        if matches!(&flows.list[*first].transport, Transport::Quic(settings) if settings.stack == QuicStack::Model) {
            let message =
                "flows of the QUIC model cannot use a tunnel, because the model has no packet contents".to_string();
            check.add_error(*place, path, message, vec!["quic.stack = \"noq\"".into(), "no via".into()]);
            continue;
        }
        for index in *first..*end {
            let (from, to) = (flows.list[index].from, flows.list[index].to);
            let from_host = |host| group.clone().find(|tunnel| flows.list[*tunnel].from == host);
            let (tunnel, from, to) = match (from_host(from), from_host(to)) {
                (Some(tunnel), _) => (tunnel, from, to),
                (None, Some(tunnel)) => (tunnel, to, from),
                (None, None) => {
                    let [from, to] = [from, to].map(|node| names[node.index()]);
                    let clients: BTreeSet<&str> =
                        group.clone().map(|tunnel| names[flows.list[tunnel].from.index()]).collect();
                    let clients: Vec<&str> = clients.into_iter().take(SHOWN_CLIENTS).collect();
                    let clients = clients.join(", ");
                    let message = format!(
                        "tunnel \"{name}\" has its client at {clients}, but the flow is between {from} and {to}"
                    );
                    let expected = format!("a tunnel with from = \"{from}\" or from = \"{to}\"");
                    check.add_error(*place, path, message, vec![expected]);
                    break;
                }
            };
            if flows.list[index].from != from {
                let flow = &mut flows.list[index];
                let Some(workload) = flow.workload.to_download() else {
                    let message = format!(
                        "a tunnel is opened by its client, so {} cannot start {} through it",
                        names[to.index()],
                        flow.workload.name()
                    );
                    let expected = format!("from = \"{}\", or a workload on a single stream", names[from.index()]);
                    check.add_error(*place, path, message, vec![expected]);
                    break;
                };
                // A download, which the client requests.
                (flow.from, flow.to, flow.workload) = (from, to, workload);
                (flow.from_by, flow.to_by) = (flow.to_by, flow.from_by);
            }
            let proxy = flows.list[tunnel].to;
            let [proxy_name, to_name] = [proxy, to].map(|node| names[node.index()]);
            if proxy == to {
                let message = format!("{to_name} is both the proxy of tunnel \"{name}\" and the other end of the flow");
                check.add_error(*place, path, message, vec!["a flow to another host".into()]);
                break;
            }
            if !reach.connected(proxy, to) {
                let message = format!("no route from the proxy {proxy_name} to {to_name}");
                check.add_error(*place, path, message, vec![format!("a proxy with a route to {to_name}")]);
                break;
            }
            let offers = matches!(&flows.list[tunnel].transport, Transport::Masque(masque) if masque.mode == TunnelMode::Datagram);
            if flows.list[index].via_mode == Some(TunnelMode::Datagram) && !offers {
                let path = format!("{flow_path}.via_mode");
                let message = format!(
                    "{path} = \"datagram\" requires a tunnel with HTTP datagrams, but tunnel \"{name}\" has masque.mode = \
                     \"stream\""
                );
                let expected = vec!["masque.mode = \"datagram\" for the tunnel".into(), "via_mode = \"stream\"".into()];
                check.add_error(*mode_place, &path, message, expected);
                break;
            }
            flows.list[index].via = Some(tunnel);
        }
    }
}
