//! Probes: samples of the scenario's metrics at regular intervals.
//!
//! The world is sampled between two events. A probe adds no event and draws no random number.

use crate::options::SampleOutput;
use crate::series_file::SeriesFile;
use crate::witness::RunObserver;
use crate::world::World;
use fullpipe_network::metrics::{self, LinkReport};
use fullpipe_network::{LinkProfile, MediumDirection, Network};
use fullpipe_record::{FlowCounters, LinkSummary};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::ProbeSubject;
use fullpipe_scenario::schema::metric::{MetricReader, ProbeMetric, Sample, TimeSum};
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_transport::metrics::{ENDPOINT, PROXY};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, Rate};
use std::io;

/// Prefix of metrics that a congestion controller names.
const CONTROL: &str = "control_";

/// A row of `series.csv`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SeriesRow<'a> {
    /// Time of the sample.
    pub time: Instant,
    /// Name of the subject: a flow direction, a link, a segment or a station.
    pub subject: &'a str,
    /// Name of the metric.
    pub metric: &'a str,
    /// Value of the sample, in the unit that the metric's name includes.
    pub value: f64,
}

/// The object and the metric that are sampled.
#[derive(Debug)]
pub(crate) enum Target {
    /// A metric of the packets that an end of a flow sends.
    Flow((usize, usize), &'static ProbeMetric<FlowCounters>),
    /// A metric of an endpoint of a flow.
    Endpoint((usize, usize), &'static ProbeMetric<EndpointReport>),
    /// A metric that the congestion controller of an endpoint defines, by its name.
    Control((usize, usize), String),
    Link {
        link: LinkId,
        rate: Rate,
        course: LinkProfile,
        metric: &'static ProbeMetric<LinkReport>,
    },
    Station {
        medium: u16,
        station: u32,
        way: MediumDirection,
    },
}

impl Target {
    /// Returns a metric of one endpoint of a flow, or of the packets that it sends. Metrics of a proxy belong to the
    /// acceptor of the tunnel.
    fn of_flow(end: (usize, usize), name: &str) -> Option<Target> {
        let packets = ProbeMetric::find(&metrics::FLOW, name).map(|metric| Target::Flow(end, metric));
        let at = |end, metrics| ProbeMetric::find(metrics, name).map(|metric| Target::Endpoint(end, metric));
        let control = || Some(Target::Control(end, name.strip_prefix(CONTROL)?.to_string()));
        packets.or_else(|| at(end, &ENDPOINT)).or_else(|| at((end.0, 1), &PROXY)).or_else(control)
    }
}

#[derive(Debug)]
struct Channel {
    subject: String,
    name: String,
    target: Target,
    interval: Duration,
    next: Instant,
    /// Byte count at the last sample, from which throughput is computed.
    last_bytes: u64,
    /// Sum and number of durations at the last sample, from which their mean is computed.
    last_times: TimeSum,
}

/// All probes of a run with their samples.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    channels: Vec<Channel>,
    /// The samples; empty if they are written to a file.
    samples: Vec<(Instant, u32, f64)>,
    /// Destination of the samples, if they are written to a file.
    file: Option<SeriesFile>,
    flows: usize,
    /// Time at which the counters before the measured interval are recorded.
    look_at: Option<Instant>,
    /// Bytes received until then by both ends of each flow, initiator and acceptor. Empty if the interval begins with
    /// the run.
    received_before: Vec<[u64; 2]>,
    /// Counters until then of each direction of each conversation.
    counters_before: Vec<FlowCounters>,
    /// Time at which the counters of the first half of the measured interval are recorded.
    look_halfway_at: Option<Instant>,
    /// The counters at that time.
    halfway: Option<MidpointSnapshot>,
}

/// Counters at the middle of the measured interval.
#[derive(Debug)]
pub(crate) struct MidpointSnapshot {
    pub(crate) at: Instant,
    /// Bytes received by both ends of each flow.
    pub(crate) received: Vec<[u64; 2]>,
    /// Counters of each direction of each conversation.
    pub(crate) counters: Vec<FlowCounters>,
    /// Traffic of the measured links.
    pub(crate) links: Vec<LinkSummary>,
}

impl Sampler {
    /// Creates the probes of a scenario. `ethernet_link` returns the first link of each shared segment.
    pub(crate) fn new(scenario: &Scenario, ethernet_link: impl Fn(usize) -> LinkId) -> Self {
        let mut channels = Vec::new();
        for probe in &scenario.probes {
            for name in &probe.metrics {
                let on_link = |link, rate, course| {
                    let metric = ProbeMetric::find(&metrics::LINK, name)?;
                    Some(Target::Link { link, rate, course, metric })
                };
                let target = match probe.subject {
                    ProbeSubject::Flow(flow) => Target::of_flow((flow, probe.end), name),
                    ProbeSubject::Link(link) => {
                        let described = &scenario.links[link];
                        on_link(LinkId(link as u32), described.rate, described.course.clone())
                    }
                    ProbeSubject::Ethernet(segment) => {
                        on_link(ethernet_link(segment), scenario.ethernets[segment].rate, LinkProfile::Constant)
                    }
                    ProbeSubject::Station { access: medium, station, way } => {
                        Some(Target::Station { medium: medium as u16, station: station as u32, way })
                    }
                };
                // The scenario's schema accepts only these names.
                let Some(target) = target else { continue };
                channels.push(Channel {
                    subject: probe.subject_name(scenario),
                    name: name.clone(),
                    target,
                    interval: probe.interval.max(Duration::from_nanos(1)),
                    next: Instant::ZERO.saturating_add(probe.interval),
                    last_bytes: 0,
                    last_times: TimeSum::default(),
                });
            }
        }
        let measurement = &scenario.measurement;
        // The counters are recorded just before the interval, because events at its start belong to the measurement.
        let look_at = (!measurement.from.is_zero())
            .then(|| Instant::ZERO.saturating_add(measurement.from.saturating_sub(Duration::from_nanos(1))));
        let is_measured = !measurement.from.is_zero() || !measurement.links.is_empty();
        let half = scenario.duration.saturating_sub(measurement.from) / 2;
        let halfway = Instant::ZERO.saturating_add(measurement.from).saturating_add(half);
        let look_halfway_at = Some(halfway).filter(|_| is_measured && !half.is_zero());
        Sampler { channels, look_at, look_halfway_at, flows: scenario.flows.len(), ..Sampler::default() }
    }

