//! How its programs are started: as nobody where this is root, gone with this thread, on certain processors.

use std::{path::Path, process::Command};

/// Whom servers run as where this process is root, which they refuse to be: nobody.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command for a program, not yet run.
pub(crate) fn command(program: &Path, processors: Option<&[usize]>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if is_root() {
        command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".into()]);
    }
    command.arg("--");
    if let Some(processors) = processors {
        let list: Vec<String> = processors.iter().map(usize::to_string).collect();
        command.args(["taskset", "-c", &list.join(",")]);
    }
    command.arg(program).current_dir("/");
    command
}
