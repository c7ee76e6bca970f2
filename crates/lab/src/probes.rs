//! Probes: samples of what the scenario asked for, at regular instants.
//!
//! The world is stopped between two events, looked at, and goes on: a probe adds no event and draws no random number.

use crate::witness::Witness;
use crate::world::World;
use fullpipe_network::{Course, Network, Way};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Subject, station_name};
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, Rate};

/// What the names of metrics begin with that a congestion control gives itself.
const CONTROL: &str = "control_";
/// What the names of metrics begin with that are a tunnel's proxy's.
const PROXY: &str = "proxy_";

/// One row of `series.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRow<'a> {
    /// When.
    pub time: Instant,
    /// Of what: the name of a flow or link.
    pub subject: &'a str,
    /// Which metric.
    pub metric: &'a str,
    /// Its value.
    pub value: f64,
}

/// A metric of a flow, a link or a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Cwnd,
    SlowStartThreshold,
    InFlight,
    SmoothedRtt,
    Pacing,
    Delivery,
    Queue,
    QueueDelay,
    Throughput,
    Drops,
    Marks,
    ProxyQueue,
    /// A value that the congestion control itself names.
    Control,
    /// A value that an access network itself names.
    Station,
}

impl Metric {
    fn named(name: &str) -> Option<Metric> {
        Some(match name {
            "cwnd_bytes" => Metric::Cwnd,
            "ssthresh_bytes" => Metric::SlowStartThreshold,
            "inflight_bytes" => Metric::InFlight,
            "srtt_s" => Metric::SmoothedRtt,
            "pacing_bps" => Metric::Pacing,
            "delivery_bps" => Metric::Delivery,
            "queue_bytes" => Metric::Queue,
            "queue_delay_s" => Metric::QueueDelay,
            "throughput_bps" => Metric::Throughput,
            "drops" => Metric::Drops,
            "proxy_queue_bytes" => Metric::ProxyQueue,
            "marks" => Metric::Marks,
            control if control.starts_with(CONTROL) => Metric::Control,
            name => return Metric::named(name.strip_prefix(PROXY)?),
        })
    }
}

/// What is sampled.
#[derive(Clone, Debug)]
enum Target {
    Flow(usize),
    Link { link: LinkId, rate: Rate, course: Course },
    Station { medium: u16, station: u32, way: Way, is_rate: bool },
}

#[derive(Debug)]
struct Channel {
    subject: String,
    name: String,
    metric: Metric,
    /// It is that of a tunnel's proxy.
    of_proxy: bool,
    target: Target,
    interval: Duration,
    next: Instant,
    /// Bytes counted at the last sample, for throughput.
    last_bytes: u64,
}

/// All probes of a run and their samples.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    channels: Vec<Channel>,
    samples: Vec<(Instant, u32, f64)>,
    flows: usize,
    /// When to look at what the flows' ends have received before the measurement.
    look_at: Option<Instant>,
    /// What they had received, initiator and acceptor of each flow; empty if the measurement begins with the run.
    received_before: Vec<[u64; 2]>,
}

impl Sampler {
    /// The probes of a scenario. `ethernet_links` gives the links of each shared segment.
    pub(crate) fn new(scenario: &Scenario, ethernet_link: impl Fn(usize) -> LinkId) -> Self {
        let mut channels = Vec::new();
        for probe in &scenario.probes {
            for name in &probe.metrics {
                let (subject, target) = match probe.subject {
                    Subject::Flow(flow) => (scenario.flows[flow].name.clone(), Target::Flow(flow)),
                    Subject::Link(link) => {
                        let described = &scenario.links[link];
                        let link = LinkId(link as u32);
                        let course = described.course.clone();
                        (described.name.clone(), Target::Link { link, rate: described.rate, course })
                    }
                    Subject::Ethernet(segment) => {
                        let described = &scenario.ethernets[segment];
                        let link = ethernet_link(segment);
                        (described.name.clone(), Target::Link { link, rate: described.rate, course: Course::Constant })
                    }
                    Subject::Station { access: medium, station, way } => {
                        let access = &scenario.access[medium];
                        let host = &scenario.nodes[access.stations()[station].index()].name;
                        let mut metrics = access.component().metrics.iter();
                        let is_rate = metrics.any(|metric| metric.name == name && metric.is_rate);
                        let (medium, station) = (medium as u16, station as u32);
                        (station_name(host, way), Target::Station { medium, station, way, is_rate })
                    }
                };
                let metric = match target {
                    Target::Station { .. } => Some(Metric::Station),
                    Target::Flow(_) | Target::Link { .. } => Metric::named(name),
                };
                // The scenario's schema lets only these names through.
                let Some(metric) = metric else { continue };
                channels.push(Channel {
                    subject,
                    name: name.clone(),
                    metric,
                    of_proxy: name.starts_with(PROXY),
                    target,
                    interval: probe.interval.max(Duration::from_nanos(1)),
                    next: Instant::ZERO.saturating_add(probe.interval),
                    last_bytes: 0,
                });
            }
        }
        let measurement = &scenario.measurement;
        // What happens at the instant itself is within the measurement.
        let look_at = (!measurement.from.is_zero() && !measurement.links.is_empty())
            .then(|| Instant::ZERO.saturating_add(measurement.from.saturating_sub(Duration::from_nanos(1))));
        Sampler { channels, look_at, flows: scenario.flows.len(), ..Sampler::default() }
    }

