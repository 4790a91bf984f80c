//! Whether the machine or the server changed between steps.
//!
//! With more users each gets at most what each got with fewer: throughput per user, X(N) / N, does not rise with N
//! in any closed queueing network of fixed service rates (throughput is concave in N and 0 at 0; Lazowska et al.,
//! "Quantitative System Performance", 1984, chapter 5). Batching (one commit for many) and wake-ups saved under load
//! bend that a little in practice. A jump says that steps were not measured under the same conditions.
//!
//! A server that slows down as its data grows shows no jump: every later step is a little slower, which looks like a peak
//! of the curve. So a sweep comes back, and measures a step of the maximum once more.

use crate::run::{Again, Step};

/// Throughput per user that rises by less than this factor may be batching, or processors that sleep less.
const JUMP: f64 = 1.4;

/// With fewer users than this, processors fall asleep between requests, and the wake-ups saved with one more user
/// (tens of microseconds each on a virtual machine) may double what each user gets.
const AWAKE_USERS_MIN: u32 = 8;

/// A machine that others share varies by as much from one minute to the next, and N* with it by little more than its
/// interval.
const CHANGED: f64 = 0.20;

/// Where so many completions were to be expected and none came, it is no chance.
const EXPECTED_MIN: f64 = 30.0;

/// Two steps that cannot have been measured under the same conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump {
    /// Users of the step with the lower throughput per user.
    pub from_users: u32,
    /// Users of the next larger step.
    pub to_users: u32,
    /// How many times the throughput per user grew.
    pub factor: f64,
}

/// The largest jump of throughput per user between neighbouring steps (`steps` ascend by users) that the intervals do
/// not explain.
pub fn jump(steps: &[&Step]) -> Option<Jump> {
    let pairs = steps.iter().zip(steps.iter().skip(1));
    pairs.filter_map(|(from, to)| between(from, to)).max_by(|a, b| a.factor.total_cmp(&b.factor))
}

fn between(from: &Step, to: &Step) -> Option<Jump> {
    let per_user = |throughput: f64, step: &Step| throughput / f64::from(step.users.max(1));
    let [_, high] = from.throughput_ci_per_s?;
    let [low, _] = to.throughput_ci_per_s?;
    let factor = per_user(to.throughput_per_s, to) / per_user(from.throughput_per_s, from);
    let certain = from.users >= AWAKE_USERS_MIN
        && from.throughput_per_s > 0.0
        && per_user(low, to) > JUMP * per_user(high, from);
    (certain && factor.is_finite()).then_some(Jump { from_users: from.users, to_users: to.users, factor })
}

/// A step that had another throughput when it was measured once more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Its users.
    pub users: u32,
    /// Completed requests per second the first time.
    pub before_per_s: f64,
    /// The same at the end of the sweep.
    pub after_per_s: f64,
}

/// How a step that was measured twice changed, if by more than both intervals allow and by a share that matters.
pub fn change(step: &Step) -> Option<Change> {
    let again = step.again?;
    let (before_per_s, after_per_s) = (step.throughput_per_s, again.throughput_per_s);
    let difference = (after_per_s - before_per_s).abs();
    let matters = difference > CHANGED * before_per_s.max(after_per_s);
    let changed = matters && (died(before_per_s, again) || difference > half_width(step, again)?);
    changed.then_some(Change { users: step.users, before_per_s, after_per_s })
}

/// Half the width of the interval of the difference.
fn half_width(step: &Step, again: Again) -> Option<f64> {
    let half = |[low, high]: [f64; 2]| (high - low) / 2.0;
    Some(half(step.throughput_ci_per_s?).hypot(half(again.throughput_ci_per_s?)))
}

fn died(before_per_s: f64, again: Again) -> bool {
    again.throughput_per_s == 0.0 && before_per_s * again.elapsed_s > EXPECTED_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(users: u32, throughput: f64, half_width: f64) -> Step {
        Step {
            users,
            throughput_per_s: throughput,
            throughput_ci_per_s: Some([throughput - half_width, throughput + half_width]),
            ..Step::default()
        }
    }

    #[test]
    fn a_sweep_disturbed_half_way_shows() {
        let (slow, fast) = (step(60, 23_700.0, 2_000.0), step(64, 55_000.0, 2_900.0));
        let found = jump(&[&slow, &fast]).expect("a jump");
        assert_eq!((found.from_users, found.to_users), (60, 64));
        assert!((found.factor - 2.18).abs() < 0.01, "{}", found.factor);
    }

    #[test]
    fn growth_in_proportion_and_a_little_more_is_none() {
        let (one, two, four) = (step(1, 1_000.0, 10.0), step(2, 2_300.0, 10.0), step(4, 4_600.0, 10.0));
        assert_eq!(jump(&[&one, &two, &four]), None);
    }

    #[test]
    fn wake_ups_saved_among_few_users_are_none() {
        let (two, three) = (step(2, 38_700.0, 1_200.0), step(3, 108_700.0, 4_200.0));
        assert_eq!(jump(&[&two, &three]), None);
    }

    fn twice(before: (f64, f64), after: (f64, f64)) -> Option<Change> {
        let again = Again::from(&Step { elapsed_s: 2.0, ..step(8, after.0, after.1) });
        change(&Step { again: Some(again), ..step(8, before.0, before.1) })
    }

    #[test]
    fn a_server_that_slowed_down_or_died_shows() {
        let found = twice((29_200.0, 500.0), (9_600.0, 400.0));
        let expected = Change { users: 8, before_per_s: 29_200.0, after_per_s: 9_600.0 };
        assert_eq!(found, Some(expected));
        assert!(twice((9_600.0, 400.0), (29_200.0, 500.0)).is_some(), "or one that was still warming up");
        let dead = Again { elapsed_s: 2.0, ..Again::default() };
        let before = step(8, 100.0, 1.0);
        assert!(change(&Step { again: Some(dead), ..before.clone() }).is_some());
        let cut_short = Again { elapsed_s: 0.1, ..Again::default() };
        assert_eq!(change(&Step { again: Some(cut_short), ..before.clone() }), None);
        assert_eq!(change(&before), None);
    }

    #[test]
    fn a_change_that_is_small_or_within_the_intervals_is_none() {
        assert_eq!(twice((1_000.0, 1.0), (820.0, 1.0)), None);
        assert_eq!(twice((1_000.0, 150.0), (780.0, 170.0)), None);
    }

    #[test]
    fn wide_intervals_explain_what_looks_like_a_jump() {
        let (slow, fast) = (step(60, 23_700.0, 12_000.0), step(64, 55_000.0, 9_000.0));
        assert_eq!(jump(&[&slow, &fast]), None);
        assert_eq!(jump(&[&Step { users: 60, ..Step::default() }, &fast]), None);
    }
}
