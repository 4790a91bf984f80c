//! Changes: what `nstar predict` says from a sweep of a server, and what the changed server then does. `changes.toml` lists
//! them.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::Value;

use crate::{Trouble, case::Case, grade::Said, tier::Tier};

/// The changes of the suite.
const CHANGES: &str = include_str!("../changes.toml");

/// How far a predicted throughput may be from the measured one.
const THROUGHPUT_TOLERANCE: f64 = 0.10;

/// How far a predicted p95 may be from the measured one to count as near.
const P95_TOLERANCE: f64 = 0.25;

/// With fewer response times, the largest of them may well be below p95.
const P95_SAMPLES_MIN: u64 = 59;

/// The share of changes that have to be predicted right.
const HELD_MIN: f64 = 0.9;

/// A change of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Its name, unique, also among cases.
    pub name: String,
    /// The case that is changed.
    pub case: String,
    /// Arguments of `nstar predict`.
    pub predict: Vec<String>,
    /// The tiers of the changed server, where they differ.
    #[serde(default)]
    tiers: Option<Vec<Tier>>,
    /// Further arguments of the changed server's `nstar sweep`.
    #[serde(default)]
    nstar: Vec<String>,
    /// Further arguments of both sweeps.
    #[serde(default)]
    sweeps: Vec<String>,
    /// A goal, `throughput>=RATE`, for which this change has to be proposed, and which it has to reach.
    #[serde(default)]
    goal: Option<String>,
}

impl Change {
    /// The changed server.
    pub fn changed(&self, case: &Case) -> Case {
        let mut changed = Case { name: self.name.clone(), short: false, ..case.clone() };
        changed.tiers = self.tiers.clone().unwrap_or(changed.tiers);
        changed.nstar.extend(self.nstar.iter().cloned());
        changed
    }
}

/// All changes, each with its case as it is swept for them.
///
/// # Errors
/// Where the list is wrong.
pub fn all(cases: &[Case]) -> Result<Vec<(Change, Case)>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        change: Vec<Change>,
    }
    let list: List = toml::from_str(CHANGES).map_err(|error| error.to_string())?;
    check_sweeps(&list.change)?;
    let with_case = |change: Change| {
        let case = cases.iter().find(|case| case.name == change.case).cloned();
        let mut case = case.ok_or_else(|| format!("{}: there is no case '{}'", change.name, change.case))?;
        case.nstar.extend(change.sweeps.iter().cloned());
        Ok((change, case))
    };
    list.change.into_iter().map(with_case).collect()
}

/// One sweep of a case serves all its changes, which so have to agree on it.
fn check_sweeps(changes: &[Change]) -> Result<(), String> {
    for change in changes {
        let differs = |other: &&Change| other.case == change.case && other.sweeps != change.sweeps;
        if let Some(other) = changes.iter().find(differs) {
            return Err(format!("{} and {} sweep {} differently", change.name, other.name, change.case));
        }
    }
    Ok(())
}

/// A prediction beside what was measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    change: Change,
    throughput: [f64; 3],
    users: [f64; 3],
    /// Throughput that was predicted for the measured N*, and what was measured there.
    at: Option<(f64, f64)>,
    /// p95 that was predicted for the measured N*, and what was measured there, microseconds; absent where either is not known.
    p95_us: Option<(f64, f64)>,
    /// What became of the goal.
    carried: Option<Carried>,
    measured: Said,
}

/// A goal that was carried out.
#[derive(Debug, Clone)]
struct Carried {
    /// Whether the change is the first that was proposed for it.
    proposed: bool,
    /// Whether the changed server reached it.
    met: bool,
}

impl Outcome {
    /// How far the predicted maximum, or the throughput at the measured N*, is from the measured one, as a share: the larger of
    /// both.
    fn error(&self) -> f64 {
        let max = self.throughput[0] / self.measured.throughput - 1.0;
        let at = self.at.map_or(0.0, |(predicted, measured)| predicted / measured - 1.0);
        if at.abs() > max.abs() { at } else { max }
    }

    /// How far the predicted p95 is from the measured one, as a share.
    fn error_of_p95(&self) -> Option<f64> {
        self.p95_us.map(|(predicted, measured)| predicted / measured - 1.0)
    }

    /// Whether the measured N* lies within the predicted interval.
    fn predicts_users(&self) -> bool {
        let [_, low, high] = self.users;
        self.measured.users.is_some_and(|users| (low..=high).contains(&(users as f64)))
    }

    /// Whether one N* lies within the interval of the other. Both are estimates: the measured one has an interval too, which is
    /// wide where throughput hardly grows near its maximum.
    fn holds_users(&self) -> bool {
        let [predicted, ..] = self.users;
        self.predicts_users() || self.measured.has_users(predicted as u32)
    }

