//! What `--profile` costs: throughput of a server at its N* while it is sampled, beside the same without, in turns A B B A, so
//! that a drift of the machine meets both alike; the same for each second of the server's CPU time, which is steadier, and is
//! what limits it; and the CPU time of nstar beside.

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    programs::{
        generators::per_s,
        servers::{self, KB, files_on, need_nginx, nginx},
    },
    tools::{
        beside::Beside,
        cpu,
        effort::{Effort, Result},
        table::{Against, Row},
        under_way::{Busy, wait_for_end, wait_for_load},
        workspace::{CLIENTS, SHARED, ServerProcess, Workspace},
    },
};

/// The share of throughput that should be left.
const REACH: f64 = 0.98;
/// Length of a turn, seconds, at least and at most: a load is sampled for its first 10 s.
const SECONDS: [u32; 2] = [3, 10];
/// Users up to whom N* is looked for.
const USERS_MAX: u32 = 64;
/// How often N* is looked for, on a host where other things may run.
const SWEEPS: usize = 3;

/// How long the load has been under way when the CPU time is first read.
const SETTLING: Duration = Duration::from_millis(300);
/// How much shorter than the load the time is in which it is read: with what it takes to notice the load it stays within.
const MARGIN: Duration = Duration::from_secs(1);

/// The thread that takes samples, without which nothing was measured.
const PROFILER: &str = "profiler";
/// Those that find callers, and where threads sleep.
const BESIDE_PROFILER: [&str; 2] = ["unwinder", "off-cpu"];

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", KB)?;
    let seconds = effort.seconds.clamp(SECONDS[0], SECONDS[1]);
    let mut rows = Vec::new();
    for start in [on_nginx, on_threads, on_shared_processors] {
        let measured = start(workspace).and_then(|site| {
            let at = At { workspace, users: site.saturation(workspace)?, seconds };
            site.rows(at, effort.rounds)
        });
        match measured {
            Ok(measured) => rows.extend(measured),
            Err(error) => eprintln!("bench: left out: {error}"),
        }
    }
    if rows.is_empty() { Err("no server was profiled".into()) } else { Ok(rows) }
}

/// A server, and where nstar runs beside it.
struct Site {
    name: &'static str,
    server: ServerProcess,
    path: &'static str,
    /// The processors of nstar.
    processors: String,
}

fn on_nginx(workspace: &Workspace) -> Result<Site> {
    need_nginx()?;
    let server = nginx(workspace, &servers::Site::default())?;
    Ok(Site { name: "nginx", server, path: "/1k", processors: CLIENTS.to_string() })
}

/// A thread for each user: all are sampled, and all are looked at while they sleep.
fn on_threads(workspace: &Workspace) -> Result<Site> {
    let server = files_on(workspace, "threads")?;
    Ok(Site { name: "file server, threads", server, path: "/files/1k", processors: CLIENTS.to_string() })
}

/// What nstar takes is missing to the server.
fn on_shared_processors(workspace: &Workspace) -> Result<Site> {
    let root = workspace.path("").display().to_string();
    let server = workspace.serve_ours_shared(&["files", "--root", &root, "--accounts", "none"])?;
    let name = "file server that shares its processors with nstar";
    Ok(Site { name, server, path: "/files/1k", processors: SHARED.to_owned() })
}

/// How the turns of a server are made.
#[derive(Clone, Copy)]
struct At<'a> {
    workspace: &'a Workspace,
    users: u32,
    seconds: u32,
}

/// What a load came to.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Turn {
    /// Throughput, requests per second.
    per_s: f64,
    /// CPU time of the server for a second of the load, seconds.
    served: f64,
    /// CPU time of nstar for a second of the load, seconds.
    busy: f64,
    /// CPU time of the threads that sample, of that.
    sampling: f64,
}

impl Site {
    fn url(&self) -> String {
        format!("http://{}{}", self.server.address, self.path)
    }

    /// N* of the server.
    ///
    /// # Errors
    /// Its throughput was not seen to stop growing.
    fn saturation(&self, workspace: &Workspace) -> Result<u32> {
        for _ in 0..SWEEPS {
            if let Some(users) = self.swept(workspace)? {
                return Ok(users);
            }
        }
        Err(format!("{}: no N* up to {USERS_MAX} users", self.name).into())
    }

    /// N* as one sweep finds it.
    fn swept(&self, workspace: &Workspace) -> Result<Option<u32>> {
        let output = workspace.path("saturation.json");
        let flags =
            format!("sweep {} -c 1..{USERS_MAX} -t 1 --no-progress -o {}", self.url(), output.display());
        // 4: a sweep that is doubted has an N* too.
        cpu::run_on(&self.processors, &workspace.nstar(&flags), &[0, 4])?;
        let run: Value = serde_json::from_str(&fs::read_to_string(output)?)?;
        let users = run["verdict"]["users_at_saturation"].as_u64();
        Ok(users.and_then(|users| u32::try_from(users).ok()))
    }

