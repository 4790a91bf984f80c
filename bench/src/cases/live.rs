//! What showing a sweep costs its generator: throughput and CPU time with a page that somebody has open, and with the view on
//! a terminal, beside plain lines. The generator has one processor and is the limit, so that whatever a view takes is missing
//! from throughput.

mod views;

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use self::views::View;
use crate::{
    programs::{generators::number, servers::responder},
    tools::{
        beside::Beside,
        cpu,
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{ServerProcess, Workspace},
    },
};

/// The share of what a generator does with plain lines that should be left.
const REACH: f64 = 0.99;
/// How busy the generator should be for that, % of its processor.
const FULL: f64 = 95.0;

/// Users of the first step; each has one more than the one before.
const USERS: u32 = 32;
/// Length of a step, seconds. A sweep with steps of at most 2 s has steps of 2 s.
const STEP_S: u32 = 2;
/// Steps of a sweep, at least and at most. The last has less than 1.5 times as many users as the first: with more it could be
/// seen that throughput no longer grows, and steps would be repeated, in one sweep more often than in another.
const STEPS: [u32; 2] = [4, 15];
/// How long a sweep warms up before its first step.
const WARM_UP: Duration = Duration::from_secs(1);
/// The server has done so much once the load has begun, seconds of CPU time. The probe and the test of the generator before it
/// hardly touch the server.
const BEGUN_S: f64 = 0.1;
/// How long before the end of the last step the CPU time is read at the latest.
const MARGIN: Duration = Duration::from_millis(500);
/// A sweep that takes so much longer than its steps hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// What a sweep came to.
#[derive(Debug, Clone, Copy)]
struct Shown {
    /// Throughput, requests per second: the mean of its steps.
    per_s: f64,
    /// CPU time of the sweep's process for a second of its steps, seconds.
    busy: f64,
}

pub(super) fn measure(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let server = responder(workspace)?;
    let steps = (effort.seconds / STEP_S).clamp(STEPS[0], STEPS[1]);
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..effort.rounds {
        for (view, turns) in [View::Lines, View::Page, View::Terminal].into_iter().zip(&mut all) {
            turns.push(sweep(workspace, &server, view, steps)?);
        }
    }
    let [lines, page, terminal] = all;
    let mut rows = rows("open as a page", &page, &lines);
    rows.extend(self::rows("on a terminal", &terminal, &lines));
    rows.push(Row {
        work: "sweep with plain lines, how busy".into(),
        unit: "% of a processor",
        ours: column(&lines, |turn| 100.0 * turn.busy),
        against: Against::AtLeast(FULL),
    });
    Ok(rows)
}

fn rows(how: &str, turns: &[Shown], lines: &[Shown]) -> Vec<Row> {
    let row = |unit, read: fn(&Shown) -> f64| Row {
        work: format!("sweep {how}, 1 KB, {USERS} users and more"),
        unit,
        ours: column(turns, read),
        against: Against::Program {
            name: "plain lines".into(),
            theirs: column(lines, read),
            reach: Some(REACH),
        },
    };
    vec![row("req/s", |turn: &Shown| turn.per_s), row("req/CPU-s", |turn: &Shown| turn.per_s / turn.busy)]
}

fn column(turns: &[Shown], read: impl Fn(&Shown) -> f64) -> Vec<f64> {
    turns.iter().map(read).collect()
}

/// Sweeps once, shown like this.
fn sweep(workspace: &Workspace, server: &ServerProcess, view: View, steps: u32) -> Result<Shown> {
    let output = workspace.path("live.json");
    let before_s = server.cpu_s();
    let (mut sweep, watching) = view.start(&sweep_words(workspace, server, steps))?;
    wait_for_load(&mut sweep, server, before_s)?;
    thread::sleep(WARM_UP);
    let (begun, cpu_before_s) = (Instant::now(), cpu::of_tree(sweep.0.id()));
    thread::sleep(Duration::from_secs((steps * STEP_S).into()) - MARGIN);
    let busy = (cpu::of_tree(sweep.0.id()) - cpu_before_s) / begun.elapsed().as_secs_f64();
    wait_for_end(&mut sweep)?;
    if let Some(watching) = watching {
        watching.saw(steps as usize)?;
    }
    Ok(Shown { per_s: throughput_per_s(&fs::read_to_string(output)?, steps)?, busy })
}

fn sweep_words(workspace: &Workspace, server: &ServerProcess, steps: u32) -> Vec<String> {
    let users: Vec<String> = (USERS..USERS + steps).map(|users| users.to_string()).collect();
    let (address, output) = (server.address, workspace.path("live.json"));
    let flags =
        format!("sweep http://{address}/ -c {} -d {STEP_S}s -t 1 -o {}", users.join(","), output.display());
    [workspace.ours("nstar")].into_iter().chain(flags.split(' ').map(String::from)).collect()
}

/// Waits until the server is under load.
fn wait_for_load(sweep: &mut Beside, server: &ServerProcess, before_s: f64) -> Result<()> {
    let begun = Instant::now();
    while server.cpu_s() - before_s < BEGUN_S {
        if let Some(status) = sweep.0.try_wait()? {
            return Err(format!("nstar sweep ended before its load began: {status}").into());
        }
        if begun.elapsed() > PATIENCE {
            return Err("nstar sweep makes no load".into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn wait_for_end(sweep: &mut Beside) -> Result<()> {
    let begun = Instant::now();
    loop {
        match sweep.0.try_wait()?.map(|status| (status, status.code())) {
            // 4: the generator was the bottleneck, and here it is meant to be.
            Some((_, Some(0 | 4))) => return Ok(()),
            Some((status, _)) => return Err(format!("nstar sweep: {status}").into()),
            None if begun.elapsed() > PATIENCE => return Err("nstar sweep did not end".into()),
            None => thread::sleep(LOOK),
        }
    }
}

/// The mean throughput of the steps in a run file.
///
/// # Errors
/// Other than these steps were measured.
fn throughput_per_s(run: &str, expected: u32) -> Result<f64> {
    let run: Value = serde_json::from_str(run)?;
    let steps = run["steps"].as_array().ok_or("the run file has no steps")?;
    if steps.len() != expected as usize {
        return Err(format!("{} steps instead of {expected}", steps.len()).into());
    }
    let rates = steps.iter().map(|step| number(step, "throughput_per_s")).collect::<Result<Vec<f64>>>()?;
    Ok(rates.iter().sum::<f64>() / rates.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_is_the_mean_of_all_steps_that_were_asked_for() {
        let run = r#"{"steps": [{"throughput_per_s": 100.0}, {"throughput_per_s": 300.0}]}"#;
        assert_eq!(throughput_per_s(run, 2).unwrap(), 200.0);
        assert!(throughput_per_s(run, 3).is_err());
        assert!(throughput_per_s("{}", 1).is_err());
    }

    #[test]
    fn the_most_users_are_too_close_to_the_fewest_to_show_an_end_of_growth() {
        assert!(f64::from(USERS + STEPS[1] - 1) < 1.5 * f64::from(USERS));
    }
}
