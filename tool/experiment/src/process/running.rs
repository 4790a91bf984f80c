//! A program that runs, under its guard.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::IpAddr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    command::last_lines,
    guard::{Orders, STARTED, WAITING},
    link::{Link, LinkError},
    memory::MemoryLimit,
    program,
    ready::Sign,
};
use crate::definition::StopSignal;

/// How often to look whether a program is ready.
const INTERVAL: Duration = Duration::from_millis(10);

/// A program that did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No such program.
    #[error("{name}: there is no program `{program}` here: install it, or give its whole path")]
    Missing {
        /// What the experiment calls it.
        name: String,
        /// What was looked for.
        program: String,
    },
    /// It could not be started.
    #[error("cannot start {name}: {source}")]
    Spawn {
        /// What the experiment calls it.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The link to it could not be made.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It ended before it was ready.
    #[error("{name} did not start: {how}. Its last lines: {said}")]
    Ended {
        /// What the experiment calls it.
        name: String,
        /// How it ended.
        how: String,
        /// Its last lines.
        said: String,
    },
    /// It never got ready.
    #[error("{name} was not ready within {within:?}: waited for {sign}. Its last lines: {said}")]
    NotReady {
        /// What the experiment calls it.
        name: String,
        /// How long it had.
        within: Duration,
        /// What was waited for.
        sign: String,
        /// Its last lines.
        said: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// How guards are started.
#[derive(Debug, Clone)]
pub(crate) struct Guards {
    /// This program.
    pub(crate) program: PathBuf,
    /// Its arguments that make it a guard.
    pub(crate) arguments: Vec<String>,
}

/// Everything that makes a program run as it does. A program whose launch stays the same need not start anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) processors: Option<Vec<usize>>,
    pub(crate) memory: Option<u64>,
    pub(crate) sign: Sign,
    pub(crate) ready_within: Duration,
    pub(crate) stop: StopSignal,
    pub(crate) stop_within: Duration,
}

/// A guard that waits to be told what to start.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What the experiment calls the program: `peer 3`.
    name: String,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    link: Option<Link>,
}

impl Guard {
    /// Starts a guard, in a network namespace of its own behind a link of this rate, if one is given.
    pub(crate) fn start(name: &str, guards: &Guards, link_mbit: Option<u32>) -> Result<Self, StartError> {
        let spawn = |source| StartError::Spawn { name: name.into(), source };
        let mut command = match link_mbit {
            None => Command::new(&guards.program),
            Some(_) => {
                super::link::check()?;
                let mut command = Command::new("unshare");
                command.args(["--net", "--"]).arg(&guards.program);
                command
            }
        };
        // A group of its own: Ctrl-C is for nstar, which stops the programs in order.
        command.args(&guards.arguments).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(spawn)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(spawn(io::Error::other("it has no stdin")));
        };
        let mut guard = Guard { name: name.into(), child, stdin, stdout: BufReader::new(stdout), link: None };
        // From now on it is in its namespace.
        guard.hear(WAITING)?;
        if let Some(mbit) = link_mbit {
            guard.link = Some(Link::to_process(guard.child.id(), mbit)?);
        }
        Ok(guard)
    }

    /// Waits for the guard to say this.
    fn hear(&mut self, expected: &str) -> Result<(), StartError> {
        let mut said = String::new();
        let heard = self.stdout.read_line(&mut said);
        let source = match heard {
            Ok(_) if said.trim() == expected => return Ok(()),
            Ok(_) => io::Error::other(said.trim().to_owned()),
            Err(error) => error,
        };
        Err(StartError::Spawn { name: self.name.clone(), source })
    }

    /// Where the program will be reached, if not on loopback.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.link.as_ref().map(Link::server_address)
    }

    /// Starts the program. Returns what could not be done besides.
    pub(crate) fn launch(
        mut self,
        launch: Launch,
        place: Place<'_>,
    ) -> Result<(Running, Option<String>), StartError> {
        let name = self.name.clone();
        let spawn = |source| StartError::Spawn { name: name.clone(), source };
        let program = launch.words.first().cloned().unwrap_or_default();
        let found = program::find(&program, place.own);
        let found = found.ok_or_else(|| StartError::Missing { name: name.clone(), program })?;
        let (memory, unlimited) = memory(&launch, self.child.id());
        let log = place.folder.join(format!("{}.log", crate::names::slug(&name)));
        // What an earlier start printed is no sign of this one.
        let _ = fs::remove_file(&log);
        let mut words = launch.words.clone();
        if let Some(first) = words.first_mut() {
            *first = found.display().to_string();
        }
        let orders = Orders {
            words,
            environment: launch.environment.clone(),
            folder: place.folder.into(),
            log: log.clone(),
            processors: launch.processors.clone(),
            cgroup: memory.as_ref().map(MemoryLimit::entrance),
            stop: launch.stop,
            stop_within_ms: u64::try_from(launch.stop_within.as_millis()).unwrap_or(u64::MAX),
        };
        let mut text = serde_json::to_string(&orders).map_err(|error| spawn(error.into()))?;
        text.push('\n');
        self.stdin.write_all(text.as_bytes()).map_err(spawn)?;
        self.hear(STARTED)?;
        let Guard { name, child, stdin, stdout, link } = self;
        let mut running = Running { name, launch, child, stdin: Some(stdin), stdout, log, memory, link };
        running.wait_until_ready(place.interrupt)?;
        Ok((running, unlimited))
    }
}

