//! Real programs at hosts, which are started in order, each when the programs before it are ready, and ended with the
//! run.
//!
//! A separate thread supervises the programs, so that the thread that moves packets never waits for a program. The
//! output of programs is kept in bounded memory. If the run is killed, no files remain.

use super::clock::WallClock;
use super::namespace::{EmulatorNamespace, HostNamespace, OWN_NAME, ProgramNamespaces};
use super::output::Output;
use super::sys;
use fullpipe_units::{Duration, Instant};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// The condition under which programs that depend on this program may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The program has been started.
    Started,
    /// A TCP socket of the program's host listens on this port.
    TcpPort(u16),
    /// A UDP socket of the program's host is bound to this port.
    UdpPort(u16),
    /// The program has printed this text to standard output or standard error.
    Output(String),
    /// The program has exited with its expected exit status.
    Exit,
}

/// Settings of a program.
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// Name in messages and logs.
    pub name: String,
    /// Index of the host on which the program runs.
    pub host: usize,
    /// The program and its arguments; must contain at least the program.
    pub command: Vec<String>,
    /// Environment variables in addition to those of Fullpipe.
    pub environment: Vec<(String, String)>,
    /// Working directory; `None` selects that of Fullpipe.
    pub folder: Option<PathBuf>,
    /// Indices of the programs that must be ready before this program starts.
    pub after: Vec<usize>,
    /// Condition under which the program is ready.
    pub readiness: Readiness,
    /// Maximum time from the start of the program until it is ready. Does not apply to [`Readiness::Exit`].
    pub ready_within: Duration,
    /// Earliest start time, measured from the start of the run.
    pub start: Instant,
    /// Maximum running time of a program that is not in the background. A program that exceeds this time is killed and
    /// counts as failed.
    pub timeout: Duration,
    /// Whether the program runs in the background. Such a program is ended with the run, and the run does not wait for
    /// it to end.
    pub background: bool,
    /// Expected exit status of a program that is not in the background.
    pub exit_status: i32,
    /// Whether the program uses Fullpipe's terminal and standard streams and runs in the foreground. At most one
    /// program of a run can set this field.
    pub terminal: bool,
}

/// The result of a program.
#[derive(Clone, Debug)]
pub struct ProgramOutcome {
    /// Name of the program.
    pub name: String,
    /// How the program ended: its exit status, its signal (such as "signal 9"), or why it was never started.
    pub how: String,
    /// Why the run has failed because of this program; `None` if the program did not fail.
    pub failure: Option<String>,
    /// Start time; `None` if the program was never started.
    pub started: Option<Instant>,
    /// Time at which the end of the program was detected; `None` if the program was never started.
    pub ended: Option<Instant>,
    /// Standard output. If it exceeds 2 MiB, a note replaces the bytes in the middle.
    pub output: Vec<u8>,
    /// Standard error, with the same limit as the standard output.
    pub errors: Vec<u8>,
}

/// Callback for a background program that was ready and ends before the run, with an exit status other than 0. This is no
/// failure of the run. The text contains the name, the status and the last lines of standard error.
pub type EarlyExitCallback = Box<dyn Fn(&str) + Send>;

/// The running programs of a run.
#[derive(Debug)]
pub struct Programs {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    begin: mpsc::Sender<WallClock>,
    thread: JoinHandle<Vec<ProgramOutcome>>,
}

/// Interval between checks of the programs.
const ROUND: std::time::Duration = std::time::Duration::from_millis(2);

/// Time from the termination signal (SIGTERM) until a program is killed (SIGKILL).
const GRACE: Duration = Duration::from_secs(2);

impl Programs {
    /// Prepares the programs of a run, which start with [`Programs::begin`]. [`ProgramSettings::host`] is an index into
    /// `hosts`. Programs can resolve the hosts' `names`. `early_exit` is called in the thread of the programs.
    ///
    /// # Errors
    /// If the kernel does not permit namespaces for the programs.
    pub fn prepare(
        home: &EmulatorNamespace,
        hosts: Arc<Vec<HostNamespace>>,
        names: Vec<(IpAddr, String)>,
        programs: Vec<ProgramSettings>,
        early_exit: Option<EarlyExitCallback>,
    ) -> io::Result<Self> {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (asked, told) = (Arc::clone(&stop), Arc::clone(&done));
        let home = home.clone()?;
        let (made, is_made) = mpsc::channel();
        let (begin, begins) = mpsc::channel();
        let thread = std::thread::Builder::new().name("programs".to_owned()).spawn(move || {
            // The namespaces belong to this thread, so they are created here.
            let nursery = match ProgramNamespaces::new(&home, &names) {
                Ok(nursery) => nursery,
                Err(error) => {
                    let _ = made.send(Err(error));
                    return Vec::new();
                }
            };
            let _ = made.send(Ok(()));
            let mut entries: Vec<Entry> = programs.into_iter().map(Entry::new).collect();
            // If the channel closes first, the run was abandoned before it began.
            if let Ok(clock) = begins.recv() {
                let mut keeper = Keeper { nursery: &nursery, hosts, clock, entries, early_exit };
                keeper.run(&asked, &told);
                entries = keeper.entries;
            }
            nursery.end();
            entries.into_iter().map(Entry::result).collect()
        })?;
        is_made.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts programs has ended")))?;
        Ok(Programs { stop, done, begin, thread })
    }

