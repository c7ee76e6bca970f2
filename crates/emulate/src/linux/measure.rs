//! Measurement of a path between two hosts with kernel sockets: round-trip times, one-way delays, and packet loss. It
//! is used for benchmarks and calibration and is not part of any run.
//!
//! A one-way delay is the time from just before the send call to the kernel's arrival timestamp at the receiver,
//! measured by one clock. It includes the time spent in the kernel and the interfaces, which can be measured with a
//! direct pair of hosts.

use super::namespace::{EmulatorNamespace, HostNamespace};
use super::sys::{self, BATCH, ReceivedMetadata, Receiver};
use super::waiting;
use fullpipe_units::Duration;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Returns the current time of the clock of arrival timestamps, in nanoseconds since 1970.
fn now_nanos() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

fn sleep_until(nanos: u64) {
    let left = nanos.saturating_sub(now_nanos());
    if left > 0 {
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
}

/// One end of a measured path.
#[derive(Clone, Copy, Debug)]
pub struct PathEndpoint<'a> {
    /// The host's namespace.
    pub host: &'a HostNamespace,
    /// Address of the host.
    pub address: IpAddr,
}

const PORT: u16 = 9;

/// Maximum time to wait for the last packets.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(300);

fn sockets(
    home: &EmulatorNamespace,
    from: PathEndpoint<'_>,
    to: PathEndpoint<'_>,
) -> io::Result<(UdpSocket, UdpSocket, SocketAddr)> {
    let sender = home.inside(from.host, || UdpSocket::bind((from.address, 0)))??;
    let receiver = home.inside(to.host, || UdpSocket::bind((to.address, PORT)))??;
    sys::ask_for_stamps(receiver.as_fd())?;
    Ok((sender, receiver, SocketAddr::new(to.address, PORT)))
}

/// A running measurement.
#[derive(Debug)]
pub struct Measurement<T> {
    thread: JoinHandle<io::Result<T>>,
}

impl<T> Measurement<T> {
    fn start(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<Self>
    where
        T: Send + 'static,
    {
        Ok(Measurement { thread: std::thread::Builder::new().name("measurement".to_owned()).spawn(work)? })
    }

    /// Returns whether the measurement has finished.
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the result of the measurement and returns it.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn finish(self) -> io::Result<T> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Measures round-trip times to a host that echoes datagrams. Sends `count` small datagrams, each `interval` after the
/// previous echo or timeout. The result contains the round-trip times in order; lost datagrams have no entry.
///
/// # Errors
/// Returns the kernel's error.
pub fn measure_round_trips(
    home: &EmulatorNamespace,
    from: PathEndpoint<'_>,
    to: PathEndpoint<'_>,
    count: u32,
    interval: Duration,
) -> io::Result<Measurement<Vec<Duration>>> {
    let (sender, receiver, address) = sockets(home, from, to)?;
    let over = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&over);
    receiver.set_read_timeout(Some(PATIENCE))?;
    sender.set_read_timeout(Some(PATIENCE))?;
    let echo = std::thread::Builder::new().name("echo".to_owned()).spawn(move || {
        let mut bytes = [0; 64];
        while !asked.load(Ordering::Relaxed) {
            if let Ok((length, peer)) = receiver.recv_from(&mut bytes) {
                // An echo that cannot be sent counts as lost at the sender.
                let _ = receiver.send_to(&bytes[..length], peer);
            }
        }
    })?;
    Measurement::start(move || {
        waiting::ask_for_exact_wakeups();
        let mut times = Vec::new();
        for number in 0..count {
            let sent = now_nanos();
            sender.send_to(&number.to_be_bytes(), address)?;
            let mut answer = [0; 64];
            while let Ok(length) = sender.recv(&mut answer) {
                if answer[..length] == number.to_be_bytes() {
                    times.push(Duration::from_nanos(now_nanos().saturating_sub(sent)));
                    break;
                }
            }
            std::thread::sleep(std::time::Duration::from_nanos(interval.as_nanos()));
        }
        over.store(true, Ordering::Relaxed);
        let _ = echo.join();
        Ok(times)
    })
}

/// The result of a measurement with a stream of datagrams.
#[derive(Clone, Debug, Default)]
pub struct DatagramMeasurement {
    /// Number of datagrams sent.
    pub sent: u64,
    /// Number of datagrams that the sender's kernel rejected.
    pub refused: u64,
    /// Send and arrival times of the received datagrams in nanoseconds since 1970, in order of arrival.
    pub arrived: Vec<(u64, u64)>,
}

impl DatagramMeasurement {
    /// Returns the one-way delays in ascending order.
    pub fn delays(&self) -> Vec<Duration> {
        let mut delays: Vec<Duration> =
            self.arrived.iter().map(|(sent, arrived)| Duration::from_nanos(arrived.saturating_sub(*sent))).collect();
        delays.sort();
        delays
    }

