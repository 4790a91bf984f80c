//! `nstar report`: a run file, or that of a comparison, again in another form.

use std::fs;

use analysis::{run::Run, study::Study};
use report::Document;

use crate::{
    exit::{Exit, Failure},
    flags::{Format, Report},
    output,
};

pub(super) fn run(flags: &Report) -> Result<Exit, Failure> {
    let path = flags.run.display();
    let text = fs::read_to_string(&flags.run)
        .map_err(|error| Failure::usage(format!("cannot read the run file {path}: {error}")))?;
    let document = report::read(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    let shown = match &document {
        Document::Run(run) => show_run(run, flags.format)?,
        Document::Study(study) => show_study(study, flags.format)?,
    };
    match &flags.output {
        Some(path) => output::write_file(path, &shown)?,
        None => output::print(&shown)?,
    }
    Ok(Exit::Done)
}

fn show_run(run: &Run, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::terminal(run, &output::terminal_options(&[])),
        Format::Html => report::html(run).map_err(Failure::failed)?,
        Format::Csv => report::csv(run),
        Format::Json => report::json(run).map_err(Failure::failed)?,
    })
}

fn show_study(study: &Study, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::study::terminal(study, &output::terminal_options(&[])),
        Format::Html => report::study::html(study).map_err(Failure::failed)?,
        Format::Csv => report::study::csv(study),
        Format::Json => report::study::json(study).map_err(Failure::failed)?,
    })
}
