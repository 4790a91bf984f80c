//! `nstar doctor`: what on this host would spoil a measurement.

use ::load::{Url, resolve};
use ::sweep::doctor::{Diagnosis, diagnose};
use analysis::doctor::Certainty;

use crate::{
    exit::{self, Exit, Failure},
    flags::Doctor,
    output,
    values::Processors,
};

pub(super) fn run(flags: &Doctor) -> Result<Exit, Failure> {
    let url = flags.url.as_deref().map(str::parse::<Url>).transpose().map_err(Failure::usage)?;
    let addresses = url.as_ref().map(|url| resolve(url).map_err(Failure::failed)).transpose()?;
    Processors::confine(flags.cpus.as_ref())?;
    let Diagnosis { faults, unseen } = diagnose(&addresses.unwrap_or_default());
    if let Some(why) = &unseen {
        exit::warn(format!("the processes of the server were not looked at: {why}"));
    }
    let server = url.filter(|_| unseen.is_none()).map(|url| url.origin().to_string());
    output::print(&report::doctor::terminal(&faults, server.as_deref(), &output::terminal_options(&[])))?;
    let spoils = faults.iter().any(|fault| fault.certainty() == Certainty::Sure);
    Ok(if spoils { Exit::Inconclusive } else { Exit::Done })
}
