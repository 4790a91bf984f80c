//! Whether the machine or the server changed between steps.
//!
//! With more users each gets at most what each got with fewer: throughput per user, X(N) / N, does not rise with N
//! in any closed queueing network of fixed service rates (throughput is concave in N and 0 at 0; Lazowska et al.,
//! "Quantitative System Performance", 1984, chapter 5). Batching (one commit for many) and wake-ups saved under load
//! bend that a little in practice. A jump says that steps were not measured under the same conditions.
//!
//! A server that slows down as its data grows shows no jump: every later step is a little slower, which looks like a peak
//! of the curve. So a sweep comes back to some of its steps.

use crate::run::{Replicate, Step};
use crate::statistics::normal_two_sided;

/// Throughput per user that rises by less than this factor may be batching, or processors that sleep less.
const JUMP: f64 = 1.4;

/// With fewer users than this, processors fall asleep between requests, and the wake-ups saved with one more user
/// (tens of microseconds each on a virtual machine) may double what each user gets.
const AWAKE_USERS_MIN: u32 = 8;

/// Responses that take longer than this, microseconds, are hardly longer for a wake-up.
const LONG_US: f64 = 2_000.0;

/// A machine that others share varies by as much from one minute to the next, and N* with it by little more than its
/// interval.
const CHANGED: f64 = 0.20;

/// A server that changes by less is said to scatter, by the variance between measurements in the intervals.
const TOLD: f64 = 0.10;

/// Where so many completions were to be expected and none came, it is no chance.
const EXPECTED_MIN: f64 = 30.0;

/// Two steps that cannot have been measured under the same conditions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jump<'a> {
    /// The step with the lower throughput per user.
    pub from: &'a Step,
    /// The next larger step.
    pub to: &'a Step,
    /// How many times the throughput per user grew.
    pub factor: f64,
}

/// The largest jump of throughput per user between neighbouring steps (`steps` ascend by users) that the intervals do
/// not explain.
pub fn jump<'a>(steps: &[&'a Step]) -> Option<Jump<'a>> {
    let pairs = steps.iter().zip(steps.iter().skip(1));
    pairs.filter_map(|(from, to)| between(from, to)).max_by(|a, b| a.factor.total_cmp(&b.factor))
}

fn between<'a>(from: &'a Step, to: &'a Step) -> Option<Jump<'a>> {
    let per_user = |throughput: f64, step: &Step| throughput / f64::from(step.users.max(1));
    let [_, high] = from.throughput_ci_per_s?;
    let [low, _] = to.throughput_ci_per_s?;
    let factor = per_user(to.throughput_per_s, to) / per_user(from.throughput_per_s, from);
    let certain =
        is_awake(from) && from.throughput_per_s > 0.0 && per_user(low, to) > JUMP * per_user(high, from);
    (certain && factor.is_finite()).then_some(Jump { from, to, factor })
}

/// Whether processors that fall asleep between requests explain no difference: there are too many requests, or they take too
/// long.
pub(crate) fn is_awake(step: &Step) -> bool {
    step.users >= AWAKE_USERS_MIN || step.response_time_us.mean >= LONG_US
}

/// A step with less throughput than one with fewer users and one with more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dip<'a> {
    /// The step with fewer users.
    pub before: &'a Step,
    /// The step in between.
    pub bottom: &'a Step,
    /// The step with more users.
    pub after: &'a Step,
}

/// The deepest dip that the intervals do not explain: throughput of one server rises with users up to its maximum, and may
/// fall beyond it, but does not rise again. `steps` ascend by users.
pub fn dip<'a>(steps: &[&'a Step]) -> Option<Dip<'a>> {
    let deep = |index: usize| {
        let (before, rest) = steps.split_at_checked(index)?;
        let (&bottom, after) = rest.split_first()?;
        let found = Dip { before: highest(before)?, bottom, after: highest(after)? };
        (rise(bottom, found.before)?.min(rise(bottom, found.after)?) > 1.0 + CHANGED).then_some(found)
    };
    let dips = (0..steps.len()).filter_map(deep);
    dips.min_by(|a, b| a.bottom.throughput_per_s.total_cmp(&b.bottom.throughput_per_s))
}

