//! `nstar-lab run`: a published experiment.

use nstar::{
    commands::experiment::run_and_report,
    exit::{Exit, Failure},
    output,
};

use crate::{flags::Lab, published};

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
