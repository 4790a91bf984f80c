//! What is done before and after a load, besides the programs that run: commands and loads that prepare, and proofs.

use std::{collections::BTreeMap, fs, io, path::Path};

use analysis::run::{Count, Proof};
use load::{Plan, RequestTotal, Stop};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::plan::RunError;
use crate::{
    definition::{Action, Preparation},
    process::{
        command::{Surroundings, run, run_checked},
        guard::Ending,
    },
    resolve::{Places, TrialSetup},
    template::Values,
};

/// A request of a load that prepares may take this long.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Lists for the scenario, by name.
type Items = BTreeMap<String, Vec<String>>;

/// What a command that prepares may print.
#[derive(Debug, Default, Deserialize)]
struct Printed {
    #[serde(default)]
    values: Items,
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

/// Prepares. Returns lists for the scenario, if the command printed any.
pub(super) fn prepare(
    wanted: &Preparation,
    setup: &TrialSetup<'_>,
    places: &Places,
    values: &Values,
    surroundings: Surroundings<'_>,
) -> Result<Items, RunError> {
    match &wanted.action {
        Action::Command(command) => {
            let words = setup.words(command, values)?;
            let printed = run_checked(&words, surroundings)?.stdout;
            if !printed.trim_start().starts_with('{') {
                return Ok(Items::new());
            }
            let program = words.first().cloned().unwrap_or_default();
            let read: Result<Printed, _> = serde_json::from_str(&printed);
            let items = match read {
                Ok(printed) => printed.values,
                Err(error) => return Err(RunError::Printed { program, why: error.to_string() }),
            };
            match items.iter().find(|(_, list)| list.is_empty()) {
                Some((name, _)) => {
                    Err(RunError::Printed { program, why: format!("the list `{name}` is empty") })
                }
                None => Ok(items),
            }
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
            if made == wanted { Ok(Items::new()) } else { Err(RunError::Prepared { made, wanted }) }
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
    let program = words.first().cloned().unwrap_or_default();
    let holds = match ended.ending {
        Ending::Exit(0) => true,
        Ending::Exit(1) => false,
        _ => return Err(ended.failed(program).into()),
    };
    let printed = match ended.stdout.trim_start().starts_with('{') {
        false => Map::new(),
        true => serde_json::from_str::<Map<String, Json>>(&ended.stdout)
            .map_err(|error| RunError::Printed { program, why: error.to_string() })?,
    };
    let counts =
        printed.iter().filter_map(|(name, value)| Some(Count { name: name.clone(), value: value.as_u64()? }));
    let text = printed.get("text").and_then(Json::as_str).unwrap_or(&ended.said);
    Ok(Proof { holds, text: text.trim().to_owned(), counts: counts.collect() })
}