/// How many times the throughput of the lower step the other had at least, by their intervals.
fn rise(lower: &Step, higher: &Step) -> Option<f64> {
    let ([_, high], [low, _]) = (lower.throughput_ci_per_s?, higher.throughput_ci_per_s?);
    (high > 0.0).then(|| low / high)
}

/// The step with the highest lower end of its interval.
fn highest<'a>(steps: &[&'a Step]) -> Option<&'a Step> {
    let low = |step: &&&Step| step.throughput_ci_per_s.map_or(0.0, |[low, _]| low);
    steps.iter().max_by(|a, b| low(a).total_cmp(&low(b))).copied()
}

/// A step that had another throughput when it was measured again.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its users.
    pub users: u32,
    /// Completed requests per second in the earlier of the two measurements that differ most.
    pub before_per_s: f64,
    /// The same in the later.
    pub after_per_s: f64,
    /// Every measurement in the order of time.
    pub course: Vec<Replicate>,
}

impl Change {
    /// The difference as a share of the larger throughput.
    pub fn share(&self) -> f64 {
        let (before, after) = (self.before_per_s, self.after_per_s);
        (after - before).abs() / before.max(after).max(f64::MIN_POSITIVE)
    }

    /// Whether N* is not to be relied on where the server changed by so much.
    pub fn matters(&self) -> bool {
        self.share() > CHANGED
    }
}

/// How a step that was measured several times changed, if by more than the intervals allow and by a share worth telling.
pub fn change(step: &Step) -> Option<Change> {
    let course = course(step);
    let pairs = (0..course.len()).flat_map(|later| (0..later).map(move |earlier| (earlier, later)));
    let pairs = pairs.filter_map(|(earlier, later)| Some((course.get(earlier)?, course.get(later)?)));
    let apart =
        |(before, after): &(&Replicate, &Replicate)| (before.throughput_per_s - after.throughput_per_s).abs();
    let (before, after) = pairs.max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    let certain = died(before, after) || apart(&(before, after)) > half_width(before, after, course.len())?;
    let (users, before_per_s, after_per_s) = (step.users, before.throughput_per_s, after.throughput_per_s);
    let change = Change { users, before_per_s, after_per_s, course: course.clone() };
    (certain && change.share() > TOLD).then_some(change)
}

/// Every measurement of a step. Older files have the figures of the first, and the last.
fn course(step: &Step) -> Vec<Replicate> {
    let Some(again) = step.again.filter(|_| step.replicates.is_empty()) else {
        return step.replicates.clone();
    };
    let last = Replicate {
        elapsed_s: again.elapsed_s,
        throughput_per_s: again.throughput_per_s,
        throughput_ci_per_s: again.throughput_ci_per_s,
        ..Replicate::default()
    };
    vec![Replicate::of(step, 0.0), last]
}

/// Half the width of the interval of the difference, wider where it is the largest of several (Bonferroni).
fn half_width(before: &Replicate, after: &Replicate, count: usize) -> Option<f64> {
    let half = |[low, high]: [f64; 2]| (high - low) / 2.0;
    let pairs = (count * (count - 1) / 2) as f64;
    let wider = normal_two_sided(1.0 - 0.05 / pairs) / normal_two_sided(0.95);
    Some(wider * half(before.throughput_ci_per_s?).hypot(half(after.throughput_ci_per_s?)))
}

