//! What became of each kind of request of a scenario, over the whole life of a generator.

use std::collections::BTreeMap;

use crate::scenario::Scenario;

/// All requests of one kind, warm-up and the time between two measurements included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestTotal {
    /// What the scenario calls it: its `name`, or method and path.
    pub name: String,
    /// Its method.
    pub method: String,
    /// Its weight, as a share of all weights.
    pub asked_share: f64,
    /// How many were begun.
    pub begun: u64,
    /// How many were answered as expected.
    pub completed: u64,
    /// How often it would have been this one's turn, but the user had kept nothing for it: another was made instead.
    pub replaced: u64,
    /// How many answers were as expected but held no value to keep.
    pub nothing_to_keep: u64,
    /// Answers of another status than expected.
    pub unexpected_statuses: BTreeMap<u16, u64>,
}

impl RequestTotal {
    /// Requests that the server refused, and so did nothing for: answers of 400 to 499.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.unexpected_statuses.range(400..500).map(|(_, count)| count).sum()
    }

    /// Requests that the server may have done or not: those without an answer, and those answered otherwise than as
    /// expected and not refused.
    #[must_use]
    pub fn uncertain(&self) -> u64 {
        self.begun.saturating_sub(self.completed).saturating_sub(self.refused())
    }

    pub(crate) fn add(&mut self, other: &RequestTotal) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.replaced += other.replaced;
        self.nothing_to_keep += other.nothing_to_keep;
        for (status, count) in &other.unexpected_statuses {
            *self.unexpected_statuses.entry(*status).or_default() += count;
        }
    }
}

/// Nothing begun yet, of every request of the scenario.
pub(crate) fn totals(scenario: &Scenario) -> Vec<RequestTotal> {
    let all: f64 = scenario.requests.iter().map(|request| f64::from(request.weight)).sum();
    let total = |request: &crate::scenario::Request| RequestTotal {
        name: request.name.clone(),
        method: request.method.clone(),
        asked_share: f64::from(request.weight) / all.max(1.0),
        ..RequestTotal::default()
    };
    scenario.requests.iter().map(total).collect()
}