    /// Returns the rate of arrivals between the first arrival and the last, in datagrams per second; 0 with fewer than
    /// two arrivals.
    pub fn arrivals_per_second(&self) -> f64 {
        match (self.arrived.first(), self.arrived.last()) {
            (Some((_, first)), Some((_, last))) if last > first => {
                (self.arrived.len() - 1) as f64 * 1e9 / (last - first) as f64
            }
            _ => 0.0,
        }
    }
}

/// Sends `count` datagrams of `payload_bytes` (at least 8), one per `interval`. If the sender wakes late, it sends the
/// overdue datagrams immediately.
///
/// # Errors
/// Returns the kernel's error.
pub fn measure_datagrams(
    home: &EmulatorNamespace,
    from: PathEndpoint<'_>,
    to: PathEndpoint<'_>,
    payload_bytes: usize,
    interval: Duration,
    count: u64,
) -> io::Result<Measurement<DatagramMeasurement>> {
    let (sender, receiver, address) = sockets(home, from, to)?;
    sys::ask_for_buffer(receiver.as_fd(), 64 << 20)?;
    receiver.set_nonblocking(true)?;
    let over = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&over);
    let taker = std::thread::Builder::new().name("receiver".to_owned()).spawn(move || take_all(&receiver, &asked))?;
    Measurement::start(move || {
        waiting::ask_for_exact_wakeups();
        sender.connect(address)?;
        let mut result = DatagramMeasurement::default();
        let mut payload = vec![0; payload_bytes.max(8)];
        let begin = now_nanos();
        for number in 0..count {
            sleep_until(begin + number * interval.as_nanos());
            payload[..8].copy_from_slice(&now_nanos().to_be_bytes());
            match sender.send(&payload) {
                Ok(_) => result.sent += 1,
                Err(_) => result.refused += 1,
            }
        }
        std::thread::sleep(PATIENCE);
        over.store(true, Ordering::Relaxed);
        result.arrived = taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(result)
    })
}

fn take_all(receiver: &UdpSocket, over: &AtomicBool) -> io::Result<Vec<(u64, u64)>> {
    let mut buffers = Receiver::new();
    let mut batch = [ReceivedMetadata { bytes: 0, stamp_nanos: None }; BATCH];
    let mut arrived = Vec::new();
    loop {
        let count = buffers.receive(receiver.as_fd(), &mut batch)?;
        for (number, received) in batch.iter().enumerate().take(count) {
            let frame = buffers.frame(number, received.bytes);
            if let (Some(sent), Some(at)) = (frame.first_chunk::<8>(), received.stamp_nanos) {
                arrived.push((u64::from_be_bytes(*sent), at));
            }
        }
        if count == 0 {
            if over.load(Ordering::Relaxed) {
                return Ok(arrived);
            }
            // The kernel sets the timestamps, so late reads do not affect the result and leave CPU time to other
            // threads.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Returns the quantile `share` (0 to 1) of sorted values; zero if there are no values.
pub fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get(((sorted.len() as f64 * share) as usize).min(last)).copied().unwrap_or(Duration::ZERO)
}
