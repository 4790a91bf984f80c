//! What sampling costs a server at its N*: throughput while `--profile` samples it, beside the same without, in turns A B B A, so
//! that a drift of the machine meets both alike; the same for each second of the server's CPU time, which is steadier, and is
//! what limits it; and the CPU time of nstar beside. A load of a number of requests is sampled meanwhile, one by time only once it
//! was measured. Where perf(1) may sample all processors, it takes turns too, in several ways: what all of them cost is the
//! kernel's price.

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
        perf,
        table::{Against, Row},
        under_way::{Busy, wait_for_end, wait_for_load},
        workspace::{CLIENTS, SHARED, ServerProcess, Workspace},
    },
};

/// The share of throughput that should be left.
const REACH: f64 = 0.98;
/// Length of a turn, seconds, at least and at most: a load is sampled for its first 10 s.
const SECONDS: [u32; 2] = [3, 9];
/// So many times the requests that a server at its best answers in that time: a turn does not end early.
const MORE: f64 = 1.1;
/// Users up to whom N* is looked for.
const USERS_MAX: u32 = 64;
/// How often N* is looked for, on a host where other things may run.
const SWEEPS: usize = 3;

/// How long the load has been under way when the CPU time is first read.
const SETTLING: Duration = Duration::from_millis(300);
/// How much shorter than the load the time is in which it is read: with what it takes to notice the load it stays within.
const MARGIN: Duration = Duration::from_secs(1);

/// How long perf takes to begin.
const PERF_BEGINS: Duration = Duration::from_millis(700);

/// Who samples a server during a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampler {
    Nobody,
    Nstar,
    /// perf, so often in a second of processor time, everything that the processors do.
    PerfOfAll(&'static str),
    /// perf, so often in a second of processor time, the server's threads, each by an event of its own.
    PerfOfThreads(&'static str),
}

/// All who take turns; the last is what the others are compared with.
const ALL: [Sampler; 5] = [
    Sampler::Nstar,
    Sampler::PerfOfAll("99"),
    Sampler::PerfOfAll("1"),
    Sampler::PerfOfThreads("99"),
    Sampler::Nobody,
];
/// The same without perf.
const WITHOUT_PERF: [Sampler; 2] = [Sampler::Nstar, Sampler::Nobody];

impl Sampler {
    fn all() -> &'static [Self] {
        match perf::cannot_sample_all() {
            None => &ALL,
            Some(why) => {
                eprintln!("bench: {why}");
                &WITHOUT_PERF
            }
        }
    }

    /// What it does to a load, in words.
    fn name(self) -> String {
        match self {
            Sampler::Nobody => "load alone".to_owned(),
            Sampler::Nstar => "load with --profile".to_owned(),
            Sampler::PerfOfAll(hertz) => format!("load beside perf record -a -F {hertz} -g"),
            Sampler::PerfOfThreads(hertz) => format!("load beside perf record -p SERVER -F {hertz} -g"),
        }
    }
}

