//! The two applications of a flow: the one that opens it and the one that accepts.

use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Flow, TmixTrace, TmixWorkload, Workload};
use fullpipe_tmix::{Indexed, Synthetic};
use fullpipe_units::{Duration, Instant, Stream};
use fullpipe_workload::{
    Application, BoxedTrace, Bulk, ConstantRate, Content, Gaming, Idle, Invalid, OnOff, PoissonPackets,
    PoissonTransfers, PoissonTransfersAcceptor, RequestResponseClient, RequestResponseServer, SharedTrace, Sink,
    TmixAcceptor, TmixInitiator, TmixOptions, Transfer, Transfers, VideoAbrClient, VideoAbrServer, VideoCbr, Voice,
    WebClient, WebServer,
};

/// What a flow's payload is, where the content matters.
pub(crate) fn content(described: &Flow, seed: u64) -> Content {
    Content::new(Stream::new(seed, &described.name, "content"))
}

/// The connections of a trace for a run of this seed, made as they are needed.
fn connections(tmix: &TmixWorkload, seed: u64, duration: Duration) -> Result<SharedTrace, fullpipe_tmix::Error> {
    let trace: BoxedTrace = match &tmix.trace {
        TmixTrace::Synthetic { name, seed } => Box::new(Synthetic::new(*seed, name, tmix.trace_length)?),
        TmixTrace::File(path) => Box::new(Indexed::open(path, false)?),
    };
    Ok(SharedTrace::new(tmix.schedule(seed, duration).stream(trace)?))
}

/// Initiator and acceptor of a flow. `over_stream`: whether it runs over TCP; `closes`: whether a mere receiver closes its
/// side when the sender has closed.
///
/// Where both ends must know the same sizes (a model's payload is a mere length), both are handed the same random stream.
///
/// # Errors
/// If the workload's description makes no sense, which the scenario language does not let through.
pub(crate) fn pair(
    described: &Flow,
    over_stream: bool,
    closes: bool,
    scenario: &Scenario,
) -> Result<[Box<dyn Application>; 2], Invalid> {
    let seed = scenario.seed;
    let random = |purpose: &str| Stream::new(seed, &described.name, purpose);
    let initiator: Box<dyn Application> = match &described.workload {
        Workload::Bulk { size_bytes, write_bytes, random_content: false } => {
            Box::new(Bulk::new(*size_bytes, *write_bytes))
        }
        Workload::Bulk { size_bytes, write_bytes, random_content: true } => {
            let bulk = Bulk::new(*size_bytes, *write_bytes).with_content(content(described, seed));
            return Ok([Box::new(bulk), Box::new(Sink::new(closes).with_digest())]);
        }
        Workload::ConstantRate { payload_bytes, interval, count } => {
            Box::new(ConstantRate::new(*payload_bytes, *interval, *count, over_stream))
        }
        Workload::Transfers { transfers } => {
            let transfers = transfers.iter().map(|t| Transfer { at: t.at, size_bytes: t.size_bytes }).collect();
            Box::new(Transfers::new(transfers))
        }
        Workload::Idle => Box::new(Idle),
        // Its programs are the world's.
        Workload::Tunnel => Box::new(Sink::new(closes)),
        Workload::OnOff(spec) => Box::new(OnOff::new(spec, over_stream, random("workload"))?),
        Workload::PoissonPackets(spec) => Box::new(PoissonPackets::new(spec, random("workload"))?),
        Workload::VideoCbr(spec) => Box::new(VideoCbr::new(spec, over_stream)?),
        Workload::PoissonTransfers(spec) => {
            let start = Instant::ZERO.saturating_add(described.start);
            return Ok([
                Box::new(PoissonTransfers::new(spec, random("workload"))?),
                Box::new(PoissonTransfersAcceptor::new(spec, random("workload"), start)?),
            ]);
        }
        Workload::RequestResponse(spec) => {
            return Ok([
                Box::new(RequestResponseClient::new(spec, random("workload"))?),
                Box::new(RequestResponseServer::new(spec, random("workload"))?),
            ]);
        }
        Workload::VideoAbr(spec) => {
            return Ok([Box::new(VideoAbrClient::new(spec)?), Box::new(VideoAbrServer::new(spec)?)]);
        }
        Workload::Web(spec) => {
            return Ok([
                Box::new(WebClient::new(spec, random("workload"))?),
                Box::new(WebServer::new(spec, random("workload"))?),
            ]);
        }
        Workload::Tmix(tmix) => {
            let start = Instant::ZERO.saturating_add(described.start);
            let duration = scenario.duration.saturating_sub(described.start);
            let connections = connections(tmix, seed, duration).map_err(|error| Invalid(error.to_string()))?;
            let measured_from = Instant::ZERO.saturating_add(scenario.measurement.from);
            let options = TmixOptions { measured_from, ..tmix.options };
            return Ok([
                Box::new(TmixInitiator::new(connections.clone(), options, start)),
                Box::new(TmixAcceptor::new(connections, options, start)),
            ]);
        }
        Workload::Gaming(spec) => {
            return Ok([
                Box::new(Gaming::client(spec, random("client"))?),
                Box::new(Gaming::server(spec, random("server"))?),
            ]);
        }
        Workload::Voice(spec) => {
            return Ok([
                Box::new(Voice::caller(spec, random("caller"))?),
                Box::new(Voice::callee(spec, random("callee"))?),
            ]);
        }
    };
    Ok([initiator, Box::new(Sink::new(closes))])
}
