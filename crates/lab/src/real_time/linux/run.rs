//! Sets up and executes a real-time run.

use super::interface::{FrameCapture, InterfacePort, InterfaceSides};
use super::kernel::{KernelEndpointResult, RunningKernelEndpoints};
use super::programs;
use crate::assemble;
use crate::error::RunError;
use crate::options::{FileAppender, Options};
use crate::outcome::Outcome;
use crate::plugins::Plugins;
use crate::prepared::PreparedRun;
use crate::real_time::driver::{ArrivalSink, Driver};
use crate::real_time::gateway::Gateway;
use crate::real_time::recorder::ArrivalRecorder;
use crate::real_time::replay::real_nodes;
use crate::starts;
use crate::world::{RealHost, RealHosts};
use bytes::Bytes;
use fullpipe_archive::{IcmpRecord, RefusedFrames};
use fullpipe_emulate::{
    EarlyExitCallback, EmulatorNamespace, HostNamespace, HostSettings, Lateness, LatenessLimits, LinuxMachine,
    PacketPort, Port, ProgramOutcome, Programs, WallClock, hardware_address, thread_cpu_time,
};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description;
use fullpipe_units::{Duration, Instant, NodeId};
use fullpipe_wire::{HardwareAddress, IpVersion};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// The result of a real-time run.
#[derive(Debug)]
pub struct RealTimeOutcome {
    /// The outcome of the modeled network.
    pub outcome: Outcome,
    /// The timing error of the emulator.
    pub lateness: Lateness,
    /// Frames of real hosts that did not enter the model.
    pub refused: RefusedFrames,
    /// ICMP messages and TCP resets that nodes of the model sent to real hosts.
    pub answered: IcmpRecord,
    /// Number of arrivals that are missing from the recording because the disk was too slow.
    pub unrecorded: u64,
    /// Duration of the run in wall-clock time.
    pub ran: Duration,
    /// CPU time of the thread that ran the model, including busy waiting.
    pub processor: Duration,
    /// Exit states of the programs, in the order of the scenario.
    pub programs: Vec<ProgramOutcome>,
    /// Results of the kernel endpoints, in the order of the scenario.
    pub kernel: Vec<KernelEndpointResult>,
}

/// A function that starts additional programs at the hosts of a run. The namespaces are in the order of the scenario's
/// real hosts.
pub type HostHook<'a> = dyn FnMut(&[HostNamespace]) -> io::Result<()> + 'a;

/// A function that opens the capture of the interface of a host, given the host's name.
pub type CaptureOpener<'a> = dyn Fn(&str) -> io::Result<FrameCapture> + 'a;

/// The arguments of [`run`] in addition to the scenario.
pub struct RealTimeOptions<'a> {
    /// The options that runs in virtual time also have.
    pub options: &'a Options,
    /// The network namespace that contains the emulator's ends of all interfaces.
    pub home: &'a EmulatorNamespace,
    /// The folder to which the working directories of programs are relative. `None`: programs run in the current
    /// directory of this process.
    pub folder: Option<&'a Path>,
    /// Name of the program that is connected to the terminal; `None` if no program is.
    pub at_terminal: Option<&'a str>,
    /// Destination of recorded arrivals; `None` if arrivals are not recorded.
    pub record: Option<FileAppender>,
    /// Called after the hosts are created and before the clock starts; `None` if no additional programs are started.
    pub at_hosts: Option<&'a mut HostHook<'a>>,
    /// Opens captures of all frames at interfaces of this machine that are connected to hosts; `None` disables these
    /// captures.
    pub frames: Option<&'a CaptureOpener<'a>>,
    /// Called when a background program ends before the run, with an exit status other than 0.
    pub early_exit: Option<EarlyExitCallback>,
    /// Called ten times per second with the clock and the lateness; returns true to stop the run.
    pub each: &'a mut dyn FnMut(Instant, &Lateness) -> bool,
}

impl<'a> RealTimeOptions<'a> {
    /// Returns the options of a run without recording, captures or additional programs.
    pub fn new(
        options: &'a Options,
        home: &'a EmulatorNamespace,
        each: &'a mut dyn FnMut(Instant, &Lateness) -> bool,
    ) -> Self {
        let (folder, at_terminal, record, at_hosts, frames, early_exit) = (None, None, None, None, None, None);
        RealTimeOptions { options, home, folder, at_terminal, record, at_hosts, frames, early_exit, each }
    }
}

