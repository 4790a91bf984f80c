//! Two sides beside each other, and runs in the order of time.

use analysis::contrast::{self, Contrast, Figure, Gate, Given, Limit};
use analysis::history::{Brief, History, history};
use analysis::run::{Identity, Processes, Run};

/// A name that steers terminals, pages and tables.
const EVIL: &str = "</td>|<script>alert(1)</script>`[x](y)\u{1b}[2J\"";

pub fn given(file: &str, run: Run) -> Given {
    Given { file: file.into(), run }
}

/// The sample of a full CPU, which tells whose each demand is.
fn known() -> Run {
    let mut run = super::cpu();
    let worker =
        Processes { name: "nginx worker".into(), pid: Some(812), processes: 1, ..Processes::default() };
    run.laws.demands[0].identity = Some(Identity::Processes(worker));
    run
}

/// The same with so much of its throughput.
fn scaled(share: f64, started: &str) -> Run {
    let mut run = known();
    run.started = started.into();
    run.verdict.throughput_max_per_s *= share;
    run.verdict.throughput_max_ci_per_s = run.verdict.throughput_max_ci_per_s.map(|end| end * share);
    run
}

/// A build and a slower one, with a gate of each outcome.
pub fn slower() -> Contrast {
    let after = scaled(0.9, "2026-11-22T00:00:00Z");
    let found = contrast::of_runs(vec![given("a.json", known())], vec![given("b.json", after)], "1");
    let mut found = found.expect("runs on both sides");
    let gate = |text: &str, figure, limit, ratio| Gate { text: text.into(), figure, limit, ratio };
    found.hold(&[
        gate("throughput>-3%", Figure::Throughput, Limit::Above, 0.97),
        gate("throughput>-20%", Figure::Throughput, Limit::Above, 0.8),
        gate("p99<+5%", Figure::ResponseTimeQuantile { percentile: "p99".into() }, Limit::Below, 1.05),
    ]);
    found
}

/// Two sides with hostile names.
pub fn hostile() -> Contrast {
    let mut after = super::hostile();
    after.target = EVIL.into();
    after.host.kernel = EVIL.into();
    let found = contrast::of_runs(vec![given(EVIL, super::cpu())], vec![given(EVIL, after)], "1");
    let mut found = found.expect("runs on both sides");
    found.hold(&[Gate { text: EVIL.into(), figure: Figure::Throughput, limit: Limit::Above, ratio: 0.9 }]);
    found
}

/// Runs in the order of time.
pub fn history_of(runs: &[Given]) -> History {
    history(runs.iter().map(Brief::of).collect(), "1")
}

/// Sixteen runs, slower from `10.json` on.
pub fn sixteen() -> Vec<Given> {
    many(16)
}

/// At most 29 runs, slower from `10.json` on.
pub fn many(count: u32) -> Vec<Given> {
    let one = |number: u32| {
        let share = if number < 10 { 1.0 } else { 0.94 } + f64::from(number * 7 % 5) * 0.001;
        given(&format!("{number:02}.json"), scaled(share, &format!("2026-11-{:02}T00:00:00Z", number + 1)))
    };
    (0..count).map(one).collect()
}

/// Their history.
pub fn course() -> History {
    history_of(&sixteen())
}

/// Nine runs with hostile names.
pub fn hostile_course() -> History {
    let run = |number: usize| {
        let run = Run { started: format!("{EVIL}{number}"), ..super::hostile() };
        given(&format!("{}{number}", EVIL.repeat(3)), run)
    };
    history_of(&(0..9).map(run).collect::<Vec<_>>())
}
