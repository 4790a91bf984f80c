//! A program that runs, under its guard.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use analysis::{
    comparison::{Ending, LeftOutCause},
    run::Cause,
};

use super::{
    Trouble,
    command::{Surroundings, last_lines, millis},
    guard::{KILLED_WITHIN, Orders, REMOVED_WITHIN, STARTED, Task, WAITING},
    limit::{Cgroup, Limit},
    link::{Link, LinkPlan},
    program,
    ready::Sign,
};
use crate::definition::StopSignal;

/// How often to look whether a program is ready.
const INTERVAL: Duration = Duration::from_millis(10);
/// What a guard may take longer than its program, on a busy machine.
const SLACK: Duration = Duration::from_secs(10);

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
    pub(crate) limits: Vec<Limit>,
    pub(crate) link_mbit: Option<u32>,
    /// Commands that run before it starts.
    pub(crate) before: Vec<Vec<String>>,
    pub(crate) sign: Sign,
    pub(crate) ready_within: Duration,
    pub(crate) stop: StopSignal,
    pub(crate) stop_within: Duration,
}

fn not_started(process: &str, error: &io::Error) -> LeftOutCause {
    LeftOutCause::NotStarted { process: process.into(), error: error.to_string() }
}

/// A guard, and the program under it once that is started. Both end when this is dropped.
#[derive(Debug)]
pub(crate) struct Guard {
    /// What the experiment calls the program: `peer 3`.
    name: String,
    child: Child,
    /// The guard ends its program when this closes.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    link: Option<Link>,
    /// How long it may take once its stdin closes.
    ends_within: Duration,
}

impl Guard {
    /// Starts a guard; with a link, in a network namespace of its own behind it.
    pub(crate) fn start(name: &str, guards: &Guards, link: Option<LinkPlan>) -> Result<Self, Trouble> {
        let spawn = |error: io::Error| not_started(name, &error);
        let mut command = match link {
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
            return Err(spawn(io::Error::other("it has no stdin")).into());
        };
        let stdout = BufReader::new(stdout);
        let mut guard =
            Guard { name: name.into(), child, stdin: Some(stdin), stdout, link: None, ends_within: SLACK };
        // From now on it is in its namespace.
        guard.expect_line(WAITING)?;
        if let Some(plan) = link {
            guard.link = Some(Link::to_process(guard.child.id(), plan)?);
        }
        Ok(guard)
    }

    /// Starts a guard that removes this folder once it is dropped, or once this process is gone.
    pub(crate) fn of_folder(folder: &Path, guards: &Guards) -> Result<Self, Trouble> {
        let mut guard = Guard::start("the guard of the folder", guards, None)?;
        guard.ends_within += REMOVED_WITHIN;
        guard.tell(&Task::Remove(folder.into()))?;
        Ok(guard)
    }

    /// Has the guard start its program.
    pub(super) fn order(&mut self, orders: Orders) -> Result<(), Trouble> {
        self.ends_within += Duration::from_millis(orders.stop_within_ms) + KILLED_WITHIN;
        self.tell(&Task::Run(orders))
    }

    fn tell(&mut self, task: &Task) -> Result<(), Trouble> {
        let mut text = serde_json::to_string(task).map_err(|error| not_started(&self.name, &error.into()))?;
        text.push('\n');
        if let Some(Err(error)) = self.stdin.as_mut().map(|stdin| stdin.write_all(text.as_bytes())) {
            return Err(not_started(&self.name, &error).into());
        }
        self.expect_line(STARTED)
    }

    /// Reads the next line of the guard, which must be this.
    fn expect_line(&mut self, expected: &str) -> Result<(), Trouble> {
        let mut said = String::new();
        let source = match self.stdout.read_line(&mut said) {
            Ok(0) => io::Error::other("its guard ended at once"),
            Ok(_) if said.trim() == expected => return Ok(()),
            Ok(_) => io::Error::other(said.trim().to_owned()),
            Err(error) => error,
        };
        Err(not_started(&self.name, &source).into())
    }

    /// How the program ended, if it has.
    pub(super) fn ended(&mut self) -> Option<Ending> {
        self.child.try_wait().ok().flatten()?;
        let mut last = String::new();
        // A read error leaves the ending unknown.
        let _ = self.stdout.read_to_string(&mut last);
        Some(serde_json::from_str(last.trim()).unwrap_or(Ending::Unknown))
    }

