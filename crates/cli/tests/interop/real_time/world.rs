//! Builds the scenarios of these tests from entries.

use std::collections::BTreeMap;
use std::fmt;

/// The nodes have the addresses 10.0.0.1, 10.0.0.2, ...: first hosts, then routers, in the order of their entries.
pub(crate) struct World {
    duration: &'static str,
    /// The entries of each array of tables.
    tables: BTreeMap<&'static str, Vec<String>>,
}

impl World {
    pub(crate) fn new(duration: &'static str) -> World {
        World { duration, tables: BTreeMap::new() }
    }

    /// Adds an entry to an array of tables; its keys are separated by commas.
    pub(crate) fn entry(mut self, table: &'static str, keys: impl Into<String>) -> World {
        self.tables.entry(table).or_default().push(keys.into());
        self
    }

    pub(crate) fn hosts(self, names: &[&str]) -> World {
        names.iter().fold(self, |world, name| world.entry("host", format!("name = '{name}'")))
    }

    pub(crate) fn routers(self, names: &[&str]) -> World {
        names.iter().fold(self, |world, name| world.entry("router", format!("name = '{name}'")))
    }

    pub(crate) fn link(self, from: &str, to: &str, keys: &str) -> World {
        self.entry("link", format!("name = '{from}-{to}', from = '{from}', to = '{to}', {keys}"))
    }

    /// Adds a NAT with the ports 20000 to 20010, which Linux does not assign to sockets.
    pub(crate) fn nat(self, router: &str, inside: &[&str]) -> World {
        let ports = "first_port = 20000, last_port = 20010, allocation = 'sequential'";
        self.entry("nat", format!("router = '{router}', inside = {inside:?}, {ports}"))
    }

    /// Adds a program on the host with the same name. Additional keys begin with a comma.
    pub(crate) fn program(self, host: &str, command: &[&str], keys: &str) -> World {
        self.entry("program", format!("name = '{host}', host = '{host}', command = {command:?}{keys}"))
    }

    /// Adds a shell command on a host. Additional keys begin with a comma.
    pub(crate) fn shell(self, name: &str, host: &str, command: &str, keys: &str) -> World {
        self.entry("program", format!("name = '{name}', host = '{host}', command = {command:?}{keys}"))
    }

    /// Adds a Python server such as `server.py`, which prints "ready" when it listens.
    pub(crate) fn server(self, script: &str) -> World {
        self.program("server", &["python3", script], ", background = true, ready = { kind = 'output', text = 'ready' }")
    }

    /// Adds Python's web server, with the files in the folder `served`.
    pub(crate) fn web_server(self) -> World {
        let command = ["python3", "-m", "http.server", "8000", "--directory", "served"];
        self.program("server", &command, ", background = true, ready = { kind = 'tcp-port', port = 8000 }")
    }

    /// Adds a host that stores the web server's file as `fetched`, after a program is ready.
    pub(crate) fn download(self, host: &str, after: &str, options: &[&str]) -> World {
        let begin = ["curl", "--silent", "--show-error", "--fail"];
        let command = [&begin[..], options, &["--output", "fetched", "http://server:8000/file"]].concat();
        self.program(host, &command, &format!(", after = ['{after}']"))
    }
}

impl fmt::Display for World {
    /// The text of the scenario.
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
