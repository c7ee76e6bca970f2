//! Runs Fullpipe's programs as processes.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fullpipe"));
    command.args(arguments);
    command
}

pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("masque-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    // As `openssl req -x509` creates them: marked as certificates of an authority.
    let names = vec!["localhost".into(), "127.0.0.1".into()];
    let mut parameters = rcgen::CertificateParams::new(names).expect("names");
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), certificate.pem()).expect("a file");
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).expect("a file");
    folder
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// The default template of a proxy at this address.
pub(crate) fn template(address: &str) -> String {
    format!("https://{address}/.well-known/masque/udp/{{target_host}}/{{target_port}}/")
}

/// A Fullpipe server in the background.
pub(crate) struct Server {
    child: Child,
    errors: BufReader<ChildStderr>,
    /// The few lines of a server fit into the pipe.
    output: BufReader<ChildStdout>,
    pub(crate) address: String,
}

impl Server {
    /// Starts the server and waits until it reports its address.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        Server::start_in(&mut command(arguments))
    }

    /// Starts a command that is a server, and waits until it reports its address.
    pub(crate) fn start_in(command: &mut Command) -> Server {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let errors = BufReader::new(child.stderr.take().expect("it is piped"));
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut server = Server { child, errors, output, address: String::new() };
        let mut said = String::new();
        while server.address.is_empty() {
            let line = server.line();
            assert!(!line.is_empty(), "{command:?} ended: {said}");
            if let Some(address) = line.strip_prefix("listening on ") {
                server.address = address.into();
            }
            said.push_str(&line);
        }
        server
    }

    /// The next line on standard error.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.errors.read_line(&mut line).expect("text");
        line.trim_end().into()
    }

    /// Waits for the next line on standard output.
    pub(crate) fn printed(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line
    }

    /// Sends a signal to the server.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for the end of a server that has received a signal.
    pub(crate) fn ended(mut self) {
        let status = self.child.wait().expect("the server ends");
        assert_eq!(status.code(), Some(0));
    }

    /// Ends the server; returns its standard error.
    pub(crate) fn stop(self) -> String {
        self.end().0
    }

    /// Ends the server; returns its standard error and standard output.
    pub(crate) fn end(mut self) -> (String, String) {
        self.signal(rustix::process::Signal::TERM);
        let mut said = String::new();
        self.errors.read_to_string(&mut said).expect("text");
        let status = self.child.wait().expect("the server ends");
        assert_eq!(status.code(), Some(0), "{said}");
        let mut printed = String::new();
        self.output.read_to_string(&mut printed).expect("text");
        (said, printed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Needed only after a failure; a server that was stopped has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
