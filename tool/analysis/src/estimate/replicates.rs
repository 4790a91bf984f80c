//! Several measurements of one number of users made into one step.

use super::pauses::pauses;
use super::{by_kind, errors, in_flight, totals, unexpected_statuses};
use crate::run::{Again, Replicate, ResponseTime, Step};
use crate::search::growth::{degrees_of_freedom, throughput_error};
use crate::statistics::pooling::{Between, Estimate, Pooled, pooled};
use crate::statistics::t_95;
use crate::ticks::Tick;

/// One measurement, with the ticks that it was estimated from.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Everything counted, warm-up included.
    pub ticks: Vec<Tick>,
    /// The step that they make.
    pub step: Step,
}

/// Fewest batches of counts of requests under way.
const MIN_BATCHES: usize = 10;

/// The step that all measurements of a number of users make, in the order of time: those that were steady, or all where none
/// was. Throughput and mean response time are pooled with the variance between measurements in their intervals; counts add
/// up, and percentiles are those of all response times. `origin_us` is when the first step began.
pub(crate) fn merged(all: &[Measured], origin_us: u64) -> Step {
    let [first, .., last] = all else {
        return all.first().map_or_else(Step::default, |only| only.step.clone());
    };
    let usable = usable(all, |measured| measured.step.steady);
    let kept: Vec<Tick> = usable.iter().flat_map(|measured| kept(measured)).cloned().collect();
    let mut step = totals(first.step.users, &kept);
    step.in_flight = in_flight(&kept, MIN_BATCHES);
    step.warmup_s = all.iter().map(|measured| measured.step.warmup_s).sum();
    step.steady = usable.iter().any(|measured| measured.step.steady);
    step.replicates = all.iter().map(|measured| replicate(measured, origin_us)).collect();
    step.again = step.replicates.last().map(Again::from);
    step.measurement = last.step.measurement.clone();
    let longest = usable.iter().max_by_key(|measured| measured.step.measured_us());
    step.measurement.window = longest.map_or((0, 0), |measured| measured.step.measurement.window);
    step.measurement.windows = all.iter().map(|measured| measured.step.measurement.window).collect();
    step.measurement.counted = usable.iter().map(|measured| measured.step.measurement.window).collect();
    step.measurement.batches = usable.iter().map(|measured| measured.step.measurement.batches).sum();
    step.measurement.uncorrelated = usable.iter().all(|measured| measured.step.measurement.uncorrelated);
    step.measurement.stall = all.iter().find_map(|measured| measured.step.measurement.stall);
    step.measurement.mean_thinking_users = super::mean_thinking_users(&kept);
    step.measurement.pauses = pauses(&kept);
    let kinds = usable.iter().flat_map(|measured| &measured.step.measurement.kinds);
    step.measurement.kinds = kinds.cloned().collect();
    let silences = all.iter().flat_map(|measured| &measured.step.measurement.silences);
    step.measurement.silences = silences.copied().collect();
    count_the_rest(&mut step, all);
    pool(&mut step, &usable);
    step
}

/// Those for which this holds, or all where it holds for none.
pub(crate) fn usable<T>(all: &[T], steady: impl Fn(&T) -> bool) -> Vec<&T> {
    let chosen: Vec<&T> = all.iter().filter(|one| steady(one)).collect();
    if chosen.is_empty() { all.iter().collect() } else { chosen }
}

fn replicate(measured: &Measured, origin_us: u64) -> Replicate {
    let begun_us = measured.ticks.first().map_or(origin_us, |tick| tick.start_us);
    Replicate::of(&measured.step, begun_us.saturating_sub(origin_us) as f64 / 1e6)
}

/// The ticks of the measured part.
fn kept(measured: &Measured) -> impl Iterator<Item = &Tick> {
    let (start_us, end_us) = measured.step.measurement.window;
    let inside = move |tick: &&Tick| tick.start_us >= start_us && tick.start_us < end_us;
    measured.ticks.iter().filter(inside)
}

