//! A guard stands between nstar and one program of an experiment. It starts the program, and ends it with everything it
//! started, as soon as its stdin closes: however nstar ends, nothing stays behind. Another guards the experiment's folder,
//! which it removes then.
//!
//! The guard is this program again. As a subreaper (prctl(2)) it inherits what its descendants leave behind, so that a
//! program that goes into the background or into a session of its own is found as well.

use std::{
    ffi::CStr,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use analysis::comparison::Ending;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, set_child_subreaper, wait,
};
use serde::{Deserialize, Serialize};

use super::limit;
use crate::definition::StopSignal;

/// How often the guard looks whether its program has ended.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long killing may take.
pub(super) const KILLED_WITHIN: Duration = Duration::from_secs(10);
/// What a guard is called among processes.
const NAME: &CStr = c"guard";
/// What the guard prints once it waits for its orders.
pub(super) const WAITING: &str = "waiting";
/// What it prints once the program runs.
pub(super) const STARTED: &str = "started";

/// How long removing the folder may take, programs that still write to it included.
pub(super) const REMOVED_WITHIN: Duration = Duration::from_secs(60);

/// What a guard is told, in the first line of its stdin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Task {
    /// To run a program.
    Run(Orders),
    /// To remove this folder once its stdin closes.
    Remove(PathBuf),
}

/// How a guard runs its program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    /// Program and arguments.
    pub(super) words: Vec<String>,
    /// Environment variables besides those it has.
    pub(super) environment: Vec<(String, String)>,
    /// Where the program runs.
    pub(super) folder: PathBuf,
    /// Where its output goes.
    pub(super) log: PathBuf,
    /// Where its stdout goes instead, if it is to be told apart.
    pub(super) stdout: Option<PathBuf>,
    /// Processors that it may use; `None`: all.
    pub(super) processors: Option<Vec<usize>>,
    /// The files that take a process into its cgroups.
    pub(super) cgroups: Vec<PathBuf>,
    /// Signal that asks it to stop.
    pub(super) stop: StopSignal,
    /// How long that may take, milliseconds.
    pub(super) stop_within_ms: u64,
}

/// Runs a guard: reads what to start on stdin, starts it, and ends it once stdin closes. What goes wrong is printed for
/// whoever started the guard.
pub fn run() {
    // Whoever ends nstar by its name is not to end the guards with it, which would leave their programs running.
    let _ = rustix::thread::set_name(NAME);
    if let Err(error) = guard() {
        say(&error.to_string());
    }
}

fn guard() -> Result<(), io::Error> {
    say(WAITING);
    let mut line = String::new();
    if io::stdin().lock().read_line(&mut line)? == 0 {
        // Nobody wants it any more. A limit may have been made for what it was to start.
        limit::remove_all(std::process::id());
        return Ok(());
    }
    match serde_json::from_str(&line)? {
        Task::Run(orders) => guard_program(&orders),
        Task::Remove(folder) => {
            say(STARTED);
            // Closed for good or an error: nstar is gone either way.
            let _ = closed_stdin().recv();
            remove(&folder);
            Ok(())
        }
    }
}

/// Removes a folder with all that is in it. Programs may still be writing to it, until their own guards have ended them.
fn remove(folder: &Path) {
    let deadline = Instant::now() + REMOVED_WITHIN;
    while folder.exists() && Instant::now() < deadline {
        // What fails now is tried again.
        let _ = fs::remove_dir_all(folder);
        thread::sleep(INTERVAL);
    }
}

/// Runs the program, and removes its cgroups however that goes: the folder to run it in may be gone by now.
fn guard_program(orders: &Orders) -> Result<(), io::Error> {
    let ran = run_program(orders);
    orders.cgroups.iter().for_each(|entrance| leave_and_remove(entrance));
    ran
}

