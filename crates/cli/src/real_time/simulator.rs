//! `fullpipe simulator`: a replacement for quic-network-simulator's `sim` container.

pub(crate) mod forwarding;
mod probe;

use super::arguments::SimulatorArguments;
use crate::exit::Failure;
use crate::output;
use crate::records::stop_flag;
use forwarding::ForwardingGuard;
use fullpipe::lab::Options;
use fullpipe::lab::real_time::{self, EmulatorNamespace, FrameCapture, Lateness, RealTimeOptions, RealTimeOutcome};
use fullpipe::scenario::simulator::{CROSS_TRAFFIC, HostSetup, translate};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The port that is open when packets are forwarded.
const READY_PORT: u16 = 57_832;

pub(crate) fn simulate(arguments: &SimulatorArguments) -> Result<(), Failure> {
    let text = match (&arguments.scenario, std::env::var("SCENARIO")) {
        (Some(text), _) => text.clone(),
        (None, Ok(text)) => text,
        (None, Err(_)) => {
            return Err(Failure::usage(
                "no scenario is given; expected one such as \"simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25\", \
                 or the environment variable SCENARIO",
            ));
        }
    };
    let hosts = match (&arguments.client, &arguments.server) {
        (Some(client), Some(server)) => HostSetup::Programs { client, server },
        (None, None) => HostSetup::Interfaces { left: &arguments.left, right: &arguments.right },
        _ => return Err(Failure::usage("--client and --server require each other")),
    };
    let file = translate(&text, hosts, arguments.seed).map_err(Failure::usage)?;
    if arguments.print {
        crate::output::print_line!("{}", file.trim_end());
        return Ok(());
    }
    let loaded = fullpipe::scenario::load(&file, "simulator", &[]);
    let scenario = Arc::new(loaded.map_err(Failure::usage)?.scenario);
    let stop = stop_flag()?;
    let outside = matches!(hosts, HostSetup::Interfaces { .. });
    let (home, blocked) = if outside {
        let blocked = ForwardingGuard::between(&[&arguments.left, &arguments.right]);
        wait_for_server(&stop)?;
        (EmulatorNamespace::current().map_err(Failure::machine)?, Some(blocked))
    } else {
        (super::enter()?, None)
    };
    let logs = arguments.logs.as_deref();
    if let Some(logs) = logs {
        std::fs::create_dir_all(logs).map_err(|error| Failure::machine(format!("{}: {error}", logs.display())))?;
    }
    // Packets can wait for the port from the moment when it is open. The open port shows that they will be processed.
    let ready = RefCell::new(None);
    let said = RefCell::new(Ok(()));
    let mut each = |_, _: &Lateness| {
        if outside && ready.borrow().is_none() {
            match open_ready_port() {
                Ok(listener) => {
                    *ready.borrow_mut() = Some(listener);
                    eprintln!("fullpipe: {text}: packets are forwarded (TCP port {READY_PORT} is open)");
                }
                Err(error) => {
                    *said.borrow_mut() =
                        Err(Failure::machine(format!("cannot listen on TCP port {READY_PORT}: {error}")))
                }
            }
        }
        stop.load(Ordering::Relaxed) || said.borrow().is_err()
    };
    let capture = |host: &str| capture(logs.unwrap_or(Path::new(".")), host);
    let options = Options::default();
    let asked = RealTimeOptions {
        frames: logs.is_some().then_some(&capture),
        ..RealTimeOptions::new(&options, &home, &mut each)
    };
    let result = real_time::run(scenario, asked);
    drop(blocked);
    said.into_inner()?;
    tell(&result.map_err(super::failure)?, logs)
}

fn wait_for_server(stop: &AtomicBool) -> Result<(), Failure> {
    match std::env::var("WAITFORSERVER") {
        Ok(server) if !server.is_empty() => {
            probe::wait(&server, stop).map_err(|reason| Failure::machine(format!("WAITFORSERVER: {reason}")))
        }
        _ => Ok(()),
    }
}

/// Opens the port for both families, or for IPv4 only if IPv6 is not available. Connections are never accepted; clients
/// only test whether they can connect.
fn open_ready_port() -> io::Result<TcpListener> {
    TcpListener::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, READY_PORT)))
        .or_else(|_| TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, READY_PORT))))
}

/// Creates the capture at the interface of a host, with the simulator's file name. The format is pcapng, which readers
/// recognize by its first bytes.
fn capture(logs: &Path, host: &str) -> io::Result<FrameCapture> {
    let side = if host == "client" { "left" } else { "right" };
    let path = logs.join(format!("trace_node_{side}.pcap"));
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    Ok(Box::new(BufWriter::new(File::create(&path).map_err(told)?)))
}

/// Prints the results: those of the programs, the cross traffic, and the lateness of the emulator.
fn tell(result: &RealTimeOutcome, logs: Option<&Path>) -> Result<(), Failure> {
    for ended in &result.programs {
        for (kind, text) in [("out", &ended.output), ("err", &ended.errors)] {
            if let Some(logs) = logs {
                let path = logs.join(format!("{}.{kind}.txt", ended.name));
                std::fs::write(&path, text)
                    .map_err(|error| Failure::machine(format!("{}: {error}", path.display())))?;
            }
        }
        output::copy(&ended.output);
        // Standard error may be closed; the records of the run do not depend on it.
        let _ = io::stderr().write_all(&ended.errors);
    }
    if let Some(row) = result.outcome.flow(CROSS_TRAFFIC) {
        let counters = &row.counters;
        eprintln!(
            "fullpipe: cross traffic: {} packets sent, {} received, {} lost; {:.0} kbit/s of payload",
            counters.tx_packets,
            counters.rx_packets,
            counters.lost_packets,
            row.goodput_bps.unwrap_or(0.0) / 1e3,
        );
    }
    let lateness = &result.lateness;
    let packets = lateness.packets();
    eprintln!(
        "fullpipe: {:.1} s, {} packets delivered, {:.0} us late (p50), {:.0} us (p99); stalls {}, own drops {}",
        result.ran.as_secs_f64(),
        packets.count,
        packets.p50_nanos as f64 / 1e3,
        packets.p99_nanos as f64 / 1e3,
        lateness.stall_count(),
        lateness.drops(),
    );
    let failures: Vec<&str> = result.programs.iter().filter_map(|ended| ended.failure.as_deref()).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::run(failures.join("; "))) }
}
