//! `nstar doctor`: what on this host would spoil a measurement; mending it, and putting that back.

mod apply;
mod script;
mod undo;

use ::load::{Url, resolve};
use ::sweep::doctor::{Diagnosis, Settings, diagnose};
use analysis::doctor::{Certainty, Fault};

use crate::{
    exit::{self, Exit, Failure},
    flags::Doctor,
    output,
    values::Processors,
};

pub(super) fn run(flags: &Doctor) -> Result<Exit, Failure> {
    let settings = Settings::default();
    let wants_script = flags.apply || flags.undo;
    if flags.undo_script.is_some() && !wants_script {
        return Err(Failure::usage("--undo-script is the file of --apply and --undo: give one of them"));
    }
    let script = wants_script.then(|| script::place(flags.undo_script.as_deref())).transpose()?;
    match (&script, flags.undo) {
        (Some(script), true) => return undo::undo(&settings, script),
        // Before the look, which takes a second.
        (Some(script), false) => apply::check(script, flags.yes)?,
        (None, _) => {}
    }
    let found = look(flags)?;
    match &script {
        Some(script) => apply::apply(&settings, &found, (script, flags.yes)),
        None => Ok(exit_of(&found.faults)),
    }
}

fn look(flags: &Doctor) -> Result<Diagnosis, Failure> {
    let url = flags.url.as_deref().map(str::parse::<Url>).transpose().map_err(Failure::usage)?;
    let addresses = url.as_ref().map(|url| resolve(url).map_err(Failure::failed)).transpose()?;
    Processors::confine(flags.cpus.as_ref())?;
    let found = diagnose(&addresses.unwrap_or_default());
    if let Some(why) = &found.unseen {
        exit::warn(format!("the processes of the server were not looked at: {why}"));
    }
    let server = url.filter(|_| found.unseen.is_none()).map(|url| url.origin().to_string());
    let options = output::terminal_options(&[]);
    output::print(&report::doctor::terminal(&found.faults, server.as_deref(), &options))?;
    Ok(found)
}

fn exit_of(faults: &[Fault]) -> Exit {
    let spoils = faults.iter().any(|fault| fault.certainty() == Certainty::Sure);
    if spoils { Exit::Inconclusive } else { Exit::Done }
}
