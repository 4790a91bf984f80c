//! `nstar predict`: what becomes of a measured system under a change.

use std::fs;

use analysis::prediction::{self, Change, MixShare, Question};
use report::Document;

use crate::{
    exit::{self, Exit, Failure},
    flags::Predict,
    output,
};

pub(super) fn run(flags: &Predict) -> Result<Exit, Failure> {
    let run = read(flags)?;
    let question = Question {
        changes: changes(flags),
        users: flags.users,
        goal: flags.goal.clone().map(|goal| goal.0),
        seed: flags.seed,
    };
    let found = match prediction::predict(&run, &question, env!("CARGO_PKG_VERSION")) {
        Ok(found) => found,
        Err(refusal) => {
            let why = report::prediction::refusal(&refusal);
            if refusal.is_of_question() {
                return Err(Failure::usage(why));
            }
            exit::warn(format!("nothing is predicted: {why}"));
            return Ok(Exit::Inconclusive);
        }
    };
    let json = || report::prediction::json(&found).map_err(Failure::failed);
    if let Some(path) = &flags.output {
        output::write_file(path, &json()?)?;
    }
    let written: Vec<String> = flags.output.iter().map(|path| path.display().to_string()).collect();
    let text = match flags.json {
        true => json()?,
        false => report::prediction::terminal(&found, &output::terminal_options(&written)),
    };
    output::print(&text)?;
    Ok(Exit::Done)
}

fn read(flags: &Predict) -> Result<analysis::run::Run, Failure> {
    let path = flags.run.display();
    let text = fs::read_to_string(&flags.run)
        .map_err(|error| Failure::usage(format!("cannot read the run file {path}: {error}")))?;
    match report::read(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))? {
        Document::Run(run) => Ok(*run),
        Document::Comparison(_) => Err(Failure::usage(format!(
            "{path} is the file of an experiment; the run files of its variants are in the folder beside it"
        ))),
    }
}

/// Every change that was asked for. The mix comes first, as it is one of what was measured, and sizes before servers, so that
/// those added are of the new size.
fn changes(flags: &Predict) -> Vec<Change> {
    let shares: Vec<MixShare> = flags.mixes.iter().flat_map(|mix| mix.0.clone()).collect();
    let mix = (!shares.is_empty()).then_some(Change::Mix { shares });
    let cpus = flags.cpus.iter().map(|(name, cpus)| Change::Cpus { name: name.clone(), cpus: *cpus });
    let demands = flags.demands.iter().map(|(of, factor)| Change::Demand { of: of.clone(), factor: *factor });
    let workers =
        flags.workers.iter().map(|(name, workers)| Change::Workers { name: name.clone(), workers: *workers });
    let links = flags
        .links
        .iter()
        .map(|(name, bits_per_s)| Change::Link { name: name.clone(), bits_per_s: *bits_per_s });
    let delays = flags
        .delays
        .iter()
        .map(|(name, added_us)| Change::UpstreamDelay { name: name.clone(), added_us: *added_us });
    let think = flags.think.map(|think| Change::Think { think_us: think.as_secs_f64() * 1e6 });
    let servers = flags
        .servers
        .iter()
        .map(|(name, servers)| Change::AddServer { name: name.clone(), servers: *servers });
    let system = cpus.chain(demands).chain(workers).chain(links).chain(delays);
    mix.into_iter().chain(system).chain(think).chain(servers).collect()
}
