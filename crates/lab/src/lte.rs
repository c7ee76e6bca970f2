//! LTE access networks: from the description to the machine, and the machine as a medium of the network.

use crate::error::RunError;
use fullpipe_audit::{DeclaredLink, Medium as Kind, Variation};
use fullpipe_lte::bearer::{Classifier, Headers, Qci};
use fullpipe_lte::config::{
    BearerConfig, Carrier, CellConfig, Config, Core, Course, CqiSource, Errors, Position, UeConfig, UplinkReports,
};
use fullpipe_lte::connection::{Attach, Established};
use fullpipe_lte::radio::Invalid;
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{self, Recipe};
use fullpipe_lte::radio::frequency::{self, Bands};
use fullpipe_lte::radio::tables::{self, Direction, SCHEMES};
use fullpipe_lte::rlc::{Acknowledgement, Counters, Limits, Mode};
use fullpipe_lte::{AccessNetwork, Offered, UeStatus, WayCounters};
use fullpipe_network::{Fate, Fated, Frame, Medium, MediumSpecification, Way};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::lte::{AttachChoice, Bearer, Cell, Fading, Lte, Rlc, Ue};
use fullpipe_units::{Duration, Instant, Rate, Stream};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

const DIRECTIONS: [Direction; 2] = [Direction::Downlink, Direction::Uplink];

/// What was scheduled in a subframe is on the air two later and decoded at its end; what comes at its very beginning has
/// missed it.
const LEAST_DOWNLINK: Duration = Duration::from_millis(3);
/// A UE fills its transport block when it reads the grant, four subframes before the one in which it sends, which is decoded
/// after 13 of its 14 symbols. (A UE of which nothing is known takes 7 ms more, to report what waits and be granted.)
const LEAST_UPLINK: Duration = Duration::from_nanos(4_928_570);

/// The machine of an access network: each UE is a station.
#[derive(Debug)]
pub(crate) struct Machine {
    network: AccessNetwork,
    /// By UE; nothing where no UE has a bearer beside the default one.
    classifiers: Vec<Classifier>,
    now: Instant,
}

impl Machine {
    /// The bearer that takes a frame: its index.
    fn bearer(&self, frame: &Frame) -> u8 {
        let (Some(classifier), Some(envelope)) = (self.classifiers.get(frame.station as usize), frame.envelope) else {
            return 0;
        };
        let headers = Headers {
            source: (envelope.source, envelope.ends.source.port),
            destination: (envelope.destination, envelope.ends.destination.port),
            type_of_service: 0,
        };
        let way = match frame.way {
            Way::Down => fullpipe_lte::rlc::Way::Downlink,
            Way::Up => fullpipe_lte::rlc::Way::Uplink,
        };
        classifier.classify(way, &headers).map_or(0, |number| number - 1)
    }
}

impl Medium for Machine {
    fn offer(&mut self, now: Instant, frame: Frame) {
        self.now = now;
        let packet = Offered { bytes: frame.ip_bytes, token: frame.token };
        let (ue, bearer) = (frame.station as u16, self.bearer(&frame));
        match frame.way {
            Way::Down => self.network.downlink(now, ue, bearer, packet),
            Way::Up => self.network.uplink(now, ue, bearer, packet),
        }
    }

    fn offer_by(&self, at: Instant) -> Instant {
        AccessNetwork::offer_by(at)
    }

    fn reads_headers(&self) -> bool {
        !self.classifiers.is_empty()
    }

    fn next(&self) -> Instant {
        self.network.next()
    }

    fn wake(&mut self, now: Instant) {
        self.now = now;
        self.network.advance(now);
    }

    fn fates(&mut self, fates: &mut VecDeque<Fated>) {
        let now = self.now;
        self.network.outputs(|outputs| {
            fates.extend(outputs.iter().map(|output| {
                let fate = match output.fate {
                    fullpipe_lte::Fate::Delivered => Fate::Delivered,
                    fullpipe_lte::Fate::BufferFull => Fate::BufferFull,
                    fullpipe_lte::Fate::Lost => Fate::Lost,
                };
                Fated { token: output.token, at: output.at.max(now), fate }
            }));
        });
    }
}

