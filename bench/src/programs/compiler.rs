//! Baselines in C, compiled when a case needs them.

use std::process::Command;

use crate::tools::{effort::Result, workspace::Workspace};

/// Compiles `c/NAME.c` and returns the path of the program.
pub(crate) fn compiled(workspace: &Workspace, name: &str) -> Result<String> {
    let program = program(workspace, name);
    let source = format!("{}/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let compiler = Command::new("cc").args(["-O2", "-pthread", "-o", &program, &source]).output();
    let output = compiler.map_err(|error| format!("no C compiler (cc): {error}"))?;
    if output.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// Returns where the program is once it was compiled.
pub(crate) fn program(workspace: &Workspace, name: &str) -> String {
    workspace.path(name).display().to_string()
}
