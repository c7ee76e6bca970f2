//! The LTE access network as a medium of the network, with each UE as a station.

use crate::access::{AccessNetwork, OfferedPacket};
use crate::bearer::Classifier;
use crate::exit;
use crate::records::{BEARERS, BearerRecord, UES, UeRecord};
use crate::rlc::RlcMode;
use crate::ue::{DirectionCounters, DirectionStatus};
use fullpipe_archive::{Tables, Warning, WarningKind};
use fullpipe_network::filter::PacketHeaders;
use fullpipe_network::medium::{CompletedFrame, Medium, MediumDirection, MediumFrame, MediumOutcome};
use fullpipe_network::metrics::{DROPS, QUEUE, QUEUE_DELAY, THROUGHPUT};
use fullpipe_schema::metric::{MetricDeclaration, MetricReader, ProbeMetric, Sample};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// One direction of a UE.
type WayReport = (DirectionCounters, DirectionStatus);

const fn metric(
    name: &'static str,
    unit: &'static str,
    text: &'static str,
    value: fn(&WayReport) -> Option<f64>,
) -> ProbeMetric<WayReport> {
    ProbeMetric::value(MetricDeclaration { name, unit, text }, value)
}

/// The metrics that probes can sample of a UE.
pub(super) static UE: [ProbeMetric<WayReport>; 8] = [
    metric("sinr_db", "dB", "mean SINR over the last transport block.", |report| of_a_block(report, report.1.sinr_db)),
    metric("cqi", "", "CQI from which the MCS of the last transport block was selected.", |report| {
        of_a_block(report, report.1.cqi.into())
    }),
    metric("mcs", "", "MCS of the last transport block.", |report| of_a_block(report, report.1.mcs.into())),
    metric("tb_errors", "", "transport blocks received and not decoded since the start.", |(counters, _)| {
        Some(counters.errors as f64)
    }),
    ProbeMetric::value(QUEUE, |(_, last)| Some(last.buffer_bytes as f64)),
    // The network computes the value: packets are in the access network from their offer until their outcome.
    ProbeMetric::value(QUEUE_DELAY, |_| None),
    ProbeMetric { declaration: THROUGHPUT, reading: MetricReader::Rate(|(counters, _)| counters.delivered_bytes) },
    ProbeMetric::value(DROPS, |(counters, _)| {
        Some((counters.buffer_drops + counters.lost_packets + counters.early_packets) as f64)
    }),
];

/// Returns nothing before the first transport block.
fn of_a_block((counters, _): &WayReport, value: f64) -> Option<f64> {
    (counters.blocks > 0 && value.is_finite()).then_some(value)
}

/// The medium. UEs have their names, the name of their cell, and the classes of service of their bearers.
#[derive(Debug)]
pub(super) struct LteMedium {
    network: AccessNetwork,
    classifiers: Vec<Classifier>,
    now: Instant,
    name: String,
    ues: Vec<(String, String, Vec<u64>)>,
}

impl LteMedium {
    pub(super) fn new(
        network: AccessNetwork,
        classifiers: Vec<Classifier>,
        name: String,
        ues: Vec<(String, String, Vec<u64>)>,
    ) -> Self {
        LteMedium { network, classifiers, now: Instant::ZERO, name, ues }
    }

    /// Returns the index of the bearer that a frame uses.
    fn bearer(&self, frame: &MediumFrame) -> u8 {
        let headers = PacketHeaders::from_frame(frame);
        let (Some(classifier), Some(headers)) = (self.classifiers.get(frame.station as usize), headers) else {
            return 0;
        };
        classifier.classify(frame.way, &headers).map_or(0, |number| number - 1)
    }

    /// The rows of the UEs, downlink before uplink.
    fn ue_records(&self) -> Vec<UeRecord> {
        let rows = self.ues.iter().enumerate().flat_map(|(number, (ue, cell, _))| {
            let status = self.network.ue_status(number as u16);
            MediumDirection::ALL.map(|way| UeRecord {
                network: self.name.clone(),
                ue: ue.clone(),
                cell: cell.clone(),
                direction: way.name().to_owned(),
                connected_s: status.established.connected,
                bearers_ready_s: status.established.ready,
                ..UeRecord::from_counters(&status.counters[way as usize])
            })
        });
        rows.collect()
    }

    /// The rows of the bearers by UE, downlink before uplink.
    fn bearer_records(&self) -> Vec<BearerRecord> {
        let bearers = self.ues.iter().enumerate().flat_map(|(number, (ue, _, qcis))| {
            let bearers = self.network.bearer_counters(number as u16).zip(qcis);
            bearers.zip(0..).flat_map(move |(((mode, counters), qci), bearer)| {
                MediumDirection::ALL.map(|way| BearerRecord {
                    network: self.name.clone(),
                    ue: ue.clone(),
                    bearer,
                    qci: *qci,
                    mode: mode_name(mode).to_owned(),
                    direction: way.name().to_owned(),
                    ..BearerRecord::from_counters(counters[way as usize])
                })
            })
        });
        bearers.collect()
    }
}

