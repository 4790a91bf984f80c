//! One step from its ticks: warm-up removed, 95 % intervals, and whether it was steady.

mod by_kind;
mod pauses;
pub mod percentiles;
pub(crate) mod replicates;
mod silences;
pub mod stall;

use std::collections::BTreeMap;

use crate::estimate::percentiles::Distribution;
use crate::run::{
    Connecting, Generator, GeneratorShare, HeldBack, InFlight, Measurement, PERCENTILES, ResponseTime, Step,
};
use crate::statistics::batch_means::{BatchMeans, Observation, batch_means};
use crate::statistics::mser;
use crate::statistics::period::group_length;
use crate::ticks::{ErrorCounts, GeneratorPart, GeneratorTick, KindCounts, Tick, add_errors, sum};

/// How well a step has to be measured.
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

/// The step that consecutive ticks of one number of users make. Steps of any length are accepted; one too short to judge
/// has no intervals and is not steady.
pub fn estimate(users: u32, ticks: &[Tick], precision: &Precision) -> Step {
    let (live, stalled) = stall::split(ticks);
    let warm_up = warm_up(live, precision);
    let (dropped, kept) = live.split_at(warm_up.ticks.min(live.len()));
    let groups = Groups::of(kept, precision.min_batches);
    let throughput = batch_means(&groups.join(completions_over_time(kept)), precision.min_batches);
    let response = batch_means(&groups.join(response_time_over_completions(kept)), precision.min_batches);
    let both = [throughput, response];
    let mut step = totals(users, kept);
    step.warmup_s = length_us(dropped) as f64 / 1e6;
    step.throughput_ci_per_s = throughput.map(|found| throughput_interval(&found, length_us(kept)));
    step.response_time_us.mean_ci =
        response.filter(|_| step.completed > 1).map(|found| around(found.ratio, found.half_width));
    by_kind::add_intervals(&mut step.requests, kept, groups, precision.min_batches);
    step.in_flight = in_flight(kept, precision.min_batches);
    step.steady =
        warm_up.settled && both.iter().all(|found| found.is_some_and(|f| keeps_level(&f, precision)));
    step.measurement = Measurement {
        window: window(kept),
        windows: Vec::new(),
        counted: Vec::new(),
        batches: throughput.map_or(0, |found| found.batches),
        degrees_of_freedom: 0.0,
        uncorrelated: both.iter().all(|found| found.is_some_and(|f| f.uncorrelated)),
        unmeasured_errors: errors(dropped.iter().chain(stalled)),
        unexpected_statuses: unexpected_statuses(ticks),
        stall: stall::stall(ticks),
        pauses: pauses::pauses(kept),
        silences: silences::silences(users, kept),
        mean_thinking_users: mean_thinking_users(kept),
        kinds: KindCounts::of(kept).into_iter().collect(),
    };
    step
}

/// Whether the step may end: steady, with intervals as narrow as asked for.
pub fn precise_enough(step: &Step, precision: &Precision) -> bool {
    let narrow = |width: Option<f64>, target: f64| width.is_some_and(|width| width <= target);
    step.steady
        && step.measurement.uncorrelated
        && narrow(step.throughput_relative_half_width(), precision.relative_half_width)
        && narrow(step.response_relative_half_width(), precision.response_relative_half_width)
}

/// Ticks joined so that a period of the server does not show.
#[derive(Debug, Clone, Copy)]
struct Groups {
    ticks: usize,
}

/// The longest group, in ticks: half a second.
const LONGEST_GROUP: usize = 25;

impl Groups {
    /// Whole periods where the completions have a period, and single ticks where not, or where too few groups would be left
    /// to tell correlation from chance.
    fn of(ticks: &[Tick], min_batches: usize) -> Self {
        let longest = (ticks.len() / (2 * min_batches.max(1))).min(LONGEST_GROUP);
        let completed: Vec<f64> = ticks.iter().map(|tick| tick.completed as f64).collect();
        Self { ticks: group_length(&completed, 1, longest) }
    }

    fn join(self, observations: Vec<Observation>) -> Vec<Observation> {
        let sum = |group: &[Observation], part: fn(&Observation) -> f64| group.iter().map(part).sum();
        let joined = |group: &[Observation]| Observation {
            numerator: sum(group, |one| one.numerator),
            denominator: sum(group, |one| one.denominator),
        };
        observations.chunks(self.ticks.max(1)).map(joined).collect()
    }
}