/// Runs a scenario in real time.
///
/// # Errors
/// The errors of [`crate::prepare`], and an error if the machine cannot provide the namespaces, sockets or programs.
pub fn run(scenario: Arc<Scenario>, asked: RealTimeOptions<'_>) -> Result<RealTimeOutcome, RunError> {
    // Programs and kernel sockets use the drawn start times too.
    let scenario = starts::drawn(scenario);
    let mut prepared = assemble::assemble_addressed(Arc::clone(&scenario), asked.options, Plugins::default())?;
    let real = real_nodes(&scenario);
    let machine_refuses = |error: io::Error| RunError::System(error.to_string());
    let (namespaces, ports) = attach(&prepared, &real, &asked).map_err(machine_refuses)?;
    let namespaces = Arc::new(namespaces);
    prepared.world.set_real(
        &mut prepared.network,
        RealHosts::new(real.iter().map(|node| RealHost::numbered(*node)).collect(), scenario.nodes.len()),
    );
    let mut gateway = Gateway::new(&scenario, &prepared.network, real.clone());
    let names = scenario.nodes.iter().enumerate().flat_map(|(number, node)| {
        let address = |version| (prepared.network.directory.address(NodeId(number as u32), version), node.name.clone());
        [address(IpVersion::V4), address(IpVersion::V6)]
    });
    let ends = {
        let hosts = real.iter().copied().zip(namespaces.iter()).collect();
        RunningKernelEndpoints::start(&scenario, &prepared.network.directory, asked.home, &hosts)
            .map_err(RunError::System)?
    };
    let settings = programs::settings(&scenario, &real, asked.folder, asked.at_terminal);
    // Without a namespace, no program is started, so the privileges for it are not needed.
    let programs = (!namespaces.is_empty())
        .then(|| Programs::prepare(asked.home, Arc::clone(&namespaces), names.collect(), settings, asked.early_exit))
        .transpose()
        .map_err(machine_refuses)?;
    if let Some(at_hosts) = asked.at_hosts {
        at_hosts(&namespaces).map_err(machine_refuses)?;
    }
    let names = real.iter().map(|node| scenario.nodes[node.index()].name.as_str());
    let recorder =
        asked.record.map(|append| ArrivalRecorder::start(append, names)).transpose().map_err(machine_refuses)?;
    let mut keep = recorder.as_ref().map(|recorder| {
        |at, port, frame: &Bytes| {
            recorder.keep(at, port, frame);
            Ok(())
        }
    });
    let clock = WallClock::start();
    programs.iter().for_each(|programs| programs.begin(clock));
    ends.begin(clock);
    let mut machine = LinuxMachine::new(clock, ports, programs);
    let mut lateness = Lateness::new(limits(&scenario.real_time));
    let mut each =
        |now: Instant, lateness: &Lateness| (asked.each)(now, lateness) || (!namespaces.is_empty() && ends.done());
    let driver = Driver {
        prepared: &mut prepared,
        gateway: &mut gateway,
        machine: &mut machine,
        lateness: &mut lateness,
        after_stall: scenario.real_time.after_stall,
        journal: keep.as_mut().map(|keep| keep as &mut ArrivalSink<'_>),
        each: &mut each,
    };
    let processor_before = thread_cpu_time();
    let driven = driver.run();
    let processor = thread_cpu_time().saturating_sub(processor_before);
    let ran = clock.now().saturating_since(Instant::ZERO);
    let ended_programs = machine.into_programs().map(Programs::finish).unwrap_or_default();
    let kernel = ends.finish(&scenario);
    let ended = driven.map_err(machine_refuses)?;
    let unrecorded = recorder.map_or(Ok(0), |recorder| recorder.finish(ended)).map_err(machine_refuses)?;
    let PreparedRun { mut world, network, mut probes, scenario, .. } = prepared;
    kernel.iter().for_each(|((flow, end), played)| world.set_kernel_report(*flow, *end, played.endpoint_report()));
    kernel.iter().filter(|(_, end)| end.sender).for_each(|(place, end)| end.add_samples(*place, &mut probes));
    probes.sort();
    let unwritable = world.real().map_or(0, |real| real.unwritable);
    let answered = world.real().map_or_else(IcmpRecord::default, |real| real.answers.sent.clone());
    let refused = RefusedFrames { unwritable, ..gateway.refused };
    let played = kernel.iter().map(|(place, end)| (*place, end.played())).collect();
    let outcome = Outcome::new(scenario, world, network, probes, false);
    let told = programs::told(outcome.scenario(), &ended_programs);
    let outcome = outcome.of_real_time(ended, played, told);
    Ok(RealTimeOutcome {
        outcome,
        lateness,
        refused,
        answered,
        unrecorded,
        ran,
        processor,
        programs: ended_programs,
        kernel: kernel.into_values().collect(),
    })
}

fn limits(described: &description::RealTimeSettings) -> LatenessLimits {
    LatenessLimits {
        late_after: described.late_after,
        late_share: described.late_share,
        stall_after: described.stall_after,
    }
}

/// Returns the addresses on both sides of a host's interface.
fn sides(prepared: &PreparedRun, host: NodeId, interface: &str) -> io::Result<InterfaceSides> {
    let scenario = &prepared.scenario;
    let both = |node: NodeId| [IpVersion::V4, IpVersion::V6].map(|v| prepared.network.directory.address(node, v));
    let nodes = || (0..scenario.nodes.len()).map(|number| NodeId(number as u32)).filter(|node| *node != host);
    let is_router = |node: &NodeId| scenario.nodes[node.index()].router;
    let gateway = scenario.links.iter().find(|link| link.from == host).map(|link| link.to);
    Ok(InterfaceSides {
        hardware: HardwareAddress(hardware_address(interface)?),
        host: both(host).to_vec(),
        gateway: gateway.into_iter().flat_map(both).collect(),
        routers: nodes().filter(is_router).flat_map(both).collect(),
        others: nodes().filter(|node| !is_router(node)).flat_map(both).collect(),
    })
}

/// Adds the required privilege to a permission error of an interface.
fn of_interface(interface: &str, error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return error;
    }
    let sentence = format!("cannot open the interface {interface} of this machine: {error}; run the command as root");
    io::Error::new(error.kind(), sentence)
}

