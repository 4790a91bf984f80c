//! The response times of each kind of request, where a load has several.

use super::percentiles::Distribution;
use super::{Groups, around, distributed};
use crate::run::StepRequest;
use crate::statistics::batch_means::{Observation, batch_means};
use crate::ticks::{KindTick, Tick};

/// What ticks counted of one kind.
#[derive(Debug, Clone, Default)]
struct Sum {
    distribution: Distribution,
    response_time_us: f64,
    completed: u64,
    timed_out: u64,
}

/// Each kind up to the last of which anything was counted, in the order of the scenario, still without a name; those after the
/// first [`KINDS_APART`](crate::ticks::KINDS_APART) together. Empty where kinds were not told apart.
pub(super) fn requests(kept: &[Tick], throughput_per_s: f64) -> Vec<StepRequest> {
    let mut sums = Vec::<Sum>::new();
    for of in kept.iter().flat_map(|tick| &tick.by_kind) {
        if sums.len() <= of.place() {
            sums.resize_with(of.place() + 1, Sum::default);
        }
        if let Some(sum) = sums.get_mut(of.place()) {
            sum.add(of);
        }
    }
    let mut requests: Vec<StepRequest> = sums.iter().map(Sum::request).collect();
    share_out(&mut requests, throughput_per_s);
    requests
}

/// Gives each kind its share of what completed, and of the throughput.
pub(super) fn share_out(requests: &mut [StepRequest], throughput_per_s: f64) {
    let all = requests.iter().map(|request| request.completed).fold(0, u64::saturating_add).max(1);
    for request in requests {
        request.share = request.completed as f64 / all as f64;
        request.throughput_per_s = request.share * throughput_per_s;
    }
}

/// Adds the interval of each kind's mean response time, from ticks that are joined as those of all kinds together. None where
/// that came in fewer of them than the fewest batches: those without it would count as observations all the same, and make the
/// interval of two responses so narrow that it holds the mean every second time.
pub(super) fn add_intervals(requests: &mut [StepRequest], kept: &[Tick], groups: Groups, min_batches: usize) {
    for (kind, request) in requests.iter_mut().enumerate() {
        let joined = groups.join(response_time_over_completions(kept, kind));
        let with_any = joined.iter().filter(|one| one.denominator > 0.0).count();
        let found = batch_means(&joined, min_batches).filter(|_| with_any >= min_batches.max(2));
        request.response_time_us.mean_ci = found.map(|found| around(found.ratio, found.half_width));
    }
}

impl Sum {
    fn add(&mut self, of: &KindTick) {
        self.distribution.add(&of.response_times);
        self.distribution.add(&of.timed_out);
        self.response_time_us += of.response_time_ns_sum as f64 / 1e3;
        self.completed = self.completed.saturating_add(of.completed());
        self.timed_out = self.timed_out.saturating_add(of.timed_out.total());
    }

    fn request(&self) -> StepRequest {
        if self.distribution.total() == 0 {
            return StepRequest::default();
        }
        let mean = if self.completed > 0 { self.response_time_us / self.completed as f64 } else { 0.0 };
        let response_time_us = distributed(&self.distribution, mean, self.timed_out);
        StepRequest { completed: self.completed, response_time_us, ..StepRequest::default() }
    }
}

