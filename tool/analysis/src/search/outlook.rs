//! What a search is doing: why it measures these users, how far that has settled, and what it has found so far.

use super::saturation::{Saturation, saturation};
use super::{Next, Search, UsersRange};
use crate::conclude::{Conclusion, Provenance};
use crate::estimate::{Precision, estimate};
use crate::run::{Run, Step, Verdict};
use crate::ticks::{Tick, sum};

/// What a measurement decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Nothing: the server serves for a while before anything counts.
    WarmUp,
    /// What the fewest users get.
    Fewest {
        /// The users that come next, if any.
        next: Option<u32>,
    },
    /// Whether throughput still grows.
    Growth {
        /// The users before.
        from: u32,
        /// The users that come next if it does, if any.
        next: Option<u32>,
    },
    /// Nothing: these users were asked for.
    Listed {
        /// Which of them, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// Whether throughput is highest between two numbers of users.
    Maximum {
        /// Both numbers.
        between: [u32; 2],
    },
    /// Where between two numbers of users N* lies.
    Saturation {
        /// The last below N*, and the first at it or beyond.
        between: [u32; 2],
    },
    /// How near to N* its interval ends.
    Interval {
        /// The numbers of users around that end.
        between: [u32; 2],
    },
    /// Whether the same comes out again.
    Again {
        /// How often the search has come back, this time included.
        round: usize,
        /// How many numbers of users follow in this round.
        left: usize,
    },
}

/// A figure whose interval narrows as a measurement goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Narrowing {
    /// Its estimate so far.
    pub value: f64,
    /// Half the width of its 95 % interval as a share of it; `None` while there is too little to tell.
    pub relative_half_width: Option<f64>,
    /// How narrow that is to become; `None` where this measurement is not for that figure.
    pub target: Option<f64>,
}

/// How far the measurement under way has settled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Settling {
    /// Users.
    pub users: u32,
    /// How long it has gone on, microseconds.
    pub measured_us: u64,
    /// How long it goes on before the search looks at it again, microseconds.
    pub planned_us: u64,
    /// How long it may become, microseconds.
    pub longest_us: u64,
    /// Whether it was steady so far.
    pub steady: bool,
    /// Completed requests per second.
    pub throughput_per_s: Narrowing,
    /// The mean response time, microseconds.
    pub response_time_us: Narrowing,
}

/// The time of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeOf {
    /// Measured so far, microseconds.
    pub spent_us: u64,
    /// The most that is still to be measured, microseconds; `None` where no limit was set.
    pub left_us_max: Option<u64>,
}

/// What the complete measurements come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SoFar {
    /// By ascending users.
    pub steps: Vec<Step>,
    /// N* and the maximum, as far as they can be told.
    pub saturation: Saturation,
}

impl SoFar {
    /// The same as a run that ended here, without what only a whole sweep can tell: to be shown as one.
    pub fn as_run(&self, target: &str) -> Run {
        let found = &self.saturation;
        let verdict = Verdict {
            users_at_saturation: found.users,
            users_at_saturation_ci: found.users_ci,
            knee_users: found.knee_users,
            bounded: found.bounded,
            throughput_max_per_s: found.throughput_max_per_s,
            throughput_max_ci_per_s: found.throughput_max_ci_per_s,
            ..Verdict::default()
        };
        Conclusion { verdict, steps: self.steps.clone(), ..Conclusion::default() }
            .into_run(Provenance { target: target.to_owned(), ..Provenance::default() })
    }
}

impl Settling {
    /// How much of the way to intervals as narrow as wanted it has come, 0 to 1: an interval narrows with the root of the
    /// time. `None` while there is too little to tell.
    pub fn share(&self) -> Option<f64> {
        let both = [&self.throughput_per_s, &self.response_time_us];
        let wanted = both.into_iter().filter_map(|figure| Some((figure.relative_half_width, figure.target?)));
        let shares =
            wanted.map(|(width, target)| Some((target / width?.max(f64::MIN_POSITIVE)).powi(2).min(1.0)));
        shares.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    }
}

