//! `nstar load` with 10 000 users against itself with 100: throughput, and memory of its own.

use std::{
    fs,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    Effort, Result,
    programs::{
        generators::{BARE, Load, NSTAR, nstar_words},
        servers::responder,
    },
    tools::{
        table::{Against, Row},
        workspace::{CLIENTS, Workspace},
    },
};

const FEW: u32 = 100;
const MANY: u32 = 10_000;
/// Seconds of a round at least: opening thousands of connections must be a small part of it.
const SECONDS_MIN: u32 = 3;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let effort = Effort { seconds: effort.seconds.max(SECONDS_MIN), ..effort };
    let server = responder(workspace)?;
    let url = format!("http://{}/", server.address);
    let few = Load::new(workspace, url, FEW, effort)?;
    let many = Load { users: MANY, ..few.clone() };
    let mut throughput = [Vec::new(), Vec::new()];
    let mut per_cpu_s = [Vec::new(), Vec::new()];
    let mut bare = [Vec::new(), Vec::new()];
    let mut per_user = Vec::new();
    for _ in 0..effort.rounds {
        let mut memory = [0.0; 2];
        for (index, load) in [&many, &few].into_iter().enumerate() {
            let seen = run(workspace, load)?;
            throughput[index].push(seen.per_s);
            memory[index] = seen.memory_bytes;
            per_cpu_s[index].push(NSTAR.bodies_per_cpu_s(workspace, load)?);
            bare[index].push(BARE.bodies_per_cpu_s(workspace, load)?);
        }
        per_user.push((memory[0] - memory[1]) / f64::from(MANY - FEW));
    }
    let row = |what: &str, unit, [many, few]: [Vec<f64>; 2], reach| Row {
        work: format!("{what}, 10 000 users, 1 KB"),
        unit,
        ours: many,
        against: Against::Program { name: "itself at 100 users".into(), theirs: few, reach },
    };
    Ok(vec![
        row("generator", "req/s", throughput, Some(0.9)),
        row("generator", "req/CPU-s", per_cpu_s, None),
        row("bare epoll client", "req/CPU-s", bare, None),
        Row {
            work: "generator, memory of a user".into(),
            unit: "bytes",
            ours: per_user,
            against: Against::AtMost(8_192.0),
        },
    ])
}

/// What one run came to.
struct Measured {
    per_s: f64,
    memory_bytes: f64,
}

/// Runs nstar for a time and watches its memory.
fn run(workspace: &Workspace, load: &Load) -> Result<Measured> {
    let output = workspace.path("run.json");
    let words = nstar_words(workspace, load, &format!("-d {}s -o {}", load.seconds, output.display()));
    let mut child = Command::new("taskset")
        .args(["-c", &CLIENTS.to_string()])
        .args(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let memory_bytes = most_memory(&mut child)?;
    let run: serde_json::Value = serde_json::from_str(&fs::read_to_string(output)?)?;
    let per_s = run["steps"][0]["throughput_per_s"].as_f64().ok_or("nstar measured nothing")?;
    Ok(Measured { per_s, memory_bytes })
}

/// Waits for a child to end. Returns the most memory it ever held, in bytes.
fn most_memory(child: &mut Child) -> Result<f64> {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut most = 0.0;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err("nstar did not end".into());
        }
        most = high_water_bytes(child.id()).unwrap_or(most);
        thread::sleep(Duration::from_millis(50));
    }
    Ok(most)
}

/// VmHWM of proc_pid_status(5).
fn high_water_bytes(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1_024.0)
}
