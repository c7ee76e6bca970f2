//! The tables of a run, as columns and as files. `fullpipe_archive` and the components declare the tables.

use crate::outcome::{CompletionRow, FigureRow, FlowRow, MeasuredLink, Outcome};
use fullpipe_archive::{COMPLETIONS, Columns, EVENTS, FIGURES, FLOWS, HALVES, LINKS, SERIES};
use fullpipe_units::Instant;

/// The tables by column. Each table is built when it is first used.
impl Outcome {
    /// Returns the columns of `flows.csv`, documented in `docs/records.md`.
    ///
    /// ```
    /// # let text = r#"
    /// #     duration = "1s"
    /// #     [topology]
    /// #     kind = "chain"
    /// #     link = [{ rate = "1Mbit/s", delay = "5ms" }]
    /// #     [[flow]]
    /// #     name = "data"
    /// #     from = "source"
    /// #     to = "sink"
    /// #     workload = "bulk"
    /// # "#;
    /// # let scenario = fullpipe_scenario::load(text, "example.toml", &[]).expect("a good scenario").scenario;
    /// let outcome = fullpipe_lab::run(&scenario, &Default::default()).expect("a run");
    /// let (flows, goodput_bps) = (outcome.flows().text_column("flow"), outcome.flows().column("goodput_bps"));
    /// assert_eq!(flows, ["data", "data.reverse"]);
    /// assert!(goodput_bps[0] < 1e6 && goodput_bps[1].is_nan());
    /// ```
    pub fn flows(&self) -> &Columns {
        self.gathered.flows.get_or_init(|| FLOWS.to_columns(flow_records(self)))
    }

    /// Returns the columns of `series.csv`; [`Outcome::series`] returns the samples of one metric.
    pub fn samples(&self) -> &Columns {
        self.gathered.samples.get_or_init(|| SERIES.to_columns(series_records(self)))
    }

    /// Returns the columns of `links.csv`.
    pub fn links(&self) -> &Columns {
        self.gathered.links.get_or_init(|| LINKS.to_columns(self.measured_links().map(link_record)))
    }

    /// Returns the columns of `figures.csv`.
    pub fn figures(&self) -> &Columns {
        self.gathered.figures.get_or_init(|| FIGURES.to_columns(self.figure_rows().map(figure_record)))
    }

    /// Returns the columns of `completions.csv`.
    pub fn completions(&self) -> &Columns {
        self.gathered.completions.get_or_init(|| COMPLETIONS.to_columns(self.completion_rows().map(completion_record)))
    }

    /// Returns the name and the content of each table of the run. `series.csv` is excluded if it was written during the
    /// run.
    pub fn tables(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut tables = vec![(FLOWS.file, FLOWS.to_bytes(flow_records(self)))];
        if !self.scenario().probes.is_empty() {
            let series = match self.probes.file() {
                Some(file) => file.whole().map(<[u8]>::to_vec),
                None => Some(SERIES.to_bytes(series_records(self))),
            };
            tables.extend(series.map(|series| (SERIES.file, series)));
        }
        if !self.scenario().measurement.links.is_empty() {
            tables.push((LINKS.file, LINKS.to_bytes(self.measured_links().map(link_record))));
        }
        let halves = crate::halves::rows(self);
        if !halves.is_empty() {
            tables.push((HALVES.file, HALVES.to_bytes(halves)));
        }
        if !self.scenario().events.is_empty() {
            tables.push((EVENTS.file, EVENTS.to_bytes(event_records(self))));
        }
        tables.extend(self.access_files().map(|(file, bytes)| (file, bytes.to_vec())));
        if self.completion_rows().next().is_some() {
            tables.push((COMPLETIONS.file, COMPLETIONS.to_bytes(self.completion_rows().map(completion_record))));
        }
        if self.figure_rows().next().is_some() {
            tables.push((FIGURES.file, FIGURES.to_bytes(self.figure_rows().map(figure_record))));
        }
        tables
    }
}

fn flow_records(outcome: &Outcome) -> impl Iterator<Item = fullpipe_archive::FlowRow> {
    let from = Instant::ZERO.saturating_add(outcome.scenario().measurement.from);
    outcome.flow_rows().map(move |row| flow_record(row, from))
}

