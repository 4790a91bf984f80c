//! What a request of the file server costs on every concurrency model (processor time, system calls, switches), and where
//! the processor time goes on the leading ones.

use crate::{
    programs::servers::{KB, files_on},
    tools::{
        effort::{Effort, Result},
        perf::{self, Symbol},
        table::{Grid, median, short},
        turns::Candidate,
        workspace::Workspace,
    },
};

pub(super) const ALL_MODELS: [&str; 10] =
    ["threads", "pool", "processes", "prefork", "polling", "select", "poll", "epoll", "aio", "uring"];
const USERS_OF_COSTS: [u32; 2] = [1, 32];

/// What one model costs; an entry for each number of users.
#[derive(Default)]
struct ModelCosts {
    /// Requests per CPU-second, one per round.
    rates: [Vec<f64>; 2],
    /// System calls and context switches per request, if they can be counted.
    costs: [Option<(f64, f64)>; 2],
}

pub(super) fn costs(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    workspace.file("1k", KB)?;
    let countable = perf::unavailable().map(|why| eprintln!("bench: only rates: {why}")).is_none();
    let mut all: Vec<ModelCosts> = ALL_MODELS.iter().map(|_| ModelCosts::default()).collect();
    for round in 0..effort.rounds {
        for (model, seen) in ALL_MODELS.iter().zip(&mut all) {
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
    Ok(Grid { columns, rows: ALL_MODELS.iter().zip(&all).map(|(model, seen)| seen.cells(model)).collect() })
}

fn candidate(workspace: &Workspace, name: &'static str) -> Result<Candidate> {
    let servers = vec![files_on(workspace, name)?];
    Ok(Candidate { name, servers, path: "/files/1k".into(), header: String::new(), reach: None })
}

impl ModelCosts {
    /// One turn for each number of users, and another one with counting, which takes time itself.
    fn look(&mut self, workspace: &Workspace, at: &Candidate, effort: Effort, counted: bool) -> Result<()> {
        for ((users, rates), costs) in USERS_OF_COSTS.into_iter().zip(&mut self.rates).zip(&mut self.costs) {
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

const LEADING_MODELS: [&str; 3] = ["threads", "epoll", "uring"];
const USERS_OF_PROFILE: u32 = 32;
/// Prefixes of the kernel's functions that begin a system call on this architecture. One may call another.
const SYSTEM_CALL: [&str; 2] = ["__x64_sys_", "__do_sys_"];
/// Below this share, in percent, a system call is not named.
const NAMED_MIN: f64 = 1.0;
/// Functions named for each model.
const HOTTEST: usize = 5;

pub(super) fn profiles(workspace: &Workspace, effort: Effort) -> Result<Grid> {
    if let Some(why) = perf::unavailable() {
        return Err(why.into());
    }
    workspace.file("1k", KB)?;
    let mut rows = Vec::new();
    for model in LEADING_MODELS {
        match files_on(workspace, model) {
            Ok(server) => rows.push(profile(workspace, model, server, effort)?),
            // A system may deny io_uring.
            Err(error) => eprintln!("bench: left out: {error}"),
        }
    }
    let columns =
        vec!["model", "outside the kernel", "system calls, with all that they call", "hottest functions"];
    Ok(Grid { columns, rows })
}

fn profile(
    workspace: &Workspace,
    name: &'static str,
    server: crate::tools::workspace::ServerProcess,
    effort: Effort,
) -> Result<Vec<String>> {
    let candidate = Candidate {
        name,
        servers: vec![server],
        path: "/files/1k".into(),
        header: String::new(),
        reach: None,
    };
    let server = candidate.servers.first().ok_or("no server")?;
    let (with_callees, alone) =
        perf::profile(workspace, server, &candidate.client(workspace, USERS_OF_PROFILE, effort)?)?;
    let outside: f64 = alone.iter().filter(|symbol| !symbol.in_kernel).map(|symbol| symbol.percent).sum();
    Ok(vec![format!("`{name}`"), format!("{outside:.0} %"), system_calls(&with_callees), hottest(&alone)])
}

/// `recvfrom 42 %, sendto 31 %`, the most expensive first.
fn system_calls(symbols: &[Symbol]) -> String {
    let mut named: Vec<(&str, f64)> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.percent >= NAMED_MIN) {
        let call = SYSTEM_CALL.iter().find_map(|prefix| symbol.name.strip_prefix(prefix));
        if let Some(call) = call.filter(|call| named.iter().all(|(known, _)| known != call)) {
            named.push((call, symbol.percent));
        }
    }
    named.iter().map(|(call, percent)| format!("{call} {percent:.0} %")).collect::<Vec<_>>().join(", ")
}

fn hottest(symbols: &[Symbol]) -> String {
    let one = |symbol: &Symbol| format!("{} {:.0} %", symbol.name, symbol.percent);
    symbols.iter().take(HOTTEST).map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_are_named_with_what_they_call() {
        let symbol = |percent, name: &str| Symbol { percent, in_kernel: true, name: name.into() };
        let seen = [
            symbol(83.0, "do_syscall_64"),
            symbol(42.4, "__x64_sys_recvfrom"),
            symbol(31.0, "__x64_sys_sendto"),
            symbol(5.1, "__do_sys_io_uring_enter"),
            symbol(5.0, "__do_sys_sendto"),
            symbol(0.4, "__x64_sys_close"),
        ];
        assert_eq!(system_calls(&seen), "recvfrom 42 %, sendto 31 %, io_uring_enter 5 %");
    }
}