/// Microseconds over completions of one kind.
fn response_time_over_completions(ticks: &[Tick], kind: usize) -> Vec<Observation> {
    let observation = |tick: &Tick| {
        let of_kind = tick.by_kind.iter().filter(|of| of.place() == kind);
        of_kind.fold(Observation::default(), |sum, of| Observation {
            numerator: sum.numerator + of.response_time_ns_sum as f64 / 1e3,
            denominator: sum.denominator + of.completed() as f64,
        })
    };
    ticks.iter().map(observation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::replicates::{Measured, merged};
    use crate::estimate::{Precision, estimate};
    use crate::run::{PERCENTILES, Step};
    use crate::ticks::{Counts, KINDS_APART};

    const TICK_US: u64 = 20_000;

    /// Requests of one kind that all took the same time.
    fn same(kind: u16, count: u64, us: u64) -> KindTick {
        KindTick {
            kind,
            response_time_ns_sum: count * us * 1_000,
            response_times: Counts { values_us: vec![(us, count)], beyond: 0 },
            ..KindTick::default()
        }
    }

    /// Ticks in which nothing completed but what these say of each kind.
    fn ticks(from_us: u64, count: u64, of: impl Fn(u64) -> Vec<KindTick>) -> Vec<Tick> {
        let tick = |number: u64| {
            let by_kind = of(number);
            let values_us = by_kind.iter().flat_map(|of| of.response_times.values_us.clone()).collect();
            Tick {
                start_us: from_us + number * TICK_US,
                length_us: TICK_US,
                completed: by_kind.iter().map(KindTick::completed).sum(),
                response_time_ns_sum: by_kind.iter().map(|of| of.response_time_ns_sum).sum(),
                response_times: Counts { values_us, beyond: 0 },
                by_kind,
                ..Tick::default()
            }
        };
        (0..count).map(tick).collect()
    }

    fn estimated(ticks: &[Tick]) -> Step {
        estimate(4, ticks, &Precision::default())
    }

    #[test]
    fn each_kind_has_the_response_times_of_its_own_requests() {
        let slow = KindTick {
            timed_out: Counts { values_us: vec![(1_000_000, 1)], beyond: 0 },
            ..same(2, 1, 9_000)
        };
        let step = estimated(&ticks(0, 100, |_| vec![same(0, 3, 1_000), slow.clone()]));
        let [fast, none, slow] = step.requests.as_slice() else { panic!("{step:?}") };
        let quarter = step.completed / 4;
        assert!(quarter > 0 && step.warmup_s > 0.0, "{step:?}");
        assert_eq!([fast, none, slow].map(|of| of.completed), [3 * quarter, 0, quarter]);
        assert_eq!([fast, none, slow].map(|of| of.share), [0.75, 0.0, 0.25]);
        assert_eq!([fast, slow].map(|of| of.response_time_us.mean), [1_000.0, 9_000.0]);
        assert_eq!(
            [fast, slow].map(|of| of.response_time_us.mean_ci),
            [1_000.0, 9_000.0].map(|us| Some([us; 2]))
        );
        assert_eq!(slow.throughput_per_s, 0.25 * step.throughput_per_s);
        assert_eq!(*none, StepRequest::default());
        // Half of the slow requests timed out: they are in its percentiles, as the time that they waited.
        let time = slow.response_time_us;
        assert_eq!((time.samples, time.timed_out, time.max), (2 * quarter, quarter, 1e6));
        let read = PERCENTILES.map(|percentile| percentile.read(&time));
        assert_eq!((read[0], read[1]), (Some(9_000.0), Some(1e6)));
        assert!(PERCENTILES.iter().all(|percentile| percentile.is_kept(&time)));
    }

    #[test]
    fn a_load_of_one_kind_has_no_kinds() {
        let ticks = ticks(0, 100, |_| vec![same(0, 3, 1_000)]);
        let ticks: Vec<Tick> = ticks.into_iter().map(|tick| Tick { by_kind: Vec::new(), ..tick }).collect();
        let step = estimated(&ticks);
        assert!(step.completed > 0 && step.requests.is_empty(), "{step:?}");
        assert!(step.measurement.kinds.is_empty());
    }

    #[test]
    fn kinds_beyond_the_limit_come_together() {
        let step = estimated(&ticks(0, 100, |_| vec![same(KINDS_APART, 1, 500), same(u16::MAX, 3, 900)]));
        assert_eq!(step.requests.len(), usize::from(KINDS_APART) + 1);
        let last = step.requests.last().expect("the others");
        assert_eq!((last.completed, last.response_time_us.mean), (step.completed, 800.0));
    }

    #[test]
    fn a_kind_that_came_in_few_slices_has_no_interval() {
        let interval = |slices: u64| {
            let ticks = ticks(0, 100, |number| match number % 9 == 0 && number / 9 < slices {
                true => vec![same(0, 3, 1_000), same(1, 2, 5_000 + number)],
                false => vec![same(0, 3, 1_000)],
            });
            let mut found = requests(&ticks, 1.0);
            add_intervals(&mut found, &ticks, Groups { ticks: 1 }, 10);
            assert_eq!(found[0].response_time_us.mean_ci, Some([1_000.0; 2]));
            found[1].response_time_us.mean_ci
        };
        assert_eq!([1, 2, 9].map(interval), [None; 3]);
        assert!(interval(10).is_some_and(|[low, high]| low < 5_040.5 && 5_040.5 < high));
    }

    /// A kind that makes all requests has the response times of the step, of one measurement and of several.
    #[test]
    fn kinds_are_measured_and_pooled_as_steps_are() {
        let varying = |from_us: u64, slower_us: u64| {
            ticks(from_us, 120, |number| {
                vec![same(1, 2 + number * 7 % 5, slower_us + 1_000 + number * number * 31 % 400)]
            })
        };
        let measured = |ticks: Vec<Tick>| Measured { step: estimated(&ticks), ticks };
        let all = [measured(varying(0, 0)), measured(varying(9_000_000, 150))];
        let one = &all[0].step;
        assert!(one.response_time_us.mean_ci.is_some_and(|[low, high]| low < high));
        let several = merged(&all, 0);
        assert_eq!(several.replicates.len(), 2);
        let windows = |step: &Step| step.measurement.kinds.iter().map(|of| of.window()).collect::<Vec<_>>();
        assert_eq!(windows(one), [one.measurement.window]);
        let all = windows(&several);
        assert!(!all.is_empty() && all.iter().all(|of| several.measurement.windows.contains(of)), "{all:?}");
        for step in [one, &several] {
            assert_eq!(step.requests[1].response_time_us, step.response_time_us);
            assert_eq!(step.requests[1].throughput_per_s, step.throughput_per_s);
        }
    }
}
