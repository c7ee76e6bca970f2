//! The command lines of the real-time commands.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShellArguments {
    /// A scenario file, or the name of an embedded scenario
    pub(crate) scenario: String,
    /// Host at which the command runs
    pub(crate) host: String,
    /// Set a value (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Command that runs at the host [default: $SHELL, or /bin/sh]
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SimulatorArguments {
    /// The scenario, such as "simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25" [default: $SCENARIO]
    pub(crate) scenario: Option<String>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Interface to the client
    #[arg(long, value_name = "INTERFACE", default_value = "eth0")]
    pub(crate) left: String,
    /// Interface to the server
    #[arg(long, value_name = "INTERFACE", default_value = "eth1")]
    pub(crate) right: String,
    /// Folder for captures of both sides
    #[arg(long, value_name = "FOLDER")]
    pub(crate) logs: Option<PathBuf>,
    /// Print the equivalent scenario file and exit
    #[arg(long)]
    pub(crate) print: bool,
    /// Run this shell command as the client in a namespace, instead of using interfaces
    #[arg(long, value_name = "COMMAND")]
    pub(crate) client: Option<String>,
    /// Run this shell command as the server
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server: Option<String>,
}
