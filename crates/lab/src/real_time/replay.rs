//! Replays a real-time run in virtual time: the same world with the recorded arrivals.
//!
//! The file contains the frames of real hosts and the times at which they entered the model. All other events follow
//! from the scenario and its seed. The records are therefore byte-for-byte identical. A replay needs no namespaces or
//! programs and does not wait. The recording replaces the machine: its clock advances from one arrival or event to the
//! next and is never late.

use super::driver::Driver;
use super::gateway::Gateway;
use super::recorder::ARRIVALS_FILE;
use crate::assemble;
use crate::error::RunError;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plugins::Plugins;
use crate::prepared::PreparedRun;
use crate::world::{RealHost, RealHosts};
use bytes::Bytes;
use fullpipe_archive::{IcmpRecord, RefusedFrames};
use fullpipe_emulate::{Arrival, Lateness, LatenessLimits, Machine};
use fullpipe_record::pcapng::{Block, LinkType, PcapngReader};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::StallPolicy;
use fullpipe_units::{Duration, Instant, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayOutcome {
    /// The outcome of the modeled network.
    pub outcome: Outcome,
    /// Recorded frames that did not enter the model.
    pub refused: RefusedFrames,
    /// ICMP messages and TCP resets that nodes of the model sent to real hosts.
    pub answered: IcmpRecord,
    /// Number of arrivals in the file.
    pub arrivals: u64,
}

/// Runs a scenario in virtual time with the arrivals that a real-time run recorded. `stop` is called ten times per
/// second of virtual time and returns true to stop the replay.
///
/// # Errors
/// The errors of [`crate::prepare`], and an error if the file is damaged or its hosts differ from those of the
/// scenario.
pub fn replay(
    scenario: Arc<Scenario>,
    options: &Options,
    file: &[u8],
    stop: &dyn Fn() -> bool,
) -> Result<ReplayOutcome, RunError> {
    let real = real_nodes(&scenario);
    let names: Vec<&str> = real.iter().map(|node| scenario.nodes[node.index()].name.as_str()).collect();
    let mut machine = Recording::read(file, &names).map_err(RunError::Recording)?;
    let arrivals = machine.arrivals.len() as u64;
    let mut prepared = assemble::assemble_addressed(Arc::clone(&scenario), options, Plugins::default())?;
    let hosts = real.iter().map(|node| RealHost::numbered(*node)).collect();
    prepared.world.set_real(&mut prepared.network, RealHosts::new(hosts, scenario.nodes.len()));
    let mut gateway = Gateway::new(&scenario, &prepared.network, real);
    // Virtual time has no lateness.
    let never = Duration::from_nanos(u64::MAX);
    let mut lateness =
        Lateness::new(LatenessLimits { late_after: never, stall_after: never, ..LatenessLimits::default() });
    let driver = Driver {
        prepared: &mut prepared,
        gateway: &mut gateway,
        machine: &mut machine,
        lateness: &mut lateness,
        after_stall: StallPolicy::CatchUp,
        journal: None,
        each: &mut |_, _| stop(),
    };
    let ended = driver.run().map_err(|error| RunError::System(error.to_string()))?;
    let PreparedRun { world, network, mut probes, scenario, .. } = prepared;
    probes.sort();
    let answered = world.real().map_or_else(IcmpRecord::default, |real| real.answers.sent.clone());
    let outcome =
        Outcome::new(scenario, world, network, probes, false).of_real_time(ended, BTreeMap::new(), Vec::new());
    Ok(ReplayOutcome { outcome, refused: gateway.refused, answered, arrivals })
}

/// Returns the real hosts in the order of their ports: first namespaces, then interfaces, each in the order of the
/// scenario.
pub(super) fn real_nodes(scenario: &Scenario) -> Vec<NodeId> {
    let nodes = (0..scenario.nodes.len()).map(|number| NodeId(number as u32));
    let mut real: Vec<NodeId> = nodes.filter(|node| scenario.is_real_host(*node)).collect();
    real.sort_by_key(|node| scenario.nodes[node.index()].interface().is_some());
    real
}

/// A recording that replaces the driver's machine.
#[derive(Debug)]
struct Recording {
    clock: Instant,
    arrivals: VecDeque<Arrival>,
    /// The time that the model reached.
    end: Instant,
}

impl Recording {
    /// Reads a file whose interfaces must belong to these hosts, in this order.
    fn read(file: &[u8], hosts: &[&str]) -> Result<Self, String> {
        let mut known = Vec::new();
        let mut arrivals = VecDeque::new();
        let mut end: Option<Instant> = None;
        let mut last = Instant::ZERO;
        for block in PcapngReader::new(file) {
            match block.map_err(|damaged| damaged.to_string())? {
                Block::Interface { name, link_type: LinkType::Ethernet } => known.push(name),
                Block::Interface { name, .. } => return Err(format!("interface {name} is not an Ethernet interface")),
                Block::Packet { at, .. } if at < last => {
                    return Err(format!("the arrival at {at} is earlier than the one before it"));
                }
                Block::Packet { interface, at, bytes } => {
                    last = at;
                    arrivals.push_back(Arrival { port: interface as usize, at, bytes: Bytes::copy_from_slice(bytes) });
                }
                Block::InterfaceStatistics { at, .. } => end = Some(at),
            }
        }
        if known != hosts {
            let (known, hosts) = (known.join(", "), hosts.join(", "));
            return Err(format!("the file has arrivals of {known}, but the real hosts of the scenario are {hosts}"));
        }
        match end {
            Some(end) if end >= last => Ok(Recording { clock: Instant::ZERO, arrivals, end }),
            Some(_) => Err("the file has arrivals after the end of the run".to_owned()),
            None => Err(format!("the file is incomplete; expected the {ARRIVALS_FILE} of a finished run")),
        }
    }
}

impl Machine for Recording {
    fn now(&self) -> Instant {
        self.clock
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        let next = self.arrivals.front().map_or(self.end, |arrival| arrival.at);
        self.clock = self.clock.max(deadline.min(next).min(self.end));
        Ok(())
    }

    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        while self.arrivals.front().is_some_and(|arrival| arrival.at <= self.clock) {
            arrivals.extend(self.arrivals.pop_front());
        }
        Ok(())
    }

    fn send(&mut self, _port: usize, _frame: Vec<u8>) {}

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_clock_back(&mut self, _by: Duration) {}

    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(0)
    }

    fn is_done(&self) -> bool {
        self.clock >= self.end
    }
}
