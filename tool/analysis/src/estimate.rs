//! One step's ticks to an estimate: warm-up removed, 95 % intervals, and whether the step was steady.

pub mod percentiles;
pub mod stall;

use std::collections::BTreeMap;

use crate::estimate::percentiles::Distribution;
use crate::estimate::stall::Stall;
use crate::run::{PERCENTILES, ResponseTime};
use crate::statistics::batch_means::{BatchMeans, Observation, batch_means};
use crate::statistics::mser;
use crate::ticks::{ErrorCounts, ErrorRates, Tick};

/// How good an estimate has to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Precision {
    /// Half the width of the throughput's 95 % interval, as a share of the throughput.
    pub relative_half_width: f64,
    /// The same for the mean response time.
    pub response_relative_half_width: f64,
    /// Fewest batches an interval is made from.
    pub min_batches: usize,
    /// Always dropped from the start of a step, microseconds, but never more than a tenth of it.
    pub settle_us: u64,
    /// A drift from the first half to the second that is smaller than this share is no reason to call a step
    /// unsteady, however significant it is.
    pub negligible_drift: f64,
}

impl Default for Precision {
    fn default() -> Self {
        Self {
            relative_half_width: 0.01,
            response_relative_half_width: 0.02,
            min_batches: 10,
            settle_us: 200_000,
            negligible_drift: 0.03,
        }
    }
}

/// What one step showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Estimate {
    /// Length of the dropped start.
    pub warmup_us: u64,
    /// Length of the measured part.
    pub measured_us: u64,
    /// Start and end of the measured part, microseconds of the monotonic clock.
    pub window: (u64, u64),
    /// Requests completed in the measured part.
    pub completed: u64,
    /// Completed requests per second.
    pub throughput_per_s: f64,
    /// 95 % interval of it; `None` where the step was too short for one.
    pub throughput_ci_per_s: Option<[f64; 2]>,
    /// Batches the throughput's interval was made from; 0 without one.
    pub batches: usize,
    /// Response times of the requests completed in the measured part.
    pub response_time_us: ResponseTime,
    /// Errors in the measured part.
    pub errors: ErrorCounts,
    /// The same per second.
    pub errors_per_s: ErrorRates,
    /// Errors in the dropped start and in the stall of a server that died: not part of any rate, but not hidden
    /// either.
    pub unmeasured_errors: ErrorCounts,
    /// Statuses that were not expected, over the whole step.
    pub unexpected_statuses: BTreeMap<u16, u64>,
    /// The server stopped answering before the step ended; the measured part ends before that.
    pub stall: Option<Stall>,
    /// Whether the measured part is in a steady state, as far as its length can tell.
    pub steady: bool,
    /// Whether batches long enough to be uncorrelated were found. If not, the intervals were widened.
    pub uncorrelated: bool,
    /// Mean number of users that were thinking.
    pub mean_thinking_users: f64,
    /// Body bytes received per second.
    pub received_bytes_per_s: f64,
    /// Body bytes sent per second.
    pub sent_bytes_per_s: f64,
    /// Share of their time the generator's threads spent outside the wait for events, 0 to 1.
    pub useful_work: f64,
    /// 99th percentile of the generator's lag: the mean of the slices' percentiles, weighted by completions.
    pub lag_us_p99: f64,
    /// Open loop: requests whose intended start passed with no connection free.
    pub late_starts: u64,
}

impl Estimate {
    /// Half the width of the throughput's interval as a share of the throughput; `None` without an interval
    /// or without completions.
    pub fn throughput_relative_half_width(&self) -> Option<f64> {
        relative_half_width(self.throughput_ci_per_s?, self.throughput_per_s)
    }

    /// The same for the mean response time.
    pub fn response_relative_half_width(&self) -> Option<f64> {
        relative_half_width(self.response_time_us.mean_ci?, self.response_time_us.mean)
    }
}

