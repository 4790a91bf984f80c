//! `nstar report`: a run file again, in another form.

use std::fs;

use crate::{
    exit::{Exit, Failure},
    flags::{Format, Report},
    output,
};

pub(crate) fn run(flags: &Report) -> Result<Exit, Failure> {
    let path = flags.run.display();
    let text = fs::read_to_string(&flags.run)
        .map_err(|error| Failure::usage(format!("cannot read the run file {path}: {error}")))?;
    let run = report::parse(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    let shown = match flags.format {
        Format::Text => report::terminal(&run, &output::terminal_options(&[])),
        Format::Html => report::html(&run).map_err(Failure::failed)?,
        Format::Csv => report::csv(&run),
        Format::Json => report::json(&run).map_err(Failure::failed)?,
    };
    match &flags.output {
        Some(path) => output::write_file(path, &shown)?,
        None => output::print(&shown)?,
    }
    Ok(Exit::Done)
}
