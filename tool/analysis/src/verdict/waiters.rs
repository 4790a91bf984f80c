//! Threads that wait at futexes: for a lock or before a pool if each additional user makes another one wait, and idle
//! otherwise. In the same way threads that sleep until a time: a limit on the rate delays each additional user, while work
//! that takes a time, before a lock or under it, goes on for as many users as before, since throughput grows no more.

use super::curve::{Curve, group};
use super::waiting::served_by;
use crate::resources::{Average, Waiters};
use crate::run::{Processes, Step, WaitingEvidence as Seen};
use crate::statistics::{NORMAL_95, normal_cdf};

/// Threads that wait for each user beyond N*, where that is what users wait for: fewer than one if some users have no thread.
const QUEUEING: [f64; 2] = [0.5, 1.1];

/// The same where threads idle: with more users they idle less, or as much.
const IDLING: [f64; 2] = [-1.0, 0.25];

/// What is expected of neither, as a density.
const OTHERWISE: f64 = 0.001;

/// The standard error of a count that no interval is known of, as a share of it, and the least error of any, threads.
const UNKNOWN: f64 = 0.25;
const ERROR_MIN: f64 = 0.1;

/// Fewer users than this beyond N* make no queue of several threads.
const BEYOND_MIN: u32 = 2;

/// Evidence is told of from this ratio of likelihoods on.
const TOLD: f64 = 3.0;

/// How often users are seen to wait in this way, each as a thread, by what they wait for.
struct Visible {
    lock: f64,
    pool: f64,
    rate_limit: f64,
    other: f64,
}

/// At one futex. Runtimes with a scheduler of their own, and many locks and semaphores, show none.
const AT_ONE: Visible = Visible { lock: 0.27, pool: 0.16, rate_limit: 0.027, other: 0.027 };

/// At any futex: threads of a pool that wait for something else do so, too.
const AT_ANY: Visible = Visible { lock: 0.31, pool: 0.185, rate_limit: 0.077, other: 0.077 };

/// Asleep until a time. Most limits keep timers instead of threads, or wait for a futex with a time-out; and locks that
/// are tried again after a pause, as those of a database in a file, are rare.
const ASLEEP: Visible = Visible { lock: 0.01, pool: 0.002, rate_limit: 0.2, other: 0.01 };

/// How many times as likely the threads that wait are with a lock, with a pool, and with a limit on the rate, as with
/// anything else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratios {
    pub(super) lock: f64,
    pub(super) pool: f64,
    pub(super) rate_limit: f64,
}

impl Visible {
    /// Where threads queue this many times as likely as they idle.
    fn ratios(&self, queueing: f64) -> Ratios {
        let likelihood = |visible: f64| visible * queueing + 1.0 - visible;
        let ratio = |visible: f64| likelihood(visible) / likelihood(self.other);
        Ratios { lock: ratio(self.lock), pool: ratio(self.pool), rate_limit: ratio(self.rate_limit) }
    }
}

