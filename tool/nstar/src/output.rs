//! Where a run goes: a run file, a report beside it, words on stdout.

use std::{
    env,
    fs::{self, OpenOptions, Permissions},
    io::{self, IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use analysis::run::{Run, Warning, WarningKind};
use tempfile::NamedTempFile;

use crate::{
    exit::{self, Exit, Failure},
    flags,
    interrupt::Interrupt,
};

/// The files a command will write, checked before the run so that minutes of work are not lost after it.
#[derive(Debug)]
pub struct Files {
    /// The run file, JSON.
    pub run: PathBuf,
    /// The report beside it, HTML.
    pub report: PathBuf,
}

impl Files {
    /// Plans a run file and the report beside it: `run.json` has its report in `report.html`, `x.json` in `x.html`.
    pub fn plan(run: &Path) -> Result<Self, Failure> {
        let report = match run.file_name() {
            None => return Err(Failure::usage(format!("-o {}: that is not a file name", run.display()))),
            Some(name) if name == "run.json" => run.with_file_name("report.html"),
            Some(_) => run.with_extension("html"),
        };
        if report == run {
            return Err(Failure::usage(format!(
                "-o {}: the run file is JSON and its report takes the .html name; give a .json name",
                run.display()
            )));
        }
        check_writable(run)?;
        check_writable(&report)?;
        Ok(Files { run: run.into(), report })
    }

    /// The same for one of several runs, told apart by a suffix: `run-1000.json` and `run-1000.html`.
    pub fn plan_part(run: &Path, suffix: &str) -> Result<Self, Failure> {
        let stem = run.file_stem().unwrap_or_default().to_string_lossy();
        Self::plan(&run.with_file_name(format!("{stem}-{suffix}.json")))
    }

    /// Their names, for people.
    pub fn names(&self) -> Vec<String> {
        [&self.report, &self.run].map(|path| path.display().to_string()).into()
    }

    /// Writes both.
    pub fn write(&self, run: &Run) -> Result<(), Failure> {
        write_file(&self.run, &report::json(run).map_err(Failure::failed)?)?;
        write_file(&self.report, &report::html(run).map_err(Failure::failed)?)
    }
}

/// Fails unless [`write_file`] can write the file; leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let attempt = match kind_of(path) {
        Ok(Kind::Device) => OpenOptions::new().append(true).open(path).map(drop),
        Ok(Kind::File { .. }) => beside(path, None).map(drop),
        Err(error) => Err(error),
    };
    attempt.map_err(|error| not_writable(path, &error))
}

/// Fails unless [`append_to_file`] can append to the file; leaves nothing behind.
pub fn check_appendable(path: &Path) -> Result<(), Failure> {
    match OpenOptions::new().append(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => check_writable(path),
        Err(error) => Err(not_writable(path, &error)),
    }
}

fn not_writable(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!(
        "cannot write {}: {error}; nothing was run. Give a path that you can write",
        path.display()
    ))
}

/// Writes a whole file: beside it, and then under its name, so that nobody finds half of it and what was there stays until
/// all is written. A symbolic link is not followed: in a folder that others may write, it leads where they want. A device or
/// a pipe is written to.
pub fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// The same with bytes that are no text.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = kind_of(path).and_then(|kind| match kind {
        Kind::Device => fs::write(path, bytes),
        Kind::File { mode } => {
            let mut file = beside(path, mode)?;
            file.write_all(bytes)?;
            file.persist(path)?;
            Ok(())
        }
    });
    written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// Appends to a file, which the steps of a CI job share.
pub fn append_to_file(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}

/// What a path leads to.
enum Kind {
    /// A file, with its permissions if it exists.
    File { mode: Option<Permissions> },
    /// Something else that takes bytes.
    Device,
}

fn kind_of(path: &Path) -> io::Result<Kind> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Kind::File { mode: None }),
        Err(error) => Err(error),
        Ok(about) if about.is_symlink() => {
            Err(io::Error::other("it is a symbolic link, which is not followed"))
        }
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(about) if about.is_file() => Ok(Kind::File { mode: Some(about.permissions()) }),
        Ok(_) => Ok(Kind::Device),
    }
}

/// A new file in the same folder, with these permissions or those that new files have.
fn beside(path: &Path, mode: Option<Permissions>) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = mode.unwrap_or_else(|| Permissions::from_mode(0o666));
    tempfile::Builder::new().prefix(".nstar-").permissions(mode).tempfile_in(folder)
}

/// Prints to stdout, and nothing that steers a terminal; a reader that has gone away is no error. What goes to a file or a
/// pipe is data, and stays as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { report::printable_painted(text) } else { text.into() };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints bytes that are no text to stdout, as they are; a reader that has gone away is no error.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        return Err(Failure::usage(
            "this is no text for a terminal: write it to a file with -o, or to a pipe",
        ));
    }
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a run as asked, and names the files written.
pub fn show(run: &Run, show: &flags::Output, written: &[String]) -> Result<(), Failure> {
    print(&text(run, show, written)?)
}

/// A run as asked, with the names of the files written.
pub fn text(run: &Run, show: &flags::Output, written: &[String]) -> Result<String, Failure> {
    if show.json {
        return report::json(run).map_err(Failure::failed);
    }
    Ok(report::terminal(run, &terminal_options(written)))
}

/// What stdout can show.
pub fn terminal_options(written: &[String]) -> report::TerminalOptions {
    let terminal = io::stdout().is_terminal();
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    report::TerminalOptions {
        width: size.filter(|columns| *columns > 0).unwrap_or(100),
        colour: terminal && env::var_os("NO_COLOR").is_none(),
        unicode: locale_is_utf8(),
        files: written.to_vec(),
    }
}

/// Whether stderr is a terminal that can move its cursor.
pub fn stderr_moves_its_cursor() -> bool {
    let able = env::var_os("TERM").is_some_and(|kind| !kind.is_empty() && kind != "dumb");
    able && io::stderr().is_terminal()
}

/// Whether the locale's characters are those of Unicode.
pub fn locale_is_utf8() -> bool {
    let value = |name: &&str| env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(value);
    locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// The exit code that a run earns.
pub fn exit_of(run: &Run, show: &flags::Output, interrupt: &Interrupt) -> Exit {
    if let Some(signal) = interrupt.signal() {
        return Exit::Interrupted(signal);
    }
    if let Some(why) = failure(run) {
        exit::warn(why);
        return Exit::Failed;
    }
    let breaches: Vec<_> = show.gates.iter().filter_map(|gate| gate.breach(run)).collect();
    for breach in &breaches {
        exit::warn(breach);
    }
    if !breaches.is_empty() {
        Exit::GateBreached
    } else if run.verdict.is_conclusive() {
        Exit::Done
    } else {
        Exit::Inconclusive
    }
}

/// Why the run is no result at all. A sweep may have found its answer before the server died; one load has not.
pub fn failure(run: &Run) -> Option<String> {
    let stopped = |warning: &&Warning| warning.kind == WarningKind::StoppedAnswering;
    match run.warnings.iter().find(stopped) {
        Some(warning) if run.steps.len() == 1 => Some(report::warning_text(warning)),
        _ if !run.completed_any() => Some("no request completed".to_owned()),
        _ => None,
    }
}
