//! The barest server of a model, in C.

use std::process::Command;

use crate::{
    Result,
    tools::workspace::{ServerProcess, Workspace},
};

/// Bytes of one read: the default of our own sink.
const CHUNK: &str = "65536";

pub(crate) struct BareServer {
    program: String,
}

impl BareServer {
    pub(crate) fn compile(workspace: &Workspace) -> Result<Self> {
        Ok(Self { program: compiled(workspace, "bare-server")? })
    }

    /// Starts one that takes uploads.
    pub(crate) fn sink(&self, workspace: &Workspace, model: &str) -> Result<ServerProcess> {
        self.start(workspace, model, &[])
    }

    /// Starts one that answers every request with so many bytes.
    pub(crate) fn responder(
        &self,
        workspace: &Workspace,
        model: &str,
        body_bytes: usize,
    ) -> Result<ServerProcess> {
        self.start(workspace, model, &[&body_bytes.to_string()])
    }

    /// Starts one that parses as much of a request as it must and answers those for `path` with so many bytes.
    pub(crate) fn parser(
        &self,
        workspace: &Workspace,
        model: &str,
        body_bytes: usize,
        path: &str,
    ) -> Result<ServerProcess> {
        self.start(workspace, model, &[&body_bytes.to_string(), path])
    }

    fn start(&self, workspace: &Workspace, model: &str, rest: &[&str]) -> Result<ServerProcess> {
        workspace.serve(|address| {
            let address = address.to_string();
            let words = [&[&self.program, model, &address, CHUNK], rest].concat();
            Ok(words.into_iter().map(String::from).collect())
        })
    }
}

/// Compiles `c/NAME.c` and returns the path of the program.
fn compiled(workspace: &Workspace, name: &str) -> Result<String> {
    let program = workspace.path(name).display().to_string();
    let source = format!("{}/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let compiler = Command::new("cc").args(["-O2", "-pthread", "-o", &program, &source]).output();
    let output = compiler.map_err(|error| format!("no C compiler (cc): {error}"))?;
    if output.status.success() { Ok(program) } else { Err(String::from_utf8_lossy(&output.stderr).into()) }
}
