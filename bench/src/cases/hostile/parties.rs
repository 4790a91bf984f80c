//! Who talks to the server: ordinary clients, and hostile ones.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    programs::generators::number,
    tools::{
        effort::Result,
        workspace::{CLIENTS, ServerProcess, Workspace},
    },
};

/// Ordinary clients that keep their connection; as many open one for each request.
const USERS: u32 = 8;
/// Until all of them are served at their rate.
const WARMING: Duration = Duration::from_millis(500);

/// Ordinary clients of a server: as many requests as it answers at once, each 10 ms after the response before.
pub(super) enum Others<'a> {
    /// In the clear, from before an attack until after it.
    Plain(Party),
    /// Over TLS, anew for each turn.
    Secure {
        /// Where their program is.
        workspace: &'a Workspace,
        /// What they ask for.
        url: String,
    },
}

/// Requests per second on kept connections and on new ones.
pub(super) type Rates = [f64; 2];

impl<'a> Others<'a> {
    /// The clients of a server.
    pub(super) fn of(server: &ServerProcess, workspace: &'a Workspace, secure: bool) -> Result<Self> {
        let (address, users) = (server.address.to_string(), USERS.to_string());
        if secure {
            return Ok(Others::Secure { workspace, url: format!("https://{address}/files/1k") });
        }
        let party = Party::start(&[&workspace.ours("steady-client"), &address, "/files/1k", &users])?;
        thread::sleep(WARMING);
        Ok(Others::Plain(party))
    }

    /// Counts what is answered for some seconds.
    pub(super) fn rates(&mut self, seconds: u32) -> Result<Rates> {
        match self {
            Others::Plain(party) => {
                let (begun, before) = (Instant::now(), completed(party)?);
                thread::sleep(Duration::from_secs(seconds.into()));
                let (elapsed_s, after) = (begun.elapsed().as_secs_f64(), completed(party)?);
                Ok([0, 1].map(|kind| (after[kind] - before[kind]) / elapsed_s))
            }
            Others::Secure { workspace, url } => {
                let running = ["kept", "per-request"].map(|connections| {
                    let how = format!("-c {USERS} --think 10ms -d {seconds}s --connections {connections}");
                    let flags = format!("load {url} -k -t 1 -j --no-progress {how}");
                    pinned(&workspace.ours("nstar"), flags.split_whitespace())
                        .stdin(Stdio::null())
                        .stdout(Stdio::piped())
                        .stderr(Stdio::null())
                        .spawn()
                });
                let [kept, new] = running;
                let outputs = [kept?.wait_with_output()?, new?.wait_with_output()?];
                Ok(outputs.map(|output| answered_per_s(&output.stdout)))
            }
        }
    }
}

/// What the clients have completed so far.
fn completed(party: &mut Party) -> Result<Rates> {
    let counts = party.ask()?;
    let (kept, new) = counts.trim().split_once(' ').ok_or("the ordinary clients gave no counts")?;
    Ok([kept.parse()?, new.parse()?])
}

/// Requests per second in a run file; none if there is no file, because nobody was answered.
fn answered_per_s(run: &[u8]) -> f64 {
    let run: Value = serde_json::from_slice(run).unwrap_or_default();
    let step = &run["steps"][0];
    match (number(step, "completed"), number(step, "elapsed_s")) {
        (Ok(completed), Ok(elapsed_s)) => completed / elapsed_s,
        _ => 0.0,
    }
}

/// A program that answers each line of its input with one, on the clients' processor. It ends with the value.
pub(super) struct Party {
    child: Child,
    told: ChildStdin,
    says: BufReader<ChildStdout>,
}

impl Party {
    /// Starts hostile clients of a kind, each with an address in 127.`network`.0.0/16, for so many seconds at most.
    pub(super) fn hostile(
        workspace: &Workspace,
        server: &ServerProcess,
        (kind, network): (&str, u8),
        connections: u64,
        seconds: u64,
    ) -> Result<Self> {
        let [address, network] = [server.address.to_string(), network.to_string()];
        let [connections, seconds] = [connections, seconds].map(|number| number.to_string());
        let program = workspace.ours("hostile-client");
        Self::start(&[&program, kind, &address, &network, &connections, &seconds])
    }

    fn start(words: &[&str]) -> Result<Self> {
        let [program, arguments @ ..] = words else { return Err("no program".into()) };
        let mut child = pinned(program, arguments.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let told = child.stdin.take().ok_or("no standard input")?;
        let says = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        Ok(Party { child, told, says })
    }

    /// Asks for counts and returns them as they were printed.
    pub(super) fn ask(&mut self) -> Result<String> {
        self.told.write_all(b"\n")?;
        let mut line = String::new();
        match self.says.read_line(&mut line)? {
            0 => Err("a program of clients has ended".into()),
            _ => Ok(line),
        }
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        // Fails only if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program on the clients' processor.
fn pinned<'a>(program: &str, arguments: impl Iterator<Item = &'a str>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &CLIENTS.to_string(), program]).args(arguments);
    command
}