    /// Makes the cgroups of its program, and tells which limits cannot be set.
    fn limit(&self, limits: &[Limit], folder: &Path) -> (Vec<Cgroup>, Vec<(Limit, io::Error)>) {
        let (mut cgroups, mut unlimited) = (Vec::new(), Vec::new());
        for limit in limits {
            match Cgroup::limiting(self.child.id(), *limit, folder) {
                Ok(cgroup) => cgroups.push(cgroup),
                Err(error) => unlimited.push((*limit, error)),
            }
        }
        (cgroups, unlimited)
    }

    /// Starts a program and waits until it is ready.
    pub(crate) fn launch(
        mut self,
        launch: Launch,
        surroundings: Surroundings<'_>,
    ) -> Result<Running, Trouble> {
        let name = self.name.clone();
        let program = launch.words.first().cloned().unwrap_or_default();
        let found = program::find(&program, &surroundings.guards.program);
        let missing = || LeftOutCause::ProgramMissing { process: Some(name.clone()), program };
        let found = found.ok_or_else(missing)?;
        let log = surroundings.folder.join(format!("{}.log", crate::names::slug(&name)));
        // What an earlier start printed is no sign of this one, nor is what another program answers.
        let _ = fs::remove_file(&log);
        if launch.sign.is_of_the_network() && launch.sign.is_there(&log) {
            return Err(LeftOutCause::Taken { process: name, sign: launch.sign.fact() }.into());
        }
        let (cgroups, unlimited) = self.limit(&launch.limits, surroundings.folder);
        let mut words = launch.words.clone();
        if let Some(first) = words.first_mut() {
            *first = found.display().to_string();
        }
        self.order(Orders {
            words,
            environment: launch.environment.clone(),
            folder: surroundings.folder.into(),
            log: log.clone(),
            stdout: None,
            processors: launch.processors.clone(),
            cgroups: cgroups.iter().map(Cgroup::entrance).collect(),
            stop: launch.stop,
            stop_within_ms: millis(launch.stop_within),
        })?;
        let mut running = Running { guard: self, launch, unlimited, log, _cgroups: cgroups };
        running.wait_until_ready(surroundings.interrupt)?;
        Ok(running)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stdin = None;
        // It ends by itself, at the latest when it has killed its program. One that the kernel holds up is left to it.
        let deadline = Instant::now() + self.ends_within;
        while let Ok(None) = self.child.try_wait()
            && Instant::now() < deadline
        {
            thread::sleep(INTERVAL);
        }
        self.link = None;
    }
}

/// A running program. It and all that it started end when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    // In this order: the program ends before its cgroups can be removed.
    guard: Guard,
    /// How it was started.
    pub(crate) launch: Launch,
    /// What is not limited although it should be, and why.
    pub(crate) unlimited: Vec<(Limit, io::Error)>,
    log: PathBuf,
    _cgroups: Vec<Cgroup>,
}

impl Running {
    fn wait_until_ready(&mut self, interrupt: &AtomicBool) -> Result<(), Trouble> {
        let deadline = Instant::now() + self.launch.ready_within;
        loop {
            let ready = self.launch.sign.is_there(&self.log);
            // Asked last: another program may answer at a port that this one could not take.
            if let Some((ending, said)) = self.ended() {
                let process = self.name().into();
                return Err(LeftOutCause::EndedBeforeReady { process, ending, said }.into());
            }
            if ready {
                return Ok(());
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Trouble::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready().into());
            }
            thread::sleep(INTERVAL);
        }
    }

    fn not_ready(&self) -> LeftOutCause {
        LeftOutCause::NotReady {
            process: self.name().into(),
            within_ms: millis(self.launch.ready_within),
            sign: self.launch.sign.fact(),
            said: last_lines(&self.log),
        }
    }

    /// How it ended and what it printed last, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<(Ending, String)> {
        let ending = self.guard.ended()?;
        Some((ending, last_lines(&self.log)))
    }

    /// A warning of each limit that it should have and has not.
    pub(crate) fn not_limited(&self) -> impl Iterator<Item = Cause> {
        self.unlimited.iter().map(|(limit, error)| {
            let (program, os_error) = (self.name().into(), error.raw_os_error());
            match *limit {
                Limit::Memory(limit_bytes) => Cause::MemoryNotLimited { program, limit_bytes, os_error },
                Limit::Disk { .. } => Cause::DiskNotLimited { program, os_error },
            }
        })
    }

    /// What the experiment calls it.
    pub(crate) fn name(&self) -> &str {
        &self.guard.name
    }
}