type Attached = (Vec<HostNamespace>, Vec<Box<dyn Port>>);

/// Creates the namespaces of hosts and opens the emulator's ports to them.
fn attach(prepared: &PreparedRun, real: &[NodeId], asked: &RealTimeOptions<'_>) -> io::Result<Attached> {
    let home = asked.home;
    let mut namespaces = Vec::new();
    let mut ports: Vec<Box<dyn Port>> = Vec::new();
    for node in real {
        let host = RealHost::numbered(*node);
        let address = |version| -> IpAddr { prepared.network.directory.address(*node, version) };
        let name = &prepared.scenario.nodes[node.index()].name;
        let settings = HostSettings {
            name: name.clone(),
            addresses: vec![address(IpVersion::V4), address(IpVersion::V6)],
            mac: host.mac,
            gateway_mac: host.gateway_mac,
            mtu_bytes: mtu_bytes(&prepared.scenario, *node),
        };
        let told = |error: io::Error| io::Error::new(error.kind(), format!("host {name}: {error}"));
        if let Some(interface) = prepared.scenario.nodes[node.index()].interface() {
            let capture = asked.frames.map(|open| open(name)).transpose()?;
            let open = || InterfacePort::open(interface, sides(prepared, *node, interface)?, capture);
            let port = home.run_in_original_namespace(open).map_err(|error| told(of_interface(interface, error)))?;
            ports.push(Box::new(port));
            continue;
        }
        match prepared.scenario.real_time.attachment {
            description::InterfaceKind::Veth => {
                let (namespace, outer) = home.add_host(&settings).map_err(told)?;
                namespaces.push(namespace);
                ports.push(Box::new(PacketPort::open(&outer).map_err(told)?));
            }
            description::InterfaceKind::Tun => {
                let (namespace, port) = home.add_tun_host(&settings).map_err(told)?;
                namespaces.push(namespace);
                ports.push(Box::new(port));
            }
        }
    }
    Ok((namespaces, ports))
}

/// Returns the minimum MTU of all links that begin at a host.
fn mtu_bytes(scenario: &Scenario, node: NodeId) -> u32 {
    let links = scenario.links.iter().filter(|link| link.from == node).map(|link| link.mtu_bytes);
    let media = scenario.ethernets.iter().filter(|ethernet| ethernet.hosts.contains(&node));
    let access = scenario.access.iter().filter(|access| access.contains_node(node)).map(|access| access.mtu_bytes());
    links.chain(media.map(|ethernet| ethernet.mtu_bytes)).chain(access).min().unwrap_or(1500)
}