/// The thread that takes samples, without which nothing was measured.
const PROFILER: &str = "profiler";
/// Those that find callers, and where threads sleep.
const BESIDE_PROFILER: [&str; 2] = ["unwinder", "off-cpu"];

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", KB)?;
    let seconds = effort.seconds.clamp(SECONDS[0], SECONDS[1]);
    let samplers = Sampler::all();
    let mut rows = Vec::new();
    for start in [on_nginx, on_threads, on_shared_processors] {
        let measured = start(workspace).and_then(|site| {
            let (users, per_s) = site.saturation(workspace)?;
            let requests = (MORE * per_s * f64::from(seconds)) as u64;
            site.rows(At { workspace, users, requests, seconds }, samplers, effort.rounds)
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
    /// In a turn.
    requests: u64,
    /// About how long it lasts.
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

    /// N* of the server, and its throughput then, requests per second.
    ///
    /// # Errors
    /// Its throughput was not seen to stop growing.
    fn saturation(&self, workspace: &Workspace) -> Result<(u32, f64)> {
        for _ in 0..SWEEPS {
            if let Some(found) = self.swept(workspace)? {
                return Ok(found);
            }
        }
        Err(format!("{}: no N* up to {USERS_MAX} users", self.name).into())
    }

    /// The same as one sweep finds it.
    fn swept(&self, workspace: &Workspace) -> Result<Option<(u32, f64)>> {
        let output = workspace.path("saturation.json");
        let flags =
            format!("sweep {} -c 1..{USERS_MAX} -t 1 --no-progress -o {}", self.url(), output.display());
        // 4: a sweep that is doubted has an N* too.
        cpu::run_on(&self.processors, &workspace.nstar(&flags), &[0, 4])?;
        let run: Value = serde_json::from_str(&fs::read_to_string(output)?)?;
        let users = run["verdict"]["users_at_saturation"].as_u64();
        let users = users.and_then(|users| u32::try_from(users).ok());
        Ok(users.zip(run["verdict"]["throughput_max_per_s"].as_f64()))
    }

    fn rows(&self, at: At<'_>, samplers: &[Sampler], rounds: usize) -> Result<Vec<Row>> {
        let mut turns: Vec<Vec<Turn>> = samplers.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            let there: Vec<Turn> =
                samplers.iter().map(|sampler| self.turn(at, *sampler)).collect::<Result<_>>()?;
            // The last one is the first on the way back.
            let back: Vec<Turn> =
                samplers.iter().rev().map(|sampler| self.turn(at, *sampler)).collect::<Result<_>>()?;
            for (turns, (one, other)) in turns.iter_mut().zip(there.into_iter().zip(back.into_iter().rev())) {
                turns.push(mean(one, other));
            }
        }
        let Some(without) = turns.pop() else { return Ok(Vec::new()) };
        let name = |sampler: &Sampler| format!("{}, {}, {} users (N*)", sampler.name(), self.name, at.users);
        let all = samplers.iter().zip(&turns);
        Ok(all.flat_map(|(sampler, with)| rows(*sampler, &name(sampler), with, &without)).collect())
    }

    /// One load.
    fn turn(&self, at: At<'_>, sampler: Sampler) -> Result<Turn> {
        let mut perf = self.perf(at.workspace, sampler)?;
        let output = at.workspace.path("profiled.json");
        let (url, users, requests) = (self.url(), at.users, at.requests);
        let profile = if sampler == Sampler::Nstar { " --profile" } else { "" };
        let flags = format!(
            "load {url} -c {users} --total {requests} -t 1 --no-progress -o {}{profile}",
            output.display()
        );
        let before_s = self.server.cpu_s();
        let mut nstar = self.started(&at.workspace.nstar(&flags))?;
        wait_for_load(&mut nstar, &self.server, before_s)?;
        thread::sleep(SETTLING);
        let (begun, before_s) = (Instant::now(), self.server.cpu_s());
        let busy = Busy::of(&nstar, Duration::from_secs(at.seconds.into()).saturating_sub(MARGIN))?;
        let served = (self.server.cpu_s() - before_s) / begun.elapsed().as_secs_f64();
        wait_for_end(&mut nstar)?;
        if let Some(perf) = &mut perf
            && let Some(status) = perf.0.try_wait()?
        {
            return Err(format!("{} did not sample: {status}", sampler.name()).into());
        }
        let run: Value = serde_json::from_str(&fs::read_to_string(output)?)?;
        let sampling = if sampler == Sampler::Nstar { sampling(&busy, &run)? } else { 0.0 };
        Ok(Turn { per_s: per_s(&run["steps"][0])?, served, busy: busy.all, sampling })
    }

    /// perf under way, where it is what samples.
    fn perf(&self, workspace: &Workspace, sampler: Sampler) -> Result<Option<Beside>> {
        let (hertz, of) = match sampler {
            Sampler::Nobody | Sampler::Nstar => return Ok(None),
            Sampler::PerfOfAll(hertz) => (hertz, vec!["-a".to_owned()]),
            Sampler::PerfOfThreads(hertz) => (hertz, vec!["-p".to_owned(), self.processes()]),
        };
        let samples = workspace.path("perf.data").display().to_string();
        let words = ["perf", "record", "-q", "-N", "-e", "cpu-clock", "-g", "-F", hertz, "-o", &samples];
        let words: Vec<String> = words.map(String::from).into_iter().chain(of).collect();
        let perf = self.started(&words)?;
        thread::sleep(PERF_BEGINS);
        Ok(Some(perf))
    }

    /// The processes of the server, as perf takes them.
    fn processes(&self) -> String {
        cpu::tree(self.server.pid()).iter().map(u32::to_string).collect::<Vec<_>>().join(",")
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

fn rows(sampler: Sampler, work: &str, with: &[Turn], without: &[Turn]) -> Vec<Row> {
    let is_ours = sampler == Sampler::Nstar;
    let row = |unit, read: fn(&Turn) -> f64, reach: Option<f64>| Row {
        work: work.to_owned(),
        unit,
        ours: with.iter().map(read).collect(),
        against: Against::Program {
            name: "without".into(),
            theirs: without.iter().map(read).collect(),
            reach: reach.filter(|_| is_ours),
        },
    };
    let mut rows = vec![
        row("req/s", |turn: &Turn| turn.per_s, Some(REACH)),
        row("req/CPU-s of the server", |turn: &Turn| turn.per_s / turn.served, Some(REACH)),
        row("req/CPU-s of nstar", |turn: &Turn| turn.per_s / turn.busy, None),
    ];
    if is_ours {
        rows.push(Row {
            work: format!("{work}, the threads that sample"),
            unit: "% of a core",
            ours: with.iter().map(|turn| 100.0 * turn.sampling).collect(),
            against: Against::Nothing,
        });
    }
    rows
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
        let of = |sampler| rows(sampler, "load", &[turn(98.0, 0.5, 0.02)], &[turn(100.0, 0.4, 0.0)]);
        let rows = of(Sampler::Nstar);
        assert_eq!((rows.len(), of(Sampler::PerfOfAll("99")).len()), (4, 3));
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