/// What can be seen of a UE of the machine inside a medium.
pub(crate) fn status(medium: &dyn Medium, ue: usize) -> Option<UeStatus> {
    let machine: &Machine = (medium as &dyn Any).downcast_ref()?;
    Some(machine.network.ue(ue as u16))
}

/// What a UE's transmissions of one way were, in `ues.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct UeRow {
    /// The access network's name.
    pub network: String,
    /// The UE's host.
    pub ue: String,
    /// Its cell.
    pub cell: String,
    /// Whether these are the uplink's.
    pub uplink: bool,
    /// When it came to its bearers.
    pub established: Established,
    /// Counters.
    pub counters: WayCounters,
}

/// What RLC has done for a bearer one way, in `bearers.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct BearerRow {
    /// The access network's name.
    pub network: String,
    /// The UE's host.
    pub ue: String,
    /// 0 is the default bearer, then dedicated ones in the order of the scenario.
    pub bearer: usize,
    /// Class of service.
    pub qci: u8,
    /// RLC mode: `um`, `am`, or `saturated`.
    pub mode: &'static str,
    /// Whether these are the uplink's.
    pub uplink: bool,
    /// Counters.
    pub counters: Counters,
}

/// Rows of an access network's bearers, by UE, downlink before uplink.
pub(crate) fn bearer_rows(scenario: &Scenario, described: &Lte, medium: &dyn Medium) -> Vec<BearerRow> {
    let Some(machine) = (medium as &dyn Any).downcast_ref::<Machine>() else { return Vec::new() };
    let mut rows = Vec::new();
    for (number, ue) in described.ues.iter().enumerate() {
        let bearers = machine.network.bearers(number as u16).zip(&ue.bearers);
        for (bearer, ((mode, counters), described_bearer)) in bearers.enumerate() {
            rows.extend(counters.into_iter().zip([false, true]).map(|(counters, uplink)| BearerRow {
                network: described.name.clone(),
                ue: scenario.nodes[ue.node.index()].name.clone(),
                bearer,
                qci: described_bearer.qci,
                mode: match mode {
                    Mode::Unacknowledged => "um",
                    Mode::Acknowledged => "am",
                    Mode::Saturated => "saturated",
                    Mode::Transparent => "tm",
                },
                uplink,
                counters: *counters,
            }));
        }
    }
    rows
}

/// Rows of an access network's UEs, downlink before uplink.
pub(crate) fn rows(scenario: &Scenario, described: &Lte, medium: &dyn Medium) -> Vec<UeRow> {
    let mut rows = Vec::new();
    for (number, ue) in described.ues.iter().enumerate() {
        let Some(status) = status(medium, number) else { continue };
        rows.extend(status.counters.into_iter().zip([false, true]).map(|(counters, uplink)| UeRow {
            network: described.name.clone(),
            ue: scenario.nodes[ue.node.index()].name.clone(),
            cell: described.cells[ue.cell].name.clone(),
            uplink,
            established: status.established,
            counters,
        }));
    }
    rows
}

/// The medium of an access network.
pub(crate) fn medium(described: &Lte, scenario: &Scenario) -> Result<MediumSpecification, RunError> {
    let refused = |reason: Invalid| RunError::Radio { network: described.name.clone(), reason: reason.to_string() };
    let network = config(described, scenario).and_then(AccessNetwork::new).map_err(refused)?;
    Ok(MediumSpecification {
        hub: described.gateway,
        stations: described.ues.iter().map(|ue| ue.node).collect(),
        mtu_bytes: described.mtu_bytes,
        least_delays: least_delays(described),
        machine: Box::new(Machine { network, classifiers: classifiers(described), now: Instant::ZERO }),
    })
}

/// Whether packets are told apart by their headers.
pub(crate) fn reads_headers(described: &Lte) -> bool {
    described.ues.iter().any(|ue| ue.bearers.len() > 1)
}

