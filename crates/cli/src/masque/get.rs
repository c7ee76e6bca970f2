//! `fullpipe http3 get`.

use super::arguments::GetArguments;
use super::{failure, template, trust, words};
use crate::exit::Failure;
use fullpipe_masque::configuration::{self, Mode};
use fullpipe_sockets::programs::{self, Got, Via};
use fullpipe_sockets::tls::Trust;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

pub(super) fn get(arguments: &GetArguments) -> Result<(), Failure> {
    let options = options(arguments)?;
    let mut file = match &arguments.out {
        Some(path) => {
            let made = File::create(path).map_err(|error| Failure::machine(format!("{}: {error}", path.display())))?;
            Some(BufWriter::new(made))
        }
        None => None,
    };
    let mut hash = Sha256::new();
    let got = programs::run(programs::get(options, |piece| {
        hash.update(piece);
        file.as_mut().map_or(Ok(()), |file| file.write_all(piece))
    }));
    let got = got.map_err(failure)?;
    if let Some(mut file) = file {
        file.flush().map_err(|error| Failure::machine(error.to_string()))?;
    }
    let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if arguments.json {
        println!("{}", describe(arguments, &got, &digest));
    } else {
        println!("{} {} bytes in {:.1} ms, sha256 {digest}", got.status, got.bytes, milliseconds(got.completion));
    }
    match got.status {
        200..=299 => Ok(()),
        status => Err(Failure::run(format!("the server answered {status}"))),
    }
}

fn options(arguments: &GetArguments) -> Result<programs::Get, Failure> {
    let via = arguments.via.as_deref().map(|text| via(arguments, text)).transpose()?;
    Ok(programs::Get {
        url: arguments.url.clone(),
        trust: trust(&arguments.trusted),
        server_name: arguments.server_name.clone(),
        connect: arguments.connect,
        via,
        connection: words::end_to_end(arguments.mtu, arguments.congestion.as_deref())?,
    })
}

fn via(arguments: &GetArguments, text: &str) -> Result<Via, Failure> {
    let defaults = configuration::Client::default();
    let congestion = arguments.congestion.as_deref();
    let settings = configuration::Client {
        mode: arguments.mode,
        token: arguments.token.clone(),
        tunnel: words::tunnel(arguments.tunnel_mtu, congestion, defaults.tunnel.clone())?,
        ..defaults
    };
    words::warn_of_mtu(settings.tunnel.mtu);
    let trust = match &arguments.via_ca {
        Some(path) => Trust::Authorities(path.clone()),
        None => trust(&arguments.trusted),
    };
    Ok(Via { template: template(text)?, trust, settings })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn describe(arguments: &GetArguments, got: &Got, digest: &str) -> serde_json::Value {
    let tunnel = got.tunnel.map(|tunnel| {
        json!({
            "mode": if arguments.mode == Mode::Datagram { "datagram" } else { "stream" },
            "set_up_ms": milliseconds(tunnel.set_up),
            "max_payload_bytes": tunnel.max_payload,
            "dropped_too_large": tunnel.dropped_too_large,
            "dropped_queue": tunnel.dropped_queue,
            "lost": tunnel.lost,
        })
    });
    json!({
        "url": arguments.url,
        "status": got.status,
        "bytes": got.bytes,
        "sha256": digest,
        "handshake_ms": milliseconds(got.handshake),
        "completion_ms": milliseconds(got.completion),
        "retransmitted": got.lost,
        "tunnel": tunnel,
    })
}