    fn rows(&self, at: At<'_>, rounds: usize) -> Result<Vec<Row>> {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let first = self.turn(at, true)?;
            without.push(mean(self.turn(at, false)?, self.turn(at, false)?));
            let last = self.turn(at, true)?;
            with.push(mean(first, last));
        }
        Ok(rows(&format!("load with --profile, {}, {} users (N*)", self.name, at.users), &with, &without))
    }

    /// One load.
    fn turn(&self, at: At<'_>, is_profiled: bool) -> Result<Turn> {
        let output = at.workspace.path("profiled.json");
        let (url, users, seconds) = (self.url(), at.users, at.seconds);
        let profile = if is_profiled { " --profile" } else { "" };
        let flags = format!(
            "load {url} -c {users} -d {seconds}s -t 1 --no-progress -o {}{profile}",
            output.display()
        );
        let before_s = self.server.cpu_s();
        let mut nstar = self.started(&at.workspace.nstar(&flags))?;
        wait_for_load(&mut nstar, &self.server, before_s)?;
        thread::sleep(SETTLING);
        let (begun, before_s) = (Instant::now(), self.server.cpu_s());
        let busy = Busy::of(&nstar, Duration::from_secs(seconds.into()).saturating_sub(MARGIN))?;
        let served = (self.server.cpu_s() - before_s) / begun.elapsed().as_secs_f64();
        wait_for_end(&mut nstar)?;
        let run: Value = serde_json::from_str(&fs::read_to_string(output)?)?;
        let sampling = if is_profiled { sampling(&busy, &run)? } else { 0.0 };
        Ok(Turn { per_s: per_s(&run["steps"][0])?, served, busy: busy.all, sampling })
    }

    fn started(&self, words: &[String]) -> Result<Beside> {
        Beside::quiet(Command::new("taskset").args(["-c", &self.processors]).args(words))
    }
}

/// What the threads that sample used, in processors.
///
/// # Errors
/// Nothing was sampled, so that nothing was measured.
fn sampling(busy: &Busy, run: &Value) -> Result<f64> {
    let profile = &run["profile"];
    if profile["tiers"].as_array().is_none_or(Vec::is_empty) {
        return Err(format!("nothing was sampled: {}", profile["troubles"]).into());
    }
    let profiler = busy.named(PROFILER).ok_or("no thread of nstar samples")?;
    Ok(profiler + BESIDE_PROFILER.iter().filter_map(|name| busy.named(name)).sum::<f64>())
}

fn mean(a: Turn, b: Turn) -> Turn {
    let mean = |read: fn(&Turn) -> f64| (read(&a) + read(&b)) / 2.0;
    Turn {
        per_s: mean(|turn| turn.per_s),
        served: mean(|turn| turn.served),
        busy: mean(|turn| turn.busy),
        sampling: mean(|turn| turn.sampling),
    }
}

fn rows(work: &str, with: &[Turn], without: &[Turn]) -> Vec<Row> {
    let row = |unit, read: fn(&Turn) -> f64, reach| Row {
        work: work.to_owned(),
        unit,
        ours: with.iter().map(read).collect(),
        against: Against::Program {
            name: "without".into(),
            theirs: without.iter().map(read).collect(),
            reach,
        },
    };
    vec![
        row("req/s", |turn: &Turn| turn.per_s, Some(REACH)),
        row("req/CPU-s of the server", |turn: &Turn| turn.per_s / turn.served, Some(REACH)),
        row("req/CPU-s of nstar", |turn: &Turn| turn.per_s / turn.busy, None),
        Row {
            work: format!("{work}, the threads that sample"),
            unit: "% of a core",
            ours: with.iter().map(|turn| 100.0 * turn.sampling).collect(),
            against: Against::Nothing,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(per_s: f64, busy: f64, sampling: f64) -> Turn {
        Turn { per_s, served: 0.8, busy, sampling }
    }

    #[test]
    fn a_round_is_the_mean_of_its_turns() {
        let mean = mean(turn(100.0, 0.25, 0.01), turn(120.0, 0.75, 0.03));
        assert_eq!(mean, turn(110.0, 0.5, 0.02));
    }

    #[test]
    fn a_load_that_is_sampled_is_compared_with_one_that_is_not() {
        let rows = rows("load", &[turn(98.0, 0.5, 0.02)], &[turn(100.0, 0.4, 0.0)]);
        assert_eq!(rows.len(), 4);
        assert_eq!((rows[0].ours[0], rows[2].ours[0], rows[3].ours[0]), (98.0, 196.0, 2.0));
        assert!((rows[1].ours[0] - 122.5).abs() < 1e-9, "{}", rows[1].ours[0]);
        let Against::Program { theirs, reach, .. } = &rows[2].against else { panic!("beside the other") };
        assert_eq!((theirs[0], *reach), (250.0, None));
    }

    #[test]
    fn a_load_of_which_nothing_was_sampled_tells_no_cost() {
        let busy = |threads: &[(&str, f64)]| Busy::new(1.0, threads);
        let run: Value = serde_json::from_str(r#"{"profile": {"tiers": [{}]}}"#).unwrap();
        let threads = [("profiler", 0.25), ("off-cpu", 0.5), ("load-0", 0.9)];
        assert_eq!(sampling(&busy(&threads), &run).unwrap(), 0.75);
        assert!(sampling(&busy(&threads[1..]), &run).is_err());
        let refused = serde_json::from_str(r#"{"profile": {"troubles": [{"type": "refused"}]}}"#).unwrap();
        assert!(sampling(&busy(&threads), &refused).is_err());
    }
}