    /// Writes samples to a file, if one is given.
    pub(crate) fn with_file(mut self, to: Option<SampleOutput>) -> Self {
        self.file = to.map(|to| SeriesFile::new(to, self.names()));
        self
    }

    /// Returns the file to which samples are written, if any.
    pub(crate) fn file(&self) -> Option<&SeriesFile> {
        self.file.as_ref()
    }

    /// Writes the remaining samples to the file.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), SeriesFile::finish)
    }

    /// Returns the links that must not be computed ahead, because they are sampled.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.channels.iter().filter_map(|channel| channel.target.link())
    }

    /// Returns whether a probe reads loss counters on a flow's path. The links of the path must then not be computed
    /// ahead.
    pub(crate) fn watches_losses(&self) -> bool {
        self.channels.iter().any(|channel| channel.target.reads_losses())
    }

    /// Returns the time of the next sample.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.channels.iter().map(|channel| channel.next).chain(self.look_at).chain(self.look_halfway_at).min()
    }

    /// Takes the samples that are due at `now`.
    pub(crate) fn sample(&mut self, now: Instant, world: &mut World, network: &mut Network<RunObserver>) {
        let received = |world: &World| -> Vec<[u64; 2]> {
            let received = |flow, end| world.progress(flow, end).received_bytes;
            (0..self.flows).map(|flow| [received(flow, 0), received(flow, 1)]).collect()
        };
        let counters = |world: &World, network: &Network<RunObserver>| -> Vec<FlowCounters> {
            let counters = |flow| network.observer.monitor.flow(FlowId(flow));
            (0..2 * world.conversations() as u32).map(counters).collect()
        };
        if self.look_at == Some(now) {
            self.look_at = None;
            (self.received_before, self.counters_before) = (received(&*world), counters(&*world, &*network));
        }
        if self.look_halfway_at == Some(now) {
            self.look_halfway_at = None;
            let links = network.observer.link_summaries(now).map(|(_, summary)| summary).collect();
            let (received, counters) = (received(&*world), counters(&*world, &*network));
            self.halfway = Some(MidpointSnapshot { at: now, received, counters, links });
        }
        let mut last_report = None;
        for (index, channel) in self.channels.iter_mut().enumerate() {
            if channel.next != now {
                continue;
            }
            channel.next = now.saturating_add(channel.interval);
            let Some(value) = channel.value(now, world, network, &mut last_report) else { continue };
            match &mut self.file {
                Some(file) => file.add(now, index, value),
                None => self.samples.push((now, index as u32, value)),
            }
        }
    }

    /// Returns the counters of one direction of a conversation at the start of the measured interval.
    pub(crate) fn counters_before(&self, flow: FlowId) -> FlowCounters {
        self.counters_before.get(flow.index()).copied().unwrap_or_default()
    }

    /// Returns the payload bytes that an end of a flow had received at the start of the measured interval.
    pub(crate) fn received_before(&self, flow: usize, end: usize) -> u64 {
        self.received_before.get(flow).map_or(0, |ends| ends[end])
    }

    /// Returns the counters at the middle of the measured interval, if the run reached it.
    pub(crate) fn halfway(&self) -> Option<&MidpointSnapshot> {
        self.halfway.as_ref()
    }

    /// Adds a report of a real end of a flow, with its time. `end` consists of the numbers of the flow and the end.
    #[cfg_attr(
        not(all(feature = "real-time", target_os = "linux")),
        allow(dead_code, reason = "only kernels have samples of their own")
    )]
    pub(crate) fn add(&mut self, end: (usize, usize), at: Instant, report: &EndpointReport) {
        for (index, channel) in self.channels.iter().enumerate() {
            let of_end = match channel.target {
                Target::Endpoint(other, _) | Target::Control(other, _) => other == end,
                _ => false,
            };
            if of_end && let Some(value) = channel.target.of_endpoint(report) {
                self.samples.push((at, index as u32, value));
            }
        }
    }

    /// Sorts the samples after some were added.
    pub(crate) fn sort(&mut self) {
        self.samples.sort_by_key(|(at, index, _)| (*at, *index));
    }

    /// Returns the subject and metric of each series, in the order of the scenario's probes.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.channels.iter().map(|channel| (channel.subject.as_str(), channel.name.as_str()))
    }

    /// Returns all samples: time, index in [`Sampler::names`] and value.
    pub(crate) fn samples(&self) -> &[(Instant, u32, f64)] {
        &self.samples
    }

    /// Returns the samples of a series, by its number in the order of [`Sampler::names`].
    pub(crate) fn samples_of(&self, number: usize) -> impl Iterator<Item = (Instant, f64)> {
        let samples = self.samples.iter().filter(move |(_, index, _)| *index as usize == number);
        samples.map(|&(time, _, value)| (time, value))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        self.samples.iter().map(|&(time, index, value)| {
            let channel = &self.channels[index as usize];
            SeriesRow { time, subject: &channel.subject, metric: &channel.name, value }
        })
    }
}

