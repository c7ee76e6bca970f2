//! The benchmark `masque-loopback`: the goodput of Fullpipe's proxy over real sockets, compared with that of
//! masque-go's proxy.
//!
//! Fullpipe's HTTP/3 server, the proxy and the HTTP/3 client are processes on loopback. The client gets 100 MB through
//! the proxy in datagram mode. The two proxies alternate, with seven transfers each after one warm-up transfer each;
//! medians are reported. The connection in the tunnel has packets of 1200 bytes. With larger packets, masque-go's proxy
//! would end the direction from the target at the first payload that does not fit. The Go toolchain builds masque-go at
//! a pinned version. If that fails, only Fullpipe's proxy is measured.

use crate::exit::Failure;
use crate::measurement;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

const ROUNDS: usize = 7;
const BYTES: u64 = 100_000_000;

/// The number of attempts to reach masque-go's proxy, which does not report when it is ready. An attempt without a
/// response takes seconds.
const TRIES: u32 = 5;

const GO_MODULE: [(&str, &str); 2] =
    [("go.mod", include_str!("../../masque-go/go.mod")), ("go.sum", include_str!("../../masque-go/go.sum"))];

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::machine(format!("masque-loopback: {what}: {error}"))
}

/// A folder that is removed when the value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Failure> {
        let path = std::env::temp_dir().join(format!("fullpipe-masque-loopback-{}", std::process::id()));
        fs::create_dir(&path).map_err(failed("no folder"))?;
        Ok(Folder(path))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        fs::write(self.0.join(name), text).map_err(failed(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the folder cannot be removed, it remains among the temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that is ended when the value is dropped.
struct Running {
    child: Child,
    address: String,
    metrics: Option<String>,
    /// Kept open, because a server that cannot write its log would end. Its few lines fit into the pipe.
    _log: Option<BufReader<ChildStderr>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ourselves() -> Result<Command, Failure> {
    std::env::current_exe().map(Command::new).map_err(failed("cannot find the executable of fullpipe"))
}

impl Running {
    /// Starts a Fullpipe server, which prints its address.
    fn start(arguments: &[&str]) -> Result<Running, Failure> {
        let mut child = ourselves()?
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed("a server"))?;
        let log = child.stderr.take().map(BufReader::new);
        let mut running = Running { child, address: String::new(), metrics: None, _log: log };
        let log = running._log.as_mut();
        let log = log.ok_or_else(|| Failure::machine("masque-loopback: a server without standard error"))?;
        running.address = line_after(log, "listening on ")?;
        if arguments.contains(&"--metrics") {
            running.metrics = Some(line_after(log, "metrics on ")?);
        }
        Ok(running)
    }

    /// Returns the exit status of the process if it has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns the CPU time of the process so far in seconds, on systems with proc(5).
    #[cfg(unix)]
    fn cpu_seconds(&self) -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name, in parentheses, can contain any character. User and system time are the fields 14 and 15 (proc(5)).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = [11, 12].into_iter().filter_map(|field| fields.get(field)?.parse::<u64>().ok()).sum();
        Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    #[cfg(not(unix))]
    fn cpu_seconds(&self) -> Option<f64> {
        None
    }

    fn peak_rss_bytes(&self) -> Option<u64> {
        measurement::peak_rss_bytes_of(&self.child.id().to_string())
    }
}

fn line_after(log: &mut impl BufRead, words: &str) -> Result<String, Failure> {
    let mut said = String::new();
    for line in log.lines() {
        let line = line.map_err(failed("a server"))?;
        if let Some(rest) = line.strip_prefix(words) {
            return Ok(rest.to_owned());
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(Failure::machine(format!("masque-loopback: a server ended: {}", said.trim_end())))
}

/// Builds masque-go's proxy, or returns the reason why it cannot be built.
fn build_masque_go(folder: &Folder) -> Result<PathBuf, String> {
    let module = folder.0.join("masque-go");
    fs::create_dir(&module).map_err(|error| error.to_string())?;
    for (name, text) in GO_MODULE {
        fs::write(module.join(name), text).map_err(|error| error.to_string())?;
    }
    let output = Command::new("go")
        .args(["build", "-o", "proxy", "github.com/quic-go/masque-go/cmd/proxy"])
        .current_dir(&module)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("no Go toolchain: {error}"))?;
    match output.status.success() {
        true => Ok(module.join("proxy")),
        false => Err(format!("it does not build: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Returns the template of requests to `masque proxy` and to masque-go's proxy.
fn template(address: &str) -> String {
    format!("https://{address}/.well-known/masque/udp/{{target_host}}/{{target_port}}/")
}

struct Bench {
    folder: Folder,
    server: Running,
}

impl Bench {
    fn new() -> Result<Bench, Failure> {
        let folder = Folder::new()?;
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()])
            .map_err(|error| Failure::machine(format!("masque-loopback: cannot create a certificate: {error}")))?;
        folder.write("cert.pem", &made.cert.pem())?;
        folder.write("key.pem", &made.signing_key.serialize_pem())?;
        let root = folder.0.join("root");
        fs::create_dir(&root).map_err(failed("no folder"))?;
        fs::File::create(root.join("body")).and_then(|file| file.set_len(BYTES)).map_err(failed("no file"))?;
        let (cert, key, root) = (folder.path("cert.pem"), folder.path("key.pem"), folder.path("root"));
        let identity = ["--listen", "127.0.0.1:0", "--cert", &cert, "--key", &key];
        let server =
            Running::start(&[&["http3", "serve"], &identity[..], &["--root", &root, "--mtu", "1200"]].concat())?;
        Ok(Bench { folder, server })
    }

    fn our_proxy(&self) -> Result<Running, Failure> {
        let (cert, key) = (self.folder.path("cert.pem"), self.folder.path("key.pem"));
        let identity = ["--listen", "127.0.0.1:0", "--cert", &cert, "--key", &key];
        let more = ["--allow-private", "--metrics", "127.0.0.1:0"];
        Running::start(&[&["masque", "proxy"], &identity[..], &more].concat())
    }

    /// Starts masque-go's proxy, or returns the reason why it is not available.
    fn masque_go(&self) -> Result<Running, String> {
        let program = build_masque_go(&self.folder)?;
        let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = free.map_err(|error| error.to_string())?.to_string();
        let (cert, key) = (self.folder.path("cert.pem"), self.folder.path("key.pem"));
        let child = Command::new(program)
            .args(["-t", &template(&address), "-b", &address, "-c", &cert, "-k", &key])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut running = Running { child, address, metrics: None, _log: None };
        for _ in 1..TRIES {
            if self.goodput_bps(Some(&running)).is_ok() {
                return Ok(running);
            }
            if let Some(status) = running.ended() {
                return Err(format!("it ended with {status}"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.goodput_bps(Some(&running)).map(|_| running).map_err(|error| error.to_string())
    }

    /// Runs one transfer, through a proxy or without one.
    fn goodput_bps(&self, proxy: Option<&Running>) -> Result<f64, Failure> {
        let url = format!("https://{}/body", self.server.address);
        let mut command = ourselves()?;
        command.args(["http3", "get", &url, "--insecure", "--mtu", "1200", "--json"]);
        if let Some(proxy) = proxy {
            command.args(["--via", &template(&proxy.address)]);
        }
        let output = command.stdin(Stdio::null()).output().map_err(failed("a client"))?;
        let got: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        match (got["bytes"].as_u64(), got["completion_ms"].as_f64()) {
            (Some(BYTES), Some(milliseconds)) if output.status.success() => Ok(BYTES as f64 * 8e3 / milliseconds),
            _ => {
                let said = String::from_utf8_lossy(&output.stderr);
                Err(Failure::run(format!("masque-loopback: the transfer failed: {}", said.trim())))
            }
        }
    }
}

/// Returns the number of payloads that Fullpipe's proxy has forwarded in either direction.
fn carried(proxy: &Running) -> Option<u64> {
    let address: SocketAddr = proxy.metrics.as_ref()?.parse().ok()?;
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(number("fullpipe_masque_payloads_to_target_total ")? + number("fullpipe_masque_payloads_from_target_total ")?)
}

/// The results of the transfers through one proxy.
#[derive(Default)]
struct Figures {
    goodputs_bps: Vec<f64>,
    cpu_seconds: f64,
}

impl Figures {
    fn add(&mut self, bench: &Bench, proxy: &Running) -> Result<(), Failure> {
        let before = proxy.cpu_seconds();
        self.goodputs_bps.push(bench.goodput_bps(Some(proxy))?);
        if let (Some(before), Some(after)) = (before, proxy.cpu_seconds()) {
            self.cpu_seconds += after - before;
        }
        Ok(())
    }

    fn median_bps(&self) -> f64 {
        measurement::median(self.goodputs_bps.clone())
    }
}

/// Runs the measurement and returns the benchmark's row.
pub(crate) fn measure() -> Result<Value, Failure> {
    let bench = Bench::new()?;
    let ours = bench.our_proxy()?;
    let (theirs, why_not) = match bench.masque_go() {
        Ok(running) => (Some(running), None),
        Err(reason) => (None, Some(reason)),
    };
    if let Some(reason) = &why_not {
        eprintln!("masque-loopback: masque-go's proxy is not measured: {reason}");
    }
    bench.goodput_bps(Some(&ours))?;
    let begin = carried(&ours);
    let (mut our_figures, mut their_figures, mut direct) = (Figures::default(), Figures::default(), Vec::new());
    for _ in 0..ROUNDS {
        our_figures.add(&bench, &ours)?;
        if let Some(theirs) = &theirs {
            their_figures.add(&bench, theirs)?;
        }
        direct.push(bench.goodput_bps(None)?);
    }
    let packets = carried(&ours).zip(begin).map(|(end, begin)| end - begin);
    let seconds = our_figures.goodputs_bps.iter().map(|bps| BYTES as f64 * 8.0 / bps).sum();
    let counts = [packets, packets.map(|packets| packets * 2)];
    let (goodput, their_goodput) = (our_figures.median_bps(), theirs.as_ref().map(|_| their_figures.median_bps()));
    let further = json!({
        "goodput_bps": goodput,
        "goodputs_bps": our_figures.goodputs_bps,
        "direct_goodput_bps": measurement::median(direct),
        "masque_go_goodput_bps": their_goodput,
        "masque_go_goodputs_bps": theirs.as_ref().map(|_| &their_figures.goodputs_bps),
        "masque_go_cpu_seconds": theirs.as_ref().map(|_| their_figures.cpu_seconds),
        "masque_go_peak_rss_bytes": theirs.as_ref().and_then(Running::peak_rss_bytes),
        "ratio_to_masque_go": their_goodput.map(|theirs| goodput / theirs),
        "masque_go_missing": why_not,
    });
    Ok(measurement::row(measurement::MASQUE, seconds, counts, our_figures.cpu_seconds, ours.peak_rss_bytes(), further))
}

/// Returns the row in words.
pub(crate) fn describe(row: &Value) -> String {
    let megabits = |key: &str| row[key].as_f64().unwrap_or(f64::NAN) / 1e6;
    let seconds = |key: &str| row[key].as_f64().unwrap_or(f64::NAN) / ROUNDS as f64;
    let ours = format!(
        "masque-loopback: {:.0} Mbit/s through our proxy ({:.2} CPU seconds for 100 MB), {:.0} without one",
        megabits("goodput_bps"),
        seconds("cpu_seconds"),
        megabits("direct_goodput_bps"),
    );
    match row["ratio_to_masque_go"].as_f64() {
        Some(ratio) => format!(
            "{ours}, {:.0} through masque-go's ({:.2} CPU seconds): {ratio:.2} times that",
            megabits("masque_go_goodput_bps"),
            seconds("masque_go_cpu_seconds"),
        ),
        None => format!("{ours}; masque-go's proxy was not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn row_is_described_with_and_without_masque_go() {
        let mut row = json!({
            "goodput_bps": 8e8, "cpu_seconds": 3.5, "direct_goodput_bps": 2e9, "masque_go_goodput_bps": 4e8,
            "masque_go_cpu_seconds": 14.0, "ratio_to_masque_go": 2.0,
        });
        assert_eq!(
            describe(&row),
            "masque-loopback: 800 Mbit/s through our proxy (0.50 CPU seconds for 100 MB), 2000 without one, 400 through \
             masque-go's (2.00 CPU seconds): 2.00 times that"
        );
        row["ratio_to_masque_go"] = Value::Null;
        assert!(describe(&row).ends_with("2000 without one; masque-go's proxy was not measured"));
    }

    #[test]
    fn server_that_ends_before_it_listens_is_an_error() {
        let mut log = &b"note: something\nlistening on 127.0.0.1:5\nmetrics on 127.0.0.1:6\n"[..];
        assert_eq!(line_after(&mut log, "listening on ").as_deref(), Ok("127.0.0.1:5"));
        assert_eq!(line_after(&mut log, "metrics on ").as_deref(), Ok("127.0.0.1:6"));
        assert!(line_after(&mut log, "metrics on ").is_err());
        let mut log = &b"cert.pem: the file contains no certificate\nend\n"[..];
        let failure = line_after(&mut log, "listening on ").map_err(|failure| failure.message);
        assert_eq!(
            failure,
            Err("masque-loopback: a server ended: cert.pem: the file contains no certificate\nend".into())
        );
    }

    #[test]
    fn running_process_reports_its_cpu_time() {
        let child = Command::new("sleep").arg("10").spawn().expect("the command starts");
        let mut running = Running { child, address: String::new(), metrics: None, _log: None };
        assert!(running.ended().is_none());
        assert!(cfg!(not(target_os = "linux")) || running.cpu_seconds().is_some_and(|seconds| seconds < 1.0));
        assert!(Path::new("/proc").exists() == running.peak_rss_bytes().is_some());
        running.child.kill().and_then(|()| running.child.wait()).expect("the child process can be ended");
        assert!(running.ended().is_some_and(|status| !status.success()));
    }
}
