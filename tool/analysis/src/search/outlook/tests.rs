use super::*;
use crate::search::SearchOptions;

const TICK_US: u64 = 20_000;

/// Ticks of a server that takes 10 ms for a request and serves four at a time, with counts that alternate so that there is
/// something to settle.
fn ticks(users: u32, from_us: u64, for_us: u64) -> Vec<Tick> {
    let tick = |index: u64| {
        let start_us = from_us + index * TICK_US;
        let busy = u64::from(users.min(4));
        let completed = 20 * busy + 3 * ((start_us / TICK_US).wrapping_mul(2_654_435_761) >> 7) % 7;
        Tick {
            start_us,
            length_us: TICK_US,
            completed,
            response_time_ns_sum: completed * u64::from(users.max(4)) * 250_000,
            ..Tick::default()
        }
    };
    (0..for_us / TICK_US).map(tick).collect()
}

/// Carries out a search. Looks at it before each measurement, and halfway through.
fn carry_out(options: SearchOptions, mut look: impl FnMut(&Search, &[Tick])) -> Search {
    let (mut search, mut now_us, mut users_now) = (Search::new(options), 0, 0);
    loop {
        let for_us = match search.next() {
            Next::Finished => return search,
            Next::WarmUp { users, for_us } | Next::Begin { users, for_us } => {
                users_now = users;
                for_us
            }
            Next::Extend { for_us } => for_us,
        };
        let measured = ticks(users_now, now_us, for_us);
        look(&search, &measured[..measured.len() / 2]);
        now_us += for_us;
        search.add(&measured);
    }
}

fn range(lo: u32, hi: u32) -> SearchOptions {
    SearchOptions { users: UsersRange::Range { lo, hi }, ..SearchOptions::default() }
}

#[test]
fn a_search_tells_what_each_measurement_decides() {
    let mut decided = Vec::new();
    carry_out(range(1, 64), |search, _| {
        if let Next::Begin { users, .. } = search.next() {
            decided.push((users, search.purpose()));
        }
    });
    let growth = |from, next| Purpose::Growth { from, next: Some(next) };
    let ladder =
        [(1, Purpose::Fewest { next: Some(2) }), (2, growth(1, 4)), (4, growth(2, 8)), (8, growth(4, 16))];
    assert_eq!(decided[..4], ladder);
    let refines = |users: u32, purpose: Purpose| match purpose {
        Purpose::Maximum { between: [lo, hi] }
        | Purpose::Saturation { between: [lo, hi] }
        | Purpose::Interval { between: [lo, hi] } => lo < users && users < hi,
        _ => false,
    };
    let rest: Vec<_> =
        decided.iter().skip_while(|(_, purpose)| !matches!(purpose, Purpose::Again { .. })).collect();
    assert!(decided.iter().any(|(users, purpose)| refines(*users, *purpose)), "{decided:?}");
    assert!(!rest.is_empty() && rest.iter().all(|(_, purpose)| matches!(purpose, Purpose::Again { .. })));
    let Some((_, Purpose::Again { round: 1, left })) = rest.first() else { panic!("{rest:?}") };
    assert!(rest.len() > *left, "those left in the first round follow: {rest:?}");
}

#[test]
fn a_list_is_told_by_number_and_its_time_is_known() {
    let users = vec![3, 1, 2];
    let options =
        SearchOptions { users: UsersRange::List(users), total_us: None, ..SearchOptions::default() };
    let longest_us = options.step_us_max;
    let (mut told, mut left) = (Vec::new(), Vec::new());
    carry_out(options, |search, measured| {
        if let Next::Begin { users, .. } = search.next() {
            told.push((users, search.purpose()));
            left.push(search.time(0).left_us_max);
            let later = search.time(sum(measured, |tick| tick.length_us));
            assert!(later.left_us_max < search.time(0).left_us_max, "time passes");
        }
    });
    let number = |number| Purpose::Listed { number, of: 3 };
    assert_eq!(told, [(3, number(1)), (1, number(2)), (2, number(3))]);
    assert_eq!(left, [3, 2, 1].map(|rest| Some(rest * longest_us)));
}

#[test]
fn the_time_left_falls_and_the_search_keeps_to_it() {
    let mut seen: Vec<TimeOf> = Vec::new();
    let search = carry_out(range(1, 64), |search, measured| {
        seen.extend([search.time(0), search.time(sum(measured, |tick| tick.length_us))]);
    });
    assert!(seen.is_sorted_by_key(|time| time.spent_us), "{seen:?}");
    assert!(seen.iter().rev().is_sorted_by_key(|time| time.left_us_max), "{seen:?}");
    let shares: Vec<_> = seen.iter().filter_map(TimeOf::share).collect();
    assert!(shares.len() == seen.len() && shares.iter().all(|share| (0.0..=1.0).contains(share)));
    // The last step may be a shortest one longer.
    let most_us = SearchOptions::default().total_us.unwrap_or(0) + SearchOptions::default().step_us_min;
    assert!(search.spent_us() <= most_us, "{}", search.spent_us());
}

#[test]
fn a_measurement_settles_as_it_goes_on() {
    let mut seen: Vec<(u64, Settling)> = Vec::new();
    let mut number = 0;
    carry_out(range(1, 64), |search, measured| {
        number += u64::from(matches!(search.next(), Next::Begin { .. }));
        seen.extend(search.settling(measured).map(|settling| (number, settling)));
    });
    for (_, settling) in &seen {
        assert!(0 < settling.measured_us && settling.measured_us < settling.planned_us, "{settling:?}");
        assert!(settling.planned_us <= settling.longest_us, "{settling:?}");
        assert!(settling.share().is_none_or(|share| (0.0..=1.0).contains(&share)), "{settling:?}");
    }
    let of_one = |pair: &&[(u64, Settling)]| pair[0].0 == pair[1].0;
    let longer: Vec<_> = seen.windows(2).filter(of_one).collect();
    assert!(!longer.is_empty(), "some measurement was made longer");
    assert!(longer.iter().all(|pair| pair[0].1.measured_us < pair[1].1.measured_us), "{longer:?}");
}

#[test]
fn what_is_told_while_it_is_measured_is_what_the_step_says() {
    carry_out(range(1, 8), |search, measured| {
        let mut ahead = search.clone();
        let Some(told) = search.settling(measured) else { return };
        ahead.add(measured);
        let step = ahead.latest().expect("the measurement under way");
        assert_eq!(told.throughput_per_s.value, step.throughput_per_s);
        assert_eq!(told.throughput_per_s.relative_half_width, step.throughput_relative_half_width());
        assert_eq!(told.response_time_us.relative_half_width, step.response_relative_half_width());
    });
}

#[test]
fn what_is_found_so_far_is_a_run() {
    let search = carry_out(range(1, 64), |_, _| {});
    let run = search.so_far(0.0).as_run("a server");
    assert_eq!((run.target.as_str(), run.verdict.users_at_saturation), ("a server", Some(4)));
    assert_eq!(run.steps.len(), search.steps().len());
    assert!(SoFar::default().as_run("").steps.is_empty());
}