    fn holds(&self) -> bool {
        let carried = self.carried.as_ref().is_none_or(|of| of.proposed && of.met);
        self.error().abs() <= THROUGHPUT_TOLERANCE && self.holds_users() && carried
    }
}

/// Predicts a change from the run file of its case, and reads what the changed server did, both kept in a folder.
///
/// # Errors
/// Where a file is missing, or nothing was predicted.
pub fn outcome(change: &Change, folder: &Path, nstar: &Path) -> Result<Outcome, Trouble> {
    let run = json(&folder.join(format!("{}.json", change.name)))?;
    let users = users(&Said::read(&run)?).to_string();
    let base = folder.join(format!("{}.json", change.case));
    let asked: Vec<&str> = change.predict.iter().map(String::as_str).chain(["--users", &users]).collect();
    let found = predicted(nstar, &base, &asked)?;
    let outcome = compared(change, &found, &run)?;
    let Some(goal) = &change.goal else { return Ok(outcome) };
    let proposal = predicted(nstar, &base, &["--goal", goal])?;
    let carried = Some(carried(goal, &proposal, &found, &outcome.measured)?);
    Ok(Outcome { carried, ..outcome })
}

/// What `nstar predict` says of a run file with these arguments.
fn predicted(nstar: &Path, run: &Path, arguments: &[&str]) -> Result<Value, Trouble> {
    let output = Command::new(nstar)
        .arg("predict")
        .arg(run)
        .args(arguments)
        .arg("-j")
        .stdin(Stdio::null())
        .output()
        .map_err(Trouble::io(format!("run {}", nstar.display())))?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let failed = |_| Trouble::Failed { program: "nstar predict".into(), said: said() };
    serde_json::from_slice(&output.stdout).map_err(failed)
}

/// Holds what was proposed for a goal against the change that was made and what came of it.
fn carried(goal: &str, proposal: &Value, made: &Value, measured: &Said) -> Result<Carried, Trouble> {
    let wanted = goal.strip_prefix("throughput>=").and_then(|rate| rate.parse::<f64>().ok());
    let wanted = wanted.ok_or_else(|| Trouble::Case(format!("'{goal}' is no goal of throughput")))?;
    let first = &proposal["goal"]["options"][0]["change"];
    let proposed = first.is_object() && *first == made["changes"][0];
    Ok(Carried { proposed, met: measured.throughput >= wanted })
}

/// The number of users for which response times and throughput are compared.
fn users(measured: &Said) -> u64 {
    measured.users.unwrap_or(1)
}

/// What was predicted beside the run file of the changed server.
fn compared(change: &Change, found: &Value, run: &Value) -> Result<Outcome, Trouble> {
    let measured = Said::read(run)?;
    let users = users(&measured);
    let after = &found["after"];
    let (point, step) = (with_users(&found["curve"], users), with_users(&run["steps"], users));
    let predicted = |figure: &str| point.and_then(|point| point[figure]["value"].as_f64());
    let throughput_per_s = step.and_then(|step| step["throughput_per_s"].as_f64());
    Ok(Outcome {
        change: change.clone(),
        throughput: estimate(&after["throughput_max_per_s"]),
        users: estimate(&after["users_at_saturation"]),
        at: predicted("throughput_per_s").zip(throughput_per_s),
        p95_us: predicted("p95_us").zip(step.and_then(p95_us)),
        carried: None,
        measured,
    })
}

/// The measured p95 of a step. `None` where there were too few responses.
fn p95_us(step: &Value) -> Option<f64> {
    let time = &step["response_time_us"];
    let enough = time["samples"].as_u64().is_some_and(|samples| samples >= P95_SAMPLES_MIN);
    time["p95"].as_f64().filter(|us| enough && *us > 0.0)
}

