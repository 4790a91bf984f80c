//! From the parts of an experiment to one study.

use std::time::{Instant, SystemTime};

use analysis::comparison::{self, Comparison, Finished, Published, Workload, entry, order};

use crate::{
    experiment::{Axis, Experiment},
    run::{Outcome, Part},
};

/// When and with what a study was made.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    wall: SystemTime,
    instant: Instant,
    seed: u64,
}

impl Session {
    /// One that begins now.
    pub fn begin(seed: u64) -> Self {
        Session { wall: SystemTime::now(), instant: Instant::now(), seed }
    }
}

/// The study that an experiment with an axis comes to; `file` names the run file of a part.
pub fn study(
    experiment: &Experiment,
    outcome: &Outcome,
    session: Session,
    file: impl Fn(&Part) -> String,
) -> Comparison {
    let finished = |part: &Part| Finished { run: part.run.clone(), file: file(part) };
    Comparison {
        schema: comparison::SCHEMA.to_owned(),
        title: experiment.title.clone(),
        axis: match experiment.axis {
            Some(Axis::Workers { .. }) => "workers".to_owned(),
            Some(Axis::Databases(_)) => "database".to_owned(),
            Some(Axis::Peers { ref indexes, .. }) if indexes.len() == 1 => "peers".to_owned(),
            Some(Axis::Peers { .. }) => "index".to_owned(),
            Some(Axis::Engines(_)) | None => "engine".to_owned(),
        },
        host: observe::host(),
        started: humantime::format_rfc3339_seconds(session.wall).to_string(),
        elapsed_s: session.instant.elapsed().as_secs_f64(),
        version: env!("CARGO_PKG_VERSION").into(),
        seed: session.seed,
        works: experiment.works.iter().filter_map(|work| of_work(work, outcome, &finished)).collect(),
        left_out: outcome.left_out.clone(),
        published: experiment.published.iter().map(under_laws).collect(),
    }
}

fn under_laws(published: &Published) -> Published {
    Published { law: comparison::published_little(published), ..published.clone() }
}

fn of_work(
    work: &crate::experiment::Work,
    outcome: &Outcome,
    finished: &impl Fn(&Part) -> Finished,
) -> Option<Workload> {
    let parts: Vec<&Part> = outcome.parts.iter().filter(|part| part.work == work.name).collect();
    let mut variants: Vec<&str> = Vec::new();
    for part in &parts {
        if !variants.contains(&part.variant.as_str()) {
            variants.push(&part.variant);
        }
    }
    let of_variant = |variant: &str| {
        let runs = parts.iter().filter(|part| part.variant == variant);
        entry(variant, &runs.map(|part| finished(part)).collect::<Vec<_>>(), work.overload)
    };
    let entries: Vec<_> = variants.iter().filter_map(|variant| of_variant(variant)).collect();
    if entries.is_empty() {
        return None;
    }
    let runs: Vec<_> = parts.iter().map(|part| &part.run).collect();
    // Users that are turned away are neither served nor waiting.
    let laws = comparison::little(&runs).filter(|_| !work.overload).into_iter().collect();
    let mut measured =
        Workload { name: work.name.clone(), overload: work.overload, order: Vec::new(), laws, entries };
    order(&mut measured);
    Some(measured)
}

/// The name of a part's run file without its extension: `100-kb-100-connections-epoll-2`.
pub fn slug(part: &Part) -> String {
    words(&format!("{} {} {}", part.work, part.variant, part.round + 1))
}

/// A name as a part of a file's name: `10-mb` for `10 MB`.
pub fn words(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_file_names() {
        assert_eq!(words("100 Mb/s link, up to 20 users"), "100-mb-s-link-up-to-20-users");
        assert_eq!(words("10.0 MB"), "10-0-mb");
        assert_eq!(words("../.."), "");
    }
}