/// Threads that waited with two numbers of users.
struct Growth<'a> {
    few: (&'a Step, Waiters),
    many: (&'a Step, Waiters),
}

impl<'a> Growth<'a> {
    /// From N* to the most users that were looked at closely if those are several more, and else to the most users.
    fn of(curve: &'a Curve, of: &Processes) -> Option<Self> {
        let waiters = |step: &'a Step| Some((step, group(step, of)?.waiters?));
        let few = waiters(curve.star()?)?;
        let beyond = curve.steps().iter().filter(|step| step.users > few.0.users).filter_map(waiters);
        let beyond: Vec<_> = beyond.collect();
        let several = |found: &&(&Step, Waiters)| found.0.users >= few.0.users + BEYOND_MIN;
        let closely = beyond.iter().filter(several).rfind(|found| found.1.closely && few.1.closely);
        let many = *closely.or(beyond.last())?;
        Some(Self { few, many })
    }

    /// How many times as likely such counts are where threads queue as where they idle.
    fn likelihood_ratio(&self, [few, many]: [Average; 2]) -> f64 {
        let users = f64::from(self.many.0.users - self.few.0.users);
        let error = error(&few).hypot(error(&many)) / users;
        likelihood_ratio((many.mean - few.mean) / users, error)
    }

    fn at_one(&self) -> Option<[Average; 2]> {
        Some([self.few.1.at_one?, self.many.1.at_one?])
    }

    fn in_all(&self) -> [Average; 2] {
        [self.few.1.in_all, self.many.1.in_all]
    }

    fn asleep(&self) -> Option<[Average; 2]> {
        Some([self.few.1.asleep?, self.many.1.asleep?])
    }
}

fn error(count: &Average) -> f64 {
    count.half_width.map_or(UNKNOWN * count.mean, |half| half / NORMAL_95).max(ERROR_MIN)
}

/// The likelihood of so many more threads that wait for each additional user, measured with this standard error, where they
/// queue over that where they idle. Either is taken as spread evenly over a range.
fn likelihood_ratio(per_user: f64, error: f64) -> f64 {
    let density = |[low, high]: [f64; 2]| {
        let below = |bound: f64| normal_cdf((bound - per_user) / error);
        (below(high) - below(low)) / (high - low) + OTHERWISE
    };
    density(QUEUEING) / density(IDLING)
}

/// What the threads of these processes that wait at futexes say; `None` where they were not seen with N* users and with more.
/// The count at one futex tells the most; where it shows no queue, threads that each wait at a futex of their own may.
pub(super) fn ratios(curve: &Curve) -> Option<Ratios> {
    let growth = Growth::of(curve, &served_by(curve)?)?;
    let any = AT_ANY.ratios(growth.likelihood_ratio(growth.in_all()));
    let Some(at_one) = growth.at_one() else { return Some(any) };
    let one = AT_ONE.ratios(growth.likelihood_ratio(at_one));
    Some(if any.lock > one.lock { any } else { one })
}

/// What those that sleep until a time say; `None` where they were not looked at closely with N* users and with more.
pub(super) fn ratios_asleep(curve: &Curve) -> Option<Ratios> {
    let growth = Growth::of(curve, &served_by(curve)?)?;
    Some(ASLEEP.ratios(growth.likelihood_ratio(growth.asleep()?)))
}

/// Evidence of threads that wait, more of them with more users.
pub(super) fn seen(curve: &Curve, of: &Processes) -> Option<Seen> {
    let growth = Growth::of(curve, of)?;
    let (from_users, to_users) = (growth.few.0.users, growth.many.0.users);
    if let Some([few, many]) = growth.at_one().filter(|counts| growth.likelihood_ratio(*counts) >= TOLD) {
        return Some(Seen::ThreadsAtOneFutex {
            from_users,
            from_threads: few.mean,
            from_ci: few.interval(),
            to_users,
            to_threads: many.mean,
            to_ci: many.interval(),
            alone_threads: alone(curve, of).filter(|_| from_users > 1),
        });
    }
    let [few, many] = growth.in_all();
    (growth.likelihood_ratio([few, many]) >= TOLD).then_some(Seen::MoreThreadsWait {
        from_users,
        from_threads: few.mean,
        to_users,
        to_threads: many.mean,
    })
}

/// Evidence of threads that sleep until a time, more of them with more users.
pub(super) fn seen_asleep(curve: &Curve, of: &Processes) -> Option<Seen> {
    let growth = Growth::of(curve, of)?;
    let [few, many] = growth.asleep().filter(|counts| growth.likelihood_ratio(*counts) >= TOLD)?;
    Some(Seen::MoreThreadsSleep {
        from_users: growth.few.0.users,
        from_threads: few.mean,
        from_ci: few.interval(),
        to_users: growth.many.0.users,
        to_threads: many.mean,
        to_ci: many.interval(),
    })
}

/// Threads at one futex with a single user.
fn alone(curve: &Curve, of: &Processes) -> Option<f64> {
    let step = curve.alone()?;
    Some(group(step, of)?.waiters?.at_one?.mean)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_queue_that_grows_with_the_users_is_a_lock_and_one_that_does_not_is_idleness() {
        let at_one = |per_user, error| AT_ONE.ratios(likelihood_ratio(per_user, error));
        let queue = at_one(0.98, 0.02);
        assert!((9.5..10.0).contains(&queue.lock) && (5.7..6.0).contains(&queue.pool), "{queue:?}");
        for idle in [at_one(0.0, 0.02), at_one(-0.6, 0.02)] {
            assert!((0.74..0.77).contains(&idle.lock) && (0.85..0.88).contains(&idle.pool), "{idle:?}");
        }
    }

    #[test]
    fn sleepers_that_grow_with_the_users_are_a_limit_on_the_rate_and_others_tell_little() {
        let asleep = |per_user, error| ASLEEP.ratios(likelihood_ratio(per_user, error));
        let delayed = asleep(1.0, 0.02);
        assert!((18.0..20.0).contains(&delayed.rate_limit) && delayed.lock == 1.0, "{delayed:?}");
        for constant in [asleep(0.0, 0.02), asleep(0.1, 0.05)] {
            assert!((0.8..0.82).contains(&constant.rate_limit) && constant.pool < 1.01, "{constant:?}");
        }
    }

    /// A delay keeps as many asleep as throughput times its length, which is within 5 % of the most from N* on.
    #[test]
    fn a_delay_beside_a_lock_is_no_limit_on_the_rate() {
        for delay in [0.1, 1.0, 5.0, 30.0] {
            let saturation = 1.0 + delay;
            let per_user = 0.05 * saturation / (0.95 * saturation);
            let ratios =
                ASLEEP.ratios(likelihood_ratio(per_user, ERROR_MIN * 2.0_f64.sqrt() / saturation.max(2.0)));
            assert!(ratios.rate_limit < 0.85, "{delay}: {ratios:?}");
        }
    }

    #[test]
    fn what_is_hardly_known_says_hardly_anything() {
        let unknown = AT_ONE.ratios(likelihood_ratio(0.9, 3.0));
        assert!((0.8..1.5).contains(&unknown.lock), "{unknown:?}");
    }

    proptest! {
        #[test]
        fn no_count_says_more_than_how_often_a_lock_is_seen(per_user in -5.0..5.0_f64, error in 0.01..5.0_f64) {
            let ratio = likelihood_ratio(per_user, error);
            prop_assert!(ratio > 0.0 && ratio.is_finite());
            for (visible, most) in [(AT_ONE, 10.0), (AT_ANY, 4.1)] {
                let ratios = visible.ratios(ratio);
                prop_assert!((0.73..=most).contains(&ratios.lock), "{ratios:?}");
                prop_assert!((ratios.lock - 1.0) * (ratios.pool - 1.0) >= -1e-9);
                prop_assert!((ratios.lock - 1.0).abs() >= (ratios.pool - 1.0).abs() - 1e-9);
            }
        }

        #[test]
        fn more_waiters_make_a_queue_more_likely(per_user in 0.0..0.5_f64, more in 0.0..0.3_f64, error in 0.05..1.0_f64) {
            prop_assert!(likelihood_ratio(per_user + more, error) >= likelihood_ratio(per_user, error) * 0.999);
        }
    }
}
