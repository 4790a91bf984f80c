//! How a server's programs are started: as nobody if this process is root, killed when the starting thread ends, and on
//! certain processors.

use std::{path::Path, process::Command};

/// The user as which servers run if this process is root, because they refuse to run as root.
pub(crate) const NOBODY: u32 = 65_534;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Prepares the command for a program.
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
