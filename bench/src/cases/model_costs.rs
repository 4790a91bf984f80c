//! What a request of the file server costs on every concurrency model: processor time, system calls, switches.

use super::{Contestant, KB, files_on};
use crate::{
    Effort, Outcome, perf,
    place::Place,
    table::{Grid, median, short},
};

const MODELS: [&str; 10] =
    ["threads", "pool", "processes", "prefork", "polling", "select", "poll", "epoll", "aio", "uring"];
const USERS: [u32; 2] = [1, 32];

/// What was seen of one model, an entry for each number of users.
#[derive(Default)]
struct Seen {
    /// Requests per CPU-second, one per round.
    rates: [Vec<f64>; 2],
    /// System calls and context switches per request, where they can be counted.
    costs: [Option<(f64, f64)>; 2],
}

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Grid> {
    place.file("1k", KB)?;
    let countable = perf::unavailable().map(|why| eprintln!("bench: only rates: {why}")).is_none();
    let mut all: Vec<Seen> = MODELS.iter().map(|_| Seen::default()).collect();
    for round in 0..effort.rounds {
        for (model, seen) in MODELS.iter().zip(&mut all) {
            match contestant(place, model) {
                Ok(contestant) => seen.look(place, &contestant, effort, countable && round == 0)?,
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

fn contestant(place: &Place, name: &'static str) -> Outcome<Contestant> {
    let servers = vec![files_on(place, name)?];
    Ok(Contestant { name, servers, path: "/files/1k".into(), header: String::new(), reach: None })
}

impl Seen {
    /// One turn for each number of users; and one more that is counted, for counting costs time of its own.
    fn look(&mut self, place: &Place, at: &Contestant, effort: Effort, counted: bool) -> Outcome<()> {
        for ((users, rates), costs) in USERS.into_iter().zip(&mut self.rates).zip(&mut self.costs) {
            let turn = at.turn(place, users, effort)?;
            rates.push(turn.requests / turn.cpu_s);
            if counted {
                *costs = Some(count(place, at, users, effort)?);
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

/// System calls and context switches per request, those of making the connections among them.
fn count(place: &Place, at: &Contestant, users: u32, effort: Effort) -> Outcome<(f64, f64)> {
    let server = at.servers.first().ok_or("no server")?;
    let (counts, printed) = perf::count(place, server, &at.client(place, users, effort)?)?;
    let requests: f64 = printed.split_whitespace().next().ok_or("the bare client gave no counts")?.parse()?;
    Ok((counts.system_calls / requests, counts.context_switches / requests))
}
