//! What watching a server costs: the CPU time of the thread that samples it, as a share of a core. It would otherwise be
//! taken from the server, and be part of what is measured.

use std::{
    fs,
    path::Path,
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

/// Limits of an agent that watches the server for an nstar elsewhere: its memory, MB, and what it says, kbit/s.
const AGENT_MB: f64 = 20.0;
const AGENT_KBIT: f64 = 200.0;

/// How long an agent may take to start.
const AGENT_PATIENCE: Duration = Duration::from_secs(30);

/// Between samples, as in a sweep.
const PERIOD: Duration = Duration::from_millis(250);

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    workspace.file("1k", 1_000)?;
    let server = files_on(workspace, "threads")?;
    let _load = light_load(workspace, &server)?;
    let mut rows = rows("watching a server of 64 threads", &server, effort)?;
    let of_an_agent = through_an_agent(workspace, &server, effort)?;
    let _idle = (0..IDLE).map(|_| idle()).collect::<Result<Vec<_>>>()?;
    rows.extend(self::rows("the same beside 2 000 idle processes", &server, effort)?);
    rows.extend(of_an_agent);
    Ok(rows)
}

/// The memory that an agent takes at most while it watches the server, and what it says of it.
fn through_an_agent(workspace: &Workspace, server: &ServerProcess, effort: Effort) -> Result<Vec<Row>> {
    let noted = workspace.path("agent");
    let flags = format!("load http://{}/files/1k -c 1 --think 100ms -d 1h --no-progress", server.address);
    let (at, nstar) = (noted.display(), workspace.ours("nstar"));
    let observe = format!("sh -c 'echo $$ >{at}.new; mv {at}.new {at}; exec {nstar} agent'");
    let mut observed = Command::new("taskset");
    observed.args(["-c", &CLIENTS.to_string()]).args(workspace.nstar(&flags)).args(["--observe", &observe]);
    let _observed = Beside::quiet(&mut observed)?;
    let pid = number_in(&noted)?;
    // The first search reads everything.
    thread::sleep(Duration::from_secs(2));
    let [mut memory, mut said] = [Vec::new(), Vec::new()];
    for _ in 0..effort.rounds {
        let (begun, before) = (Instant::now(), figure(&pid, "io", "wchar:")?);
        thread::sleep(Duration::from_secs(effort.seconds.into()));
        let bytes = figure(&pid, "io", "wchar:")? - before;
        said.push(bytes * 8.0 / 1_000.0 / begun.elapsed().as_secs_f64());
        memory.push(figure(&pid, "status", "VmHWM:")? * 1_024.0 / 1e6);
    }
    let row = |what: &str, unit, ours, limit| Row {
        work: format!("an agent that watches a server of 64 threads, {what}"),
        unit,
        ours,
        against: Against::AtMost(limit),
    };
    Ok(vec![row("memory", "MB", memory, AGENT_MB), row("what it says", "kbit/s", said, AGENT_KBIT)])
}

/// The number in a file, once that is there.
fn number_in(file: &Path) -> Result<String> {
    let begun = Instant::now();
    while !file.exists() {
        if begun.elapsed() > AGENT_PATIENCE {
            return Err("no agent was started".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(fs::read_to_string(file)?.trim().to_owned())
}

/// A figure that the kernel tells of a process.
fn figure(pid: &str, file: &str, name: &str) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let mut found = text.lines().filter_map(|line| line.strip_prefix(name));
    let figure = found.next().and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or("the kernel does not tell it")?.parse()?)
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
