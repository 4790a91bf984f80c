//! What a rule found.

use crate::run::{
    Bottleneck, Confidence, Doubt, Evidence, Identity, Processes, Resource, ResourceKind, ThreadTime, Words,
};

/// The finding of a rule, before it is put in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The kind of resource.
    pub kind: ResourceKind,
    /// The process or device; `None` where there is none.
    pub holder: Option<Identity>,
    /// Every measured resource that the finding is about, and that therefore cannot be its rival.
    pub about: Vec<Identity>,
    /// Busy share on the plateau.
    pub utilization: Option<f64>,
    /// Service demand, microseconds per completed request.
    pub demand_us: Option<f64>,
    /// Evidence, most telling first.
    pub evidence: Vec<Evidence>,
    /// The threads that spent the holder's CPU time, if CPU time is what it lacks and the names are informative.
    pub threads: Option<ThreadTime>,
    /// The next most utilised resource.
    pub runner_up: Option<Resource>,
    /// How sure the finding is.
    pub confidence: Confidence,
    /// Reasons not to rely on the answer.
    pub doubts: Vec<Doubt>,
    /// How it ranks among findings about full resources: the busy share, less for weaker evidence.
    pub(super) strength: f64,
}

impl Finding {
    /// A finding of this kind with no evidence yet.
    pub(super) fn new(kind: ResourceKind, confidence: Confidence) -> Self {
        Self {
            kind,
            holder: None,
            about: Vec::new(),
            utilization: None,
            demand_us: None,
            evidence: Vec::new(),
            threads: None,
            runner_up: None,
            confidence,
            doubts: Vec::new(),
            strength: 0.0,
        }
    }

    pub(super) fn held_by(mut self, holder: Identity) -> Self {
        self.holder = Some(holder);
        self
    }

    pub(super) fn about(mut self, resources: impl IntoIterator<Item = Identity>) -> Self {
        self.about.extend(resources);
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

    pub(super) fn seeing(mut self, evidence: impl Into<Evidence>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub(super) fn doubting(mut self, doubt: Doubt) -> Self {
        self.doubts.push(doubt);
        self
    }

    /// Lowers the confidence to this one where it is higher.
    pub(super) fn at_most(mut self, confidence: Confidence) -> Self {
        self.confidence = self.confidence.max(confidence);
        self
    }

    pub(super) fn includes(&self, resource: &Identity) -> bool {
        self.about.contains(resource)
    }

    /// Whether these processes hold it.
    pub(super) fn is_held_by(&self, of: &Processes) -> bool {
        self.holder.as_ref().and_then(Identity::processes) == Some(of)
    }

    /// The part that goes into the run.
    pub fn bottleneck(&self) -> Bottleneck {
        Bottleneck {
            kind: self.kind,
            holder: Words::default(),
            identity: self.holder.clone(),
            utilization: self.utilization,
            demand_us: self.demand_us,
            evidence: Vec::new(),
            findings: self.evidence.clone(),
            threads: self.threads.clone(),
            runner_up: self.runner_up.clone(),
            confidence: self.confidence,
        }
    }
}
