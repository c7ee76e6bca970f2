//! Allocates UDP ports to the clients and proxies of tunnels, and to the acceptors of conversations through tunnels.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// First port of tunnel clients, each of which has its own port. Proxies listen on lower ports.
const FIRST_CLIENT_PORT: u16 = 40_000;
/// The maximum number of clients at one address: the number of ports between the first client port and the ephemeral
/// ports (RFC 6335 section 6).
const CLIENTS: u16 = 49_152 - FIRST_CLIENT_PORT;
/// The first port after the system ports (RFC 6335 section 6), at which the search for a free port continues after the
/// last port.
const FIRST_USER_PORT: u16 = 1024;

/// Allocates ports in order, each at most once.
#[derive(Debug, Default)]
pub(super) struct PortAllocator {
    taken: BTreeSet<SocketAddr>,
    /// The number of ports that the searches from each wanted port have passed. All of these ports are taken.
    passed: BTreeMap<SocketAddr, u32>,
}

impl PortAllocator {
    /// Allocates the first free port from the wanted port to `last`, then from 1024 upward; `None` if all are taken.
    pub(super) fn take(&mut self, wanted: SocketAddr, last: u16) -> Option<SocketAddr> {
        let passed = self.passed.entry(wanted).or_default();
        loop {
            let address = SocketAddr::new(wanted.ip(), port_after(wanted.port(), *passed, last)?);
            *passed += 1;
            if self.taken.insert(address) {
                return Some(address);
            }
        }
    }
}

/// Returns the n-th port after the first in the order of the search, in which 1024 follows `last`; `None` after the
/// last port.
fn port_after(first: u16, n: u32, last: u16) -> Option<u16> {
    let port = u32::from(first) + n;
    match port.checked_sub(u32::from(last) + 1) {
        None => u16::try_from(port).ok(),
        Some(again) => u16::try_from(u32::from(FIRST_USER_PORT) + again).ok().filter(|again| *again < first),
    }
}

/// Allocates the addresses of tunnels.
#[derive(Debug, Default)]
pub(super) struct TunnelAddressAllocator {
    proxies: PortAllocator,
    /// The number of clients at each address.
    clients: BTreeMap<IpAddr, u16>,
}

impl TunnelAddressAllocator {
    /// Allocates the addresses of client and proxy of a tunnel, or returns the reason why it cannot have them.
    pub(super) fn allocate(&mut self, client: IpAddr, proxy: SocketAddr) -> Result<[SocketAddr; 2], String> {
        let port = proxy.port();
        if port >= FIRST_CLIENT_PORT {
            return Err(format!(
                "its proxy listens on port {port}; the port must be below {FIRST_CLIENT_PORT}, the first port of tunnel \
                 clients"
            ));
        }
        let clients = self.clients.entry(client).or_default();
        if *clients == CLIENTS {
            return Err(format!("at most {CLIENTS} tunnels can start at one host, because each needs a port there"));
        }
        let proxy = self.proxies.take(proxy, FIRST_CLIENT_PORT - 1);
        let proxy = proxy.ok_or_else(|| format!("the host of its proxy has no free port below {FIRST_CLIENT_PORT}"))?;
        *clients += 1;
        Ok([SocketAddr::new(client, FIRST_CLIENT_PORT + *clients - 1), proxy])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    fn at(port: u16) -> SocketAddr {
        SocketAddr::new(HOST, port)
    }

    #[test]
    fn the_search_for_a_port_wraps_around_once() {
        let mut ports = PortAllocator::default();
        // Port 5 is wanted after a search from 4 has begun, and 1024 follows the last port.
        let taken = [4, 5, 4].map(|port| ports.take(at(port), 1100).map(|address| address.port()));
        assert_eq!(taken, [Some(4), Some(5), Some(6)]);
        let mut all: Vec<u16> =
            std::iter::from_fn(|| ports.take(at(1090), 1100)).map(|address| address.port()).collect();
        assert_eq!(all[..12], [1090, 1091, 1092, 1093, 1094, 1095, 1096, 1097, 1098, 1099, 1100, 1024]);
        all.sort_unstable();
        assert_eq!(all, (1024..=1100).collect::<Vec<u16>>());
        assert_eq!(ports.take(at(1090), 1100), None);
        // 4 to 6 and 1024 to 1100 are taken, so a search from 4 finds 7 to 1023.
        assert_eq!(std::iter::from_fn(|| ports.take(at(4), 1100)).count(), 1023 - 6);
        // Another address has its own ports.
        let other = SocketAddr::new([192, 0, 2, 2].into(), 1090);
        assert_eq!(ports.take(other, 1100), Some(other));
    }

    #[test]
    fn each_tunnel_has_its_own_ports_and_too_many_tunnels_are_an_error() {
        let mut ports = TunnelAddressAllocator::default();
        let proxy = |port| SocketAddr::new([192, 0, 2, 9].into(), port);
        // The proxies have the ports 443, 444 and so on.
        for number in 0..9152 {
            assert_eq!(ports.allocate(HOST, proxy(443)), Ok([at(40_000 + number), proxy(443 + number)]));
        }
        let refused = ports.allocate(HOST, proxy(443)).expect_err("ephemeral ports begin at 49152");
        assert!(refused.contains("at most 9152 tunnels can start at one host"), "{refused}");
        // Another host has free client ports. After port 39999 the search continues at 1024; the proxies have up to
        // 9594.
        let elsewhere = |host: u8| IpAddr::from([192, 0, 2, host]);
        let next = ports.allocate(elsewhere(2), proxy(39_999)).map(|[_, proxy]| proxy);
        assert_eq!(next, Ok(proxy(39_999)));
        assert_eq!(ports.allocate(elsewhere(2), proxy(39_999)).map(|[_, proxy]| proxy), Ok(proxy(9595)));
        let refused = ports.allocate(elsewhere(2), proxy(40_000)).expect_err("it is a client port");
        assert!(refused.contains("listens on port 40000; the port must be below 40000"), "{refused}");
    }

    #[test]
    fn a_proxy_without_a_free_port_is_an_error() {
        let mut ports = TunnelAddressAllocator::default();
        let proxy = |port| SocketAddr::new([192, 0, 2, 9].into(), port);
        let client = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        // 1024 to 39 999.
        for number in 0..38_976 {
            ports.allocate(client(number), proxy(30_000)).expect("a port is free");
        }
        let refused = ports.allocate(HOST, proxy(30_000)).expect_err("no port is free");
        assert_eq!(refused, "the host of its proxy has no free port below 40000");
    }
}