/// Failures and statuses outside the measured parts.
fn count_the_rest(step: &mut Step, all: &[Measured]) {
    let mut outside = errors(all.iter().flat_map(|measured| &measured.ticks));
    for (kind, count) in &mut outside {
        *count = count.saturating_sub(step.errors.get(kind).copied().unwrap_or(0));
    }
    outside.retain(|_, count| *count > 0);
    step.measurement.unmeasured_errors = outside;
    step.measurement.unexpected_statuses.clear();
    for measured in all {
        for (status, count) in unexpected_statuses(&measured.ticks) {
            let sum = step.measurement.unexpected_statuses.entry(status).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}

fn pool(step: &mut Step, usable: &[&Measured]) {
    let throughput = together(usable.iter().map(|measured| of_throughput(&measured.step)).collect());
    if let Some(found) = throughput {
        step.throughput_per_s = found.value;
        step.throughput_ci_per_s = interval(&found, usable, |step| step.throughput_ci_per_s);
        step.measurement.degrees_of_freedom = found.degrees_of_freedom;
    }
    pool_mean(&mut step.response_time_us, usable, |step| Some((step.completed, step.response_time_us)));
    for (kind, request) in step.requests.iter_mut().enumerate() {
        pool_mean(&mut request.response_time_us, usable, |step| {
            step.requests.get(kind).map(|own| (own.completed, own.response_time_us))
        });
    }
    by_kind::share_out(&mut step.requests, step.throughput_per_s);
}

/// Pools the mean response time of what each measurement has of it, with how many requests completed there.
fn pool_mean(
    time: &mut ResponseTime,
    usable: &[&Measured],
    own: impl Fn(&Step) -> Option<(u64, ResponseTime)>,
) {
    let of_response = |measured: &&Measured| of_response(&measured.step, own(&measured.step)?);
    if let Some(found) = together(usable.iter().filter_map(of_response).collect()) {
        time.mean = found.value;
        time.mean_ci = interval(&found, usable, |step| own(step)?.1.mean_ci);
    }
}

fn together(estimates: Vec<Estimate>) -> Option<Pooled> {
    pooled(&estimates, Between::of(std::slice::from_ref(&estimates)))
}

/// The interval, if any of the measurements had one.
fn interval(
    found: &Pooled,
    usable: &[&Measured],
    own: impl Fn(&Step) -> Option<[f64; 2]>,
) -> Option<[f64; 2]> {
    usable.iter().any(|measured| own(&measured.step).is_some()).then(|| found.interval())
}

fn of_throughput(step: &Step) -> Estimate {
    Estimate {
        value: step.throughput_per_s,
        error: throughput_error(step),
        degrees_of_freedom: degrees_of_freedom(step),
        weight: step.elapsed_s,
    }
}

/// `None` where nothing completed: there is no response time.
fn of_response(step: &Step, (completed, time): (u64, ResponseTime)) -> Option<Estimate> {
    let degrees_of_freedom = degrees_of_freedom(step);
    let error =
        time.mean_ci.map_or(time.mean / 2.0, |[_, high]| (high - time.mean) / t_95(degrees_of_freedom));
    (completed > 0).then_some(Estimate {
        value: time.mean,
        error,
        degrees_of_freedom,
        weight: step.elapsed_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Measurement;

    #[test]
    fn stretches_without_answers_are_those_of_all_measurements() {
        let measured = |steady, silences: &[(u64, u64)]| {
            let measurement = Measurement { silences: silences.to_vec(), ..Measurement::default() };
            Measured { ticks: Vec::new(), step: Step { users: 5, steady, measurement, ..Step::default() } }
        };
        let step = merged(&[measured(true, &[(1, 2)]), measured(false, &[(7, 9), (11, 12)])], 0);
        assert_eq!(step.measurement.silences, [(1, 2), (7, 9), (11, 12)]);
    }

    #[test]
    fn what_is_looked_at_counts_where_throughput_did_not_settle_too() {
        let measured = |steady, window| {
            let measurement = Measurement { window, ..Measurement::default() };
            Measured { ticks: Vec::new(), step: Step { users: 5, steady, measurement, ..Step::default() } }
        };
        let step = merged(&[measured(true, (1_000, 9_000)), measured(false, (20_000, 29_000))], 0);
        assert_eq!(step.measurement.window, (1_000, 9_000));
        assert_eq!(step.measurement.all_windows(), [(1_000, 9_000), (20_000, 29_000)]);
    }

    #[test]
    fn requests_outstanding_are_those_of_the_measurements_that_the_figures_are_of() {
        let measured = |steady, window| {
            let measurement = Measurement { window, ..Measurement::default() };
            Measured { ticks: Vec::new(), step: Step { users: 5, steady, measurement, ..Step::default() } }
        };
        let all = |steady: [bool; 3]| {
            let windows = [(1_000, 9_000), (20_000, 29_000), (40_000, 48_000)];
            let all: Vec<Measured> =
                steady.into_iter().zip(windows).map(|(steady, window)| measured(steady, window)).collect();
            merged(&all, 0).measurement.counted_windows()
        };
        assert_eq!(all([true, false, true]), [(1_000, 9_000), (40_000, 48_000)]);
        assert_eq!(all([false; 3]).len(), 3);
        let only = measured(true, (1_000, 9_000));
        assert_eq!(merged(&[only], 0).measurement.counted_windows(), [(1_000, 9_000)]);
    }
}
