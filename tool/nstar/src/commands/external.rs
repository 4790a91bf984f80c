//! `nstar lab|serve|share`: run by `nstar-lab`, as git and cargo run external subcommands.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::fs::{Access, access};

use crate::exit::{Exit, Failure};

/// The program of the testbed.
const PROGRAM: &str = "nstar-lab";

/// Becomes `nstar-lab`: its output, exit status and signals are the caller's. Returns only where that is impossible.
pub(super) fn run(subcommand: Option<&str>, arguments: Vec<OsString>) -> Result<Exit, Failure> {
    let program = find()?;
    check_version(&program)?;
    let error = Command::new(&program).args(subcommand).args(arguments).exec();
    Err(cannot_run(&program, &error))
}

/// Looks beside the running program first, then on PATH.
fn find() -> Result<PathBuf, Failure> {
    let beside = env::current_exe().ok().and_then(|path| Some(path.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.iter().cloned().chain(env::split_paths(&path));
    folders.map(|folder| folder.join(PROGRAM)).find(|program| is_program(program)).ok_or_else(|| {
        let beside = beside.map_or_else(|| "nstar".into(), |folder| folder.display().to_string());
        Failure::usage(format!(
            "this command needs {PROGRAM}, which is neither in {beside} nor on PATH; build it in nstar's repository with \
             `cargo build --release --bin {PROGRAM}`, and copy target/release/{PROGRAM} there"
        ))
    })
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Refuses a program built from another version: its flags and files may differ.
fn check_version(program: &Path) -> Result<(), Failure> {
    let asked = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    let said = asked.map_err(|error| cannot_run(program, &error))?.stdout;
    let said = String::from_utf8_lossy(&said);
    let (ours, theirs) =
        (env!("CARGO_PKG_VERSION"), said.trim().strip_prefix("nstar-lab ").unwrap_or("unknown"));
    if ours == theirs {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} is of version {theirs}, this nstar of version {ours}; build both from the same source with \
         `cargo build --release`, and put them in one folder",
        program.display()
    )))
}

fn cannot_run(program: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot run {}: {error}", program.display()))
}
