//! The servers that cases measure.

use crate::{
    Result,
    tools::workspace::{ServerProcess, Workspace, installed},
};

pub(crate) const KB: usize = 1_000;

/// Starts the bare responder with bodies of 1 KB.
pub(crate) fn responder(workspace: &Workspace) -> Result<ServerProcess> {
    let program = workspace.ours("bare-responder");
    workspace.serve(|address| Ok(vec![program, address.to_string(), KB.to_string()]))
}

/// Starts our file server on the workspace with one loop; `accounts` as its flag takes it.
pub(crate) fn files(workspace: &Workspace, accounts: &str) -> Result<ServerProcess> {
    let root = workspace.path("").display().to_string();
    let flags = ["files", "--root", &root, "--accounts", accounts, "--auth-cache", "1h"];
    workspace.serve_ours(&flags)
}

/// Starts our file server on the workspace on a concurrency model, open to all.
pub(crate) fn files_on(workspace: &Workspace, model: &str) -> Result<ServerProcess> {
    let root = workspace.path("").display().to_string();
    workspace.serve_ours_on(model, &["files", "--root", &root, "--accounts", "none"])
}

/// Fails if nginx is not installed, for cases that compare with nothing else.
pub(crate) fn need_nginx() -> Result<()> {
    if installed("nginx") { Ok(()) } else { Err("nginx is not installed".into()) }
}