/// The start to drop.
struct WarmUp {
    ticks: usize,
    settled: bool,
}

/// A warm-up is looked for in at least so many groups of ticks.
const FEWEST_GROUPS: usize = 8;

/// The later of the truncation points of throughput and response time, and at least the settling time.
fn warm_up(ticks: &[Tick], precision: &Precision) -> WarmUp {
    let completed: Vec<f64> = ticks.iter().map(|tick| tick.completed as f64).collect();
    let length = group_length(&completed, mser::BATCH, (ticks.len() / FEWEST_GROUPS).min(LONGEST_GROUP));
    let groups: Vec<&[Tick]> = ticks.chunks_exact(length).collect();
    let throughput: Vec<f64> =
        groups.iter().map(|group| ratio_of(&completions_over_time(group), 0.0)).collect();
    let mean = ratio_of(&response_time_over_completions(ticks), 0.0);
    let response: Vec<f64> =
        groups.iter().map(|group| ratio_of(&response_time_over_completions(group), mean)).collect();
    let found = [mser::truncation(&throughput), mser::truncation(&response)];
    let evident = || found.iter().filter(|truncation| truncation.evident);
    let batches = evident().map(|truncation| truncation.batches).max().unwrap_or(0);
    let dropped = (batches * length).max(settling_ticks(ticks, precision));
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

/// From the ticks in which every thread counted.
pub(crate) fn in_flight(ticks: &[Tick], min_batches: usize) -> Option<InFlight> {
    let counts = ticks.iter().filter_map(|tick| tick.generator.in_flight);
    let counts: Vec<Observation> =
        counts.map(|count| Observation { numerator: count as f64, denominator: 1.0 }).collect();
    let found = batch_means(&counts, min_batches);
    (!counts.is_empty()).then(|| InFlight {
        mean: ratio_of(&counts, 0.0),
        ci: found.map(|found| around(found.ratio, found.half_width)),
    })
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

/// Everything that needs no statistics.
fn totals(users: u32, kept: &[Tick]) -> Step {
    let seconds = length_us(kept) as f64 / 1e6;
    let per_second = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
    let completed = sum(kept, |tick| tick.completed);
    let throughput_per_s = per_second(completed);
    Step {
        users,
        elapsed_s: seconds,
        completed,
        throughput_per_s,
        response_time_us: response_time(kept),
        requests: by_kind::requests(kept, throughput_per_s),
        errors_per_s: errors(kept).into_iter().map(|(kind, count)| (kind, per_second(count))).collect(),
        errors: errors(kept),
        received_bytes_per_s: per_second(sum(kept, |tick| tick.bytes_received)),
        sent_bytes_per_s: per_second(sum(kept, |tick| tick.bytes_sent)),
        connecting: connecting(kept),
        held_back: held_back(kept),
        generator: Generator {
            useful_work: useful_work(kept),
            lag_us_p99: lag_us_p99(kept),
            ..Generator::default()
        },
        generators: generators(kept),
        ..Step::default()
    }
}

/// What connecting took, where requests wait for it: a step whose connections are kept makes few, or none.
fn connecting(kept: &[Tick]) -> Option<Connecting> {
    let [connected, took_ns] =
        [|tick: &Tick| tick.connected, |tick: &Tick| tick.connecting_ns_sum].map(|of| sum(kept, of) as f64);
    let (completed, response_ns) =
        (sum(kept, |tick| tick.completed) as f64, sum(kept, |tick| tick.response_time_ns_sum));
    let per_request = connected / completed;
    let often = per_request.is_finite() && per_request >= CONNECTS_PER_REQUEST;
    (often && response_ns > 0).then(|| Connecting {
        per_request,
        mean_us: took_ns / connected / 1e3,
        share: (took_ns / response_ns as f64).min(1.0),
    })
}

/// Responses that paused for as long as an acknowledgement is delayed, where any did.
fn held_back(kept: &[Tick]) -> Option<HeldBack> {
    let [paused, pauses_ns, completed] =
        [|tick: &Tick| tick.held_back, |tick: &Tick| tick.held_back_ns_sum, |tick: &Tick| tick.completed]
            .map(|of| sum(kept, of) as f64);
    (paused > 0.0 && completed > 0.0)
        .then(|| HeldBack { share: (paused / completed).min(1.0), mean_us: pauses_ns / paused / 1e3 })
}

/// Fewer connections than this for each request are those of clients that came or came back.
const CONNECTS_PER_REQUEST: f64 = 0.01;

fn useful_work(kept: &[Tick]) -> f64 {
    let thread_us: f64 = kept.iter().map(|t| t.length_us as f64 * f64::from(t.generator.threads)).sum();
    let busy_us = sum(kept, |tick| tick.generator.busy_us);
    if thread_us > 0.0 { (busy_us as f64 / thread_us).min(1.0) } else { 0.0 }
}

fn mean_thinking_users(kept: &[Tick]) -> f64 {
    sum(kept, |tick| tick.generator.thinking_user_us) as f64 / length_us(kept).max(1) as f64
}

fn window(kept: &[Tick]) -> (u64, u64) {
    let start = kept.first().map_or(0, |tick| tick.start_us);
    (start, kept.last().map_or(start, |tick| tick.start_us.saturating_add(tick.length_us)))
}

fn length_us(ticks: &[Tick]) -> u64 {
    sum(ticks, |tick| tick.length_us)
}

fn response_time(kept: &[Tick]) -> ResponseTime {
    let mean = ratio_of(&response_time_over_completions(kept), 0.0);
    distributed(&Distribution::of(kept), mean, sum(kept, |tick| tick.timed_out.total()))
}

/// Response times of which the mean is known, and how many timed out.
fn distributed(distribution: &Distribution, mean: f64, timed_out: u64) -> ResponseTime {
    let mut time = ResponseTime {
        mean,
        max: distribution.max_us(),
        samples: distribution.total(),
        timed_out,
        ..ResponseTime::default()
    };
    for percentile in PERCENTILES {
        (percentile.set)(&mut time, distribution.percentile_us(percentile.share));
    }
    time
}

fn errors<'a>(ticks: impl IntoIterator<Item = &'a Tick>) -> ErrorCounts {
    let mut merged = ErrorCounts::new();
    ticks.into_iter().for_each(|tick| add_errors(&mut merged, &tick.errors));
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
    mean_lag_us(kept.iter().map(|tick| (tick.completed, &tick.generator)))
}

/// The mean of the slices' 99th percentiles, weighted by what completed in them.
fn mean_lag_us<'a>(slices: impl Iterator<Item = (u64, &'a GeneratorTick)>) -> f64 {
    let (mut lag, mut weights) = (0.0, 0.0);
    for (completed, generator) in slices {
        let weight = completed.max(1) as f64;
        lag += generator.lag_us_p99 as f64 * weight;
        weights += weight;
    }
    if weights > 0.0 { lag / weights } else { 0.0 }
}

