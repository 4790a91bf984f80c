//! Commands that run to their end: what prepares, resets and proves.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use analysis::comparison::{Ending, LeftOutCause};

use super::{
    Trouble,
    guard::Orders,
    program,
    running::{Guard, Guards},
};
use crate::definition::StopSignal;

/// How long a command may run.
const WITHIN: Duration = Duration::from_secs(600);
/// How often to look whether it has ended.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) stdout: String,
    /// Its last lines on stderr, or on stdout where there are none.
    pub(crate) said: String,
}

impl Ended {
    /// What this end of a command is, where another was wanted.
    pub(crate) fn failed(self, program: String) -> LeftOutCause {
        LeftOutCause::CommandFailed { program, ending: self.ending, said: self.said }
    }
}

/// Where programs and commands run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The experiment's folder.
    pub(crate) folder: &'a Path,
    /// How they are guarded.
    pub(crate) guards: &'a Guards,
    /// Set once the user asks to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// Runs a command to its end, under a guard: what it leaves running ends too.
///
/// # Errors
/// If it cannot be started, takes too long, or is interrupted. How it ended is no error here.
pub(crate) fn run(words: &[String], surroundings: Surroundings<'_>) -> Result<Ended, Trouble> {
    let name = words.first().cloned().unwrap_or_default();
    let found = program::find(&name, &surroundings.guards.program);
    let missing = || LeftOutCause::ProgramMissing { process: None, program: name.clone() };
    let found = found.ok_or_else(missing)?;
    let (out, err) = (surroundings.folder.join(".stdout"), surroundings.folder.join(".stderr"));
    let _ = fs::remove_file(&err);
    let mut guard = Guard::start(&name, surroundings.guards, None)?;
    let program = [found.display().to_string()];
    guard.order(Orders {
        words: program.into_iter().chain(words.iter().skip(1).cloned()).collect(),
        environment: Vec::new(),
        folder: surroundings.folder.into(),
        log: err.clone(),
        stdout: Some(out.clone()),
        processors: None,
        cgroups: Vec::new(),
        stop: StopSignal::Term,
        stop_within_ms: 500,
    })?;
    let deadline = Instant::now() + WITHIN;
    let ending = loop {
        if let Some(ending) = guard.ended() {
            break ending;
        }
        if surroundings.interrupt.load(Ordering::Relaxed) {
            return Err(Trouble::Interrupted);
        }
        if Instant::now() >= deadline {
            let within_ms = millis(WITHIN);
            return Err(LeftOutCause::CommandSlow { program: name, within_ms, said: last_lines(&err) }.into());
        }
        thread::sleep(INTERVAL);
    };
    let stdout = fs::read(&out).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let spoke = fs::metadata(&err).is_ok_and(|log| log.len() > 0);
    Ok(Ended { ending, stdout, said: last_lines(if spoke { &err } else { &out }) })
}

/// The same, where only exit status 0 will do.
///
/// # Errors
/// If it did not do its work.
pub(crate) fn run_checked(words: &[String], surroundings: Surroundings<'_>) -> Result<Ended, Trouble> {
    let ended = run(words, surroundings)?;
    if ended.ending == Ending::Exit(0) {
        return Ok(ended);
    }
    let program = words.first().cloned().unwrap_or_default();
    Err(ended.failed(program).into())
}

/// Whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The last lines of a log that say something, in one and without control characters: what a program prints must not
/// steer the terminal.
pub(crate) fn last_lines(log: &Path) -> String {
    const LINES: usize = 3;
    const BYTES: u64 = 4096;
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let length = file.metadata().map_or(0, |about| about.len());
        // What cannot be read is not shown.
        let _ = file
            .seek(SeekFrom::Start(length.saturating_sub(BYTES)))
            .and_then(|_| file.read_to_end(&mut text));
    }
    let text = String::from_utf8_lossy(&text);
    let plain: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let lines: Vec<&str> = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join(" / ")
}