/// A larger share of control region errors gives a warning, if there are enough scheduled subframes.
const MOST_CONTROL_ERRORS: f64 = 0.1;
const FEWEST_SUBFRAMES: u64 = 100;

/// A UE with fewer packets may only be waiting for its turn. A TCP connection that gets no answer sends four in 10 s.
const FEWEST_PACKETS: u64 = 3;

/// The warning on a UE that has packets in one direction and is never scheduled.
fn scheduling_warning(ue: &str, way: MediumDirection, counters: &DirectionCounters) -> Option<Warning> {
    let DirectionCounters { packets, early_packets, blocks, control_errors, .. } = *counters;
    let waiting = packets - early_packets;
    (waiting >= FEWEST_PACKETS && blocks == 0 && control_errors == 0).then(|| {
        let text = format!(
            "was never scheduled on the {}, although {waiting} packets arrived at its bearers: either the scheduler chose other UEs \
             each time, or its signal is too weak for any modulation and coding scheme",
            way.name()
        );
        Warning::new(WarningKind::UeNotScheduled, ue, text)
    })
}

/// The warning on a UE's errors of the control region in one direction.
fn control_warning(ue: &str, way: MediumDirection, counters: &DirectionCounters) -> Option<Warning> {
    // A block is counted when it is sent. A UE that misses its uplink grant sends none.
    let scheduled = counters.blocks
        + match way {
            MediumDirection::Downlink => counters.retransmissions,
            MediumDirection::Uplink => counters.control_errors,
        };
    let share = counters.control_errors as f64 / scheduled as f64;
    (scheduled >= FEWEST_SUBFRAMES && share > MOST_CONTROL_ERRORS).then(|| {
        let text = format!(
            "could not decode the control region (PDCCH) of {:.0} % of {scheduled} subframes in which it was scheduled on the \
             {}: its signal is too weak for the noise and interference",
            100.0 * share,
            way.name()
        );
        Warning::new(WarningKind::ControlErrors, ue, text)
    })
}

fn mode_name(mode: RlcMode) -> &'static str {
    match mode {
        RlcMode::Unacknowledged => "um",
        RlcMode::Acknowledged => "am",
        RlcMode::Saturated => "saturated",
        RlcMode::Transparent => "tm",
    }
}

impl Medium for LteMedium {
    fn warnings(&self, end: Instant) -> Vec<Warning> {
        let ues = self.ues.iter().enumerate().map(|(number, (ue, ..))| (ue, self.network.ue_status(number as u16)));
        let of_ue = ues.flat_map(|(ue, status)| {
            let ready = status.established.ready;
            let seconds = |at: Instant| at.as_nanos() as f64 / 1e9;
            let late = (ready >= end).then(|| {
                let text =
                    format!("has its bearers at {:.3} s, but the run ends at {:.3} s", seconds(ready), seconds(end));
                Warning::new(WarningKind::UeNeverAttaches, ue, text)
            });
            let of_ways = MediumDirection::ALL.into_iter().flat_map(move |way| {
                let counters = &status.counters[way as usize];
                [scheduling_warning(ue, way, counters), control_warning(ue, way, counters)]
            });
            late.into_iter().chain(of_ways.flatten())
        });
        of_ue.collect()
    }

    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        self.now = now;
        let packet = OfferedPacket { bytes: frame.ip_bytes, token: frame.token };
        let (ue, bearer) = (frame.station as u16, self.bearer(&frame));
        match frame.way {
            MediumDirection::Downlink => self.network.send_downlink(now, ue, bearer, packet),
            MediumDirection::Uplink => self.network.send_uplink(now, ue, bearer, packet),
        }
    }

    fn offer_deadline(&self, at: Instant) -> Instant {
        AccessNetwork::latest_offer_time(at)
    }

    fn reads_headers(&self) -> bool {
        !self.classifiers.is_empty()
    }

    fn next_wakeup(&self) -> Instant {
        self.network.next_deadline()
    }

    fn wake(&mut self, now: Instant) {
        self.now = now;
        self.network.advance(now);
    }

    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>) {
        let now = self.now;
        self.network.drain_outputs(|outputs| {
            fates.extend(outputs.iter().map(|output| {
                let fate = match output.fate {
                    exit::PacketOutcome::Delivered => MediumOutcome::Delivered,
                    exit::PacketOutcome::BufferFull => MediumOutcome::BufferFull,
                    exit::PacketOutcome::Lost => MediumOutcome::Lost,
                };
                CompletedFrame { token: output.token, at: output.at.max(now), fate }
            }));
        });
    }

    fn sample(&self, metric: &str, station: u32, way: MediumDirection) -> Option<Sample> {
        let status = self.network.ue_status(station as u16);
        ProbeMetric::find(&UE, metric)?.sample(&(status.counters[way as usize].clone(), status.last[way as usize]))
    }

    fn record(&self, tables: &mut Tables) {
        tables.add(&UES, self.ue_records());
        tables.add(&BEARERS, self.bearer_records());
    }
}