/// The estimate of one step from its consecutive ticks. Steps of any length are accepted; one too short to
/// judge has no intervals and is not steady.
pub fn estimate(ticks: &[Tick], precision: &Precision) -> Estimate {
    let (live, stalled) = stall::split(ticks);
    let warm_up = warm_up(live, precision);
    let (dropped, kept) = live.split_at(warm_up.ticks.min(live.len()));
    let throughput = batch_means(&completions_over_time(kept), precision.min_batches);
    let response = batch_means(&response_time_over_completions(kept), precision.min_batches);
    let mut estimate = totals(kept);
    estimate.warmup_us = length_us(dropped);
    estimate.unmeasured_errors = errors(dropped.iter().chain(stalled));
    estimate.unexpected_statuses = unexpected_statuses(ticks);
    estimate.stall = stall::stall(ticks);
    estimate.throughput_ci_per_s = throughput.map(|found| throughput_interval(&found, estimate.measured_us));
    estimate.batches = throughput.map_or(0, |found| found.batches);
    estimate.response_time_us.mean_ci =
        response.filter(|_| estimate.completed > 1).map(|found| around(found.ratio, found.half_width));
    estimate.uncorrelated = [throughput, response].iter().all(|found| found.is_some_and(|f| f.uncorrelated));
    estimate.steady = warm_up.settled
        && [throughput, response].iter().all(|found| found.is_some_and(|f| keeps_level(&f, precision)));
    estimate
}

/// Whether the step may end: steady, with intervals as narrow as asked for.
pub fn precise_enough(estimate: &Estimate, precision: &Precision) -> bool {
    let narrow = |width: Option<f64>, target: f64| width.is_some_and(|width| width <= target);
    estimate.steady
        && estimate.uncorrelated
        && narrow(estimate.throughput_relative_half_width(), precision.relative_half_width)
        && narrow(estimate.response_relative_half_width(), precision.response_relative_half_width)
}

/// The start to drop.
struct WarmUp {
    ticks: usize,
    settled: bool,
}

/// The later of the truncation points of throughput and response time, and at least the settling time.
fn warm_up(ticks: &[Tick], precision: &Precision) -> WarmUp {
    let groups: Vec<&[Tick]> = ticks.chunks_exact(mser::BATCH).collect();
    let throughput: Vec<f64> =
        groups.iter().map(|group| ratio_of(&completions_over_time(group), 0.0)).collect();
    let mean = ratio_of(&response_time_over_completions(ticks), 0.0);
    let response: Vec<f64> =
        groups.iter().map(|group| ratio_of(&response_time_over_completions(group), mean)).collect();
    let found = [mser::truncation(&throughput), mser::truncation(&response)];
    let evident = || found.iter().filter(|truncation| truncation.evident);
    let batches = evident().map(|truncation| truncation.batches).max().unwrap_or(0);
    let dropped = (batches * mser::BATCH).max(settling_ticks(ticks, precision));
    let completes = |tick: &Tick| tick.completed > 0;
    if ticks.iter().any(completes) && !ticks.iter().skip(dropped).any(completes) {
        // A server that went over to failing: what it did before is no warm-up.
        return WarmUp { ticks: 0, settled: false };
    }
    WarmUp { ticks: dropped, settled: !evident().any(|truncation| truncation.at_limit) }
}

fn settling_ticks(ticks: &[Tick], precision: &Precision) -> usize {
    let settle_us = precision.settle_us.min(length_us(ticks) / 10);
    let mut passed_us = 0u64;
    ticks
        .iter()
        .take_while(|tick| {
            passed_us = passed_us.saturating_add(tick.length_us);
            passed_us <= settle_us
        })
        .count()
}

/// No drift that is both significant and large enough to matter.
fn keeps_level(found: &BatchMeans, precision: &Precision) -> bool {
    !found.drift_significant || found.drift.abs() <= precision.negligible_drift
}

/// Per second over seconds.
fn completions_over_time(ticks: &[Tick]) -> Vec<Observation> {
    let observation = |tick: &Tick| Observation {
        numerator: tick.completed as f64,
        denominator: tick.length_us as f64 / 1e6,
    };
    ticks.iter().map(observation).collect()
}

/// Microseconds over completions.
fn response_time_over_completions(ticks: &[Tick]) -> Vec<Observation> {
    let observation = |tick: &Tick| Observation {
        numerator: tick.response_time_ns_sum as f64 / 1e3,
        denominator: tick.completed as f64,
    };
    ticks.iter().map(observation).collect()
}