    /// Starts the programs; `clock` is the clock of the run.
    pub fn begin(&self, clock: WallClock) {
        // If the thread has ended, it has panicked; `finish` resumes the panic.
        let _ = self.begin.send(clock);
    }

    /// Returns whether all programs that are not in the background have ended, or one program has failed.
    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends all running programs and returns the result of each program.
    pub fn finish(self) -> Vec<ProgramOutcome> {
        drop(self.begin);
        self.stop.store(true, Ordering::Relaxed);
        // The thread panics only because of a bug in this crate; the panic is resumed here.
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A program with its state.
#[derive(Debug)]
struct Entry {
    settings: ProgramSettings,
    running: Option<Running>,
    ready: bool,
    over: Option<Over>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    output: Output,
    errors: Output,
    started: Instant,
}

/// A program that has ended.
#[derive(Debug)]
struct Over {
    how: String,
    failure: Option<String>,
    started: Option<Instant>,
    ended: Option<Instant>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

impl Over {
    fn never(how: &str, failure: Option<String>) -> Over {
        Over { how: how.to_owned(), failure, started: None, ended: None, output: Vec::new(), errors: Vec::new() }
    }
}

fn tell(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

/// Returns the last lines of a program's output, for a message.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(5)..].iter().map(|line| format!("\n    {line}")).collect()
}

impl Entry {
    fn new(settings: ProgramSettings) -> Self {
        Entry { settings, running: None, ready: false, over: None }
    }

    fn result(self) -> ProgramOutcome {
        let over = self.over.unwrap_or_else(|| Over::never("not started", None));
        let Over { how, failure, started, ended, output, errors } = over;
        ProgramOutcome { name: self.settings.name, how, failure, started, ended, output, errors }
    }

    /// Records the end of the program, with or without a failure.
    fn close(&mut self, status: Option<ExitStatus>, now: Instant, failure: Option<String>) {
        let Some(mut running) = self.running.take() else { return };
        if self.settings.terminal {
            sys::return_to_foreground();
        }
        running.output.read_rest();
        running.errors.read_rest();
        let (output, errors) = (running.output.into_bytes(), running.errors.into_bytes());
        let how = status.map_or_else(|| "killed".to_owned(), tell);
        let failure = failure.map(|what| format!("program {:?} {what}{}", self.settings.name, last_lines(&errors)));
        self.over = Some(Over { how, failure, started: Some(running.started), ended: Some(now), output, errors });
    }

    fn kill(&mut self, signal: Signal) {
        if let Some(group) = self.running.as_ref().and_then(|running| Pid::from_raw(running.child.id() as i32)) {
            // The program may have ended in the meantime.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Kills the program and waits for its end, which takes a negligible time.
    fn end_at_once(&mut self, now: Instant, failure: Option<String>) {
        self.kill(Signal::KILL);
        let status = self.running.as_mut().and_then(|running| running.child.wait().ok());
        self.close(status, now, failure);
    }

    fn is_ready(&self, host: &HostNamespace) -> bool {
        let Some(running) = &self.running else { return false };
        match &self.settings.readiness {
            Readiness::Started => true,
            Readiness::Exit => false,
            Readiness::TcpPort(port) => host.listens(*port),
            Readiness::UdpPort(port) => host.has_udp_socket(*port),
            Readiness::Output(_) => running.output.has_wanted() || running.errors.has_wanted(),
        }
    }
}

/// The supervisor of the programs.
struct Keeper<'a> {
    nursery: &'a ProgramNamespaces,
    hosts: Arc<Vec<HostNamespace>>,
    clock: WallClock,
    entries: Vec<Entry>,
    early_exit: Option<EarlyExitCallback>,
}

impl Keeper<'_> {
    fn run(&mut self, stop: &AtomicBool, done: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.round();
            if self.is_done() {
                done.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(ROUND);
        }
        self.end_all();
    }

    fn is_done(&self) -> bool {
        let failed = |entry: &Entry| entry.over.as_ref().is_some_and(|over| over.failure.is_some());
        let mut ours = self.entries.iter().filter(|entry| !entry.settings.background).peekable();
        // If all programs are in the background, the run's duration determines the end.
        let all_over = ours.peek().is_some() && ours.all(|entry| entry.over.is_some());
        all_over || self.entries.iter().any(failed)
    }

    fn round(&mut self) {
        let now = self.clock.now();
        for number in 0..self.entries.len() {
            let settings = &self.entries[number].settings;
            let waits = settings.start > now || settings.after.iter().any(|before| !self.entries[*before].ready);
            let entry = &mut self.entries[number];
            if entry.over.is_some() {
                continue;
            }
            if entry.running.is_none() {
                if !waits {
                    self.start_one(number, now);
                }
                continue;
            }
            self.look_after(number, now);
        }
    }

    fn start_one(&mut self, number: usize, now: Instant) {
        let entry = &mut self.entries[number];
        let search_path = self.nursery.search_path();
        let own = self.nursery.executable.as_deref();
        let started = Self::command(&entry.settings, &search_path, own).and_then(|(mut command, output, errors)| {
            let child = self.nursery.spawn(&self.hosts[entry.settings.host], &mut command)?;
            Ok(Running { child, output, errors, started: now })
        });
        match started {
            Ok(running) => {
                entry.running = Some(running);
                entry.ready = entry.settings.readiness == Readiness::Started;
            }
            Err(error) => {
                let what = entry.settings.command.first().map_or("", String::as_str);
                let reason = match error.raw_os_error() {
                    Some(number) if number == Errno::NOENT.raw_os_error() && !what.contains('/') => {
                        "it is not in PATH; install it, or correct `command`".to_owned()
                    }
                    _ => error.to_string(),
                };
                let failure = format!("program {:?}: cannot start {what:?}: {reason}", entry.settings.name);
                entry.over = Some(Over::never("not started", Some(failure)));
            }
        }
    }

    fn command(
        settings: &ProgramSettings,
        search_path: &OsStr,
        own: Option<&Path>,
    ) -> io::Result<(Command, Output, Output)> {
        let [program, arguments @ ..] = settings.command.as_slice() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "`command` is empty"));
        };
        let wanted = match &settings.readiness {
            Readiness::Output(text) => Some(text.as_str()),
            _ => None,
        };
        let (output, to_output) = Output::new(wanted)?;
        let (errors, to_errors) = Output::new(wanted)?;
        // The name `fullpipe` refers to this executable even if the scenario sets `PATH`.
        let own = own.filter(|_| program == OWN_NAME);
        let mut command = own.map_or_else(|| Command::new(program), Command::new);
        command
            .args(arguments)
            .env("PATH", search_path)
            .envs(settings.environment.iter().map(|(name, value)| (name, value)));
        if settings.terminal {
            sys::start_in_foreground(&mut command);
        } else {
            // The program has a separate process group, so an interrupt from the terminal reaches only Fullpipe, which
            // then ends the programs.
            command.stdin(Stdio::null()).stdout(to_output).stderr(to_errors).process_group(0);
        }
        if let Some(folder) = &settings.folder {
            // Without this check, the error would be attributed to the program.
            if !folder.is_dir() {
                let what = format!("no such folder: {}", folder.display());
                return Err(io::Error::new(io::ErrorKind::NotFound, what));
            }
            command.current_dir(folder);
        }
        Ok((command, output, errors))
    }

