//! What the index server counts, in the Prometheus text format.

use std::{sync::Arc, time::Duration};

use http_io::{
    Answer,
    metrics::{self, Connections},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// The counters; a copy counts into the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    answers: Family<Answered, Counter>,
    registered: Counter,
    commit_time_s: Histogram,
    registry: Arc<Registry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

impl Metrics {
    /// All at zero, and what the engine counts.
    pub(crate) fn new(connections: Arc<engine::Counters>) -> Self {
        let (answers, registered) = (Family::default(), Counter::default());
        let commit_time_s = Histogram::new(exponential_buckets(0.000_1, 2.0, 16));
        let mut registry = Registry::with_prefix("nstar_index");
        registry.register("requests", "Requests answered, by route and status", answers.clone());
        registry.register("files_registered", "Files registered, renewals left out", registered.clone());
        let commit_help = "Time of one durable commit";
        registry.register_with_unit("commit", commit_help, Unit::Seconds, commit_time_s.clone());
        registry.register_collector(Box::new(Connections(connections)));
        Self { answers, registered, commit_time_s, registry: registry.into() }
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.answers.get_or_create(&Answered { route, status }).inc();
    }

    pub(crate) fn registered(&self, files: usize) {
        self.registered.inc_by(files as u64);
    }

    pub(crate) fn committed(&self, took: Duration) {
        self.commit_time_s.observe(took.as_secs_f64());
    }

    /// The text to show.
    pub(crate) fn show(&self) -> Answer {
        let mut shown = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut shown, &self.registry);
        Answer::new(200, metrics::CONTENT_TYPE, shown)
    }
}