/// Where a program runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The experiment's folder.
    pub(crate) folder: &'a Path,
    /// This program.
    pub(crate) own: &'a Path,
    /// Set once the user asks to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// The limit on memory, and why there is none although one is wanted.
fn memory(launch: &Launch, number: u32) -> (Option<MemoryLimit>, Option<String>) {
    let Some(bytes) = launch.memory else { return (None, None) };
    match MemoryLimit::new(&format!("nstar-{number}"), bytes) {
        Ok(limit) => (Some(limit), None),
        Err(error) => (None, Some(format!("its memory could not be limited: {error}; that needs root"))),
    }
}

/// A running program. It and all that it started end when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    /// How it was started.
    pub(crate) launch: Launch,
    child: Child,
    /// The guard ends its program when this closes.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    log: PathBuf,
    // Dropped after the program has ended.
    memory: Option<MemoryLimit>,
    link: Option<Link>,
}

impl Running {
    fn wait_until_ready(&mut self, interrupt: &AtomicBool) -> Result<(), StartError> {
        let deadline = Instant::now() + self.launch.ready_within;
        loop {
            // First: another program may answer at a port that this one could not take.
            if let Some(how) = self.ended() {
                return Err(StartError::Ended { name: self.name.clone(), how, said: self.said() });
            }
            if self.launch.sign.is_there(&self.log) {
                return match self.ended() {
                    None => Ok(()),
                    Some(how) => Err(StartError::Ended { name: self.name.clone(), how, said: self.said() }),
                };
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(StartError::Interrupted);
            }
            if Instant::now() >= deadline {
                let (name, within, sign) =
                    (self.name.clone(), self.launch.ready_within, self.launch.sign.name());
                return Err(StartError::NotReady { name, within, sign, said: self.said() });
            }
            thread::sleep(INTERVAL);
        }
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten()?;
        let mut how = String::new();
        // What cannot be read is not told.
        let _ = self.stdout.read_to_string(&mut how);
        Some(if how.trim().is_empty() { "it was killed".into() } else { how.trim().into() })
    }

    /// What it printed last.
    pub(crate) fn said(&self) -> String {
        let said = last_lines(&self.log);
        if said.is_empty() { "none".into() } else { said }
    }

    /// Asks it to end, without waiting.
    pub(crate) fn ask_to_stop(&mut self) {
        self.stdin = None;
    }

    /// What the experiment calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_stop();
        // The guard ends by itself, at the latest when it has killed its program.
        let _ = self.child.wait();
        // The interface first, which needs the namespace no longer.
        self.link = None;
        self.memory = None;
    }
}