    /// Links that must not be computed ahead.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.channels.iter().filter_map(|channel| match channel.target {
            Target::Link { link, .. } => Some(link),
            Target::Flow(_) | Target::Station { .. } => None,
        })
    }

    /// Whether some probe reads counters of losses on a flow's way, which must then not be computed ahead.
    pub(crate) fn watches_losses(&self) -> bool {
        self.channels.iter().any(|c| matches!(c.target, Target::Flow(_)) && c.metric == Metric::Drops)
    }

    /// When the next sample is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.channels.iter().map(|channel| channel.next).chain(self.look_at).min()
    }

    /// Takes the samples due at `now`.
    pub(crate) fn sample(&mut self, now: Instant, world: &mut World, network: &mut Network<Witness>) {
        if self.look_at == Some(now) {
            self.look_at = None;
            let received = |flow, end| world.progress(flow, end).received_bytes;
            self.received_before = (0..self.flows).map(|flow| [received(flow, 0), received(flow, 1)]).collect();
        }
        for (index, channel) in self.channels.iter_mut().enumerate() {
            if channel.next != now {
                continue;
            }
            channel.next = now.saturating_add(channel.interval);
            if let Some(value) = channel.value(now, world, network) {
                self.samples.push((now, index as u32, value));
            }
        }
    }

    /// Payload bytes that an end of a flow had received when the measurement began.
    pub(crate) fn received_before(&self, flow: usize, end: usize) -> u64 {
        self.received_before.get(flow).map_or(0, |ends| ends[end])
    }

    /// Adds what a real end of a flow has reported at an instant.
    pub(crate) fn add(&mut self, flow: usize, at: Instant, report: &EndpointReport) {
        for (index, channel) in self.channels.iter().enumerate() {
            if matches!(channel.target, Target::Flow(other) if other == flow)
                && let Some(value) = channel.of_endpoint(report)
            {
                self.samples.push((at, index as u32, value));
            }
        }
    }

    /// Puts samples in order after some were added.
    pub(crate) fn sort(&mut self) {
        self.samples.sort_by_key(|(at, index, _)| (*at, *index));
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        self.samples.iter().map(|&(time, index, value)| {
            let channel = &self.channels[index as usize];
            SeriesRow { time, subject: &channel.subject, metric: &channel.name, value }
        })
    }
}

impl Channel {
    fn value(&mut self, now: Instant, world: &mut World, network: &mut Network<Witness>) -> Option<f64> {
        match &self.target {
            &Target::Flow(flow) => {
                let counters = network.observer.monitor.flow(FlowId(2 * flow as u32));
                if self.metric == Metric::Throughput {
                    return Some(self.throughput(counters.rx_bytes));
                }
                if self.metric == Metric::Drops {
                    return Some(counters.lost_packets as f64);
                }
                if self.metric == Metric::Marks {
                    return Some(counters.marked_packets as f64);
                }
                let report = world.report((flow, usize::from(self.of_proxy)))?;
                self.of_endpoint(&report)
            }
            &Target::Station { medium, station, way, is_rate } => {
                let value = network.medium(medium).sample(&self.name, station, way)?;
                Some(if is_rate { self.throughput(value as u64) } else { value })
            }
            Target::Link { link, rate, course } => {
                let (link, rate) = (*link, course.rate_at(now, *rate));
                let counters = network.link_counters(link);
                Some(match self.metric {
                    Metric::Queue => network.link_queue(link).1 as f64,
                    // A frame that comes during an outage waits nobody knows how long.
                    Metric::QueueDelay => network.link_queue(link).1 as f64 * 8.0 / rate?.bits_per_second() as f64,
                    Metric::Throughput => self.throughput(counters.bytes),
                    Metric::Drops => (counters.queue_drops + counters.losses) as f64,
                    Metric::Marks => counters.marks as f64,
                    _ => return None,
                })
            }
        }
    }

    /// The end of a flow that sends; of a tunnel its client or its proxy.
    fn of_endpoint(&self, report: &EndpointReport) -> Option<f64> {
        match self.metric {
            Metric::Cwnd => report.cwnd_bytes.map(|bytes| bytes as f64),
            Metric::SlowStartThreshold => report.ssthresh_bytes.map(|bytes| bytes as f64),
            Metric::InFlight => report.in_flight_bytes.map(|bytes| bytes as f64),
            Metric::SmoothedRtt => report.smoothed_rtt.map(Duration::as_secs_f64),
            Metric::Pacing => report.pacing_bps.map(|rate| rate as f64),
            Metric::Delivery => report.delivery_rate_bps.map(|rate| rate as f64),
            Metric::ProxyQueue => report.tunnel.map(|counters| counters.queued_bytes as f64),
            Metric::Control => report.control_value(self.name.strip_prefix(CONTROL)?),
            _ => None,
        }
    }

    fn throughput(&mut self, bytes: u64) -> f64 {
        let new = bytes - std::mem::replace(&mut self.last_bytes, bytes);
        new as f64 * 8.0 / self.interval.as_secs_f64()
    }
}
