//! The commands; each reads as its stages in order.

mod compare;
mod doctor;
pub mod experiment;
mod external;
#[cfg(feature = "fleet")]
mod fleet;
mod history;
#[cfg(feature = "fleet")]
mod kubernetes;
mod measure;
mod plan;
mod pprof;
mod predict;
mod repeats;
mod scenario;

use std::{fs, io};

use agent::Uses;
use analysis::{comparison::Comparison, run::Run};
use report::Document;

#[cfg(feature = "fleet")]
use crate::flags::FleetCommand;
use crate::{
    exit::{Exit, Failure},
    flags::{Agent, Command, Format, Report, program_tables},
    output,
};

/// Runs a command.
///
/// # Errors
/// Why it could not do its work.
pub fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Sweep(flags) => measure::sweep(&flags),
        Command::Load(flags) => measure::load(&flags),
        Command::Experiment(flags) => experiment::run(&flags),
        Command::Agent(flags) => agent(&flags),
        #[cfg(feature = "fleet")]
        Command::Fleet(FleetCommand::Kubernetes(flags)) => kubernetes::print(&flags),
        Command::Guard => experiment::guard(),
        Command::Report(flags) => show(&flags),
        Command::Compare(flags) => compare::run(&flags),
        Command::History(flags) => history::run(&flags),
        Command::Predict(flags) => predict::run(&flags),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Scenario(command) => scenario::run(&command),
        Command::Lab(passed) => external::run(None, passed.arguments),
        Command::Serve(passed) => external::run(Some("serve"), passed.arguments),
        Command::Share(passed) => external::run(Some("share"), passed.arguments),
    }
}

/// `nstar agent`: observes and makes load for others, one after another, or for the nstar at the other end of stdin and stdout.
fn agent(flags: &Agent) -> Result<Exit, Failure> {
    #[cfg(feature = "fleet")]
    match &flags.join {
        Some(address) => return fleet::join(flags, address),
        None => flags.login.check_unused("--join")?,
    }
    let served = ::agent::serve::serve(uses(flags), program_tables(), io::stdin().lock(), io::stdout());
    served.map_err(Failure::failed)?;
    Ok(Exit::Done)
}

fn uses(flags: &Agent) -> Uses {
    if flags.observe { Uses::Observing } else { Uses::All }
}

/// Shows a run file, or that of a comparison, again in another form.
fn show(flags: &Report) -> Result<Exit, Failure> {
    let path = flags.run.display();
    let text = fs::read_to_string(&flags.run)
        .map_err(|error| Failure::usage(format!("cannot read the run file {path}: {error}")))?;
    let document = report::read(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    let shown = match &document {
        Document::Run(run) => show_run(run, flags.format)?,
        Document::Comparison(comparison) => Shown::Text(show_comparison(comparison, flags.format)?),
    };
    match (&flags.output, shown) {
        (Some(path), Shown::Text(text)) => output::write_file(path, &text)?,
        (Some(path), Shown::Bytes(bytes)) => output::write_bytes(path, &bytes)?,
        (None, Shown::Text(text)) => output::print(&text)?,
        (None, Shown::Bytes(bytes)) => output::print_bytes(&bytes)?,
    }
    Ok(Exit::Done)
}

/// What a format comes to.
enum Shown {
    Text(String),
    Bytes(Vec<u8>),
}

fn show_run(run: &Run, format: Format) -> Result<Shown, Failure> {
    Ok(Shown::Text(match format {
        Format::Text => report::terminal(run, &output::terminal_options(&[])),
        Format::Html => report::html(run).map_err(Failure::failed)?,
        Format::Csv => report::csv(run),
        Format::Json => report::json(run).map_err(Failure::failed)?,
        Format::Pprof => return pprof::packed(run).map(Shown::Bytes),
        Format::Folded if run.profile.is_none() => return Err(pprof::no_stacks()),
        Format::Folded => report::folded(run),
        Format::FoldedOffCpu => match report::folded_off_cpu(run) {
            none if none.is_empty() => {
                return Err(Failure::usage(
                    "the run holds no stacks of sleeping threads: make it with --profile, as root",
                ));
            }
            stacks => stacks,
        },
    }))
}

fn show_comparison(comparison: &Comparison, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::comparison::terminal(comparison, &output::terminal_options(&[])),
        Format::Html => report::comparison::html(comparison).map_err(Failure::failed)?,
        Format::Csv => report::comparison::csv(comparison),
        Format::Json => report::comparison::json(comparison).map_err(Failure::failed)?,
        Format::Folded | Format::FoldedOffCpu | Format::Pprof => return Err(pprof::not_of_comparisons()),
    })
}
