//! `fullpipe http3 get`.

use super::arguments::GetArguments;
use super::figures::Figures;
use super::{failure, mode_selected, settings, template, trust, words};
use crate::exit::Failure;
use crate::new_file::NewFile;
use crate::output::print_line;
use fullpipe_masque::configuration::{self, Tunnel};
use fullpipe_sockets::generated::{self, BodyVerifier};
use fullpipe_sockets::programs::{self, GetResult, TunnelOptions};
use fullpipe_sockets::tls::ServerVerification;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::time::Duration;

pub(super) fn get(arguments: &GetArguments) -> Result<(), Failure> {
    let options = options(arguments)?;
    let name = arguments.out.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let refused = |error: io::Error| Failure::machine(format!("{name}: {error}"));
    let mut store = arguments.out.as_deref().map(|path| NewFile::create(path, ".part")).transpose().map_err(refused)?;
    let mut check = arguments.check.then(|| expected(&arguments.url)).transpose()?;
    let mut hash = Sha256::new();
    let got = programs::run(programs::get(options, |piece| {
        hash.update(piece);
        if let Some(check) = &mut check {
            check.update(piece);
        }
        let written = store.as_mut().map_or(Ok(()), |store| store.writer.write_all(piece));
        written.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
    }));
    let got = got.map_err(failure)?;
    if let Some(tunnel) = &got.tunnel {
        mode_selected(tunnel.mode, tunnel.obstacle);
    }
    let verdict = match (200..=299).contains(&got.status) {
        true => check.map_or(Ok(()), |check| check.finish()),
        false => Err(format!("the server answered {}", got.status)),
    };
    if let Some(store) = store.filter(|_| verdict.is_ok()) {
        store.finish().map_err(refused)?;
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if arguments.json {
        print_line!("{}", describe(arguments, &got, &digest));
    } else {
        print_line!("{} {} bytes in {:.1} ms, sha256 {digest}", got.status, got.bytes, milliseconds(got.completion));
    }
    if arguments.figures {
        Figures::of_get(&got).print();
    }
    verdict.map_err(Failure::run)
}

/// Returns the expected body of a server that generates it.
fn expected(url: &str) -> Result<BodyVerifier, Failure> {
    let uri: Option<http::Uri> = url.parse().ok();
    let length = uri.and_then(|uri| generated::body_length(uri.path()));
    let wrong = || Failure::usage(format!("{url}: --check supports only /bytes/N, with N up to 10 GB"));
    length.map(BodyVerifier::new).ok_or_else(wrong)
}

fn options(arguments: &GetArguments) -> Result<programs::GetOptions, Failure> {
    let via = arguments.via.as_deref().map(|text| via(arguments, text)).transpose()?;
    Ok(programs::GetOptions {
        url: arguments.url.clone(),
        trust: trust(&arguments.trusted),
        server_name: arguments.server_name.clone(),
        connect: arguments.connect,
        via,
        connection: settings::end_to_end(arguments.mtu, &arguments.buffers, arguments.idle_timeout),
        control: settings::control(&arguments.control)?,
    })
}

fn via(arguments: &GetArguments, text: &str) -> Result<TunnelOptions, Failure> {
    let defaults = configuration::Client::default();
    let congestion = arguments.tunnel_congestion.as_deref().unwrap_or(&arguments.control.congestion);
    let settings = configuration::Client {
        token: arguments.token.clone(),
        // The tunnel's timeout is shorter than that of the inner connection. The failure of a proxy is thus not
        // reported as that of the server. A packet that is sent after silence restarts the idle timeout once.
        tunnel: Tunnel {
            connection_idle: arguments.idle_timeout / 2,
            keep_alive: Some(arguments.idle_timeout / 6),
            ..settings::tunnel(arguments.tunnel_mtu, defaults.tunnel.clone())
        },
        ..defaults
    };
    settings::warn_of_mtu(settings.tunnel.mtu);
    let trust = match &arguments.via_ca {
        Some(path) => ServerVerification::CaFile(path.clone()),
        None => trust(&arguments.trusted),
    };
    let control = settings::tunnel_control(congestion, &arguments.control)?;
    Ok(TunnelOptions { template: template(text)?, trust, control, mode: arguments.mode, settings })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn describe(arguments: &GetArguments, got: &GetResult, digest: &str) -> serde_json::Value {
    let tunnel = got.tunnel.map(|tunnel| {
        json!({
            "mode": words::mode_name(tunnel.mode),
            "congestion": tunnel.congestion,
            "set_up_ms": milliseconds(tunnel.set_up),
            "max_payload_bytes": tunnel.max_payload,
            "dropped_too_large": tunnel.figures.dropped_too_large,
            "dropped_queue": tunnel.figures.dropped_queue,
            "lost": tunnel.lost,
        })
    });
    json!({
        "url": arguments.url,
        "status": got.status,
        "bytes": got.bytes,
        "sha256": digest,
        "congestion": got.congestion,
        "handshake_ms": milliseconds(got.handshake),
        "completion_ms": milliseconds(got.completion),
        "retransmitted": got.connection.packets_lost,
        "tunnel": tunnel,
    })
}
