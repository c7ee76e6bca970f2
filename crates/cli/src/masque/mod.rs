//! The programs `masque proxy|connect` and `http3 serve|get`, and their benchmark. This module converts the arguments;
//! `fullpipe_sockets::programs` implements the programs.

pub(crate) mod arguments;
mod configuration_file;
mod figures;
mod get;
mod log;
mod loopback;
mod settings;
mod tokens;
mod words;

use crate::arguments::{Arguments, Command};
use crate::exit::Failure;
use crate::measurement::cpu_seconds;
use arguments::{
    ConnectArguments, Http3Arguments, Http3Command, MasqueArguments, MasqueCommand, ProxyArguments, ServeArguments,
    ServerIdentity, TrustArguments,
};
use clap::Parser;
use clap::error::ContextKind;
pub(crate) use configuration_file::{expand, is_configuration};
use figures::Figures;
use fullpipe_masque::access::ClientLimits;
use fullpipe_masque::client::DatagramObstacle;
use fullpipe_masque::configuration::{self, Mode};
use fullpipe_masque::log::FieldValue;
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use fullpipe_sockets::programs;
use fullpipe_sockets::tls::{self, ServerVerification};
pub(crate) use loopback::{describe, measure};
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Runs `fullpipe masque`.
pub(crate) fn masque(arguments: &MasqueArguments) -> Result<(), Failure> {
    match &arguments.command {
        MasqueCommand::Proxy(arguments) => proxy(arguments),
        MasqueCommand::Connect(arguments) => connect(arguments),
    }
}

/// Runs `fullpipe http3`.
pub(crate) fn http3(arguments: &Http3Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Http3Command::Serve(arguments) => serve(arguments),
        Http3Command::Get(arguments) => get::get(arguments),
    }
}

fn failure(failure: programs::ProgramError) -> Failure {
    match failure {
        programs::ProgramError::Usage(text) => Failure::usage(text),
        programs::ProgramError::Runtime(text) => Failure::run(text),
    }
}

/// Prints the line that informs scripts that a server is ready.
fn listening(address: SocketAddr) {
    eprintln!("listening on {address}");
}

fn trust(trusted: &TrustArguments) -> ServerVerification {
    match (&trusted.ca, trusted.insecure) {
        (_, true) => ServerVerification::Disabled,
        (Some(path), false) => ServerVerification::CaFile(path.clone()),
        (None, false) => ServerVerification::SystemRoots,
    }
}

/// The names and addresses of the local machine.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Returns the certificate of a server, read from files or generated.
fn identity(arguments: &ServerIdentity) -> Result<tls::ServerCredentials, Failure> {
    let wanted = "use --cert and --key, or --self-signed to generate a certificate";
    match (&arguments.cert, &arguments.key, &arguments.self_signed) {
        (Some(chain), Some(key), None) => Ok(tls::ServerCredentials::Files { chain: chain.clone(), key: key.clone() }),
        (None, None, Some(names)) if names.is_empty() => {
            Ok(tls::ServerCredentials::SelfSigned(LOCAL_NAMES.map(String::from).to_vec()))
        }
        (None, None, Some(names)) => Ok(tls::ServerCredentials::SelfSigned(names.clone())),
        (None, None, None) => Err(Failure::usage(format!("a server requires a certificate: {wanted}"))),
        (_, _, Some(_)) => Err(Failure::usage(format!("a server has only one certificate: {wanted}"))),
        (_, _, None) => Err(Failure::usage(format!("--cert and --key require each other: {wanted}"))),
    }
}

fn client_identity((chain, key): (PathBuf, PathBuf)) -> tls::ServerCredentials {
    tls::ServerCredentials::Files { chain, key }
}

fn template(text: &str) -> Result<Template, Failure> {
    Template::parse(text).map_err(|error| Failure::usage(format!("{text}: {error}")))
}

