//! Networks of these tests, built entry by entry.

use std::collections::BTreeMap;
use std::fmt;

/// 1 Gbit/s and 1 ms: a link that is never the limit.
pub(super) const FAST: &str = "rate = '1Gbit/s', delay = '1ms'";

/// Builder of a scenario. Nodes get addresses 10.0.0.1, 10.0.0.2, ...: hosts in the order of their entries, then
/// routers.
#[derive(Clone)]
pub(super) struct World {
    duration: &'static str,
    /// Entries of each array of tables.
    tables: BTreeMap<&'static str, Vec<String>>,
}

impl World {
    pub(super) fn new(duration: &'static str) -> World {
        World { duration, tables: BTreeMap::new() }
    }

    /// Adds an entry of an array of tables, with keys separated by commas.
    pub(super) fn entry(mut self, table: &'static str, keys: impl Into<String>) -> World {
        self.tables.entry(table).or_default().push(keys.into());
        self
    }

    pub(super) fn hosts(self, names: &[&str]) -> World {
        names.iter().fold(self, |world, name| world.entry("host", format!("name = '{name}'")))
    }

    pub(super) fn routers(self, names: &[&str]) -> World {
        names.iter().fold(self, |world, name| world.entry("router", format!("name = '{name}'")))
    }

    pub(super) fn link(self, from: &str, to: &str, keys: &str) -> World {
        self.entry("link", format!("name = '{from}-{to}', from = '{from}', to = '{to}', {keys}"))
    }

    /// Adds a NAT with external ports from 20 000 on, in order.
    pub(super) fn nat(self, inside: &[&str], last_port: u16, keys: &str) -> World {
        self.entry(
            "nat",
            format!(
                "router = 'home', inside = {inside:?}, first_port = 20000, last_port = {last_port}, \
                 allocation = 'sequential'{keys}"
            ),
        )
    }

    /// Adds the flow `datagrams`, which matches real UDP datagrams between its ends.
    pub(super) fn datagrams(self, from: &str, to: &str, keys: &str) -> World {
        self.entry(
            "flow",
            format!(
                "name = 'datagrams', from = '{from}', to = '{to}', protocol = 'udp', workload = 'constant-rate', \
                 payload = '100B', rate = '1Mbit/s'{keys}"
            ),
        )
    }

    /// Adds hosts `client` and `server`, and a link of 10 Mbit/s and 5 ms without framing overhead.
    pub(super) fn pair(link_keys: &str) -> World {
        let link = format!("rate = '10Mbit/s', delay = '5ms', queue = '25packets', framing = '0B'{link_keys}");
        World::new("100ms")
            .hosts(&["client", "server"])
            .link("client", "server", &link)
            .datagrams("client", "server", "")
    }
}

impl fmt::Display for World {
    /// The scenario's text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "duration = '{}'", self.duration)?;
        for (table, entries) in &self.tables {
            writeln!(formatter, "{table} = [")?;
            entries.iter().try_for_each(|keys| writeln!(formatter, "    {{ {keys} }},"))?;
            writeln!(formatter, "]")?;
        }
        Ok(())
    }
}
