//! `nstar load` where it mostly waits, as in front of a server that does real work: the server is the limit, and nearly every
//! wake-up of the generator brings one response. What a request costs it then, beside other generators; how busy its processor
//! is; and whether it notices responses as early as wrk does.

use serde_json::Value;

use super::generator::{Peer, Turns, all_peers, take_turns};
use crate::{
    programs::{
        generators::{Finished, Generator, Load, NSTAR, ResponseTimes, number},
        servers::working_responder,
    },
    tools::{
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{ServerProcess, Workspace},
    },
};

const USERS: u32 = 32;
/// Seconds of a turn at least: what starting takes must be a small part of what a generator that waits uses.
const SECONDS_MIN: u32 = 3;

/// How busy the generator's processor should be, %.
const BUSY: (f64, f64) = (30.0, 60.0);
/// How busy the server is chosen to keep it, 0 to 1.
const AIM: f64 = 0.45;
/// Work of a request in the first of the servers that are tried, microseconds.
const FIRST_WORK_US: f64 = 15.0;
/// Servers that are tried. What a request costs depends on how often the generator waits, so that one does not settle it.
const TRIES: usize = 2;

/// 1 / (response time) beside wrk's: no more than 2 % later.
const AS_EARLY: f64 = 0.98;

const WORK: &str = "generator that mostly waits, 1 KB, 32 users";

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let effort = Effort { seconds: effort.seconds.max(SECONDS_MIN), ..effort };
    let server = fitting_server(workspace, effort)?;
    let load = load(workspace, &server, effort)?;
    let peers = all_peers(workspace, None);
    let turns = take_turns(workspace, &load, effort, &peers)?;
    let busy = turns.ours.iter().map(|run| pace(run).map(|pace| 100.0 * pace.busy));
    let busy = busy.collect::<Result<Vec<f64>>>()?;
    let mut rows = turns.rows(&peers, (WORK, "req/CPU-s"), Finished::bodies_per_cpu_s);
    rows.push(Row {
        work: format!("{WORK}, how busy"),
        unit: "% of a processor",
        ours: busy,
        against: Against::Between(BUSY.0, BUSY.1),
    });
    rows.extend(response_rows(&peers, &turns)?);
    Ok(rows)
}

fn load(workspace: &Workspace, server: &ServerProcess, effort: Effort) -> Result<Load> {
    Load::new(workspace, format!("http://{}/", server.address), USERS, effort)
}

/// Starts a server whose work for each request keeps the generator about as busy as wanted.
fn fitting_server(workspace: &Workspace, effort: Effort) -> Result<ServerProcess> {
    let steps_per_us = bench::steps_per_us();
    let start = |work_us: f64| working_responder(workspace, (work_us * steps_per_us) as u64);
    let mut work_us = FIRST_WORK_US;
    for _ in 0..TRIES {
        let server = start(work_us)?;
        let run = NSTAR.run(workspace, &load(workspace, &server, effort)?)?;
        work_us = fitting_work_us(work_us, pace(&run)?);
    }
    eprintln!("bench: the server computes for {work_us:.1} us before each response");
    start(work_us)
}

/// How a run of nstar went.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pace {
    /// Requests per second.
    per_s: f64,
    /// CPU time of the generator as a share of the time that its requests took, 0 to 1.
    busy: f64,
}

fn pace(run: &Finished) -> Result<Pace> {
    let file: Value = serde_json::from_str(&run.printed)?;
    let per_s = number(&file["steps"][0], "throughput_per_s")?;
    Ok(Pace { per_s, busy: run.cpu_s * per_s / run.bodies })
}

/// The work with which requests come as seldom as wanted, if each costs the generator what it does at this pace.
fn fitting_work_us(work_us: f64, Pace { per_s, busy }: Pace) -> f64 {
    let period_us = 1e6 / per_s;
    let cost_us = busy * period_us;
    (work_us + cost_us / AIM - period_us).max(0.0)
}

/// Rows against the peers that print response times.
fn response_rows(peers: &[Peer], turns: &Turns) -> Result<Vec<Row>> {
    let ours = response_times(&NSTAR, &turns.ours)?;
    let mut rows = Vec::new();
    for ((peer, _), runs) in peers.iter().zip(&turns.theirs) {
        if runs.is_empty() || !peer.tells_response_times() {
            continue;
        }
        let theirs = response_times(peer, runs)?;
        let row = |what: &str, read: fn(&ResponseTimes) -> f64| Row {
            work: format!("{WORK}, 1 / ({what} response time)"),
            unit: "1/s",
            ours: per_s(&ours, read),
            against: Against::Program {
                name: peer.name.to_owned(),
                theirs: per_s(&theirs, read),
                reach: Some(AS_EARLY),
            },
        };
        rows.push(row("mean", |times: &ResponseTimes| times.mean_us));
        rows.push(row("median", |times: &ResponseTimes| times.median_us));
    }
    Ok(rows)
}

fn per_s(times: &[ResponseTimes], read: fn(&ResponseTimes) -> f64) -> Vec<f64> {
    times.iter().map(|one| 1e6 / read(one)).collect()
}

fn response_times(of: &Generator, runs: &[Finished]) -> Result<Vec<ResponseTimes>> {
    runs.iter().map(|run| of.response_times(run)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_busy_the_generator_was_is_its_cpu_time_over_the_time_of_its_requests() {
        let printed = r#"{"steps": [{"throughput_per_s": 50000.0}]}"#.to_owned();
        let run = Finished { bodies: 100_000.0, cpu_s: 0.9, printed };
        assert_eq!(pace(&run).unwrap(), Pace { per_s: 50_000.0, busy: 0.45 });
    }

    #[test]
    fn a_generator_that_is_too_busy_gets_a_server_that_works_longer() {
        let at = |busy| fitting_work_us(15.0, Pace { per_s: 50_000.0, busy });
        // A request every 20 us that costs 18 us should come every 40 us.
        assert_eq!(at(0.9), 35.0);
        assert_eq!(at(AIM), 15.0);
        assert!(at(0.3) < 15.0);
        assert_eq!(at(0.01), 0.0);
    }
}