fn ratio_of(observations: &[Observation], otherwise: f64) -> f64 {
    let numerator: f64 = observations.iter().map(|o| o.numerator).sum();
    let denominator: f64 = observations.iter().map(|o| o.denominator).sum();
    if denominator > 0.0 { numerator / denominator } else { otherwise }
}

/// Never narrower than one request more or less: a count has no finer resolution.
fn throughput_interval(found: &BatchMeans, measured_us: u64) -> [f64; 2] {
    let one_request = 1e6 / measured_us.max(1) as f64;
    around(found.ratio, found.half_width.max(one_request))
}

fn around(centre: f64, half_width: f64) -> [f64; 2] {
    [(centre - half_width).max(0.0), centre + half_width]
}

fn relative_half_width([low, high]: [f64; 2], centre: f64) -> Option<f64> {
    (centre > 0.0).then(|| (high - centre).max(centre - low) / centre)
}

/// Everything that needs no statistics.
fn totals(kept: &[Tick]) -> Estimate {
    let measured_us = length_us(kept);
    let seconds = measured_us as f64 / 1e6;
    let per_second = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
    let sum = |field: fn(&Tick) -> u64| kept.iter().map(field).fold(0u64, u64::saturating_add);
    let completed = sum(|tick| tick.completed);
    let thread_us: f64 = kept.iter().map(|t| t.length_us as f64 * f64::from(t.generator.threads)).sum();
    let busy_us = sum(|tick| tick.generator.busy_us);
    Estimate {
        measured_us,
        window: window(kept),
        completed,
        throughput_per_s: per_second(completed),
        response_time_us: response_time(kept),
        errors_per_s: errors(kept).into_iter().map(|(kind, count)| (kind, per_second(count))).collect(),
        errors: errors(kept),
        mean_thinking_users: sum(|tick| tick.generator.thinking_user_us) as f64 / measured_us.max(1) as f64,
        received_bytes_per_s: per_second(sum(|tick| tick.bytes_received)),
        sent_bytes_per_s: per_second(sum(|tick| tick.bytes_sent)),
        useful_work: if thread_us > 0.0 { (busy_us as f64 / thread_us).min(1.0) } else { 0.0 },
        lag_us_p99: lag_us_p99(kept),
        late_starts: sum(|tick| tick.generator.late_starts),
        ..Estimate::default()
    }
}

fn window(kept: &[Tick]) -> (u64, u64) {
    let start = kept.first().map_or(0, |tick| tick.start_us);
    (start, kept.last().map_or(start, |tick| tick.start_us.saturating_add(tick.length_us)))
}

fn length_us(ticks: &[Tick]) -> u64 {
    ticks.iter().map(|tick| tick.length_us).fold(0, u64::saturating_add)
}

fn response_time(kept: &[Tick]) -> ResponseTime {
    let distribution = Distribution::of(kept);
    let mut time = ResponseTime {
        mean: ratio_of(&response_time_over_completions(kept), 0.0),
        max: distribution.max_us(),
        ..ResponseTime::default()
    };
    for percentile in PERCENTILES {
        (percentile.set)(&mut time, distribution.percentile_us(percentile.share));
    }
    time
}

fn errors<'a>(ticks: impl IntoIterator<Item = &'a Tick>) -> ErrorCounts {
    let mut merged = ErrorCounts::new();
    for (&kind, &count) in ticks.into_iter().flat_map(|tick| &tick.errors) {
        let sum: &mut u64 = merged.entry(kind).or_default();
        *sum = sum.saturating_add(count);
    }
    merged
}

fn unexpected_statuses(ticks: &[Tick]) -> BTreeMap<u16, u64> {
    let mut merged = BTreeMap::new();
    for (&status, &count) in ticks.iter().flat_map(|tick| &tick.unexpected_statuses) {
        let sum: &mut u64 = merged.entry(status).or_default();
        *sum = sum.saturating_add(count);
    }
    merged
}

fn lag_us_p99(kept: &[Tick]) -> f64 {
    let weight = |tick: &Tick| tick.completed.max(1) as f64;
    let lag: f64 = kept.iter().map(|tick| tick.generator.lag_us_p99 as f64 * weight(tick)).sum();
    let weights: f64 = kept.iter().map(weight).sum();
    if weights > 0.0 { lag / weights } else { 0.0 }
}
