//! `nstar scenario`: tries scenario files.

use ::load::{Plan, check as send_each};

use super::plan;
use crate::{
    exit::{Exit, Failure},
    flags::{Check, ScenarioCommand},
    output,
};

pub(super) fn run(command: &ScenarioCommand) -> Result<Exit, Failure> {
    match command {
        ScenarioCommand::Check(flags) => check(flags),
    }
}

/// Sends each request once.
fn check(flags: &Check) -> Result<Exit, Failure> {
    let scenario = plan::read_scenario(&flags.file)?;
    let scenario = plan::with_base(scenario, &flags.file, flags.base.as_deref(), "URL")?;
    let Check { insecure, timeout, seed, .. } = *flags;
    let plan = Plan { insecure, timeout, seed, ..Plan::new(scenario) };
    let checked = send_each(&plan).map_err(Failure::failed)?;
    output::print(&report::check::terminal(&checked, &output::terminal_options(&[])))?;
    let all = checked.iter().all(|checked| checked.is_success());
    Ok(if all { Exit::Done } else { Exit::Failed })
}
