//! `nstar-lab run`: a published experiment, or several.

use clap::Args;
use nstar::{
    commands::experiment::run_and_report,
    exit::{Exit, Failure},
    flags::Conditions,
    output,
};

use super::series;
use crate::published;

/// Flags of `nstar-lab run`.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// Experiments: names from --list, files (.toml), or `all`; several make one folder with an index
    #[arg(value_name = "EXPERIMENT", default_value = published::DEFAULT)]
    pub experiments: Vec<String>,
    /// Of several experiments: give each its published time, not a part of it
    #[arg(long)]
    pub full: bool,
    /// List the published experiments
    #[arg(long)]
    pub list: bool,
    /// Concurrency model of the systems, unless the experiment varies it [default: the experiment's]
    #[arg(long, value_name = "MODEL")]
    pub engine: Option<engine::Model>,
    #[command(flatten)]
    pub conditions: Conditions,
}

pub(crate) fn run(flags: &Lab) -> Result<Exit, Failure> {
    if flags.list {
        let lines = published::list().map(|(name, title)| format!("{name:<26} {title}\n"));
        output::print(&lines.collect::<String>())?;
        return Ok(Exit::Done);
    }
    let mut set = flags.conditions.set.clone();
    set.extend(flags.engine.map(|engine| ("engine".to_owned(), engine.to_string())));
    match flags.experiments.as_slice() {
        [one] if one != published::ALL && flags.full => {
            Err(Failure::usage("--full goes with several experiments or `all`: one has its published time"))
        }
        [one] if one != published::ALL => run_and_report(published::load(one, &set)?, &flags.conditions),
        several => series::run(several, flags.full, &Conditions { set, ..flags.conditions.clone() }),
    }
}