impl Target {
    /// Returns a metric of a flow or link that has a value at any time, not only over an interval.
    pub(crate) fn at_any_time(
        scenario: &Scenario,
        (subject, end): (ProbeSubject, usize),
        name: &str,
    ) -> Option<Target> {
        match subject {
            ProbeSubject::Flow(flow) => Target::of_flow((flow, end), name),
            ProbeSubject::Link(link) => {
                let described = &scenario.links[link];
                let metric = ProbeMetric::find(&metrics::LINK, name)?;
                let (rate, course) = (described.rate, described.course.clone());
                Some(Target::Link { link: LinkId(link as u32), rate, course, metric })
            }
            ProbeSubject::Ethernet(_) | ProbeSubject::Station { .. } => None,
        }
    }

    /// Returns the sampled link, which must not be computed ahead.
    pub(crate) fn link(&self) -> Option<LinkId> {
        match self {
            Target::Link { link, .. } => Some(*link),
            _ => None,
        }
    }

    /// Returns whether the target reads loss counters on a flow's path. The links of the path must then not be computed
    /// ahead.
    pub(crate) fn reads_losses(&self) -> bool {
        matches!(self, Target::Flow(_, metric) if metric.declaration == metrics::DROPS)
    }

    /// Returns the current value of a metric that is not a mean over an interval; `None` if there is no value yet.
    pub(crate) fn value_at(&self, now: Instant, world: &mut World, network: &mut Network<RunObserver>) -> Option<f64> {
        let sample = match self {
            Target::Endpoint(end, _) | Target::Control(end, _) => return self.of_endpoint(&world.report(*end)?),
            &Target::Flow((flow, end), metric) => metric.sample(&sent_by(flow, end, world, network)),
            Target::Link { link, rate, course, metric } => {
                metric.sample(&link_report(*link, course.rate_at(now, *rate), network))
            }
            Target::Station { .. } => None,
        };
        match sample? {
            Sample::Value(value) => Some(value),
            Sample::TimeSum(_) | Sample::Bytes(_) => None,
        }
    }

    /// Returns the value in the report of an endpoint.
    fn of_endpoint(&self, report: &EndpointReport) -> Option<f64> {
        match self {
            Target::Endpoint(_, ProbeMetric { reading: MetricReader::Value(value), .. }) => value(report),
            Target::Control(_, name) => report.control_value(name),
            _ => None,
        }
    }
}

/// Returns the counters of the packets that one end of a flow sends, over all its connections.
pub(crate) fn sent_by(flow: usize, end: usize, world: &World, network: &Network<RunObserver>) -> FlowCounters {
    let mut sum = FlowCounters::default();
    let monitor = &network.observer.monitor;
    world.conversations_of(flow).for_each(|conversation| {
        sum.add(&monitor.flow(FlowId((2 * conversation + end) as u32)));
    });
    sum
}

