//! `nstar doctor`: what would spoil a measurement, on this host and where somebody observes; mending it here, and putting that
//! back.

mod apply;
mod script;
mod undo;

use ::load::{Url, resolve};
use ::sweep::{
    doctor::{Diagnosis, Settings, diagnose},
    elsewhere::Observe,
};
use analysis::doctor::{Certainty, Examined, remedies};

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
    let observe = flags.observe()?;
    let script = wants_script.then(|| script::place(flags.undo_script.as_deref())).transpose()?;
    match (&script, flags.undo) {
        (Some(script), true) => return undo::undo(&settings, script),
        // Before the look, which takes a second.
        (Some(script), false) => apply::check(script, flags.yes)?,
        (None, _) => {}
    }
    let found = look(flags, &observe)?;
    let exit = match &script {
        Some(script) => {
            point_elsewhere(&found)?;
            apply::apply(&settings, &found, (script, flags.yes))?
        }
        None => exit_of(&found),
    };
    Ok(if found.lost.is_empty() { exit } else { exit.or_worse(Exit::Failed) })
}

fn look(flags: &Doctor, observe: &Observe) -> Result<Diagnosis, Failure> {
    let url = flags.url.as_deref().map(str::parse::<Url>).transpose().map_err(Failure::usage)?;
    let addresses = url.as_ref().map(|url| resolve(url).map_err(Failure::failed)).transpose()?;
    Processors::confine(flags.cpus.as_ref())?;
    let found = diagnose(&addresses.unwrap_or_default(), observe).map_err(Failure::failed)?;
    if let Some(why) = &found.unseen {
        exit::warn(format!("the processes of the server were not looked at: {why}"));
    }
    for (host, trouble) in found.not_found.iter().chain(&found.lost) {
        exit::warn(report::doctor::agent(host, trouble));
    }
    let server = url.filter(|_| found.unseen.is_none()).map(|url| url.origin().to_string());
    let hosts: Vec<&Examined> = found.hosts().collect();
    let text = match flags.json {
        true => report::doctor::json(&hosts).map_err(Failure::failed)?,
        false => report::doctor::terminal(&hosts, server.as_deref(), &output::terminal_options(&[])),
    };
    output::print(&text)?;
    Ok(found)
}

/// Says where settings would mend something that are not set from here.
fn point_elsewhere(found: &Diagnosis) -> Result<(), Failure> {
    let is_mended = |host: &&Examined| !remedies(&host.faults, &host.facts).is_empty();
    let hosts: Vec<&str> =
        found.elsewhere.iter().filter(is_mended).filter_map(|host| host.on.as_deref()).collect();
    if hosts.is_empty() { Ok(()) } else { output::print(&report::undo::elsewhere(&hosts)) }
}

fn exit_of(found: &Diagnosis) -> Exit {
    let mut faults = found.hosts().flat_map(|host| &host.faults);
    let spoils = faults.any(|fault| fault.certainty() == Certainty::Sure);
    if spoils { Exit::Inconclusive } else { Exit::Done }
}