/// Checks the configuration file of a proxy, and the certificate that it names.
///
/// # Errors
/// If the proxy would not start with it.
pub(crate) fn check_configuration(file: &Path) -> Result<(), Failure> {
    let in_file = |error: &dyn Display| Failure::usage(format!("{}: {error}", file.display()));
    let options = options_of(configuration_file::arguments(file), in_file)?;
    settings::warn_of_mtu(options.settings.tunnel.mtu);
    tls::server_configs(&options.identity, options.client_ca.as_deref()).map_err(|error| in_file(&error))?;
    Ok(())
}

/// Returns the options of a proxy with this command line, whose configuration file is read. `locate` adds the place to an
/// error.
///
/// # Errors
/// If an option is invalid or missing.
fn options_of(
    command_line: Vec<OsString>,
    locate: impl Fn(&dyn Display) -> Failure,
) -> Result<programs::ProxyOptions, Failure> {
    let given = expand(command_line)?;
    // The values of the file have been checked, and the command line at the start, so the only error is a missing option.
    let parsed = Arguments::try_parse_from(given).map_err(|error| {
        let missing = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
        let key = missing.trim_start_matches("--").split(' ').next().unwrap_or_default().replace('-', "_");
        locate(&format_args!("the key `{key}` is missing (or {missing} on the command line)"))
    })?;
    let Command::Masque(MasqueArguments { command: MasqueCommand::Proxy(arguments) }) = parsed.command else {
        unreachable!("these are arguments of the proxy");
    };
    proxy_options(&arguments).map_err(|failure| locate(&failure))
}