fn classifiers(described: &Lte) -> Vec<Classifier> {
    if !reads_headers(described) {
        return Vec::new();
    }
    let classifier = |ue: &Ue| {
        let mut classifier = Classifier::new();
        for (number, bearer) in (1..).zip(&ue.bearers) {
            let added = classifier.add(number, &bearer.filters);
            debug_assert_eq!(added, Ok(()), "the language counts bearers and filters");
        }
        classifier
    };
    described.ues.iter().map(classifier).collect()
}

fn least_delays(described: &Lte) -> [Duration; 2] {
    let core = described.s1_delay + described.s5_delay;
    [LEAST_DOWNLINK + core, LEAST_UPLINK + core]
}

/// What an access network promises: its two ways.
pub(crate) fn promises(described: &Lte) -> [DeclaredLink; 2] {
    let least = least_delays(described);
    std::array::from_fn(|way| DeclaredLink {
        name: way_name(&described.name, way),
        medium: Kind::Scheduled,
        rate_bps: 8_000 * most_bytes_per_subframe(described, way),
        delay_ns: least[way].as_nanos(),
        delay_varies: true,
        varies: Variation::default(),
        framing_bytes: 0,
        min_frame_bytes: 0,
        mtu_bytes: described.mtu_bytes,
        queue: None,
    })
}

/// Name of a way as a link: 0 is down, 1 is up.
pub(crate) fn way_name(network: &str, way: usize) -> String {
    format!("{network}.{}", ["downlink", "uplink"][way])
}

/// Most bytes that all cells together can carry in a subframe. Transport blocks of fewer resource blocks may have more bytes
/// for each of these than one of the whole band.
fn most_bytes_per_subframe(described: &Lte, way: usize) -> u64 {
    let blocks = described.resource_blocks[way] as usize;
    let bytes = |mcs: u8, count: usize| match DIRECTIONS[way] {
        Direction::Downlink => tables::downlink_bytes(mcs, count),
        Direction::Uplink => tables::uplink_bytes(mcs, count),
    };
    let dense = |count: usize| {
        let most = (0..SCHEMES as u8).map(|mcs| u64::from(bytes(mcs, count))).max().unwrap_or(0);
        (most * blocks as u64).div_ceil(count as u64)
    };
    let layers = match DIRECTIONS[way] {
        Direction::Downlink => described.ues.iter().map(|ue| ue.transmission_mode.layers()).max().unwrap_or(1) as u64,
        Direction::Uplink => 1,
    };
    (1..=blocks).map(dense).max().unwrap_or(0) * layers * described.cells.len() as u64
}

fn config(described: &Lte, scenario: &Scenario) -> Result<Config, Invalid> {
    let seed = |purpose: &str| Stream::new(scenario.seed, &described.name, purpose).below(u64::MAX);
    let mut carriers = Vec::new();
    let mut fadings = Vec::new();
    for (way, purpose) in ["downlink fading", "uplink fading"].into_iter().enumerate() {
        let bandwidth = Bandwidth::new(described.resource_blocks[way])?;
        let carrier = frequency::carrier(DIRECTIONS[way], described.earfcn[way], Bands::Standard)?;
        carriers.push(Carrier { centre_hz: carrier.hz, bandwidth });
        fadings.push(fading(&described.fading[way], seed(purpose), carrier.hz, bandwidth)?);
    }
    let [downlink, uplink] = [carriers[0], carriers[1]];
    let uplink_fading = fadings.pop().unwrap_or_default();
    Ok(Config {
        seed: seed("radio"),
        cells: described.cells.iter().map(|described| cell(described, downlink, uplink)).collect(),
        ues: described.ues.iter().map(|described| ue(described, scenario)).collect::<Result<_, _>>()?,
        path_loss: described.path_loss,
        shadowing_db: described.shadowing_db,
        downlink_fading: fadings.pop().unwrap_or_default(),
        uplink_fading,
        fading_begins: described.fading_begins,
        errors: Errors { data: described.data_errors, control: described.control_errors, grid: described.grid },
        signalling: described.signalling,
        core: Core { rate: described.core_rate, s1_delay: described.s1_delay, s5_delay: described.s5_delay },
        eager: false,
    })
}

