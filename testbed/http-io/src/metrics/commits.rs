//! What servers that commit to a database count of that.

use std::time::Duration;

use super::counts::{Counts, Histogram, Quantity};

impl Histogram {
    /// How long durable commits took.
    pub const COMMIT: Self = Self {
        name: "commit",
        help: "Time of one durable commit",
        of: Quantity::Time,
        buckets: 16,
        least: 0.000_1,
    };
    /// How many changes a commit held.
    pub const COMMIT_CHANGES: Self = Self {
        name: "commit_changes",
        help: "Changes made durable by one commit",
        of: Quantity::Number,
        buckets: 9,
        least: 1.0,
    };
}

impl Counts {
    /// A commit made so many changes durable. To be counted, both histograms of commits have to be in the [`Shape`].
    ///
    /// [`Shape`]: super::Shape
    pub fn committed(&self, changes: usize, took: Duration) {
        self.took(Histogram::COMMIT.name, took);
        self.observe(Histogram::COMMIT_CHANGES.name, changes as u64);
    }
}