fn proxy_options(arguments: &ProxyArguments) -> Result<programs::ProxyOptions, Failure> {
    let template = match &arguments.template {
        Some(text) => template(text)?,
        None => {
            template(&format!("https://{}/.well-known/masque/udp/{{target_host}}/{{target_port}}/", arguments.listen))?
        }
    };
    template.check_readable().map_err(|error| Failure::usage(format!("{template}: {error}")))?;
    let defaults = configuration::Proxy::new(template);
    let mut settings = configuration::Proxy {
        tokens: tokens::all(arguments)?,
        tcp: !arguments.udp_only,
        client_limits: ClientLimits {
            tunnels: arguments.client_tunnels,
            rate: arguments.client_rate,
            bytes: arguments.client_bytes,
        },
        max_connections: arguments.max_connections.unwrap_or(defaults.max_connections),
        max_requests: arguments.max_requests.unwrap_or(defaults.max_requests),
        idle_timeout: arguments.idle_timeout.unwrap_or(defaults.idle_timeout),
        tunnel: settings::buffered(&arguments.buffers, settings::tunnel(arguments.tunnel_mtu, defaults.tunnel.clone())),
        ..defaults
    };
    if let Some(limit) = arguments.queue_limit {
        settings.tunnel.queue_limit = limit;
    }
    if let Some(bytes) = arguments.datagram_buffer {
        settings.tunnel.datagram_buffer = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    settings.tunnel.drop_policy = arguments.drop_policy;
    settings.tunnel.scheduler = arguments.scheduler;
    settings.tunnel.connection_idle = settings.tunnel.connection_idle.max(settings.idle_timeout);
    settings.policy.allow.clone_from(&arguments.allow);
    settings.policy.deny.clone_from(&arguments.deny);
    settings.policy.allow_private = arguments.allow_private;
    settings.own.public.clone_from(&arguments.public_address);
    Ok(programs::ProxyOptions {
        listen: arguments.listen,
        identity: identity(&arguments.identity)?,
        http: arguments.http,
        client_ca: arguments.client_ca.clone(),
        secret: arguments.secret_file.clone(),
        metrics: arguments.metrics,
        drain: arguments.drain,
        control: settings::tunnel_control(&arguments.control.congestion, &arguments.control)?,
        settings,
    })
}

fn proxy(arguments: &ProxyArguments) -> Result<(), Failure> {
    let options = proxy_options(arguments)?;
    settings::warn_of_mtu(options.settings.tunnel.mtu);
    let ready = |address, metrics: Option<SocketAddr>| {
        listening(address);
        if let Some(metrics) = metrics {
            eprintln!("metrics on {metrics}");
        }
    };
    let reload = || {
        let locate = |error: &dyn Display| match &arguments.config {
            Some(file) => Failure::usage(format!("{}: {error}", file.display())),
            None => Failure::usage(error),
        };
        let options = options_of(std::env::args_os().collect(), locate);
        options.map_err(|failure| programs::ProgramError::Usage(failure.message))
    };
    let log = log::Log { verbose: arguments.verbose, access: arguments.access_log, format: arguments.log_format };
    let reloaded = |result: Result<(), programs::ProgramError>| match result {
        Ok(()) => log.print(&[("event", FieldValue::Word("reloaded".into()))]),
        Err(error) => {
            // A file may have several errors, one per line.
            let reason = error.to_string().replace('\n', "; ");
            let event = FieldValue::Word("reload-failed".into());
            log.print(&[("event", event), ("reason", FieldValue::Text(&reason))]);
        }
    };
    let figures = arguments.figures;
    let told = move |tunnels| {
        if figures {
            let processor = Duration::from_secs_f64(cpu_seconds());
            Figures::of_proxy(&tunnels, processor).print();
        }
    };
    let program = programs::proxy(options, Arc::new(log), ready, reload, reloaded, told);
    programs::run_with_threads(program, arguments.threads.map(usize::from)).map_err(failure)
}

fn connect(arguments: &ConnectArguments) -> Result<(), Failure> {
    let target =
        Target::parse(&arguments.target).map_err(|error| Failure::usage(format!("{}: {error}", arguments.target)))?;
    let defaults = configuration::Client::default();
    let settings = configuration::Client {
        token: arguments.token.clone(),
        tunnel: settings::buffered(&arguments.buffers, settings::tunnel(arguments.tunnel_mtu, defaults.tunnel.clone())),
        ..defaults
    };
    settings::warn_of_mtu(settings.tunnel.mtu);
    let options = programs::ConnectOptions {
        template: template(&arguments.template)?,
        target,
        listen: arguments.listen,
        trust: trust(&arguments.trusted),
        identity: arguments.client_cert.clone().zip(arguments.client_key.clone()).map(client_identity),
        server_name: arguments.server_name.clone(),
        control: settings::tunnel_control(&arguments.control.congestion, &arguments.control)?,
        mode: arguments.mode,
        settings,
    };
    let ready = |address, max_payload| {
        listening(address);
        eprintln!("the largest UDP payload of the tunnel is {max_payload} bytes");
    };
    let refused =
        Arc::new(|from: SocketAddr, reason: &str| eprintln!("event=tunnel-failed from={from} reason={reason:?}"));
    let dropped = programs::run(programs::connect(options, mode_selected, ready, refused)).map_err(failure)?;
    if dropped > 0 {
        eprintln!("event=dropped reason=too-large payloads={dropped}");
    }
    Ok(())
}

/// Prints the mode of a tunnel if datagrams cannot carry QUIC, with the reason.
fn mode_selected(mode: Mode, obstacle: Option<DatagramObstacle>) {
    if let Some(obstacle) = obstacle {
        eprintln!("event=mode-selected mode={} reason=\"{obstacle}\"", words::mode_name(mode));
    }
}

fn serve(arguments: &ServeArguments) -> Result<(), Failure> {
    if arguments.root.is_none() && !arguments.generate {
        return Err(Failure::usage(
            "nothing to serve; expected --root DIR for files, --generate for /bytes/N, or both",
        ));
    }
    let options = programs::ServeOptions {
        listen: arguments.listen,
        identity: identity(&arguments.identity)?,
        root: arguments.root.clone(),
        generate: arguments.generate,
        connection: settings::end_to_end(arguments.mtu, &arguments.buffers, settings::SILENCE),
        control: settings::control(&arguments.control)?,
    };
    let refused = |client: SocketAddr, status: u16, reason: &str| {
        eprintln!("event=refused client={client} status={status} reason={reason:?}");
    };
    let figures = arguments.figures;
    let told = move |connections| {
        if figures {
            Figures::of_serve(&connections).print();
        }
    };
    programs::run(programs::serve(options, listening, refused, told)).map_err(failure)
}
