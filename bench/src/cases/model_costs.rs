//! What a request of the file server costs on every concurrency model: processor time, system calls, switches.

use crate::{
    Effort, Result,
    programs::servers::{KB, files_on},
    tools::{
        perf,
        table::{Grid, median, short},
        turns::Candidate,
        workspace::Workspace,
    },
};

const MODELS: [&str; 10] =
    ["threads", "pool", "processes", "prefork", "polling", "select", "poll", "epoll", "aio", "uring"];
const USERS: [u32; 2] = [1, 32];

/// What one model costs; an entry for each number of users.
#[derive(Default)]
struct ModelCosts {
    /// Requests per CPU-second, one per round.
    rates: [Vec<f64>; 2],
    /// System calls and context switches per request, if they can be counted.
    costs: [Option<(f64, f64)>; 2],
}

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    workspace.file("1k", KB)?;
    let countable = perf::unavailable().map(|why| eprintln!("bench: only rates: {why}")).is_none();
    let mut all: Vec<ModelCosts> = MODELS.iter().map(|_| ModelCosts::default()).collect();
    for round in 0..effort.rounds {
        for (model, seen) in MODELS.iter().zip(&mut all) {
            match candidate(workspace, model) {
                Ok(candidate) => seen.look(workspace, &candidate, effort, countable && round == 0)?,
                // A system may deny io_uring.
                Err(error) => eprintln!("bench: left out: {error}"),
            }
        }
    }
    let columns = vec![
        "model",
        "requests per CPU-second, 1 user",
        "32 users",
        "system calls per request, 1 user",
        "32 users",
        "context switches per request, 1 user",
        "32 users",
    ];
    Ok(Grid { columns, rows: MODELS.iter().zip(&all).map(|(model, seen)| seen.cells(model)).collect() })
}

fn candidate(workspace: &Workspace, name: &'static str) -> Result<Candidate> {
    let servers = vec![files_on(workspace, name)?];
    Ok(Candidate { name, servers, path: "/files/1k".into(), header: String::new(), reach: None })
}

impl ModelCosts {
    /// One turn for each number of users, and another one with counting, which takes time itself.
    fn look(&mut self, workspace: &Workspace, at: &Candidate, effort: Effort, counted: bool) -> Result<()> {
        for ((users, rates), costs) in USERS.into_iter().zip(&mut self.rates).zip(&mut self.costs) {
            let turn = at.turn(workspace, users, effort)?;
            rates.push(turn.requests / turn.cpu_s);
            if counted {
                *costs = Some(count(workspace, at, users, effort)?);
            }
        }
        Ok(())
    }

    fn cells(&self, model: &str) -> Vec<String> {
        let rate = |rates: &Vec<f64>| if rates.is_empty() { "-".to_owned() } else { short(median(rates)) };
        let cost = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let mut cells = vec![format!("`{model}`")];
        cells.extend(self.rates.iter().map(rate));
        cells.extend(self.costs.iter().map(|costs| cost(costs.map(|(calls, _)| calls))));
        cells.extend(self.costs.iter().map(|costs| cost(costs.map(|(_, switches)| switches))));
        cells
    }
}

/// Counts system calls and context switches per request, including those of opening the connections.
fn count(workspace: &Workspace, at: &Candidate, users: u32, effort: Effort) -> Result<(f64, f64)> {
    let server = at.servers.first().ok_or("no server")?;
    let (counts, printed) = perf::count(workspace, server, &at.client(workspace, users, effort)?)?;
    let requests: f64 = printed.split_whitespace().next().ok_or("the bare client gave no counts")?.parse()?;
    Ok((counts.system_calls / requests, counts.context_switches / requests))
}
