//! The time from the start of a program to its first useful act.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    time::Instant,
};

use crate::tools::{
    effort::{Effort, Result},
    table::{Against, Row},
    workspace::{ServerProcess, Workspace},
};

/// The limit for each of them, milliseconds.
const REACH_MS: f64 = 50.0;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let root = workspace.path("").display().to_string();
    let database = workspace.path("start-up.db").display().to_string();
    let mut rows = [
        row("start-up of nstar serve files, to its first connection"),
        row("start-up of nstar serve accounts, to its first connection"),
        row("start-up of nstar sweep, to its first request"),
    ];
    for _ in 0..effort.rounds {
        rows[0]
            .ours
            .push(server_ms(|| workspace.serve_ours(&["files", "--root", &root, "--accounts", "none"]))?);
        rows[1].ours.push(server_ms(|| workspace.serve_ours(&["accounts", "--database", &database]))?);
        rows[2].ours.push(sweep_ms(workspace)?);
    }
    Ok(rows.into())
}

fn row(work: &str) -> Row {
    Row { work: work.to_owned(), unit: "ms", ours: Vec::new(), against: Against::AtMost(REACH_MS) }
}

/// Milliseconds until a server takes its first connection.
fn server_ms(start: impl FnOnce() -> Result<ServerProcess>) -> Result<f64> {
    let begun = Instant::now();
    let server = start()?;
    TcpStream::connect(server.address)?;
    Ok(milliseconds_since(begun))
}

/// Milliseconds until a listener in place of the server receives the first bytes of a request.
fn sweep_ms(workspace: &Workspace) -> Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    let begun = Instant::now();
    let mut child = Command::new(workspace.ours("nstar"))
        .args(["sweep", &url, "-o", &workspace.path("sweep.json").display().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let received = first_request_ms(&listener, begun);
    child.kill()?;
    child.wait()?;
    received
}

/// Skips connections without a request: one may be made to see whether the server is there.
fn first_request_ms(listener: &TcpListener, begun: Instant) -> Result<f64> {
    loop {
        let (mut stream, _) = listener.accept()?;
        if stream.read(&mut [0; 4_096])? > 0 {
            return Ok(milliseconds_since(begun));
        }
    }
}

fn milliseconds_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}