fn fading(described: &Fading, seed: u64, carrier_hz: f64, bandwidth: Bandwidth) -> Result<fading::Fading, Invalid> {
    match described {
        Fading::None => Ok(fading::Fading::None),
        Fading::Generated { profile, speed_kmh, repeat_s } => {
            let (profile, speed_kmh, spacing_hz) = (*profile, *speed_kmh, frequency::RESOURCE_BLOCK_HZ);
            let recipe = Recipe { profile, speed_kmh, carrier_hz, spacing_hz };
            match repeat_s {
                None => fading::Fading::generator(recipe, seed, bandwidth),
                Some(seconds) => {
                    let trace = fading::Generator::new(recipe, seed, bandwidth.resource_blocks())?.to_trace(*seconds);
                    fading::Fading::trace(Arc::new(trace), fading::Places::Continuous, seed, bandwidth)
                }
            }
        }
        Fading::Trace { trace, places, .. } => fading::Fading::trace(trace.clone(), *places, seed, bandwidth),
    }
}

fn position([x, y, z]: [f64; 3]) -> Position {
    Position { x, y, z }
}

fn cell(described: &Cell, downlink: Carrier, uplink: Carrier) -> CellConfig {
    CellConfig {
        name: described.name.clone(),
        position: position(described.position),
        antenna: described.antenna,
        downlink,
        uplink,
        power_dbm: described.power_dbm,
        noise_figure_db: described.noise_figure_db,
        scheduler: described.scheduler.to_string(),
        scheduler_parameters: described.scheduler_parameters.clone(),
        downlink_groups: described.groups,
        amc: described.amc,
        cqi_source: if described.mixed_cqi { CqiSource::Mixed } else { CqiSource::Control },
        cqi_period: described.cqi_period,
        uplink_reports: match described.sounding_period {
            Some(period) => UplinkReports::Sounding { period },
            None => UplinkReports::Data,
        },
        harq: described.harq,
    }
}

fn ue(described: &Ue, scenario: &Scenario) -> Result<UeConfig, Invalid> {
    Ok(UeConfig {
        name: scenario.nodes[described.node.index()].name.clone(),
        cell: described.cell,
        course: Course { points: described.course.iter().map(|(at, place)| (*at, position(*place))).collect() },
        power_dbm: described.power_dbm,
        power_control: described.power_control,
        noise_figure_db: described.noise_figure_db,
        transmission_mode: described.transmission_mode,
        data_power_offset_db: described.data_power_offset_db,
        attach: attach(described, scenario),
        bearers: described.bearers.iter().map(bearer).collect::<Result<_, _>>()?,
    })
}

fn attach(described: &Ue, scenario: &Scenario) -> Attach {
    let mut random = Stream::new(scenario.seed, &scenario.nodes[described.node.index()].name, "switched on");
    let switched_on = Instant::ZERO.saturating_add(described.switched_on_s.sample_duration(&mut random));
    match described.attach {
        AttachChoice::Ideal => Attach::Ideal,
        AttachChoice::KnownCell => Attach::KnownCell { switched_on },
        AttachChoice::CellSearch => Attach::CellSearch { switched_on },
    }
}

fn bearer(described: &Bearer) -> Result<BearerConfig, Invalid> {
    let qci = Qci::new(described.qci).map_err(|reason| Invalid::new(reason.to_string()))?;
    let rate = |rate: Option<Rate>| rate.unwrap_or(Rate::from_bits_per_second(0));
    let mode = described.rlc.mode.mode(qci);
    Ok(BearerConfig {
        qci,
        guaranteed: rate(described.guaranteed),
        maximum: rate(described.maximum),
        mode,
        limits: limits(&described.rlc, Limits::of(mode)),
    })
}

fn limits(described: &Rlc, reference: Limits) -> Limits {
    Limits {
        max_buffer_bytes: described.buffer_bytes,
        max_buffer_sdus: described.buffer_packets,
        discard_after: described.discard_after,
        reordering: described.reordering.unwrap_or(reference.reordering),
        acknowledgement: Acknowledgement {
            poll_retransmit: described.poll_retransmit,
            status_prohibit: described.status_prohibit,
            ..reference.acknowledgement
        },
        ..reference
    }
}