fn died(before: &Replicate, after: &Replicate) -> bool {
    after.throughput_per_s == 0.0 && before.throughput_per_s * after.elapsed_s > EXPECTED_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Again;

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
        assert_eq!((found.from.users, found.to.users), (60, 64));
        assert!((found.factor - 2.18).abs() < 0.01, "{}", found.factor);
    }

    #[test]
    fn throughput_that_falls_and_rises_again_is_a_dip() {
        let steps = [step(4, 197.0, 2.0), step(8, 85.0, 44.0), step(16, 200.0, 1.0), step(32, 66.0, 70.0)];
        let all: Vec<&Step> = steps.iter().collect();
        let found = dip(&all).expect("a dip");
        assert_eq!([found.before, found.bottom, found.after].map(|step| step.users), [4, 8, 16]);
        assert_eq!(dip(&all[1..]), None, "growth, and what may be a fall");
        let falls = [step(4, 200.0, 2.0), step(8, 120.0, 2.0), step(16, 60.0, 2.0), step(32, 65.0, 2.0)];
        assert_eq!(dip(&falls.iter().collect::<Vec<_>>()), None, "and stays low");
        let noisy = [step(4, 200.0, 30.0), step(8, 150.0, 20.0), step(16, 210.0, 30.0)];
        assert_eq!(dip(&noisy.iter().collect::<Vec<_>>()), None);
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

    #[test]
    fn no_wake_up_explains_responses_that_take_long() {
        let slow = |users: u32, throughput: f64| {
            let mut step = step(users, throughput, 1.0);
            step.response_time_us.mean = f64::from(users) / throughput * 1e6;
            step
        };
        let (two, three) = (slow(2, 33.0), slow(3, 150.0));
        let found = jump(&[&two, &three]).expect("a jump");
        assert_eq!((found.from.users, found.to.users), (2, 3));
    }

    /// A step of eight users measured at these throughputs with these half-widths.
    fn measured(all: &[(f64, f64)]) -> Option<Change> {
        let replicate = |&(throughput, half_width): &(f64, f64)| {
            Replicate::of(&Step { elapsed_s: 2.0, ..step(8, throughput, half_width) }, 0.0)
        };
        change(&Step { replicates: all.iter().map(replicate).collect(), ..step(8, all[0].0, all[0].1) })
    }

    fn found(all: &[(f64, f64)]) -> Option<[f64; 2]> {
        measured(all).filter(Change::matters).map(|change| [change.before_per_s, change.after_per_s])
    }

    #[test]
    fn a_server_that_slowed_down_or_died_shows() {
        assert_eq!(found(&[(29_200.0, 500.0), (9_600.0, 400.0)]), Some([29_200.0, 9_600.0]));
        let warming = [(9_600.0, 400.0), (29_200.0, 500.0)];
        assert_eq!(found(&warming), Some([9_600.0, 29_200.0]), "or one that was still warming up");
        let between = [(20_000.0, 500.0), (29_200.0, 500.0), (9_600.0, 400.0)];
        assert_eq!(found(&between), Some([29_200.0, 9_600.0]), "the two that differ most");
        let dead = |elapsed_s| Replicate { elapsed_s, ..Replicate::default() };
        let before = step(8, 100.0, 1.0);
        let then = |last| Step { replicates: vec![Replicate::of(&before, 0.0), last], ..before.clone() };
        assert!(change(&then(dead(2.0))).is_some());
        assert_eq!(change(&then(dead(0.1))), None, "cut short");
        assert_eq!(change(&before), None);
    }

    #[test]
    fn a_change_that_is_small_or_within_the_intervals_is_none() {
        assert_eq!(found(&[(1_000.0, 1.0), (820.0, 1.0)]), None);
        assert!(measured(&[(1_000.0, 1.0), (820.0, 1.0)]).is_some(), "but told");
        assert_eq!(measured(&[(1_000.0, 1.0), (920.0, 1.0)]), None);
        assert_eq!(measured(&[(1_000.0, 150.0), (780.0, 170.0)]), None);
    }

    /// A run file from before replicates were kept.
    #[test]
    fn a_step_of_an_older_file_shows_its_change() {
        let last = Replicate::of(&Step { elapsed_s: 2.0, ..step(8, 9_600.0, 400.0) }, 40.0);
        let older = Step { again: Some(Again::from(&last)), ..step(8, 29_200.0, 500.0) };
        assert!(change(&older).is_some_and(|change| change.matters() && change.course.len() == 2));
    }

    #[test]
    fn wide_intervals_explain_what_looks_like_a_jump() {
        let (slow, fast) = (step(60, 23_700.0, 12_000.0), step(64, 55_000.0, 9_000.0));
        assert_eq!(jump(&[&slow, &fast]), None);
        assert_eq!(jump(&[&Step { users: 60, ..Step::default() }, &fast]), None);
    }
}
