//! Servers under test, driven in turn by the barest client.

use super::{
    cpu,
    table::{Against, Row},
    workspace::{CLIENTS, ServerProcess, Workspace},
};
use crate::tools::effort::{Effort, Result};

/// A server under test: one or more processes.
pub(crate) struct Candidate {
    pub name: &'static str,
    pub servers: Vec<ServerProcess>,
    pub path: String,
    /// A header line to send; empty for none.
    pub header: String,
    /// The ratio that ours should reach against this one.
    pub reach: Option<f64>,
}

/// What one turn of the barest client came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub requests: f64,
    pub bytes: f64,
    /// CPU time of the server.
    pub cpu_s: f64,
    pub elapsed_s: f64,
}

impl Candidate {
    /// Drives the first of the servers with `users` for one turn.
    pub(crate) fn turn(&self, workspace: &Workspace, users: u32, effort: Effort) -> Result<Turn> {
        self.driven_by(&self.client(workspace, users, effort)?, effort)
    }

    /// The command line of the barest client against the first of the servers.
    pub(crate) fn client(&self, workspace: &Workspace, users: u32, effort: Effort) -> Result<Vec<String>> {
        let front = self.servers.first().ok_or("no server")?;
        let mut words = vec![workspace.ours("bare-client"), front.address.to_string(), self.path.clone()];
        words.extend([users.to_string(), effort.seconds.to_string(), self.header.clone()]);
        Ok(words)
    }

    /// One turn of a client that prints how many requests and bytes it completed. CPU time is that of all servers.
    pub(crate) fn driven_by(&self, client: &[String], effort: Effort) -> Result<Turn> {
        let spent = || self.servers.iter().map(ServerProcess::cpu_s).sum::<f64>();
        let before = spent();
        let finished = cpu::run_on(CLIENTS, client, &[0])?;
        let cpu_s = spent() - before;
        let numbers: Vec<f64> =
            finished.stdout.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
        let [requests, bytes] = numbers[..] else { return Err("the bare client gave no counts".into()) };
        Ok(Turn { requests, bytes, cpu_s, elapsed_s: f64::from(effort.seconds) })
    }
}

/// Drives all candidates in turn with this many users, round after round. Returns the turns of each.
pub(crate) fn in_turn(
    workspace: &Workspace,
    candidates: &[Candidate],
    users: u32,
    effort: Effort,
) -> Result<Vec<Vec<Turn>>> {
    take_turns(candidates, effort, |candidate| candidate.turn(workspace, users, effort))
}

/// As [`in_turn`], with turns of the caller's own.
pub(crate) fn take_turns(
    candidates: &[Candidate],
    effort: Effort,
    turn: impl Fn(&Candidate) -> Result<Turn>,
) -> Result<Vec<Vec<Turn>>> {
    let mut turns: Vec<Vec<Turn>> = candidates.iter().map(|_| Vec::new()).collect();
    for _ in 0..effort.rounds {
        for (candidate, turns) in candidates.iter().zip(&mut turns) {
            turns.push(turn(candidate)?);
        }
    }
    Ok(turns)
}

/// One row for each candidate but the first, which is ours.
pub(crate) fn rows(
    work: &str,
    unit: &'static str,
    candidates: &[Candidate],
    turns: &[Vec<Turn>],
    rate: impl Fn(&Turn) -> f64,
) -> Vec<Row> {
    let rates = |turns: &Vec<Turn>| turns.iter().map(&rate).collect::<Vec<f64>>();
    let ours = turns.first().map(rates).unwrap_or_default();
    let others = candidates.iter().zip(turns).skip(1);
    let row = |(candidate, turns): (&Candidate, &Vec<Turn>)| Row {
        work: work.to_owned(),
        unit,
        ours: ours.clone(),
        against: Against::Program {
            name: candidate.name.to_owned(),
            theirs: rates(turns),
            reach: candidate.reach,
        },
    };
    others.map(row).collect()
}
