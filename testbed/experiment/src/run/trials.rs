//! Which workload is measured on which variant, in which order, and for how long.

use std::time::Duration;

use crate::{
    definition::{Axis, DatabaseKind, Engines, Experiment, Files, IndexKind, Users, Workload},
    servers::launch::{Setting, Swarm},
};

/// Time per trial for starting systems, stopping them, and the first request.
const AROUND: Duration = Duration::from_millis(1_200);
/// A shorter trial shows nothing.
const SHORTEST: Duration = Duration::from_secs(1);

/// One value of the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// `epoll`, `4`; empty if nothing is varied.
    pub(crate) name: String,
    pub(crate) engine: String,
    pub(crate) flags: Vec<String>,
    /// The database under the driven server, if it is varied.
    pub(crate) database: Option<DatabaseKind>,
    /// How peers find what others have, and how many there are.
    pub(crate) peers: Option<(IndexKind, u32)>,
}

/// One measured load of one variant.
#[derive(Debug, Clone)]
pub(crate) struct Trial<'a> {
    pub(crate) round: u32,
    pub(crate) work: &'a Workload,
    pub(crate) variant: &'a Variant,
}

/// The variants of an experiment. `engine` is the model to use if the experiment does not vary it; `known` are all
/// models.
pub(crate) fn variants(experiment: &Experiment, engine: &str, known: &[String]) -> Vec<Variant> {
    let of_engine = |engine: &String| Variant {
        name: engine.clone(),
        engine: engine.clone(),
        flags: experiment.flags.clone(),
        database: None,
        peers: None,
    };
    match &experiment.axis {
        None => vec![Variant { name: String::new(), ..of_engine(&engine.to_owned()) }],
        Some(Axis::Databases(kinds)) => {
            let of_kind = |kind: &DatabaseKind| Variant {
                name: kind.to_string(),
                database: Some(*kind),
                ..of_engine(&engine.to_owned())
            };
            kinds.iter().map(of_kind).collect()
        }
        Some(Axis::Peers { indexes, peers }) => {
            let all = indexes.iter().flat_map(|index| peers.iter().map(move |count| (*index, *count)));
            let of_peers = |(index, count): (IndexKind, u32)| Variant {
                name: peers_name(indexes, peers, index, count),
                peers: Some((index, count)),
                ..of_engine(&engine.to_owned())
            };
            all.map(of_peers).collect()
        }
        Some(Axis::Engines(Engines::All)) => known.iter().map(of_engine).collect(),
        Some(Axis::Engines(Engines::Named(names))) => names.iter().map(of_engine).collect(),
        Some(Axis::Workers { engine, workers }) => workers
            .iter()
            .map(|count| {
                let number = ["--workers".into(), count.to_string()];
                let flags = experiment.flags.iter().cloned().chain(number).collect();
                Variant { name: count.to_string(), flags, ..of_engine(engine) }
            })
            .collect(),
    }
}

/// `central`, `8`, or both: whatever differs between variants.
fn peers_name(indexes: &[IndexKind], peers: &[u32], index: IndexKind, count: u32) -> String {
    match (indexes.len(), peers.len()) {
        (1, _) => count.to_string(),
        (_, 1) => index.to_string(),
        _ => format!("{index}, {count}"),
    }
}

/// All trials in order: round by round, in each round every workload, and for each workload every variant. Every second
/// round goes backwards through the variants, so that a drift during the comparison favours none.
pub(crate) fn trials<'a>(experiment: &'a Experiment, variants: &'a [Variant]) -> Vec<Trial<'a>> {
    let in_order = |round: u32| -> Vec<&'a Variant> {
        let forwards = variants.iter();
        if round.is_multiple_of(2) { forwards.collect() } else { forwards.rev().collect() }
    };
    (0..experiment.rounds)
        .flat_map(|round| experiment.works.iter().map(move |work| (round, work)))
        .flat_map(|(round, work)| {
            in_order(round).into_iter().map(move |variant| Trial { round, work, variant })
        })
        .collect()
}

