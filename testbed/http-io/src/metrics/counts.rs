//! What a server counts of its requests and of its work, in memory that forked processes share, so that any of them can
//! show it all.

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

/// The statuses counted each by itself; any other counts as 0, "other".
const STATUSES: [u16; 14] = [200, 201, 204, 400, 401, 403, 404, 405, 409, 422, 429, 503, 507, 0];
/// The label of what is counted together.
const OTHER: &str = "other";
/// Seconds are counted in nanoseconds.
const NANOS: f64 = 1e-9;

/// What is counted.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The routes of requests; the last stands for any other.
    pub routes: &'static [&'static str],
    /// What is counted beside them.
    pub counters: &'static [Counter],
    /// What is counted by its size.
    pub histograms: &'static [Histogram],
}

/// How often something happened.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// Its name, without prefix.
    pub name: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
}

/// How often something was how long or how much.
#[derive(Debug, Clone, Copy)]
pub struct Histogram {
    /// Its name, without prefix and unit.
    pub name: &'static str,
    /// What it shows, in a line.
    pub help: &'static str,
    /// What is counted.
    pub of: Quantity,
    /// Buckets, each with twice the upper bound of the one before.
    pub buckets: usize,
    /// Upper bound of the first.
    pub least: f64,
}

/// What a histogram counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time, shown in seconds.
    Time,
    /// A number of things.
    Number,
}

/// The counters; a copy counts into the same ones.
#[derive(Debug, Clone)]
pub struct Counts {
    cells: Arc<Atomics>,
    shape: Shape,
}

impl Counts {
    /// All at zero. To be made before the process forks.
    pub fn new(shape: Shape) -> Self {
        let histograms: usize = shape.histograms.iter().map(Histogram::cells).sum();
        Self { cells: Arc::new(Atomics::new(shape.first_histogram() + histograms)), shape }
    }

    /// A request of this route was answered so.
    pub fn answered(&self, route: &str, status: u16) {
        let routes = self.shape.routes;
        let route = routes.iter().position(|&known| known == route).unwrap_or(routes.len().saturating_sub(1));
        let status = STATUSES.iter().position(|&known| known == status).unwrap_or(STATUSES.len() - 1);
        self.add(route * STATUSES.len() + status, 1);
    }

    /// Something happened so many times more; `name` is that of the counter.
    pub fn count(&self, name: &str, times: u64) {
        if let Some(counter) = self.shape.counters.iter().position(|counter| counter.name == name) {
            self.add(self.shape.first_counter() + counter, times);
        }
    }

    /// Something took so long; `name` is that of the histogram.
    pub fn took(&self, name: &str, time: Duration) {
        self.observe(name, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Something was so many; `name` is that of the histogram.
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

    /// Each histogram and its first cell.
    fn histograms(&self) -> impl Iterator<Item = (usize, &'static Histogram)> + '_ {
        let mut next = self.shape.first_histogram();
        self.shape.histograms.iter().map(move |histogram| {
            let first = next;
            next += histogram.cells();
            (first, histogram)
        })
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
        let all = self.shape.routes.iter().flat_map(|route| STATUSES.map(|status| (*route, status)));
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
        for (cell, counter) in (self.shape.first_counter()..).zip(self.shape.counters) {
            show(&mut encoder, counter.name, counter.help, &ConstCounter::new(self.get(cell)))?;
        }
        self.histograms().try_for_each(|(first, histogram)| histogram.show(self, first, &mut encoder))
    }
}

impl Shape {
    /// Cells before the counters: one for each route and status.
    fn first_counter(&self) -> usize {
        self.routes.len() * STATUSES.len()
    }

    /// Cells before the histograms.
    fn first_histogram(&self) -> usize {
        self.first_counter() + self.counters.len()
    }
}

impl Histogram {
    /// How many fell into each bucket, how many beyond the last, and the sum of all.
    fn cells(&self) -> usize {
        self.buckets + 2
    }

    /// What one counted unit is of those shown.
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
