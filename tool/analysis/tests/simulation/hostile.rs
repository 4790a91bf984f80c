//! Whatever is passed in: no panic, no figure that is not a number.

use analysis::estimate::{Precision, estimate};
use analysis::laws::usl::usl;
use analysis::run::{Step, StepRequest};
use analysis::search::growth::growth;
use analysis::search::saturation::saturation;
use analysis::search::{Next, Search, SearchOptions, UsersRange};
use analysis::ticks::{Counts, ErrorKind, GeneratorPart, GeneratorTick, KindTick, Tick};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..1_000_000u64, Just(u64::MAX), any::<u64>()]
}

prop_compose! {
    fn tick()(start_us in number(), length_us in number(), completed in number(), response_time_ns_sum in number(),
              values_us in proptest::collection::vec((number(), number()), 0..4), beyond in number(),
              errors in number(), busy_us in number(), threads in 0u32..5, thinking_user_us in number()) -> Tick {
        Tick {
            start_us, length_us, completed, response_time_ns_sum,
            response_times: Counts { values_us: values_us.clone(), beyond },
            by_kind: vec![KindTick {
                kind: u16::MAX >> (threads * 3),
                response_time_ns_sum,
                response_times: Counts { values_us: values_us.clone(), beyond },
                timed_out: Counts { values_us: values_us.clone(), beyond },
            }],
            timed_out: Counts { values_us, beyond: 0 },
            errors: [(ErrorKind::Reset, errors)].into(),
            unexpected_statuses: [(500, errors)].into(),
            connected: completed,
            connecting_ns_sum: busy_us,
            held_back: completed,
            held_back_ns_sum: busy_us,
            bytes_received: completed,
            bytes_sent: errors,
            generator: GeneratorTick { busy_us, threads, thinking_user_us, lag_us_p99: busy_us, late_starts: errors, ..Default::default() },
            parts: vec![GeneratorPart {
                name: "a".into(),
                users: threads,
                completed,
                generator: GeneratorTick { busy_us, threads, lag_us_p99: errors, ..Default::default() },
            }],
        }
    }
}

fn figures(found: &Step) -> Vec<f64> {
    let response = &found.response_time_us;
    let of_kind = |kind: &StepRequest| {
        let time = kind.response_time_us;
        let mean = time.mean_ci.into_iter().flatten().chain([time.mean, time.p50, time.p99, time.max]);
        mean.chain([kind.share, kind.throughput_per_s]).collect::<Vec<f64>>()
    };
    [found.throughput_ci_per_s, response.mean_ci]
        .into_iter()
        .flatten()
        .flatten()
        .chain([found.throughput_per_s, response.mean, response.p50, response.p99, response.max])
        .chain([
            found.generator.useful_work,
            found.generator.lag_us_p99,
            found.measurement.mean_thinking_users,
            found.received_bytes_per_s,
            found.sent_bytes_per_s,
        ])
        .chain(found.requests.iter().flat_map(of_kind))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn estimates(ticks in proptest::collection::vec(tick(), 0..120)) {
        let found = estimate(1, &ticks, &Precision::default());
        prop_assert!(figures(&found).iter().all(|figure| figure.is_finite() && *figure >= 0.0), "{:?}", found);
    }

    #[test]
    fn searches_end(steps in proptest::collection::vec(proptest::collection::vec(tick(), 0..40), 1..60),
                    lo in 0u32..5, hi in 0u32..2_000) {
        let mut search = Search::new(SearchOptions { users: UsersRange::Range { lo, hi }, ..SearchOptions::default() });
        for ticks in &steps {
            if search.next() == Next::Finished {
                break;
            }
            search.add(ticks);
        }
        let steps: Vec<&Step> = search.steps().iter().map(|measured| &measured.step).collect();
        let end = saturation(&steps, 0.0);
        prop_assert!(end.throughput_max_per_s.is_finite(), "{:?}", end);
        prop_assert!(end.users_ci.is_none_or(|[low, high]| low <= high && end.users.is_some_and(|n| low <= n && n <= high)));
        let _ = (growth(&steps), usl(&steps));
    }
}
