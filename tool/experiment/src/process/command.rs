//! Commands that run to their end: what prepares, resets and proves.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::program;

/// How long a command may run.
const WITHIN: Duration = Duration::from_secs(600);
/// How often to look whether it has ended.
const INTERVAL: Duration = Duration::from_millis(5);

/// A command that did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// No such program.
    #[error("there is no program `{0}` here: install it, or give its whole path")]
    Missing(String),
    /// It could not be started.
    #[error("cannot run `{program}`: {source}")]
    Spawn {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It failed.
    #[error("`{program}` failed ({status}): {said}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// Its last lines.
        said: String,
    },
    /// It did not end in time.
    #[error("`{program}` did not end within {within:?}: {said}")]
    Slow {
        /// The program.
        program: String,
        /// The time it had.
        within: Duration,
        /// Its last lines.
        said: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    /// Its last lines on stderr.
    pub(crate) said: String,
}

/// Where commands run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The experiment's folder.
    pub(crate) folder: &'a Path,
    /// This program.
    pub(crate) own: &'a Path,
    /// Set once the user asks to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// Runs a command to its end.
///
/// # Errors
/// If it cannot be started, takes too long, or is interrupted. How it ended is no error here.
pub(crate) fn run(words: &[String], surroundings: Surroundings<'_>) -> Result<Ended, CommandError> {
    let name = words.first().cloned().unwrap_or_default();
    let found = program::find(&name, surroundings.own).ok_or_else(|| CommandError::Missing(name.clone()))?;
    let spawn = |source| CommandError::Spawn { program: name.clone(), source };
    let (out, err) = (surroundings.folder.join(".stdout"), surroundings.folder.join(".stderr"));
    let child = Command::new(found)
        .args(words.iter().skip(1))
        .current_dir(surroundings.folder)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(&out).map_err(spawn)?)
        .stderr(File::create(&err).map_err(spawn)?)
        .spawn()
        .map_err(spawn)?;
    let ended = wait(child, surroundings.interrupt).map_err(spawn)?;
    let said = last_lines(&err);
    match ended {
        Waited::Ended(status) => {
            let stdout =
                fs::read(&out).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(spawn)?;
            Ok(Ended { status, stdout, said })
        }
        Waited::Slow => Err(CommandError::Slow { program: name, within: WITHIN, said }),
        Waited::Interrupted => Err(CommandError::Interrupted),
    }
}

/// The same, where only exit status 0 will do.
///
/// # Errors
/// If it did not do its work.
pub(crate) fn run_well(words: &[String], surroundings: Surroundings<'_>) -> Result<Ended, CommandError> {
    let ended = run(words, surroundings)?;
    if ended.status.success() {
        return Ok(ended);
    }
    let program = words.first().cloned().unwrap_or_default();
    let said = if ended.said.is_empty() { "it said nothing".to_owned() } else { ended.said };
    Err(CommandError::Failed { program, status: ended.status, said })
}

enum Waited {
    Ended(ExitStatus),
    Slow,
    Interrupted,
}

fn wait(mut child: Child, interrupt: &AtomicBool) -> io::Result<Waited> {
    let deadline = Instant::now() + WITHIN;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Waited::Ended(status));
        }
        let interrupted = interrupt.load(Ordering::Relaxed);
        if interrupted || Instant::now() >= deadline {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // Fails only if all of it has ended.
                let _ = kill_process_group(group, Signal::KILL);
            }
            child.wait()?;
            return Ok(if interrupted { Waited::Interrupted } else { Waited::Slow });
        }
        thread::sleep(INTERVAL);
    }
}

/// The last lines of a log that say something, in one.
pub(crate) fn last_lines(log: &Path) -> String {
    const LINES: usize = 3;
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join(" / ")
}
