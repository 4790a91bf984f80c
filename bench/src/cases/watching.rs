//! What watching a server costs: the CPU time of the thread that samples it, as a share of a core. It would otherwise be
//! taken from the server, and be part of what is measured.

use std::{
    process::{self, Command},
    thread,
    time::{Duration, Instant},
};

use observe::{KernelPaths, Watcher};

use crate::{
    programs::servers::files_on,
    tools::{
        beside::Beside,
        cpu,
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{CLIENTS, ServerProcess, Workspace},
    },
};

/// Limits, % of a core: while the number of users is raised, and while threads are looked at closely.
const REACH: f64 = 1.0;
const REACH_CLOSELY: f64 = 3.0;

/// Connections, each with a thread of the server that is woken ten times a second or so.
const USERS: u32 = 64;

/// Processes beside the server that do nothing.
const IDLE: usize = 2_000;

/// Between samples, as in a sweep.
const PERIOD: Duration = Duration::from_millis(250);

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", 1_000)?;
    let server = files_on(workspace, "threads")?;
    let _load = light_load(workspace, &server)?;
    let mut rows = rows("watching a server of 64 threads", &server, effort)?;
    let _idle = (0..IDLE).map(|_| idle()).collect::<Result<Vec<_>>>()?;
    rows.extend(self::rows("the same beside 2 000 idle processes", &server, effort)?);
    Ok(rows)
}

fn idle() -> Result<Beside> {
    Beside::quiet(Command::new("sleep").arg("infinity"))
}

/// Keeps all threads of the server awake now and then, and leaves the processors nearly idle.
fn light_load(workspace: &Workspace, server: &ServerProcess) -> Result<Beside> {
    let flags =
        format!("load http://{}/files/1k -c {USERS} --think 100ms -d 1h --no-progress", server.address);
    Beside::quiet(Command::new("taskset").args(["-c", &CLIENTS.to_string()]).args(workspace.nstar(&flags)))
}

fn rows(work: &str, server: &ServerProcess, effort: Effort) -> Result<Vec<Row>> {
    let row = |work: String, limit| Row {
        work,
        unit: "% of a core",
        ours: Vec::new(),
        against: Against::AtMost(limit),
    };
    let mut rows = vec![row(work.to_owned(), REACH), row(format!("{work}, closely"), REACH_CLOSELY)];
    let watcher = Watcher::start(KernelPaths::default(), observe::find(server.address)?, PERIOD)?;
    // The first search reads everything.
    thread::sleep(Duration::from_secs(2));
    for _ in 0..effort.rounds {
        for (row, closely) in rows.iter_mut().zip([false, true]) {
            watcher.look_closely(closely);
            row.ours.push(percent_of_a_core(effort.seconds)?);
        }
    }
    Ok(rows)
}

/// What the watching thread uses meanwhile.
fn percent_of_a_core(seconds: u32) -> Result<f64> {
    let (begun, before_s) = (Instant::now(), watching_s()?);
    thread::sleep(Duration::from_secs(seconds.into()));
    Ok((watching_s()? - before_s) / begun.elapsed().as_secs_f64() * 100.0)
}

/// CPU time so far of this process's thread that watches, seconds.
fn watching_s() -> Result<f64> {
    let mut threads = cpu::threads(process::id())?.into_values();
    let watching = threads.find(|thread| thread.name == "nstar-observe");
    Ok(watching.ok_or("nothing watches")?.cpu_s)
}
