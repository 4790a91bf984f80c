//! What a server counts of its requests and its work, in memory that forked processes share: any of them can show the
//! whole.

use std::{
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use engine::shared::Atomics;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter},
    registry::Unit,
};

use super::show;

/// The statuses counted one by one. All others count as 0, "other".
const STATUSES: [u16; 14] = [200, 201, 204, 400, 401, 403, 404, 405, 409, 422, 429, 503, 507, 0];
/// The label of statuses that are counted together.
const OTHER: &str = "other";
/// Durations are counted in nanoseconds and shown in seconds.
const NANOS: f64 = 1e-9;

/// Describes a counter.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its name, without prefix.
    pub name: &'static str,
    /// What it counts, in one line.
    pub help: &'static str,
}

/// Describes a histogram.
#[derive(Debug, Clone, Copy)]
pub struct Histogram {
    /// Its name, without prefix and unit.
    pub name: &'static str,
    /// What it measures, in one line.
    pub help: &'static str,
    /// The kind of its values.
    pub of: Quantity,
    /// How many buckets it has. The upper bound of each is twice that of the one before.
    pub buckets: usize,
    /// The upper bound of the first bucket.
    pub least: f64,
}

/// The kind of a histogram's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Durations, shown in seconds.
    Time,
    /// Plain numbers.
    Number,
}

/// Counters of requests, events and measured values. A clone counts into the same ones.
#[derive(Debug, Clone)]
pub struct Counts {
    /// One for each route and status, then one for each counter, then those of the histograms.
    cells: Arc<Atomics>,
    routes: Arc<[&'static str]>,
    counters: &'static [Counter],
    histograms: Arc<[Histogram]>,
}

impl Counts {
    /// Counters at zero, for requests of `routes`, the last of which stands for any other, and for other events. Create
    /// them before the process forks, so that all processes share them.
    pub fn new(
        routes: impl Into<Arc<[&'static str]>>,
        counters: &'static [Counter],
        histograms: impl Into<Arc<[Histogram]>>,
    ) -> Self {
        let (routes, histograms) = (routes.into(), histograms.into());
        let of_histograms: usize = histograms.iter().map(Histogram::cells).sum();
        let cells = Atomics::new(routes.len() * STATUSES.len() + counters.len() + of_histograms);
        Self { cells: Arc::new(cells), routes, counters, histograms }
    }

    /// Counts a request by its route and the status of its response.
    pub fn answered(&self, route: &str, status: u16) {
        let others = self.routes.len().saturating_sub(1);
        let route = self.routes.iter().position(|&known| known == route).unwrap_or(others);
        let status = STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len() - 1);
        self.add(route * STATUSES.len() + status, 1);
    }

    /// Adds `times` to the counter `name`. Does nothing if there is no such counter.
    pub fn count(&self, name: &str, times: u64) {
        if let Some(counter) = self.counters.iter().position(|counter| counter.name == name) {
            self.add(self.first_counter() + counter, times);
        }
    }

    /// Adds a duration to the histogram `name`.
    pub fn took(&self, name: &str, time: Duration) {
        self.observe(name, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a value to the histogram `name`. Does nothing if there is no such histogram.
    pub fn observe(&self, name: &str, value: u64) {
        let Some((first, histogram)) = self.histograms().find(|(_, histogram)| histogram.name == name) else {
            return;
        };
        let shown = value as f64 * histogram.unit();
        let buckets = histogram.buckets;
        let bucket = (0..buckets).find(|&bucket| shown <= histogram.bound(bucket)).unwrap_or(buckets);
        self.add(first + bucket, 1);
        self.add(first + buckets + 1, value);
    }

    /// Counts a commit that made `changes` changes durable, in [`Histogram::COMMIT`] and [`Histogram::COMMIT_CHANGES`].
    pub fn committed(&self, changes: usize, took: Duration) {
        self.took(Histogram::COMMIT.name, took);
        self.observe(Histogram::COMMIT_CHANGES.name, changes as u64);
    }

    /// Each histogram with the index of its first cell.
    fn histograms(&self) -> impl Iterator<Item = (usize, &Histogram)> + '_ {
        let mut next = self.first_counter() + self.counters.len();
        self.histograms.iter().map(move |histogram| {
            let first = next;
            next += histogram.cells();
            (first, histogram)
        })
    }

    fn first_counter(&self) -> usize {
        self.routes.len() * STATUSES.len()
    }

    fn add(&self, cell: usize, by: u64) {
        if let Some(cell) = self.cells.get(cell) {
            cell.fetch_add(by, Relaxed);
        }
    }

    fn get(&self, cell: usize) -> u64 {
        self.cells.get(cell).map_or(0, |cell| cell.load(Relaxed))
    }

    fn show_requests(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Requests answered, by route and status";
        let mut requests = encoder.encode_descriptor("requests", help, None, MetricType::Counter)?;
        let all = self.routes.iter().flat_map(|route| STATUSES.map(|status| (*route, status)));
        for (cell, (route, status)) in all.enumerate() {
            let count = self.get(cell);
            if count > 0 {
                let status = if status == 0 { OTHER.to_owned() } else { status.to_string() };
                let labels = [("route", route), ("status", &status)];
                requests.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        Ok(())
    }
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.show_requests(&mut encoder)?;
        for (cell, counter) in (self.first_counter()..).zip(self.counters) {
            show(&mut encoder, counter.name, counter.help, &ConstCounter::new(self.get(cell)))?;
        }
        self.histograms().try_for_each(|(first, histogram)| histogram.show(self, first, &mut encoder))
    }
}

impl Histogram {
    /// The duration of durable commits.
    pub const COMMIT: Self = Self {
        name: "commit",
        help: "Time of one durable commit",
        of: Quantity::Time,
        buckets: 16,
        least: 0.000_1,
    };
    /// How many changes each commit made durable.
    pub const COMMIT_CHANGES: Self = Self {
        name: "commit_changes",
        help: "Changes made durable by one commit",
        of: Quantity::Number,
        buckets: 9,
        least: 1.0,
    };

    /// How many cells it takes: one for each bucket, one for values beyond the last, and one for the sum.
    fn cells(&self) -> usize {
        self.buckets + 2
    }

    /// What to multiply a counted value by to show it.
    fn unit(&self) -> f64 {
        match self.of {
            Quantity::Time => NANOS,
            Quantity::Number => 1.0,
        }
    }

    fn bound(&self, bucket: usize) -> f64 {
        self.least * 2_f64.powi(i32::try_from(bucket).unwrap_or(i32::MAX))
    }

    fn show(
        &self,
        counts: &Counts,
        first: usize,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), fmt::Error> {
        let bucket = |bucket| (self.bound(bucket), counts.get(first + bucket));
        let mut buckets: Vec<(f64, u64)> = (0..self.buckets).map(bucket).collect();
        buckets.push((super::UNBOUNDED, counts.get(first + self.buckets)));
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = counts.get(first + self.buckets + 1) as f64 * self.unit();
        let unit = (self.of == Quantity::Time).then_some(&Unit::Seconds);
        encoder
            .encode_descriptor(self.name, self.help, unit, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }
}
