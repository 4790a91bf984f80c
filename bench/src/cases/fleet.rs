//! What it costs to have load made through agents, and how closely many of them begin together.

use std::fs;

use serde_json::Value;

use crate::{
    programs::{
        generators::{Load, NSTAR, nstar_words},
        servers::responder,
    },
    tools::{
        cpu,
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{CLIENTS, SHARED, Workspace},
    },
};

/// A generator through an agent makes at least this share of what it makes for the same CPU time without.
const REACH: f64 = 0.98;
/// Agents that begin together.
const MANY: usize = 50;
/// All of them begin a step within this time, milliseconds.
const TOGETHER_MS: f64 = 20.0;

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let server = responder(workspace)?;
    let load = Load::new(workspace, format!("http://{}/", server.address), 32, effort)?;
    let mut rows = vec![through_an_agent(workspace, &load, effort)?];
    rows.extend(four_against_one(workspace, &load, effort)?);
    rows.push(many_together(workspace, &load, effort)?);
    Ok(rows)
}

fn through_an_agent(workspace: &Workspace, load: &Load, effort: Effort) -> Result<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds {
        ours.push(per_cpu_s(workspace, load, 1)?);
        theirs.push(per_cpu_s(workspace, load, 0)?);
    }
    let name = "itself without an agent".to_owned();
    let against = Against::Program { name, theirs, reach: Some(REACH) };
    Ok(Row { work: "generator through an agent, 1 KB, 32 users".into(), unit: "req/CPU-s", ours, against })
}

/// Requests for a second of CPU time, of nstar and its agents. What starting takes is left out: it is the same for a few
/// requests and for many.
fn per_cpu_s(workspace: &Workspace, load: &Load, agents: usize) -> Result<f64> {
    let few = Load { total: load.total / 4, ..load.clone() };
    let spent = |load: &Load| {
        let stop = format!("--total {}{}", load.total, " --generator here".repeat(agents));
        let finished = cpu::run_on(CLIENTS, &nstar_words(workspace, load, &stop), NSTAR.accepted)?;
        Ok::<f64, Box<dyn std::error::Error>>(finished.cpu_s)
    };
    let cpu_s = spent(load)? - spent(&few)?;
    Ok((load.total - few.total) as f64 / cpu_s)
}

/// What four generators on one processor measure of a server, against one.
fn four_against_one(workspace: &Workspace, load: &Load, effort: Effort) -> Result<Vec<Row>> {
    let figures = [
        ("throughput", "req/s", "/throughput_per_s"),
        ("median", "us", "/response_time_us/p50"),
        ("p99", "us", "/response_time_us/p99"),
    ];
    let mut all = figures.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..effort.rounds {
        let (four, one) = (step_of(workspace, load, 4)?, step_of(workspace, load, 1)?);
        for ((ours, theirs), (_, _, at)) in all.iter_mut().zip(&figures) {
            let read = |step: &Value| step.pointer(at).and_then(Value::as_f64);
            ours.push(read(&four).ok_or("four generators measured nothing")?);
            theirs.push(read(&one).ok_or("one generator measured nothing")?);
        }
    }
    let row = |((ours, theirs), (what, unit, _)): ((Vec<f64>, Vec<f64>), _)| Row {
        work: format!("4 generators, 32 users who think for 2 ms, {what}"),
        unit,
        ours,
        against: Against::Program { name: "1 generator".into(), theirs, reach: None },
    };
    Ok(all.into_iter().zip(figures).map(row).collect())
}

/// The step of a load that leaves both the server and its generators half idle.
fn step_of(workspace: &Workspace, load: &Load, generators: usize) -> Result<Value> {
    let output = workspace.path("run.json");
    let flags = " --generator here".repeat(generators);
    let stop = format!("-d {}s --think 2ms -o {}{flags}", load.seconds.max(2), output.display());
    cpu::run_on(CLIENTS, &nstar_words(workspace, load, &stop), NSTAR.accepted)?;
    let run: Value = serde_json::from_str(&fs::read_to_string(output)?)?;
    Ok(run["steps"][0].clone())
}

/// By how much the last of many agents on one host begins a step late, with what is not known of the clocks.
fn many_together(workspace: &Workspace, load: &Load, effort: Effort) -> Result<Row> {
    let load = Load { users: 2 * MANY as u32, ..load.clone() };
    let output = workspace.path("run.json");
    let flags = " --generator here".repeat(MANY);
    let stop = format!("-d 1s --think 10ms -o {}{flags}", output.display());
    let mut ours = Vec::new();
    for _ in 0..effort.rounds {
        cpu::run_on(SHARED, &nstar_words(workspace, &load, &stop), NSTAR.accepted)?;
        let run: Value = serde_json::from_str(&fs::read_to_string(&output)?)?;
        let generators = run["load"]["generators"].as_array().ok_or("no generators")?;
        let late_us = generators.iter().filter_map(|one| one["started_late_us"].as_f64());
        let error_us = generators.iter().filter_map(|one| one["clock_error_us"].as_f64());
        ours.push((late_us.fold(0.0, f64::max) + error_us.fold(0.0, f64::max)) / 1_000.0);
    }
    Ok(Row {
        work: format!("{MANY} agents on one host begin a step, the last"),
        unit: "ms",
        ours,
        against: Against::AtMost(TOGETHER_MS),
    })
}