fn link_report(link: LinkId, rate: Option<Rate>, network: &mut Network<RunObserver>) -> LinkReport {
    let (counters, queue_bytes) = (network.link_counters(link), network.link_queue(link).1);
    let departed_bytes = network.link_departed_bytes(link);
    LinkReport { counters, queue_bytes, departed_bytes, rate, waits: network.link_queue_delays(link) }
}

impl Channel {
    /// Returns the value of a channel. `last_report` caches the report of an end for its other channels, because a
    /// report takes as long to create as its values take to write.
    fn value(
        &mut self,
        now: Instant,
        world: &mut World,
        network: &mut Network<RunObserver>,
        last_report: &mut Option<((usize, usize), Option<EndpointReport>)>,
    ) -> Option<f64> {
        let sample = match &self.target {
            &Target::Flow((flow, end), metric) => metric.sample(&sent_by(flow, end, world, network)),
            &Target::Endpoint(end, _) | &Target::Control(end, _) => {
                let (_, report) = match last_report.take() {
                    Some(last) if last.0 == end => last_report.insert(last),
                    _ => last_report.insert((end, world.report(end))),
                };
                return self.target.of_endpoint(report.as_ref()?);
            }
            // Every access network measures the queue delay of its stations.
            &Target::Station { medium, station, way } if self.name == metrics::QUEUE_DELAY.name => {
                Some(Sample::TimeSum(network.station_sojourn_times(medium, station, way)))
            }
            &Target::Station { medium, station, way } => network.medium(medium).sample(&self.name, station, way),
            Target::Link { link, rate, course, metric } => {
                metric.sample(&link_report(*link, course.rate_at(now, *rate), network))
            }
        };
        Some(match sample? {
            Sample::Value(value) => value,
            Sample::TimeSum(times) => return times.mean_since(std::mem::replace(&mut self.last_times, times)),
            Sample::Bytes(bytes) => {
                let new = bytes - std::mem::replace(&mut self.last_bytes, bytes);
                new as f64 * 8.0 / self.interval.as_secs_f64()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_transport::endpoint::{EndpointKind, TunnelCounters};

    #[test]
    fn every_metric_of_the_schema_has_a_target() {
        for (metric, _) in fullpipe_scenario::probe_metrics(&[]) {
            let on_link = ProbeMetric::find(&metrics::LINK, metric.name).is_some();
            let known = on_link || Target::of_flow((0, 0), metric.name).is_some();
            assert!(known, "{}", metric.name);
        }
        assert!(Target::of_flow((0, 0), "cwnd").is_none());
    }

    #[test]
    fn endpoint_metric_reads_its_own_field_and_is_none_without_a_value() {
        let mut report = EndpointReport::new(EndpointKind::QuicModel);
        let read = |name: &str, report: &EndpointReport| Target::of_flow((0, 0), name).unwrap().of_endpoint(report);
        for metric in ENDPOINT.iter().chain(&PROXY) {
            assert_eq!(read(metric.declaration.name, &report), None, "{}", metric.declaration.name);
        }
        report.cwnd_bytes = Some(1);
        report.ssthresh_bytes = Some(2);
        report.in_flight_bytes = Some(3);
        report.smoothed_rtt = Some(Duration::from_millis(4));
        report.pacing_bps = Some(5);
        report.delivery_rate_bps = Some(6);
        report.control_values = vec![("alpha", 7.0)];
        report.tunnel = Some(TunnelCounters { queued_bytes: 8, ..TunnelCounters::default() });
        let values = |metrics: &'static [ProbeMetric<EndpointReport>]| -> Vec<(&str, f64)> {
            let names = ProbeMetric::declarations(metrics).map(|metric| metric.name);
            names.map(|name| (name, read(name, &report).unwrap())).collect()
        };
        let own = [("cwnd_bytes", 1.0), ("ssthresh_bytes", 2.0), ("inflight_bytes", 3.0), ("srtt_s", 0.004)];
        assert_eq!(values(&ENDPOINT), [&own[..], &[("pacing_bps", 5.0), ("delivery_bps", 6.0)]].concat());
        let proxy = [("proxy_cwnd_bytes", 1.0), ("proxy_ssthresh_bytes", 2.0), ("proxy_inflight_bytes", 3.0)];
        let rates = [("proxy_pacing_bps", 5.0), ("proxy_delivery_bps", 6.0), ("proxy_queue_bytes", 8.0)];
        assert_eq!(values(&PROXY), [proxy, rates].concat());
        assert_eq!(read("control_alpha", &report), Some(7.0));
        assert_eq!(read("control_state", &report), None);
    }
}