fn flow_record(row: FlowRow<'_>, measured_from: Instant) -> fullpipe_archive::FlowRow {
    let (counters, measured) = (&row.counters, &row.measured);
    let (is_sent, is_received) = (counters.tx_packets > 0, counters.rx_packets > 0);
    fullpipe_archive::FlowRow {
        flow: row.flow.into_owned(),
        source: row.source.to_owned(),
        destination: row.destination.to_owned(),
        protocol: row.protocol.to_owned(),
        congestion: row.congestion.unwrap_or_default().to_owned(),
        tx_packets: counters.tx_packets,
        tx_bytes: counters.tx_bytes,
        rx_packets: counters.rx_packets,
        rx_bytes: counters.rx_bytes,
        lost_packets: counters.lost_packets,
        delay_sum_s: is_received.then_some(counters.delay_sum),
        jitter_sum_s: is_received.then_some(counters.jitter_sum),
        first_tx_s: is_sent.then_some(counters.first_tx),
        last_tx_s: is_sent.then_some(counters.last_tx),
        first_rx_s: is_received.then_some(counters.first_rx),
        last_rx_s: is_received.then_some(counters.last_rx),
        goodput_bps: row.goodput_bps,
        completion_s: row.completion,
        retransmitted_packets: row.retransmitted_packets,
        marked_packets: row.marked_packets,
        measured_goodput_bps: row.measured_goodput_bps,
        whole_goodput_bps: row.whole_goodput_bps,
        measured_from_s: is_received.then(|| counters.first_rx.max(measured_from)),
        measured_tx_packets: measured.tx_packets,
        measured_rx_packets: measured.rx_packets,
        measured_rx_bytes: measured.rx_bytes,
        measured_lost_packets: measured.lost_packets,
        measured_delay_sum_s: (measured.rx_packets > 0).then_some(measured.delay_sum),
        measured_jitter_sum_s: (measured.rx_packets > 0).then_some(measured.jitter_sum),
        main_direction: row.is_main.into(),
        delay_p50_s: row.delays.map(|delays| delays.p50),
        delay_p95_s: row.delays.map(|delays| delays.p95),
        delay_p99_s: row.delays.map(|delays| delays.p99),
    }
}

fn series_records(outcome: &Outcome) -> impl Iterator<Item = fullpipe_archive::SeriesRow> {
    outcome.series_rows().map(|row| fullpipe_archive::SeriesRow {
        time_s: row.time,
        subject: row.subject.to_owned(),
        metric: row.metric.to_owned(),
        value: Some(row.value),
    })
}

fn link_record(row: MeasuredLink<'_>) -> fullpipe_archive::LinkRow {
    let summary = &row.summary;
    fullpipe_archive::LinkRow {
        link: row.link.to_owned(),
        from_s: summary.from,
        to_s: summary.to,
        measured_s: summary.measured_duration(),
        queued_at_from_packets: summary.waiting_first.packets,
        queued_at_to_packets: summary.waiting_last.packets,
        arrivals_packets: summary.arrivals.packets,
        arrivals_bytes: summary.arrivals.bytes,
        departed_packets: summary.departed.packets,
        departed_bytes: summary.departed.bytes,
        dropped_packets: summary.dropped_packets,
        marked_packets: summary.marked_packets,
        drop_ratio: summary.drop_ratio(),
        mark_ratio: summary.mark_ratio(),
        throughput_bps: summary.throughput_bps(),
        utilisation: row.utilisation,
        mean_queue_delay_s: summary.mean_queue_delay_s(),
        p50_queue_delay_s: summary.delay_p50,
        p99_queue_delay_s: summary.delay_p99,
        mean_queue_packets: summary.mean_queue_packets(),
        mean_queue_bytes: summary.mean_queue_bytes(),
    }
}

fn event_records(outcome: &Outcome) -> Vec<fullpipe_archive::EventRow> {
    let scenario = outcome.scenario();
    let mut rows = Vec::new();
    for (described, event) in scenario.events.iter().zip(outcome.events()) {
        let own = fullpipe_archive::EventRow {
            event: described.name.clone(),
            met_s: event.met,
            at_s: event.at,
            ..fullpipe_archive::EventRow::default()
        };
        rows.push(own.clone());
        let subject = described.subject.map(|subject| scenario.subject_name(subject)).unwrap_or_default();
        rows.extend(event.values.iter().map(|(metric, value)| fullpipe_archive::EventRow {
            subject: subject.clone(),
            metric: metric.clone(),
            value: *value,
            ..own.clone()
        }));
    }
    rows
}

fn figure_record(row: FigureRow<'_>) -> fullpipe_archive::FigureRow {
    fullpipe_archive::FigureRow {
        flow: row.flow.to_owned(),
        host: row.host.to_owned(),
        figure: row.name.to_owned(),
        value: Some(row.value).filter(|value| value.is_finite()),
    }
}

fn completion_record(row: CompletionRow<'_>) -> fullpipe_archive::CompletionRow {
    fullpipe_archive::CompletionRow {
        flow: row.flow.to_owned(),
        number: row.number as u64,
        started_s: row.completion.started,
        completed_s: row.completion.completed,
        bytes: row.completion.bytes,
    }
}
