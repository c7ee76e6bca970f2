//! The environment of a test: a folder, a user and the command, and a check that the machine is unchanged afterwards.

use crate::world::World;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The uid of the user `nobody`.
const NOBODY: u32 = 65534;

/// The user that runs the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The user that runs the tests.
    Caller,
    /// Uid 65534 without capabilities, and without a means to acquire any.
    Nobody,
}

/// Real-time runs share two processors, so only one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A folder with a copy of the command, and a mark in the environment that identifies its processes.
pub(crate) struct Bench {
    folder: PathBuf,
    /// The file name of the command in this folder.
    executable: &'static str,
    user: User,
    mark: String,
    interfaces: BTreeSet<String>,
    own_namespaces: BTreeSet<String>,
    /// Files of `nobody` outside the folder, which a run might have created.
    strange_files: BTreeSet<PathBuf>,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A failed test keeps its folder for inspection.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Bench {
    pub(crate) fn new(name: &str, user: User) -> Bench {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = format!("fullpipe-test-{}-{name}-{user:?}", std::process::id());
        let folder = std::env::temp_dir().join(&mark);
        fs::create_dir_all(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("a folder for everybody");
        // Other users may not have access to the checkout.
        // Another process makes the copy, because a program that another test starts would inherit the open file.
        let mut copy = Command::new("cp");
        let copied = copy.arg(env!("CARGO_BIN_EXE_fullpipe")).arg(folder.join("fullpipe")).status().expect("cp starts");
        assert!(copied.success(), "a copy of the command");
        fs::set_permissions(folder.join("fullpipe"), fs::Permissions::from_mode(0o755)).expect("to run");
        let mut bench = Bench {
            folder,
            executable: "fullpipe",
            user,
            mark,
            interfaces: interfaces(),
            own_namespaces: namespaces_of(Path::new("/proc/self")),
            strange_files: BTreeSet::new(),
            _turn: turn,
        };
        bench.strange_files = bench.files_elsewhere();
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).expect("a file");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644)).expect("for everybody");
    }

    /// Gives the executable another name.
    pub(crate) fn rename_executable(&mut self, name: &'static str) {
        fs::rename(self.path(self.executable), self.path(name)).expect("the executable can be renamed");
        self.executable = name;
    }

    /// The command, about to be called.
    fn command(&self, arguments: &[&str]) -> Command {
        let program = self.path(self.executable);
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let mut command = if is_root && self.user == User::Nobody {
            let mut command = Command::new("setpriv");
            let number = NOBODY.to_string();
            command.args(["--reuid", &number, "--regid", &number, "--clear-groups"]);
            command.args(["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("FULLPIPE_TEST_MARK", &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the command starts (setpriv is from util-linux)")
    }

    /// Runs the command and waits for it.
    pub(crate) fn call(&self, arguments: &[&str]) -> Called {
        Called::new(self, self.start(arguments).wait_with_output().expect("its output"))
    }

    /// Writes `scenario.toml`.
    pub(crate) fn write_scenario(&self, world: &World) {
        self.write("scenario.toml", world.to_string());
    }

    /// Writes `scenario.toml` and runs it in real time.
    pub(crate) fn run(&self, world: &World) -> Called {
        self.write_scenario(world);
        self.call(&["run", "scenario.toml", "--real-time", "--out", "out"])
    }

    /// The folder of the only run in `out`.
    pub(crate) fn run_folder(&self) -> PathBuf {
        let runs: Vec<PathBuf> =
            fs::read_dir(self.path("out/runs")).expect("runs").flatten().map(|entry| entry.path()).collect();
        let [run] = runs.as_slice() else { panic!("one run, not {runs:?}") };
        run.clone()
    }

    /// The `run.json` of the only run.
    pub(crate) fn run_json(&self) -> Value {
        let text = fs::read(self.run_folder().join("run.json")).expect("run.json");
        serde_json::from_slice(&text).expect("JSON")
    }

    /// The standard output of a program of the run.
    pub(crate) fn said(&self, program: &str) -> String {
        fs::read_to_string(self.run_folder().join(format!("{program}.out.txt")))
            .expect("the output of the program is readable")
    }

    /// The processes of calls to the command: the command, its first processes, its programs and their children.
    pub(crate) fn processes(&self) -> Vec<PathBuf> {
        let mark = format!("FULLPIPE_TEST_MARK={}", self.mark);
        let marked = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        all_processes().filter(marked).collect()
    }

    /// The namespaces of these processes, except those of this process. They are held open, otherwise the kernel could
    /// reuse their numbers.
    pub(crate) fn namespaces(&self) -> Namespaces {
        let links = self.processes().into_iter().flat_map(|process| namespace_links(&process).collect::<Vec<_>>());
        let foreign = links.filter(|(name, _)| !self.own_namespaces.contains(name));
        Namespaces(foreign.filter_map(|(name, link)| Some((name, File::open(link).ok()?))).collect())
    }

    /// Asserts that the command has left nothing except the files in its folder. It takes a moment until killed
    /// processes have ended.
    pub(crate) fn assert_nothing_left(&self, namespaces: &Namespaces) {
        let mut left = Vec::new();
        for _ in 0..200 {
            left = self.left(namespaces);
            if left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(left.is_empty(), "left behind: {left:?}");
        assert_eq!(interfaces(), self.interfaces, "interfaces of this machine");
        assert_eq!(self.files_elsewhere(), self.strange_files, "files outside of {}", self.folder.display());
    }

    fn left(&self, namespaces: &Namespaces) -> Vec<String> {
        let namespaces: BTreeSet<String> = namespaces.0.keys().cloned().collect();
        let mut left: Vec<String> =
            self.processes().iter().map(|process| format!("process {}", process.display())).collect();
        // A namespace exists while a thread is in it, a descriptor refers to it, or it is mounted.
        let own = PathBuf::from("/proc").join(std::process::id().to_string());
        // Zombies that process 1 of the machine has not reaped yet count as ended.
        for process in all_processes().filter(|process| *process != own && !is_dead(process)) {
            let fds = fs::read_dir(process.join("fd")).into_iter().flatten().flatten().map(|fd| fd.path());
            let held: BTreeSet<String> = fds.filter_map(|fd| link(&fd)).chain(namespaces_of(&process)).collect();
            left.extend(
                held.intersection(&namespaces).map(|namespace| format!("{namespace} by {}", process.display())),
            );
            let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            left.extend(namespaces.iter().filter(|namespace| mounts.contains(*namespace)).cloned());
        }
        left
    }

    /// Files of the ordinary user in places where programs often leave files.
    fn files_elsewhere(&self) -> BTreeSet<PathBuf> {
        if self.user == User::Caller {
            return BTreeSet::new();
        }
        let places = ["/tmp", "/var/tmp", "/dev/shm", "/run"].map(|place| fs::read_dir(place).into_iter().flatten());
        let entries = places.into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == NOBODY))
            .map(|entry| entry.path())
            .collect()
    }
}