/// The time that each trial may take.
pub(crate) fn time_each(total: Duration, trials: usize) -> Duration {
    let share = total / u32::try_from(trials.max(1)).unwrap_or(u32::MAX);
    share.saturating_sub(AROUND).max(SHORTEST)
}

impl Trial<'_> {
    /// How the servers are to run for it. If nothing is varied, every tier runs the same model.
    pub(crate) fn setting(&self, varied: bool) -> Setting {
        Setting {
            engine: self.variant.engine.clone(),
            engine_behind: if varied { BEHIND.into() } else { self.variant.engine.clone() },
            flags: self.variant.flags.clone(),
            link_mbit: self.work.link_mbit,
            database: self.variant.database,
            swarm: self.variant.peers.zip(self.work.files).map(|((index, peers), files)| Swarm {
                index,
                peers,
                files,
            }),
        }
    }

    /// Files of the driven server; peers get theirs when they start.
    pub(crate) fn files(&self) -> Option<Files> {
        self.work.files.filter(|_| self.variant.peers.is_none())
    }

    /// How many users it has; with peers, as many for each as the work says.
    pub(crate) fn users(&self) -> Users {
        match (&self.work.users, self.variant.peers) {
            (Users::Fixed(each), Some((_, peers))) => Users::Fixed(each.saturating_mul(peers)),
            (users, _) => users.clone(),
        }
    }

    /// What it is called in messages: `epoll, 100 KB, round 2`.
    pub(crate) fn name(&self, rounds: u32) -> String {
        let round = if rounds > 1 { format!("round {}", self.round + 1) } else { String::new() };
        let parts = [self.variant.name.as_str(), self.work.name.as_str(), round.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The model of the tiers behind the one that is varied.
const BEHIND: &str = "epoll";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn experiment() -> Experiment {
        let text = r#"
            title = "x"
            page_cache = "warm"
            drive = "open-files"
            rounds = 2
            axis = { engines = ["threads", "epoll"] }
            [[work]]
            name = "few"
            scenario = "get-open-file"
            users = 4
            [[work]]
            name = "many"
            scenario = "get-open-file"
            users = 64
        "#;
        Experiment::parse(Path::new("mine.toml"), text).expect("an experiment")
    }

    #[test]
    fn rounds_go_forth_and_back() {
        let experiment = experiment();
        let variants = variants(&experiment, "epoll", &[]);
        let names: Vec<String> = trials(&experiment, &variants).iter().map(|trial| trial.name(2)).collect();
        assert_eq!(
            names,
            [
                "threads, few, round 1",
                "epoll, few, round 1",
                "threads, many, round 1",
                "epoll, many, round 1",
                "epoll, few, round 2",
                "threads, few, round 2",
                "epoll, many, round 2",
                "threads, many, round 2",
            ]
        );
    }

    #[test]
    fn all_engines_are_those_there_are() {
        let mut experiment = experiment();
        experiment.axis = Some(Axis::Engines(Engines::All));
        let known = ["threads".to_owned(), "epoll".to_owned(), "uring".to_owned()];
        let found: Vec<String> = variants(&experiment, "", &known).into_iter().map(|v| v.name).collect();
        assert_eq!(found, known);
    }

    #[test]
    fn workers_are_a_flag_of_the_driven_server() {
        let mut experiment = experiment();
        experiment.axis = Some(Axis::Workers { engine: "pool".into(), workers: vec![1, 8] });
        experiment.flags = vec!["--queue".into(), "32".into()];
        let variants = variants(&experiment, "epoll", &[]);
        assert_eq!(variants[1].flags, ["--queue", "32", "--workers", "8"]);
        assert_eq!((variants[1].name.as_str(), variants[1].engine.as_str()), ("8", "pool"));
    }

    #[test]
    fn the_time_is_shared_out() {
        assert_eq!(time_each(Duration::from_secs(300), 80), Duration::from_millis(2_550));
        assert_eq!(time_each(Duration::from_secs(10), 80), SHORTEST);
    }
}
