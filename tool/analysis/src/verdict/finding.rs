//! What a rule found.

use crate::run::{
    Bottleneck, Doubt, Evidence, Explanation, Identity, Probability, Processes, Resource, ResourceKind,
    ThreadTime, Words,
};

/// A resource that was counted as full by whoever hands it out, with users who wait for it. One in thirty is left to what
/// no rule knows of.
pub(super) const DIRECT: Probability = Probability::new(0.97);

/// What was seen is hardly ever seen with another cause.
pub(super) const INDIRECT: Probability = Probability::new(0.87);

/// What was seen is seen with other causes as well, which are rarer.
pub(super) const LIKELY: Probability = Probability::new(0.65);

/// How probable two explanations are that show alike and are about as frequent: neither can be said.
pub(super) const EITHER: [f64; 2] = [0.48, 0.45];

/// Odds fall by this where a part of the evidence is missing or something speaks against it.
const LESS_SURE: f64 = 1.0 / 3.0;

/// No verdict is surer: there may always be something that nobody thought of.
pub(crate) const SUREST: f64 = 0.98;

/// Less probable explanations are not told of.
const TOLD: f64 = 0.01;

/// At most so many alternatives are told of.
const TOLD_MOST: usize = 3;

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
    /// How probable the finding is.
    pub confidence: Probability,
    /// How many requests it serves at a time, where that is what users wait for.
    pub at_a_time: Option<u32>,
    /// What else it may be.
    pub alternatives: Vec<Explanation>,
    /// Reasons not to rely on the answer.
    pub doubts: Vec<Doubt>,
    /// Whether a resource was counted as full, with nothing missing in the evidence for that.
    pub(super) is_direct: bool,
    /// How it ranks among findings about full resources: the busy share, less for weaker evidence.
    pub(super) strength: f64,
}

impl Finding {
    /// A finding of this kind with no evidence yet.
    pub(super) fn new(kind: ResourceKind, confidence: Probability) -> Self {
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
            at_a_time: None,
            alternatives: Vec::new(),
            doubts: Vec::new(),
            is_direct: confidence >= DIRECT,
            strength: 0.0,
        }
    }

    /// Nothing is claimed.
    pub(super) fn unknown() -> Self {
        Self::new(ResourceKind::Unknown, Probability::default())
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

    /// Evidence that is this many times as likely if the finding is right as if it is not.
    pub(super) fn times_odds(mut self, likelihood_ratio: f64) -> Self {
        self.confidence = self.confidence.times_odds(likelihood_ratio);
        self
    }

    /// Lowers the odds where a part of the evidence is missing or something speaks against it.
    pub(super) fn less_sure(self) -> Self {
        self.times_odds(LESS_SURE)
    }

    /// Adds what else it may be.
    pub(super) fn or(mut self, alternative: Explanation) -> Self {
        self.alternatives.push(alternative);
        self
    }

    pub(super) fn includes(&self, resource: &Identity) -> bool {
        self.about.contains(resource)
    }

    /// Whether two findings are about one resource.
    pub(super) fn is_about_the_same(&self, other: &Self) -> bool {
        other
            .about
            .iter()
            .chain(&other.holder)
            .any(|one| self.includes(one) || self.holder.as_ref() == Some(one))
    }

    /// The finding as one of several explanations.
    pub(super) fn explanation(&self, probability: f64) -> Explanation {
        Explanation {
            kind: self.kind,
            holder: Words::default(),
            identity: self.holder.clone(),
            at_a_time: self.at_a_time,
            probability: Probability::new(probability),
        }
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
            at_a_time: self.at_a_time,
            confidence: Probability::new(self.confidence.share().min(SUREST)),
            alternatives: told(self.alternatives.clone()),
        }
    }
}

/// The alternatives that are probable enough to be told of, most probable first.
fn told(mut all: Vec<Explanation>) -> Vec<Explanation> {
    all.retain(|one| one.probability.share() >= TOLD);
    all.sort_by(|a, b| b.probability.share().total_cmp(&a.probability.share()));
    all.truncate(TOLD_MOST);
    all
}
