//! Which ports tunnels' clients and proxies have, and acceptors of what goes through tunnels.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// First port of the tunnels' clients, each of which has its own. Proxies listen below it.
const FIRST_CLIENT_PORT: u16 = 40_000;
/// The clients that one address can have: from 49 152 on are the ports that hosts choose (RFC 6335 section 6).
const CLIENTS: u16 = 49_152 - FIRST_CLIENT_PORT;
/// Behind the last port the search for a free one goes on here, above the well-known ports.
const FIRST_USER_PORT: u16 = 1024;

/// Ports that are given out one after another, none of them twice.
#[derive(Debug, Default)]
pub(super) struct Ports {
    taken: BTreeSet<SocketAddr>,
    /// How many ports from a wanted one on have been looked at: all of them are taken.
    passed: BTreeMap<SocketAddr, u32>,
}

impl Ports {
    /// The first port from the wanted one to the `last` that nobody has, then from 1024 on; `None`: all are taken.
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

/// The n-th port after the first, where 1024 comes behind the last; `None` if all have come before it.
fn port_after(first: u16, n: u32, last: u16) -> Option<u16> {
    let port = u32::from(first) + n;
    match port.checked_sub(u32::from(last) + 1) {
        None => u16::try_from(port).ok(),
        Some(again) => u16::try_from(u32::from(FIRST_USER_PORT) + again).ok().filter(|again| *again < first),
    }
}

/// The addresses that tunnels have been given.
#[derive(Debug, Default)]
pub(super) struct Places {
    proxies: Ports,
    /// How many clients an address has.
    clients: BTreeMap<IpAddr, u16>,
}

impl Places {
    /// Addresses of client and proxy of one more tunnel, or why there are none.
    pub(super) fn of_tunnel(&mut self, client: IpAddr, proxy: SocketAddr) -> Result<[SocketAddr; 2], String> {
        let port = proxy.port();
        if port >= FIRST_CLIENT_PORT {
            return Err(format!(
                "its proxy listens at port {port}; that has to be below {FIRST_CLIENT_PORT}, where the ports of tunnels' \
                 clients begin"
            ));
        }
        let clients = self.clients.entry(client).or_default();
        if *clients == CLIENTS {
            return Err(format!("at most {CLIENTS} tunnels can begin at one host, for each needs a port there"));
        }
        let proxy = self.proxies.take(proxy, FIRST_CLIENT_PORT - 1);
        let proxy = proxy
            .ok_or_else(|| format!("other proxies have all ports of its proxy's host below {FIRST_CLIENT_PORT}"))?;
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
    fn the_search_for_a_port_goes_round_once() {
        let mut ports = Ports::default();
        // 4 and 5 are taken from two sides; behind the last come those from 1024 on.
        let taken = [4, 5, 4].map(|port| ports.take(at(port), 1100).map(|address| address.port()));
        assert_eq!(taken, [Some(4), Some(5), Some(6)]);
        let mut all: Vec<u16> =
            std::iter::from_fn(|| ports.take(at(1090), 1100)).map(|address| address.port()).collect();
        assert_eq!(all[..12], [1090, 1091, 1092, 1093, 1094, 1095, 1096, 1097, 1098, 1099, 1100, 1024]);
        all.sort_unstable();
        assert_eq!(all, (1024..=1100).collect::<Vec<u16>>());
        assert_eq!(ports.take(at(1090), 1100), None);
        // From a well-known port the search does not come round: 7 to 1023 are left.
        assert_eq!(std::iter::from_fn(|| ports.take(at(4), 1100)).count(), 1023 - 6);
        // Another address has ports of its own.
        let other = SocketAddr::new([192, 0, 2, 2].into(), 1090);
        assert_eq!(ports.take(other, 1100), Some(other));
    }

    #[test]
    fn tunnels_have_ports_that_nobody_else_has_or_there_are_too_many() {
        let mut places = Places::default();
        let proxy = |port| SocketAddr::new([192, 0, 2, 9].into(), port);
        // One proxy each: 443, 444 and so on.
        for number in 0..9152 {
            assert_eq!(places.of_tunnel(HOST, proxy(443)), Ok([at(40_000 + number), proxy(443 + number)]));
        }
        let refused = places.of_tunnel(HOST, proxy(443)).expect_err("programs' ports begin at 49152");
        assert!(refused.contains("at most 9152 tunnels can begin at one host"), "{refused}");
        // Elsewhere there is room; behind port 39999 come those from 1024 on, of which the last proxy has 9594.
        let elsewhere = |host: u8| IpAddr::from([192, 0, 2, host]);
        let next = places.of_tunnel(elsewhere(2), proxy(39_999)).map(|[_, proxy]| proxy);
        assert_eq!(next, Ok(proxy(39_999)));
        assert_eq!(places.of_tunnel(elsewhere(2), proxy(39_999)).map(|[_, proxy]| proxy), Ok(proxy(9595)));
        let refused = places.of_tunnel(elsewhere(2), proxy(40_000)).expect_err("it is a client's");
        assert!(refused.contains("listens at port 40000; that has to be below 40000"), "{refused}");
    }

    #[test]
    fn all_ports_of_proxies_can_be_taken() {
        let mut places = Places::default();
        let proxy = |port| SocketAddr::new([192, 0, 2, 9].into(), port);
        let client = |number: u32| IpAddr::from((0x0a00_0000 + number).to_be_bytes());
        // 1024 to 39 999.
        for number in 0..38_976 {
            places.of_tunnel(client(number), proxy(30_000)).expect("there is a port");
        }
        let refused = places.of_tunnel(HOST, proxy(30_000)).expect_err("there is none");
        assert_eq!(refused, "other proxies have all ports of its proxy's host below 40000");
    }
}
