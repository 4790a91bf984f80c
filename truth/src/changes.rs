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

/// All changes, each with its case.
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
    let with_case = |change: Change| {
        let case = cases.iter().find(|case| case.name == change.case).cloned();
        let case = case.ok_or_else(|| format!("{}: there is no case '{}'", change.name, change.case))?;
        Ok((change, case))
    };
    list.change.into_iter().map(with_case).collect()
}

/// A prediction beside what was measured.
#[derive(Debug, Clone)]
pub struct Outcome {
    change: Change,
    throughput: [f64; 3],
    users: [f64; 3],
    /// Throughput that was predicted for the measured N*, and what was measured there.
    at: Option<(f64, f64)>,
    measured: Said,
}

impl Outcome {
    /// How far the predicted maximum, or the throughput at the measured N*, is from the measured one, as a share.
    fn error(&self) -> f64 {
        let max = self.throughput[0] / self.measured.throughput - 1.0;
        let at = self.at.map_or(0.0, |(predicted, measured)| predicted / measured - 1.0);
        if at.abs() > max.abs() { at } else { max }
    }

    /// Whether the measured N* lies within the predicted interval.
    fn holds_users(&self) -> bool {
        let [_, low, high] = self.users;
        self.measured.users.is_some_and(|users| low <= users as f64 && users as f64 <= high)
    }

    fn holds(&self) -> bool {
        self.error().abs() <= THROUGHPUT_TOLERANCE && self.holds_users()
    }
}

/// Predicts a change from the run file of its case, and reads what the changed server did, both kept in a folder.
///
/// # Errors
/// Where a file is missing, or nothing was predicted.
pub fn outcome(change: &Change, folder: &Path, nstar: &Path) -> Result<Outcome, Trouble> {
    let run = json(&folder.join(format!("{}.json", change.name)))?;
    let measured = Said::read(&run)?;
    let users = measured.users.unwrap_or(1);
    let output = Command::new(nstar)
        .arg("predict")
        .arg(folder.join(format!("{}.json", change.case)))
        .args(&change.predict)
        .args(["-j", "--users", &users.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(Trouble::io(format!("run {}", nstar.display())))?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    let failed = |_| Trouble::Failed { program: "nstar predict".into(), said: said() };
    let found: Value = serde_json::from_slice(&output.stdout).map_err(failed)?;
    let after = &found["after"];
    let point = list(&found["curve"]).find(|point| point["users"].as_u64() == Some(users));
    let step = list(&run["steps"]).find(|step| step["users"].as_u64() == Some(users));
    let predicted = point.and_then(|point| point["throughput_per_s"]["value"].as_f64());
    let at = predicted.zip(step.and_then(|step| step["throughput_per_s"].as_f64()));
    Ok(Outcome {
        change: change.clone(),
        throughput: estimate(&after["throughput_max_per_s"]),
        users: estimate(&after["users_at_saturation"]),
        at,
        measured,
    })
}

fn json(path: &Path) -> Result<Value, Trouble> {
    let text = std::fs::read_to_string(path).map_err(Trouble::io(format!("read {}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| Trouble::Case(format!("{}: {error}", path.display())))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The figure and both ends of its interval.
fn estimate(value: &Value) -> [f64; 3] {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    [number(&value["value"]), number(&value["ci"][0]), number(&value["ci"][1])]
}

/// The table of predictions beside measurements, in Markdown, with a sum below.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text =
        "| change | predicted with | X predicted | X measured | N* predicted | N* measured | error of X |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    for of in outcomes {
        let [x, low, high] = of.throughput;
        let [users, fewest, most] = of.users;
        let measured = of.measured.users.map_or("?".to_owned(), |users| users.to_string());
        let mark = if of.holds_users() { "" } else { " (!)" };
        text += &format!(
            "| {} | `{}` | {x:.1} ({low:.1}–{high:.1}) | {:.1} | {users:.0} ({fewest:.0}–{most:.0}) | {measured}{mark} | {:+.1} % |\n",
            of.change.name,
            of.change.predict.join(" "),
            of.measured.throughput,
            of.error() * 100.0
        );
    }
    let held = outcomes.iter().filter(|of| of.holds()).count();
    text + &format!("\nX within 10 % and N* within its interval: {held} of {}.\n", outcomes.len())
}

/// Whether as many were predicted right as have to be.
pub fn well(outcomes: &[Outcome]) -> bool {
    let held = outcomes.iter().filter(|of| of.holds()).count();
    held as f64 >= HELD_MIN * outcomes.len() as f64
}

#[cfg(test)]
mod tests {
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
}