fn run_program(orders: &Orders) -> Result<(), io::Error> {
    set_child_subreaper(Some(getpid()))?;
    for file in &orders.cgroups {
        fs::write(file, "0")?;
    }
    if let Some(processors) = &orders.processors {
        sweep::cores::confine(processors)?;
    }
    let pid = start(orders)?;
    say(STARTED);
    let ended = watch(pid, &closed_stdin());
    match ended {
        Some(status) => say(&serde_json::to_string(&ending(status))?),
        None => stop(pid, orders),
    }
    end_children();
    Ok(())
}

/// Leaves a cgroup by its parent, and removes it: nstar may be gone.
fn leave_and_remove(entrance: &Path) {
    let Some((folder, parent)) = entrance.parent().and_then(|folder| Some((folder, folder.parent()?))) else {
        return;
    };
    let Some(file) = entrance.file_name() else { return };
    // What cannot be removed, as somebody else is in it, is left.
    if fs::write(parent.join(file), "0").is_ok() {
        limit::remove(folder);
    }
}

/// Tells nstar, which may be gone.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn start(orders: &Orders) -> io::Result<Pid> {
    let mut words = orders.words.iter();
    let log = OpenOptions::new().create(true).append(true).open(&orders.log)?;
    let child = Command::new(words.next().map_or("", String::as_str))
        .args(words)
        .envs(orders.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&orders.folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(match &orders.stdout {
            Some(path) => File::create(path)?,
            None => log.try_clone()?,
        })
        .stderr(log)
        .spawn()?;
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("it has no number"))
}

/// Receives something, or is closed, once stdin has closed.
fn closed_stdin() -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Ignores what comes; only the end of the file matters.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(sender);
    });
    receiver
}

/// Waits until stdin closes (`None`) or the program ends by itself.
fn watch(pid: Pid, stdin: &Receiver<()>) -> Option<WaitStatus> {
    loop {
        if let Some(status) = reap(pid) {
            return Some(status);
        }
        match stdin.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Takes note of all children that have ended. The status of `pid`, if it is among them.
fn reap(pid: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((ended, status))) = wait(WaitOptions::NOHANG) {
        if ended == pid {
            found = Some(status);
        }
    }
    found
}

fn stop(pid: Pid, orders: &Orders) {
    let signal = match orders.stop {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
    };
    // To the program alone: what it has started it ends itself, in its own order. Fails only if it has ended.
    let _ = kill_process(pid, signal);
    let deadline = Instant::now() + Duration::from_millis(orders.stop_within_ms);
    while reap(pid).is_none() && Instant::now() < deadline {
        thread::sleep(INTERVAL / 4);
    }
    let _ = kill_process_group(pid, Signal::KILL);
}

/// Kills its children until none are left: those of a child that has ended are its own from then on. What cannot be
/// killed, such as a program that runs as somebody else, is left.
fn end_children() {
    let deadline = Instant::now() + KILLED_WITHIN;
    while Instant::now() < deadline {
        let all = children();
        for pid in &all {
            let _ = kill_process(*pid, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if all.is_empty() {
            return;
        }
        thread::sleep(INTERVAL / 4);
    }
}

/// The children of this process. As the kernel lists them, where it does: it removes what /proc knows of a process when
/// that is reaped, and guards that look through all of /proc meanwhile, many at a time, were seen to keep it from that for
/// minutes.
fn children() -> Vec<Pid> {
    let listed: io::Result<Vec<String>> = fs::read_dir("/proc/self/task").and_then(|threads| {
        threads.map(|thread| fs::read_to_string(thread?.path().join("children"))).collect()
    });
    match listed {
        Ok(lists) => numbers(lists.iter().flat_map(|list| list.split_whitespace())).collect(),
        // Threads come and go, and not every kernel lists children.
        Err(_) => searched(),
    }
}

/// The children of this process, looked for among all processes.
fn searched() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    numbers(names.iter().map(String::as_str)).filter(|pid| parent(*pid) == Some(getpid())).collect()
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Pid> {
    words.filter_map(|word| Pid::from_raw(word.parse().ok()?))
}

/// The parent of a process: the fourth field of its stat; the second, its name in parentheses, may hold anything.
fn parent(pid: Pid) -> Option<Pid> {
    let text = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Unknown,
    }
}
