//! Joins the trials of an experiment into one comparison.

use std::collections::BTreeSet;

use analysis::comparison::{self, Claim, Comparison, Factor, Finished, StillOpen, Workload, entry, order};
use analysis::run::Host;
use sweep::conclusion::RunStart;

use crate::{
    definition::{self, Experiment},
    run::Outcome,
};

/// The host that experiments run on.
pub fn host() -> Host {
    observe::host()
}

/// Compares the variants of an experiment that began at `start`; `file` names the run file of a trial.
pub fn compare(
    experiment: &Experiment,
    outcome: &Outcome,
    start: RunStart,
    seed: u64,
    file: impl Fn(&Finished) -> String,
) -> Comparison {
    let mut compared = Comparison {
        schema: comparison::SCHEMA.to_owned(),
        title: experiment.title.clone(),
        factor: Factor(experiment.axis.clone()),
        combines: experiment.combines,
        host: host(),
        started: start.rfc3339(),
        elapsed_s: start.elapsed_s() + outcome.before.as_secs_f64(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        interrupted: outcome.interrupted,
        variants: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
        works: experiment
            .works
            .iter()
            .filter_map(|work| of_work(experiment, work, &outcome.finished, &file))
            .collect(),
        left_out: outcome.left_out.clone(),
        published: Vec::new(),
        claims: Vec::new(),
    };
    let claims: Vec<Claim> = experiment.claims.iter().map(|claim| about_all(experiment, claim)).collect();
    compared.hold_against(&experiment.published, &claims);
    compared
}

/// A claim that names what it is about, so that what was not measured of that is missed.
fn about_all(experiment: &Experiment, claim: &Claim) -> Claim {
    let mut claim = claim.clone();
    if claim.works.is_empty() {
        claim.works = experiment.works.iter().map(|work| work.name.clone()).collect();
    }
    if claim.variants.is_empty() {
        claim.variants = experiment.variants.iter().map(|variant| variant.name.clone()).collect();
    }
    claim
}

/// A workload in order, as far as it was measured.
fn of_work(
    experiment: &Experiment,
    work: &definition::Workload,
    finished: &[Finished],
    file: &impl Fn(&Finished) -> String,
) -> Option<Workload> {
    let mut measured = measured(experiment, work, finished);
    if measured.entries.is_empty() {
        return None;
    }
    let of_work = || finished.iter().filter(|one| one.work == work.name);
    for entry in &mut measured.entries {
        entry.runs = of_work().filter(|one| one.variant == entry.variant).map(file).collect();
    }
    let runs: Vec<_> = of_work().map(|one| &one.run).collect();
    // Users that are turned away are neither served nor waiting.
    measured.little = comparison::little(&runs).filter(|_| !work.overload).into_iter().collect();
    order(&mut measured);
    Some(measured)
}

/// What more rounds of a workload may yet put in order.
pub(crate) fn open(experiment: &Experiment, work: &definition::Workload, finished: &[Finished]) -> StillOpen {
    comparison::still_open(&measured(experiment, work, finished))
}

/// A workload with its entries, in no order yet.
fn measured(experiment: &Experiment, work: &definition::Workload, finished: &[Finished]) -> Workload {
    let finished: Vec<&Finished> = finished.iter().filter(|one| one.work == work.name).collect();
    // Those that were made again are counted no more.
    let rounds: BTreeSet<u32> = finished.iter().map(|one| one.round).collect();
    let counted = |round: u32| rounds.range(..round).count() as u32;
    let of_variant = |variant: &definition::Variant| {
        let trials = finished.iter().filter(|one| one.variant == variant.name);
        entry(
            trials.map(|one| Finished { round: counted(one.round), ..(*one).clone() }).collect(),
            work.overload,
        )
    };
    let entries = experiment.variants.iter().filter_map(of_variant).collect();
    let (name, baseline) = (work.name.clone(), experiment.baseline.clone());
    Workload { name, overload: work.overload, baseline, entries, ..Workload::default() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::document::{Disk, read};

    #[test]
    fn a_claim_about_everything_misses_what_was_not_measured() {
        let text = r#"
            title = "x"
            axis = { engine = ["threads", "epoll"] }
            [[work]]
            name = "few"
            url = "http://127.0.0.1:1/${engine}"
            users = 4
            [[claim]]
            text = "Both are the same."
            trend = "flat"
        "#;
        let experiment = read(Path::new("mine.toml"), text, &Disk).expect("an experiment");
        let compared =
            compare(&experiment, &Outcome::default(), RunStart::now(), 1, |_| String::from("run.json"));
        let [claim] = compared.claims.as_slice() else { panic!("{:?}", compared.claims) };
        assert_eq!((claim.works.as_slice(), claim.met), (["few".to_owned()].as_slice(), None));
        assert_eq!(claim.variants, ["threads", "epoll"]);
        assert_eq!(claim.cases.len(), 1, "the workload is missed: {:?}", claim.cases);
    }
}