    fn look_after(&mut self, number: usize, now: Instant) {
        let entry = &mut self.entries[number];
        let Some(running) = &mut entry.running else { return };
        let ran = now.saturating_since(running.started);
        running.output.read();
        running.errors.read();
        if let Ok(Some(status)) = running.child.try_wait() {
            let expected = status.code() == Some(entry.settings.exit_status);
            let early = entry.settings.background && !entry.ready;
            let failure = match (entry.settings.background, expected) {
                (false, true) => None,
                // A background program may exit with any status, but must not be killed by a signal before the run
                // ends.
                (true, _) if !early => status
                    .signal()
                    .map(|_| format!("(background) was killed by {} before the end of the run", tell(status))),
                (true, _) => Some(format!("ended with {} before it was ready", tell(status))),
                (false, false) => {
                    Some(format!("ended with {}; expected exit status {}", tell(status), entry.settings.exit_status))
                }
            };
            entry.ready |= failure.is_none();
            let exited = failure.is_none() && entry.settings.background && !status.success();
            entry.close(Some(status), now, failure);
            if let (true, Some(report), Some(over)) = (exited, &self.early_exit, &entry.over) {
                let (name, errors) = (&entry.settings.name, last_lines(&over.errors));
                report(&format!("program {name:?} (background) ended with {}{errors}", tell(status)));
            }
        } else if ran > entry.settings.timeout && !entry.settings.background {
            entry.end_at_once(now, Some(format!("did not end within its timeout of {}", entry.settings.timeout)));
        } else if !entry.ready {
            entry.ready = entry.is_ready(&self.hosts[entry.settings.host]);
            if !entry.ready && ran > entry.settings.ready_within && entry.settings.readiness != Readiness::Exit {
                entry.end_at_once(now, Some(format!("was not ready within {}", entry.settings.ready_within)));
            }
        }
    }

