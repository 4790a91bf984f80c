//! `nstar-lab run`: a published experiment.

use clap::Args;
use nstar::{
    commands::experiment::run_and_report,
    exit::{Exit, Failure},
    flags::Conditions,
    output,
};

use crate::published;

/// Flags of `nstar-lab run`.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// An experiment: a name from --list, or a file (.toml)
    #[arg(default_value = published::DEFAULT)]
    pub experiment: String,
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
    run_and_report(published::load(&flags.experiment, &set)?, &flags.conditions)
}
