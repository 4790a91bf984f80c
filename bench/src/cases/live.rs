//! What showing a sweep costs its generator, with a page that somebody has open and with the view on a terminal: the CPU time
//! of the threads that show it, and throughput and CPU time beside plain lines. The generator has one processor and is the
//! limit, so that whatever a view takes is missing from throughput. How throughput scatters hides a loss of 1 %, and the CPU
//! time of threads does not.

mod views;

use std::{fs, thread, time::Duration};

use serde_json::Value;

use self::views::View;
use crate::{
    programs::{generators::number, servers::responder},
    tools::{
        effort::{Effort, Result},
        table::{Against, Row},
        under_way::{Busy, wait_for_end, wait_for_load},
        workspace::{ServerProcess, Workspace},
    },
};

/// The share of what a generator does with plain lines that should be left.
const REACH: f64 = 0.99;
/// What a view may use, % of a processor and % of what the generator uses.
const COST_MAX: f64 = 1.0;
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
/// How long before the end of the last step the CPU time is read at the latest.
const MARGIN: Duration = Duration::from_millis(500);

/// The main thread, which decides, and notes for a view what happens.
const MAIN: &str = "nstar";
/// How the names of the threads begin that make the load.
const GENERATOR: &str = "load-";

/// What a sweep came to.
#[derive(Debug)]
struct Shown {
    /// Throughput, requests per second: the mean of its steps.
    per_s: f64,
    /// What the sweep's process used during its steps.
    busy: Busy,
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
    let mut rows = Vec::new();
    for (view, turns) in [(View::Page, &page), (View::Terminal, &terminal)] {
        rows.extend(beside_lines(view, turns, &lines));
        rows.extend(costs(view, turns, &lines)?);
    }
    rows.push(Row {
        work: format!("sweep {}, how busy", View::Lines.words()),
        unit: "% of a processor",
        ours: column(&lines, |turn| 100.0 * turn.busy.all),
        against: Against::AtLeast(FULL),
    });
    Ok(rows)
}

/// What is left of throughput.
fn beside_lines(view: View, turns: &[Shown], lines: &[Shown]) -> Vec<Row> {
    let row = |unit, read: fn(&Shown) -> f64| Row {
        work: format!("sweep {}, 1 KB, {USERS} users and more", view.words()),
        unit,
        ours: column(turns, read),
        against: Against::Program {
            name: "plain lines".into(),
            theirs: column(lines, read),
            reach: Some(REACH),
        },
    };
    let per_cpu_s = |turn: &Shown| turn.per_s / turn.busy.all;
    vec![row("req/s", |turn: &Shown| turn.per_s), row("req/CPU-s", per_cpu_s)]
}

/// What a view uses: its own threads, and what the main thread does for it besides.
///
/// # Errors
/// No thread shows the sweep, so that nothing was measured.
fn costs(view: View, turns: &[Shown], lines: &[Shown]) -> Result<Vec<Row>> {
    let own = turns.iter().map(|turn| shown_by(view, &turn.busy)).collect::<Result<Vec<f64>>>()?;
    let main = |turns: &[Shown]| column(turns, |turn| turn.busy.named(MAIN).unwrap_or(f64::NAN));
    let generator = column(turns, |turn| turn.busy.named_like(GENERATOR));
    let of_generator = own.iter().zip(&generator).map(|(own, generator)| own / generator);
    let added = main(turns).into_iter().zip(main(lines)).map(|(with, without)| with - without);
    let with_main = own.iter().zip(added).map(|(own, added)| own + added);
    let work = format!("sweep {}, the threads that show it", view.words());
    let row = |work: &str, unit, shares: Vec<f64>| Row {
        work: work.to_owned(),
        unit,
        ours: shares.into_iter().map(|share| 100.0 * share).collect(),
        against: Against::AtMost(COST_MAX),
    };
    let of_generator = row(&work, "% of the generator's CPU time", of_generator.collect());
    let with_main =
        row(&format!("{work}, and what the main thread adds"), "% of a core", with_main.collect());
    Ok(vec![row(&work, "% of a core", own), of_generator, with_main])
}

/// What the threads of a view used, in processors.
fn shown_by(view: View, busy: &Busy) -> Result<f64> {
    let used = |name: &&str| -> Result<f64> {
        let used = busy.named(name);
        Ok(used.ok_or_else(|| format!("a sweep {} has no thread '{name}'", view.words()))?)
    };
    view.threads().iter().map(used).sum()
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
    let busy = Busy::of(&sweep, Duration::from_secs((steps * STEP_S).into()) - MARGIN)?;
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
    workspace.nstar(&flags)
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

    fn shown(threads: &[(&str, f64)]) -> Shown {
        Shown { per_s: 100.0, busy: Busy::new(1.0, threads) }
    }

    #[test]
    fn a_view_costs_its_own_threads_and_what_it_adds_to_the_main_one() {
        let lines = [shown(&[("nstar", 0.01), ("load-0", 0.9)])];
        let terminal = [shown(&[("nstar", 0.015), ("load-0", 0.8), ("screen", 0.004)])];
        let rows = costs(View::Terminal, &terminal, &lines).unwrap();
        let found: Vec<_> = rows.iter().map(|row| (row.unit, (row.ours[0] * 1e3).round())).collect();
        assert_eq!(
            found,
            [("% of a core", 400.0), ("% of the generator's CPU time", 500.0), ("% of a core", 900.0)]
        );
    }

    #[test]
    fn a_view_without_threads_was_not_measured() {
        let lines = [shown(&[("nstar", 0.01), ("load-0", 0.9)])];
        assert!(costs(View::Page, &lines, &lines).is_err());
        let unseen = [shown(&[("nstar", 0.01), ("load-0", 0.9), ("page", 0.0)])];
        assert!(costs(View::Page, &unseen, &lines).is_err(), "nobody has it open");
    }
}
