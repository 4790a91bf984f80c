//! What a rule found.

use super::utilisation::Id;
use crate::run::{Bottleneck, Confidence, Resource, ResourceKind, ThreadTime};

/// What a rule found, before it is put in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What kind of resource.
    pub kind: ResourceKind,
    /// The process or device; empty where there is none.
    pub holder: String,
    /// Every measured resource this finding is about, which therefore cannot be its rival.
    pub about: Vec<Id>,
    /// Busy share on the plateau.
    pub utilization: Option<f64>,
    /// Service demand, microseconds per completed request.
    pub demand_us: Option<f64>,
    /// What was seen, most telling first.
    pub evidence: Vec<String>,
    /// Which threads the holder's CPU time was spent in, where that is what it lacks and their names tell.
    pub threads: Option<ThreadTime>,
    /// The next most utilised resource.
    pub runner_up: Option<Resource>,
    /// How sure.
    pub confidence: Confidence,
    /// Why the answer is not to be relied on.
    pub inconclusive: Vec<String>,
    /// How it ranks among findings about full resources: the busy share, less for weaker evidence.
    pub(super) strength: f64,
}

impl Finding {
    /// A finding of this kind with nothing said yet.
    pub(super) fn new(kind: ResourceKind, confidence: Confidence) -> Self {
        Self {
            kind,
            holder: String::new(),
            about: Vec::new(),
            utilization: None,
            demand_us: None,
            evidence: Vec::new(),
            threads: None,
            runner_up: None,
            confidence,
            inconclusive: Vec::new(),
            strength: 0.0,
        }
    }

    pub(super) fn held_by(mut self, holder: impl Into<String>) -> Self {
        self.holder = holder.into();
        self
    }

    pub(super) fn about(mut self, ids: impl IntoIterator<Item = Id>) -> Self {
        self.about.extend(ids);
        self
    }

    /// Sets the busy share, which is its strength too.
    pub(super) fn busy(mut self, utilization: f64) -> Self {
        self.utilization = Some(utilization.clamp(0.0, 1.0));
        self.strength = utilization;
        self
    }

    pub(super) fn weaker_by(mut self, amount: f64) -> Self {
        self.strength -= amount;
        self
    }

    pub(super) fn demanding(mut self, demand_us: Option<f64>) -> Self {
        self.demand_us = demand_us.filter(|us| us.is_finite());
        self
    }

    pub(super) fn saying(mut self, sentence: String) -> Self {
        self.evidence.push(sentence);
        self
    }

    pub(super) fn doubting(mut self, sentence: String) -> Self {
        self.inconclusive.push(sentence);
        self
    }

    pub(super) fn includes(&self, id: &Id) -> bool {
        self.about.contains(id)
    }

    /// The part that goes into the run.
    pub fn bottleneck(&self) -> Bottleneck {
        Bottleneck {
            kind: self.kind,
            holder: self.holder.clone(),
            utilization: self.utilization,
            demand_us: self.demand_us,
            evidence: self.evidence.clone(),
            threads: self.threads.clone(),
            runner_up: self.runner_up.clone(),
            confidence: self.confidence,
        }
    }
}