fn json(path: &Path) -> Result<Value, Trouble> {
    let text = std::fs::read_to_string(path).map_err(Trouble::io(format!("read {}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| Trouble::Case(format!("{}: {error}", path.display())))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The point of a curve, or the step of a run, with so many users.
fn with_users(all: &Value, users: u64) -> Option<&Value> {
    list(all).find(|one| one["users"].as_u64() == Some(users))
}

/// The figure and both ends of its interval.
fn estimate(value: &Value) -> [f64; 3] {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    [number(&value["value"]), number(&value["ci"][0]), number(&value["ci"][1])]
}

/// The table of predictions beside measurements, in Markdown, with a sum below.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = "| change | predicted with | X predicted | X measured | N* predicted | N* measured | \
                    largest error of X | p95 predicted, ms | p95 measured, ms | error of p95 |\n\
                    |---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    outcomes.iter().for_each(|of| text += &row(of));
    text += "\nThe largest error of X is that of the maximum, which is shown, or of X at the measured N*.\n";
    let held = outcomes.iter().filter(|of| of.holds()).count();
    text += &format!("X within 10 %, N* within its interval, goal reached: {held} of {}.\n", outcomes.len());
    let strictly = outcomes.iter().filter(|of| of.predicts_users()).count();
    let either = outcomes.iter().filter(|of| of.holds_users()).count();
    text += &format!("Measured N* in the predicted interval: {strictly}; either in the other's: {either}.\n");
    let errors: Vec<f64> = outcomes.iter().filter_map(Outcome::error_of_p95).collect();
    let near = errors.iter().filter(|error| error.abs() <= P95_TOLERANCE).count();
    text +=
        &format!("p95 at the measured N* within 25 %: {near} of {} where it is predicted.\n", errors.len());
    text + &outcomes.iter().map(goal).collect::<String>()
}

/// What became of a goal, as a line.
fn goal(of: &Outcome) -> String {
    let both = of.change.goal.as_ref().zip(of.carried.as_ref());
    let Some((goal, carried)) = both else { return String::new() };
    let proposed = if carried.proposed { "proposed for it" } else { "not proposed for it (!)" };
    let met = if carried.met { "reached" } else { "missed (!)" };
    let (name, rate) = (&of.change.name, of.measured.throughput);
    format!("Goal {goal}: {name} was {proposed}, and {met} it with {rate:.1}/s.\n")
}

fn row(of: &Outcome) -> String {
    let [x, low, high] = of.throughput;
    let [users, fewest, most] = of.users;
    let measured = match (of.measured.users, of.measured.users_ci) {
        (Some(users), Some([fewest, most])) => format!("{users} ({fewest}–{most})"),
        (Some(users), None) => users.to_string(),
        (None, _) => "?".to_owned(),
    };
    let mark = if of.holds_users() { "" } else { " (!)" };
    let p95 = of.p95_us.zip(of.error_of_p95()).map(|((predicted, measured), error)| {
        format!("{:.1} | {:.1} | {:+.1} %", predicted / 1e3, measured / 1e3, error * 100.0)
    });
    format!(
        "| {} | `{}` | {x:.1} ({low:.1}–{high:.1}) | {:.1} | {users:.0} ({fewest:.0}–{most:.0}) | {measured}{mark} | {:+.1} % | {} |\n",
        of.change.name,
        of.change.predict.join(" "),
        of.measured.throughput,
        of.error() * 100.0,
        p95.as_deref().unwrap_or("– | – | –")
    )
}

/// Whether as many were predicted right as have to be, and as many measured N* lie within the predicted intervals.
pub fn well(outcomes: &[Outcome]) -> bool {
    let nearly_all = |passes: fn(&Outcome) -> bool| {
        let passed = outcomes.iter().filter(|of| passes(of)).count();
        passed as f64 >= HELD_MIN * outcomes.len() as f64
    };
    nearly_all(Outcome::holds) && nearly_all(Outcome::predicts_users)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case;

    #[test]
    fn every_change_has_a_case_and_a_name_of_its_own() {
        let cases = case::all().expect("the list");
        let changes = all(&cases).expect("the list of changes");
        assert!(changes.len() >= 12, "{}", changes.len());
        for (number, (change, case)) in changes.iter().enumerate() {
            let same = |(other, _): &(Change, Case)| other.name == change.name;
            assert_eq!(changes.iter().position(same), Some(number), "two changes of one name");
            assert!(!cases.iter().any(|case| case.name == change.name), "{} is a case", change.name);
            let changed = change.changed(case);
            assert!(changed.tiers != case.tiers || changed.nstar != case.nstar, "{}", change.name);
        }
    }

    #[test]
    fn changes_of_one_case_share_its_sweep() {
        let cases = case::all().expect("the list");
        let mut changes: Vec<Change> =
            all(&cases).expect("the list of changes").into_iter().map(|(change, _)| change).collect();
        let longer = changes.iter().position(|change| !change.sweeps.is_empty()).expect("a longer sweep");
        let (change, case) = all(&cases).expect("the list of changes").remove(longer);
        let both = [case.clone(), change.changed(&case)].map(|one| one.nstar);
        assert!(both.iter().all(|nstar| nstar.windows(2).any(|pair| pair == change.sweeps)), "{both:?}");
        changes[longer].sweeps.clear();
        assert!(check_sweeps(&changes).expect_err("they differ").contains("differently"));
    }

    /// A prediction with a p95 of 52 ms for 8 users, beside a run with 50 ms.
    fn with_p95(samples: u64) -> Outcome {
        let estimate = |value: f64| json!({ "value": value, "ci": [value - 1.0, value + 1.0] });
        let point = json!({ "users": 8, "throughput_per_s": estimate(400.0), "p95_us": estimate(52e3) });
        let after = json!({ "throughput_max_per_s": estimate(401.0), "users_at_saturation": estimate(8.0) });
        let bottleneck = json!({ "kind": "worker-pool", "holder": "server (pid 12)", "confidence": 0.98 });
        let step = json!({
            "users": 8, "throughput_per_s": 399.0, "response_time_us": { "p95": 50e3, "p99": 60e3, "samples": samples },
        });
        let verdict =
            json!({ "users_at_saturation": 8, "throughput_max_per_s": 400.0, "bottleneck": bottleneck });
        let run = json!({ "elapsed_s": 9.0, "verdict": verdict, "steps": [step] });
        let cases = case::all().expect("the list");
        let (change, _) = all(&cases).expect("the list of changes").remove(0);
        compared(&change, &json!({ "after": after, "curve": [point] }), &run).expect("a run file")
    }

    #[test]
    fn either_n_star_may_lie_within_the_interval_of_the_other() {
        let mut of = with_p95(1_600);
        assert!(of.predicts_users() && of.holds());
        of.measured.users = Some(12);
        assert!(!of.predicts_users() && !of.holds_users(), "no interval was measured");
        assert!(row(&of).contains("| 12 (!) |"), "{}", row(&of));
        of.measured.users_ci = Some([7, 14]);
        assert!(!of.predicts_users() && of.holds_users());
        assert!(row(&of).contains("| 12 (7–14) |"), "{}", row(&of));
        of.measured.users_ci = Some([9, 14]);
        assert!(!of.holds());
    }

    /// A sweep that hardly knows its N* cannot contradict a prediction, nor bear one out.
    #[test]
    fn nine_in_ten_measured_n_stars_lie_within_the_predicted_intervals() {
        let good = with_p95(1_600);
        let mut vague = good.clone();
        (vague.measured.users, vague.measured.users_ci) = (Some(12), Some([7, 14]));
        assert!(vague.holds() && !vague.predicts_users());
        let with = |vagues: usize| {
            let mut all = vec![good.clone(); 10];
            all.iter_mut().take(vagues).for_each(|of| *of = vague.clone());
            well(&all)
        };
        assert!(with(0) && with(1) && !with(2));
    }

    #[test]
    fn the_error_of_throughput_says_where_it_is() {
        let mut of = with_p95(1_600);
        of.at = Some((440.0, 400.0));
        let text = table(&[of]);
        assert!(text.contains("| largest error of X |") && text.contains("| +10.0 % |"), "{text}");
        assert!(text.contains("that of the maximum, which is shown, or of X at the measured N*"), "{text}");
    }

    #[test]
    fn a_goal_is_held_against_the_change_that_it_proposes() {
        let of = with_p95(1_600);
        let workers = |workers: u32| json!({ "change": "workers", "name": "server", "workers": workers });
        let made = json!({ "changes": [workers(8)] });
        let proposed = |change: Value| json!({ "goal": { "options": [{ "change": change }] } });
        let judged = |goal: &str, proposal: &Value| {
            carried(goal, proposal, &made, &of.measured).map(|carried| (carried.proposed, carried.met)).ok()
        };
        assert_eq!(judged("throughput>=380", &proposed(workers(8))), Some((true, true)));
        assert_eq!(judged("throughput>=401", &proposed(workers(9))), Some((false, false)));
        assert_eq!(judged("throughput>=380", &json!({ "goal": { "options": [] } })), Some((false, true)));
        assert_eq!(judged("mean<=5ms", &proposed(workers(8))), None);
        let carried = Some(Carried { proposed: true, met: false });
        let missed = Outcome { carried, ..of.clone() };
        assert!(of.holds() && !missed.holds() && goal(&missed).ends_with("missed (!) it with 400.0/s.\n"));
        assert!(goal(&of).is_empty(), "it was not carried out");
    }

    #[test]
    fn p95_is_compared_where_both_sides_know_it() {
        let text = table(&[with_p95(1_600), with_p95(58)]);
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("`--workers")).collect();
        assert!(rows[0].ends_with("| 52.0 | 50.0 | +4.0 % |"), "{text}");
        assert!(rows[1].ends_with("| – | – | – |"), "{text}");
        assert!(
            text.ends_with("p95 at the measured N* within 25 %: 1 of 1 where it is predicted.\n"),
            "{text}"
        );
        let columns: Vec<usize> =
            text.lines().filter(|line| line.starts_with('|')).map(|line| line.matches('|').count()).collect();
        assert_eq!(columns, [11; 4], "{text}");
    }
}
