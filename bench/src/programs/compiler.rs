//! Baselines in C and libraries with the names of their functions, made when a case needs them.

use std::{fs, path::PathBuf, process::Command};

use crate::tools::{effort::Result, workspace::Workspace};

/// Compiles `c/NAME.c` and returns the path of the program.
pub(crate) fn compiled(workspace: &Workspace, name: &str) -> Result<String> {
    let program = program(workspace, name);
    let source = format!("{}/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    compile(&["-O2", "-pthread", "-o", &program, &source])?;
    Ok(program)
}

/// Makes a shared library of a static one, in which Debian leaves the names of functions. Returns a folder that holds it as
/// `name`.
pub(crate) fn named_library(workspace: &Workspace, archive: &str, name: &str) -> Result<PathBuf> {
    let folder = workspace.path(&format!("named-{name}"));
    fs::create_dir_all(&folder)?;
    let library = folder.join(name).display().to_string();
    let whole = format!("-Wl,-Bsymbolic,-soname,{name},--whole-archive,-l:{archive},--no-whole-archive");
    compile(&["-shared", "-o", &library, &whole])?;
    Ok(folder)
}

fn compile(words: &[&str]) -> Result<()> {
    let output = Command::new("cc").args(words).output();
    let output = output.map_err(|error| format!("no C compiler (cc): {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}

/// Returns where the program is once it was compiled.
pub(crate) fn program(workspace: &Workspace, name: &str) -> String {
    workspace.path(name).display().to_string()
}
