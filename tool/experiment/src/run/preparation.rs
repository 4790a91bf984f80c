//! What is done before and after a load, besides the programs that run: commands and loads that prepare, and proofs.

use std::{collections::BTreeMap, fs, io, path::Path};

use analysis::{
    comparison::{Ending, LeftOutCause},
    run::{Count, Prepared, Proof},
};
use load::{Plan, RequestTotal, Stop};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::plan::RunError;
use crate::{
    definition::{Action, Preparation},
    process::command::{Surroundings, run, run_checked},
    resolve::{Places, TrialSetup},
    template::Values,
};

/// A request of a load that prepares may take this long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Lists for the scenario, by name.
type Items = BTreeMap<String, Vec<String>>;

/// What a command may print: one JSON object.
#[derive(Debug, Default, Deserialize)]
struct Printed {
    /// Lists for the scenario.
    #[serde(default)]
    values: Items,
    /// What it has to say.
    #[serde(default)]
    text: String,
    /// Everything else, of which whole numbers are shown.
    #[serde(flatten)]
    other: Map<String, Json>,
}

impl Printed {
    /// Reads what a command printed; nothing in it, if that is no JSON object.
    fn read(words: &[String], stdout: &str) -> Result<Self, RunError> {
        if !stdout.trim_start().starts_with('{') {
            return Ok(Self::default());
        }
        let program = words.first().cloned().unwrap_or_default();
        let printed: Self = match serde_json::from_str(stdout) {
            Ok(printed) => printed,
            Err(error) => return Err(LeftOutCause::NotTheJson { program, error: error.to_string() }.into()),
        };
        match printed.values.iter().find(|(_, list)| list.is_empty()) {
            Some((list, _)) => Err(LeftOutCause::EmptyList { program, list: list.clone() }.into()),
            None => Ok(printed),
        }
    }

    fn counts(&self) -> Vec<Count> {
        let count =
            |(name, value): (&String, &Json)| Some(Count { name: name.clone(), value: value.as_u64()? });
        self.other.iter().filter_map(count).collect()
    }

    /// What the report shows; `None` where that is nothing.
    fn shown(&self, words: &[String], reset: bool) -> Option<Prepared> {
        let (text, counts) = (self.text.trim().to_owned(), self.counts());
        let program = words.first().cloned().unwrap_or_default();
        (!text.is_empty() || !counts.is_empty()).then_some(Prepared { reset, program, text, counts })
    }
}

/// What preparing gave.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Lists for the scenario.
    pub(super) items: Items,
    /// What the report shows of it.
    pub(super) shown: Option<Prepared>,
}

/// Runs a command that makes what a step finds the same for each. Returns what the report shows of it.
pub(super) fn reset(words: &[String], surroundings: Surroundings<'_>) -> Result<Option<Prepared>, RunError> {
    let printed = run_checked(words, surroundings)?.stdout;
    Ok(Printed::read(words, &printed)?.shown(words, true))
}

/// Everything that decides what the preparations do that are not done only once.
pub(super) fn key(setup: &TrialSetup<'_>, places: &Places) -> Result<Vec<String>, RunError> {
    let values = setup.command_values(places)?;
    let mut all = Vec::new();
    for wanted in setup.experiment.prepare.iter().filter(|wanted| !wanted.once) {
        match &wanted.action {
            Action::Command(command) => all.extend(setup.words(command, &values)?),
            Action::Load { target, users, requests } => {
                all.extend(setup.urls(target, places)?);
                all.push(setup.scenario_text(target, places)?);
                all.push(format!("{} {requests}", setup.users(target, users, places)?));
            }
        }
    }
    Ok(all)
}

/// Prepares.
pub(super) fn prepare(
    wanted: &Preparation,
    setup: &TrialSetup<'_>,
    places: &Places,
    values: &Values,
    surroundings: Surroundings<'_>,
) -> Result<Given, RunError> {
    match &wanted.action {
        Action::Command(command) => {
            let words = setup.words(command, values)?;
            let printed = Printed::read(&words, &run_checked(&words, surroundings)?.stdout)?;
            Ok(Given { shown: printed.shown(&words, false), items: printed.values })
        }
        Action::Load { target, users, requests } => {
            let users = setup.users(target, users, places)?;
            let mut plan = Plan::new(setup.scenario(target, places)?);
            (plan.timeout, plan.insecure) = (PATIENCE, true);
            let mut generator = load::Generator::start(&plan)?;
            generator.set_users(users)?;
            let ticks = generator.run(Stop::PerUser(*requests), surroundings.interrupt)?;
            let made = ticks.iter().map(|tick| tick.completed).sum();
            let wanted = u64::from(users) * requests;
            if made == wanted {
                Ok(Given::default())
            } else {
                Err(LeftOutCause::NotPrepared { made, wanted }.into())
            }
        }
    }
}

/// What clients were told about one kind of request, as a proving command reads it.
#[derive(Debug, Serialize)]
struct Told {
    name: String,
    method: String,
    /// Requests that the server said it had done.
    acknowledged: u64,
    /// Requests with no answer, or with one that leaves it open.
    uncertain: u64,
    /// Requests that the server said it had not done.
    refused: u64,
}

/// Writes what clients were told: a JSON list with one object for each request of the scenario.
pub(super) fn write_totals(path: &Path, totals: &[RequestTotal]) -> io::Result<()> {
    let told = |total: &RequestTotal| Told {
        name: total.name.clone(),
        method: total.method.clone(),
        acknowledged: total.completed,
        uncertain: total.uncertain(),
        refused: total.refused(),
    };
    fs::write(path, serde_json::to_string(&totals.iter().map(told).collect::<Vec<_>>())?)
}

/// Runs a proving command. Exit status 0: the promises were kept; 1: they were not; any other is an error. Of the JSON
/// object that it may print, `text` says what was compared, and every whole number is shown as a count.
pub(super) fn proof(words: &[String], surroundings: Surroundings<'_>) -> Result<Proof, RunError> {
    let ended = run(words, surroundings)?;
    let holds = match ended.ending {
        Ending::Exit(0) => true,
        Ending::Exit(1) => false,
        _ => return Err(ended.failed(words.first().cloned().unwrap_or_default()).into()),
    };
    let printed = match Printed::read(words, &ended.stdout) {
        // Whatever it printed, the promises were not kept; its last lines are shown.
        Err(_) if !holds => Printed::default(),
        read => read?,
    };
    let text = if printed.text.is_empty() { &ended.said } else { &printed.text };
    Ok(Proof { holds, text: text.trim().to_owned(), counts: printed.counts() })
}
