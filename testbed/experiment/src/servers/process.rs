//! The systems under test as child processes, watched like any other server.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead, BufReader},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use database_server::DatabaseError;
use load::{Plan, Scenario};
use share::client::RequestError;

use super::link::LinkError;

/// How long a system may take to say where it listens.
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a system may take to end before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// A running system. Stops when dropped; ends by itself if this process dies.
#[derive(Debug)]
pub(crate) struct System {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Whether it speaks TLS; its certificate is not verified.
    pub(crate) secure: bool,
    /// Its first line on stdout, which says where it listens.
    said: String,
    child: Child,
    // Held open: the system ends when it closes.
    _stdin: Option<ChildStdin>,
}

/// A system that did not start.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The program itself would not run.
    #[error("cannot start {name}: {source}")]
    Spawn {
        /// Which system.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The files that a peer shares could not be made.
    #[error("cannot make the files that peers share: {0}; set TMPDIR to a folder with room")]
    Files(io::Error),
    /// A peer could not be asked.
    #[error(transparent)]
    Ask(#[from] RequestError),
    /// The database under it could not be started.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The link to it could not be made.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It never said where it listens.
    #[error("{name} did not start: {said}")]
    NotListening {
        /// Which system.
        name: String,
        /// Its last message on stderr.
        said: String,
    },
}

/// How to start a system of this repository.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    /// The program that serves it.
    pub(crate) program: &'a Path,
    /// Its name after `PROGRAM serve`.
    pub(crate) name: &'a str,
    /// Flags beyond `--listen` and `--cpus`.
    pub(crate) flags: Vec<OsString>,
    /// Processors for it, if it is to be confined.
    pub(crate) processors: Option<&'a [usize]>,
    /// Folder for its log.
    pub(crate) folder: &'a Path,
    /// Whether it gets a network namespace of its own, in which nothing is reachable yet. Needs root.
    pub(crate) namespace: bool,
}

impl Start<'_> {
    /// Starts it in a network namespace of its own.
    pub(crate) fn in_a_namespace(mut self) -> Self {
        self.namespace = true;
        self
    }
}

impl System {
    /// Starts a system on a free loopback port and waits until it listens.
    pub(crate) fn start(start: &Start<'_>) -> Result<Self, SystemError> {
        let log = start.folder.join(format!("{}.log", start.name));
        let mut child =
            spawn(start, &log).map_err(|source| SystemError::Spawn { name: start.name.into(), source })?;
        let stdin = child.stdin.take();
        let said = first_line(&mut child).unwrap_or_default();
        let place = place_in(&said);
        let address = ([127, 0, 0, 1], 0).into();
        let mut system = System { address, secure: false, said, child, _stdin: stdin };
        match place {
            Some((secure, address)) => {
                (system.secure, system.address) = (secure, address);
                Ok(system)
            }
            None => {
                system.stop();
                Err(SystemError::NotListening { name: start.name.into(), said: last_words(&log) })
            }
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sets the address at which it is reached, where that is not the one it listens on.
    pub(crate) fn reached_at(&mut self, address: IpAddr) {
        self.address.set_ip(address);
    }

    /// Base URL of the system.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// The address after these words in its first line.
    pub(crate) fn address_after(&self, words: &str) -> Option<SocketAddr> {
        let (_, rest) = self.said.split_once(words)?;
        rest.split([' ', ',', ')', '\n']).next()?.parse().ok()
    }

    /// A load on this system.
    pub(crate) fn load(&self, scenario: Scenario) -> Plan {
        let scenario = match self.url().parse() {
            Ok(base) => scenario.with_base(base),
            Err(_) => scenario,
        };
        Plan { insecure: self.secure, ..Plan::new(scenario) }
    }

    /// Tells it to end, without waiting.
    pub(crate) fn tell_to_stop(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Fails only if it has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn stop(&mut self) {
        self.tell_to_stop();
        let deadline = Instant::now() + STOP_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(start: &Start<'_>, log: &Path) -> io::Result<Child> {
    let mut command = if start.namespace {
        let mut command = Command::new("unshare");
        command.args(["--net", "--"]).arg(start.program);
        command.args(["serve", start.name, "--listen", "0.0.0.0:0", "--open-to-all"]);
        command
    } else {
        let mut command = Command::new(start.program);
        command.args(["serve", start.name, "--listen", "127.0.0.1:0"]);
        command
    };
    command.arg("--until-stdin-closes");
    if let Some(processors) = start.processors {
        let list: Vec<_> = processors.iter().map(usize::to_string).collect();
        command.arg("--cpus").arg(list.join(","));
    }
    command.args(&start.flags);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log)?).spawn()
}

/// The first line on stdout. `None` if the child ends, or prints none in time.
fn first_line(child: &mut Child) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stdout);
        let mut line = String::new();
        let found = lines.read_line(&mut line).is_ok_and(|count| count > 0);
        // The receiver is gone only when it has stopped waiting.
        let _ = sender.send(found.then_some(line));
        // Later lines are read and dropped, so that the child never blocks on a full pipe.
        let _ = io::copy(&mut lines, &mut io::sink());
    });
    receiver.recv_timeout(START_LIMIT).ok().flatten()
}

/// The address in `listening on http://127.0.0.1:4711 ...`, and whether it is spoken to over TLS.
fn place_in(line: &str) -> Option<(bool, SocketAddr)> {
    line.split_whitespace().find_map(|word| {
        let (scheme, address) = word.split_once("://")?;
        Some((scheme == "https", address.parse().ok()?))
    })
}

/// The last line of a log, or the error about the command line, which comes before the hint to use --help.
fn last_words(log: &PathBuf) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let said = || text.lines().rev().filter(|line| !line.trim().is_empty());
    let wrong = said().find_map(|line| line.strip_prefix("error: "));
    wrong.or_else(|| said().next()).unwrap_or("it said nothing").trim_start_matches("nstar-lab: ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_a_server_says() {
        let line = "listening on http://127.0.0.1:4711 (files, engine epoll, 2 loops)\n";
        let address = "127.0.0.1:4711".parse().expect("an address");
        assert_eq!(place_in(line), Some((false, address)));
        assert_eq!(place_in(&line.replace("http", "https")), Some((true, address)));
        assert_eq!(place_in("no address here"), None);
    }

    #[test]
    fn a_system_that_ends_at_once_is_an_error_with_its_last_words() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = Start {
            program: Path::new("/bin/false"),
            name: "files",
            flags: vec![],
            processors: None,
            folder: folder.path(),
            namespace: false,
        };
        let error = System::start(&start).expect_err("false never listens");
        assert!(error.to_string().contains("files did not start"), "{error}");
    }
}
