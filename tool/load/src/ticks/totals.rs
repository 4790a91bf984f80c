//! Totals per kind of request, over the whole life of a generator.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::definition::{Request, Scenario};

/// All requests of one kind, including warm-up and the time between measurements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestTotal {
    /// Its `name` in the scenario, or method and path.
    pub name: String,
    /// Its method.
    pub method: String,
    /// Its weight, as a share of all weights.
    pub asked_share: f64,
    /// Requests started.
    pub begun: u64,
    /// Requests whose response was as expected.
    pub completed: u64,
    /// How often this kind was drawn but the user had no captured value for it, so that another was made instead.
    pub replaced: u64,
    /// Responses that were as expected but had no value to capture.
    pub nothing_to_keep: u64,
    /// Responses with an unexpected status, by status.
    pub unexpected_statuses: BTreeMap<u16, u64>,
}

impl RequestTotal {
    /// Requests that the server refused and so did not carry out: those with a status of 400 to 499.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.unexpected_statuses.range(400..500).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Requests that the server may or may not have carried out: those without a response, and those with an unexpected
    /// response that is not a refusal.
    #[must_use]
    pub fn uncertain(&self) -> u64 {
        self.begun.saturating_sub(self.completed).saturating_sub(self.refused())
    }

    /// Adds what was counted elsewhere of the same kind of request. Counts of others may be anything.
    pub fn add(&mut self, other: &RequestTotal) {
        add(&mut self.begun, other.begun);
        add(&mut self.completed, other.completed);
        add(&mut self.replaced, other.replaced);
        add(&mut self.nothing_to_keep, other.nothing_to_keep);
        for (status, count) in &other.unexpected_statuses {
            add(self.unexpected_statuses.entry(*status).or_default(), *count);
        }
    }
}

fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

/// Returns totals of zero for every kind of request in the scenario.
#[must_use]
pub fn totals(scenario: &Scenario) -> Vec<RequestTotal> {
    let all: f64 = scenario.requests.iter().map(|request| f64::from(request.weight)).sum();
    let total = |request: &Request| RequestTotal {
        name: request.name.clone(),
        method: request.method.clone(),
        asked_share: f64::from(request.weight) / all.max(1.0),
        ..RequestTotal::default()
    };
    scenario.requests.iter().map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_a_stranger_made_up_do_not_overflow() {
        let most = RequestTotal {
            begun: u64::MAX,
            completed: u64::MAX,
            replaced: u64::MAX,
            nothing_to_keep: u64::MAX,
            unexpected_statuses: [(404, u64::MAX), (429, u64::MAX)].into(),
            ..RequestTotal::default()
        };
        let mut all = most.clone();
        all.add(&most);
        assert_eq!(all, most);
        assert_eq!((all.refused(), all.uncertain()), (u64::MAX, 0));
    }
}