    /// Sends a termination signal to all programs, and kills those that are still running after [`GRACE`].
    fn end_all(&mut self) {
        let asked = self.clock.now();
        // After one program has failed, the other programs do not count as failed because they are ended.
        let all_well = self.entries.iter().all(|entry| entry.over.as_ref().is_none_or(|over| over.failure.is_none()));
        let failed = |entry: &Entry, what: &str| (all_well && !entry.settings.background).then(|| what.to_owned());
        for number in 0..self.entries.len() {
            if let Some(over) = self.never_started(number, all_well) {
                self.entries[number].over = Some(over);
            }
        }
        self.entries.iter_mut().for_each(|entry| entry.kill(Signal::TERM));
        while self.entries.iter().any(|entry| entry.running.is_some()) {
            let now = self.clock.now();
            let patience = now.saturating_since(asked) < GRACE;
            for entry in &mut self.entries {
                // Background programs may still be running; all others should have ended by themselves.
                let late = failed(entry, "was still running at the end of the run");
                let Some(running) = &mut entry.running else { continue };
                // Reads the output, so that a program that prints while it ends does not block.
                running.output.read();
                running.errors.read();
                match running.child.try_wait() {
                    Ok(Some(status)) => entry.close(Some(status), now, late),
                    _ if patience => {}
                    _ => entry.end_at_once(now, late),
                }
            }
            std::thread::sleep(ROUND);
        }
    }

    /// Returns the result of a program that was not started before the run ended; `None` if it was started.
    fn never_started(&self, number: usize, all_well: bool) -> Option<Over> {
        let entry = &self.entries[number];
        if entry.running.is_some() || entry.over.is_some() {
            return None;
        }
        let settings = &entry.settings;
        let missing = settings.after.iter().map(|before| &self.entries[*before]).filter(|before| !before.ready);
        let missing: Vec<String> = missing.map(|before| format!("{:?}", before.settings.name)).collect();
        let why = if missing.is_empty() {
            format!("it starts at {}", settings.start.saturating_since(Instant::ZERO))
        } else {
            format!("{} was not ready", missing.join(", "))
        };
        let failure = format!("program {:?} was not started before the end of the run, because {why}", settings.name);
        Some(Over::never("not started", (all_well && !settings.background).then_some(failure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(command: &[&str]) -> ProgramSettings {
        ProgramSettings {
            name: "probe".to_owned(),
            host: 0,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![("GREETING".to_owned(), "good day".to_owned())],
            folder: None,
            after: Vec::new(),
            readiness: Readiness::Output("day".to_owned()),
            ready_within: Duration::from_secs(1),
            start: Instant::ZERO,
            timeout: Duration::from_secs(1),
            background: false,
            exit_status: 0,
            terminal: false,
        }
    }

    #[test]
    fn a_program_has_its_environment_and_its_output_is_read() {
        let (mut command, mut output, mut errors) = Keeper::command(
            &settings(&["/bin/sh", "-c", "echo $GREETING; echo bad >&2; exit 4"]),
            OsStr::new("/bin"),
            None,
        )
        .expect("a command");
        let status = command.status().expect("a shell");
        // The ends that the program had are the command's until then.
        drop(command);
        output.read_rest();
        errors.read_rest();
        assert_eq!(tell(status), "exit status 4");
        assert!(output.has_wanted() && !errors.has_wanted());
        assert_eq!((output.into_bytes(), errors.into_bytes()), (b"good day\n".to_vec(), b"bad\n".to_vec()));
    }

    #[test]
    fn a_program_that_cannot_start_is_an_error() {
        let none = Keeper::command(&settings(&[]), OsStr::new("/bin"), None).expect_err("nothing to start");
        assert_eq!(none.to_string(), "`command` is empty");
        let nowhere = ProgramSettings { folder: Some(PathBuf::from("/no/such/folder")), ..settings(&["true"]) };
        let nowhere = Keeper::command(&nowhere, OsStr::new("/bin"), None).expect_err("no folder");
        assert_eq!(nowhere.to_string(), "no such folder: /no/such/folder");
    }

    #[test]
    fn last_lines_are_the_last_five_that_are_not_blank() {
        assert_eq!(last_lines(b""), "");
        assert_eq!(last_lines(b"1\n2\n\n3\n  \n4\n5\n6\n"), "\n    2\n    3\n    4\n    5\n    6");
        assert_eq!(last_lines(&[b'a', 0xff, b'\n']), "\n    a\u{fffd}", "invalid UTF-8 is replaced");
    }
}