impl TimeOf {
    /// How much of its time the search has taken, 0 to 1; `None` where no limit was set.
    pub fn share(&self) -> Option<f64> {
        let all_us = self.spent_us.saturating_add(self.left_us_max?);
        (all_us > 0).then(|| self.spent_us as f64 / all_us as f64)
    }
}

impl Search {
    /// What the measurement under way, or the next one, decides.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// What the complete measurements come to with this mean think time, microseconds.
    pub fn so_far(&self, think_us: f64) -> SoFar {
        let steps = self.estimated();
        SoFar { saturation: saturation(&steps, think_us), steps: steps.into_iter().cloned().collect() }
    }

    /// The time of the search, if what is measured now has gone on for so much longer than [`Search::add`] knows of.
    pub fn time(&self, longer_us: u64) -> TimeOf {
        let spent_us = self.spent_us.saturating_add(longer_us);
        let budget_us = self.options.total_us.map(|total_us| total_us.saturating_sub(spent_us));
        TimeOf { spent_us, left_us_max: [budget_us, self.list_us(longer_us)].into_iter().flatten().min() }
    }

    /// The longest time that the rest of a list can take.
    fn list_us(&self, longer_us: u64) -> Option<u64> {
        let UsersRange::List(users) = &self.options.users else { return None };
        let longest_us = self.options.step_us_max.max(self.options.step_us_min);
        let begun = matches!(self.next, Next::Extend { .. });
        let rest = users.iter().filter(|users| self.find(**users).is_none()).count() + usize::from(begun);
        let passed_us = longer_us.saturating_add(self.under_way_us());
        Some(longest_us.saturating_mul(rest as u64).saturating_sub(passed_us.min(longest_us)))
    }

    /// How far the measurement has settled that [`Search::next`] asks for, with the ticks counted since; `None` where it asks
    /// for none. Cheap enough to be asked while load is made: it looks at no percentile.
    pub fn settling(&self, ticks: &[Tick]) -> Option<Settling> {
        let (users, for_us, before) = match self.next {
            Next::Begin { users, for_us } => (users, for_us, &[][..]),
            Next::Extend { for_us } => (self.current?.users, for_us, self.measured()?.ticks.as_slice()),
            Next::WarmUp { .. } | Next::Finished => return None,
        };
        let all: Vec<Tick> = before.iter().chain(ticks).map(counts_alone).collect();
        let step = estimate(users, &all, &self.options.precision);
        let aim = self.precision_of(users, step.throughput_per_s);
        let longest_us = match self.next {
            Next::Extend { .. } => self.current?.allowed_us,
            _ => self.allowance_us(users).1,
        };
        let planned_us = self.under_way_us().saturating_add(for_us);
        Some(Settling {
            measured_us: sum(&all, |tick| tick.length_us),
            planned_us,
            longest_us: longest_us.max(planned_us),
            ..settled(&step, &aim)
        })
    }

    /// How much of the measurement under way was added already.
    fn under_way_us(&self) -> u64 {
        match self.next {
            Next::Extend { .. } => self.current.map_or(0, |current| current.spent_us),
            _ => 0,
        }
    }
}

fn settled(step: &Step, aim: &Precision) -> Settling {
    let narrowing = |value: f64, relative_half_width: Option<f64>, target: f64| Narrowing {
        value,
        relative_half_width,
        target: Some(target).filter(|target| target.is_finite()),
    };
    Settling {
        users: step.users,
        steady: step.steady,
        throughput_per_s: narrowing(
            step.throughput_per_s,
            step.throughput_relative_half_width(),
            aim.relative_half_width,
        ),
        response_time_us: narrowing(
            step.response_time_us.mean,
            step.response_relative_half_width(),
            aim.response_relative_half_width,
        ),
        ..Settling::default()
    }
}

/// What means and their intervals are made from, without the distributions, which take long to merge.
fn counts_alone(tick: &Tick) -> Tick {
    Tick {
        start_us: tick.start_us,
        length_us: tick.length_us,
        completed: tick.completed,
        response_time_ns_sum: tick.response_time_ns_sum,
        ..Tick::default()
    }
}

#[cfg(test)]
mod tests;