/// What each of several generators did, by name.
fn generators(kept: &[Tick]) -> Vec<GeneratorShare> {
    let mut by_name = BTreeMap::<&str, Vec<(&Tick, &GeneratorPart)>>::new();
    for (tick, part) in kept.iter().flat_map(|tick| tick.parts.iter().map(move |part| (tick, part))) {
        by_name.entry(&part.name).or_default().push((tick, part));
    }
    by_name.into_iter().map(|(name, parts)| generator_share(name, &parts)).collect()
}

fn generator_share(name: &str, parts: &[(&Tick, &GeneratorPart)]) -> GeneratorShare {
    let thread_us: f64 =
        parts.iter().map(|(tick, part)| tick.length_us as f64 * f64::from(part.generator.threads)).sum();
    let busy_us: f64 = parts.iter().map(|(_, part)| part.generator.busy_us as f64).sum();
    GeneratorShare {
        name: name.to_owned(),
        users: parts.last().map_or(0, |(_, part)| part.users),
        completed: parts.iter().map(|(_, part)| part.completed).fold(0, u64::saturating_add),
        useful_work: if thread_us > 0.0 { (busy_us / thread_us).min(1.0) } else { 0.0 },
        lag_us_p99: mean_lag_us(parts.iter().map(|(_, part)| (part.completed, &part.generator))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticks::Counts;

    /// A hundred responses, of 1 to 100 ms: too few for p99 and beyond.
    #[test]
    fn every_percentile_of_the_table_is_measured() {
        let values_us = (1..=100).map(|ms| (ms * 1_000, 1)).collect();
        let tick = Tick { response_times: Counts { values_us, beyond: 0 }, ..Tick::default() };
        let time = response_time(&[tick]);
        let read = PERCENTILES.map(|percentile| percentile.read(&time));
        assert_eq!(read, [Some(50_000.0), Some(90_000.0), Some(95_000.0), None, None]);
        assert!(PERCENTILES.iter().all(|percentile| percentile.is_kept(&time)));
    }
}
