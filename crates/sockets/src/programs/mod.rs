//! The programs behind the commands `masque` and `http3`, with parsed options.

mod connect;
mod control;
mod figures;
mod get;
mod metrics;
mod proxy;
mod reach;
mod serve;

pub use connect::{ConnectOptions, ModeChoice, connect};
pub use control::ControlChoice;
pub use figures::{ConnectionMetrics, TunnelMetrics};
pub use get::{GetOptions, GetResult, TunnelOptions, TunnelResult, get};
pub use proxy::{HttpVersions, ProxyOptions, proxy};
pub use serve::{ServeOptions, serve};

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
pub enum ProgramError {
    /// An option is invalid; the message states the reason.
    Usage(String),
    /// The machine, the network or the peer failed; the message states the reason.
    Runtime(String),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ProgramError::Usage(text) | ProgramError::Runtime(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for ProgramError {}

/// Runs a program in a tokio runtime with one thread per core.
///
/// # Errors
/// Returns the program's error, or an error if no runtime can be created.
pub fn run<T>(program: impl Future<Output = Result<T, ProgramError>>) -> Result<T, ProgramError> {
    run_with_threads(program, None)
}

/// Runs a program in a tokio runtime with this number of threads; `None` is one per core.
///
/// # Errors
/// As for [`run`].
pub fn run_with_threads<T>(
    program: impl Future<Output = Result<T, ProgramError>>,
    threads: Option<usize>,
) -> Result<T, ProgramError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| ProgramError::Runtime(format!("cannot start the tokio runtime: {error}")))?;
    let result = runtime.block_on(program);
    // A resolver that does not return must not block the process.
    runtime.shutdown_background();
    result
}

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "there is no signal for it"))]
enum Request {
    /// The end of the process.
    End,
    /// To read the files again.
    Reload,
}

/// The signals of the process. They are handled from the creation of this value on, since a caller may send
/// one as soon as a server reports that it is ready.
#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Signals, ProgramError> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(run_error("cannot handle signals"));
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: None,
        })
    }

    /// Like [`Signals::new`], but SIGHUP requests a reload instead of the end of the process.
    fn with_reload() -> Result<Signals, ProgramError> {
        use tokio::signal::unix::{SignalKind, signal};
        let hang_up = signal(SignalKind::hangup()).map_err(run_error("cannot handle signals"))?;
        Ok(Signals { hang_up: Some(hang_up), ..Signals::new()? })
    }

    /// Completes when the process receives a signal.
    async fn next(&mut self) -> Request {
        poll_fn(|context| {
            if self.terminate.poll_recv(context).is_ready() || self.interrupt.poll_recv(context).is_ready() {
                return Poll::Ready(Request::End);
            }
            let hang_up = self.hang_up.as_mut().map(|hang_up| hang_up.poll_recv(context));
            if hang_up.is_some_and(|hang_up| hang_up.is_ready()) { Poll::Ready(Request::Reload) } else { Poll::Pending }
        })
        .await
    }

    /// Completes when the process receives a termination signal.
    async fn asked_to_end(&mut self) {
        while self.next().await != Request::End {}
    }
}

/// The termination signal of the process: Ctrl-C.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Signals, ProgramError> {
        Ok(Signals)
    }

    fn with_reload() -> Result<Signals, ProgramError> {
        Signals::new()
    }

    async fn next(&mut self) -> Request {
        self.asked_to_end().await;
        Request::End
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

fn run_error(what: &str) -> impl Fn(io::Error) -> ProgramError {
    move |error| ProgramError::Runtime(format!("{what}: {error}"))
}