/// Namespaces of a run, by name.
#[derive(Debug, Default)]
pub(crate) struct Namespaces(BTreeMap<String, File>);

impl Namespaces {
    pub(crate) fn extend(&mut self, more: Namespaces) {
        self.0.extend(more.0);
    }

    /// The number of namespaces of a kind: `net`, `pid`, `user` and so on.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.0.keys().filter(|name| name.starts_with(kind)).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A completed call of the command.
pub(crate) struct Called {
    pub(crate) status: Option<i32>,
    pub(crate) errors: String,
    /// The output of `doctor`, if namespaces are not permitted.
    advice: String,
}

impl Called {
    pub(crate) fn new(bench: &Bench, output: Output) -> Called {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let mut advice = String::new();
        if errors.contains("this machine does not support real time") {
            let doctor = bench.command(&["doctor"]).output().expect("doctor");
            advice = String::from_utf8_lossy(&doctor.stdout).into_owned();
        }
        Called { status: output.status.code(), errors, advice }
    }

    /// Asserts an exit status.
    pub(crate) fn ended_with(self, status: i32) -> Called {
        assert_eq!(self.status, Some(status), "{}\n{}", self.errors, self.advice);
        self
    }

    /// Asserts that standard error contains this text.
    pub(crate) fn said(self, text: &str) -> Called {
        assert!(self.errors.contains(text), "expected {text:?} in: {}", self.errors);
        self
    }
}

fn all_processes() -> impl Iterator<Item = PathBuf> {
    let is_number = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u32>().is_ok());
    fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path()).filter(is_number)
}

fn is_dead(process: &Path) -> bool {
    let state = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The preceding name is in parentheses, and may contain parentheses.
    state.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
}

fn link(path: &Path) -> Option<String> {
    fs::read_link(path).ok().map(|target| target.to_string_lossy().into_owned())
}

/// The names, such as "net:[4026532008]", and the paths of the namespaces of all threads of a process.
fn namespace_links(process: &Path) -> impl Iterator<Item = (String, PathBuf)> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let entries = threads.flat_map(|thread| fs::read_dir(thread.path().join("ns")).into_iter().flatten().flatten());
    entries.filter_map(|entry| Some((link(&entry.path())?, entry.path())))
}

fn namespaces_of(process: &Path) -> BTreeSet<String> {
    namespace_links(process).map(|(name, _)| name).collect()
}

fn interfaces() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/self/net/dev").expect("the interfaces");
    table.lines().skip(2).filter_map(|line| line.split(':').next()).map(|name| name.trim().to_owned()).collect()
}
