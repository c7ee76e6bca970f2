//! The programs behind the commands `masque` and `http3`, with parsed options.

mod connect;
mod control;
mod figures;
mod get;
mod metrics;
mod proxy;
mod reach;
mod serve;

pub use connect::{Connect, connect};
pub use control::Control;
pub use figures::{ConnectionFigures, TunnelFigures};
pub use get::{Get, Got, GotThrough, Via, get};
pub use proxy::{Proxy, proxy};
pub use serve::{Serve, serve};

use std::fmt;
use std::future::Future;
#[cfg(unix)]
use std::future::poll_fn;
use std::io;
#[cfg(unix)]
use std::task::Poll;
use std::time::Duration;

/// Time for which a closing endpoint waits for its packets to be sent.
const FAREWELL: Duration = Duration::from_millis(500);

/// Reason why a program failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An option is wrong.
    Usage(String),
    /// The machine, the network or the peer failed.
    Run(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Usage(text) | Failure::Run(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Failure {}

/// Runs a program in a tokio runtime.
///
/// # Errors
/// Returns the program's error, or an error if no runtime can be created.
pub fn run<T>(program: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Run(format!("no runtime: {error}")))?;
    let result = runtime.block_on(program);
    // A resolver that does not return must not block the process.
    runtime.shutdown_background();
    result
}

/// The termination signals of the process. They are handled from the creation of this value on, since a caller may send
/// one as soon as a server reports that it is ready.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(run_error("no signals"));
        Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Completes when the process receives a termination signal.
    async fn asked_to_end(&mut self) {
        poll_fn(|context| {
            let asked = self.terminate.poll_recv(context).is_ready() || self.interrupt.poll_recv(context).is_ready();
            if asked { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// The termination signal of the process: Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Signals, Failure> {
        Ok(Signals)
    }

    /// Completes when the user presses Ctrl-C, or at once if it cannot be handled.
    async fn asked_to_end(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Closes all connections of this endpoint and waits until the packets are sent.
async fn farewell(endpoint: &noq::Endpoint) {
    endpoint.close(fullpipe_masque::transport::code::NO_ERROR.into(), b"");
    let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
}

fn run_error(what: &str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Run(format!("{what}: {error}"))
}
