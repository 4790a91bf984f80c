//! What to measure next: a state machine without I/O. A driver does what it says.
//!
//! ```text
//! loop {
//!     match search.next() {
//!         Next::Begin { users, for_us } => set the number of users, collect ticks for that long
//!         Next::Extend { for_us } => go on as before for that long
//!         Next::Finished => break,
//!     }
//!     search.add(&ticks);
//! }
//! ```
//! A driver that is interrupted simply stops: [`Search::steps`] holds what was measured.

pub mod consistency;
pub mod growth;
pub(crate) mod ladder;
pub(crate) mod peak;
pub(crate) mod plateau;
pub mod saturation;

use crate::estimate::{Precision, estimate, precise_enough};
use crate::run::{Again, Step};
use crate::search::growth::certain_growth;
use crate::search::ladder::{next_rung, refinement, rung_below, rungs_left};
use crate::search::saturation::saturated;
use crate::ticks::{Tick, sum};

/// Numbers of users to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsersRange {
    /// A ladder from `lo` that doubles up to `hi`, ended once throughput stops growing, then refined round
    /// the knee.
    Range {
        /// Fewest users, at least 1.
        lo: u32,
        /// Most users.
        hi: u32,
    },
    /// Exactly these, in this order.
    List(Vec<u32>),
}

impl UsersRange {
    /// The most users.
    pub fn most(&self) -> u32 {
        match self {
            UsersRange::Range { hi, .. } => *hi,
            UsersRange::List(users) => users.iter().copied().max().unwrap_or(0),
        }
    }
}

/// How to search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchOptions {
    /// Numbers of users to try.
    pub users: UsersRange,
    /// Shortest step, microseconds.
    pub step_us_min: u64,
    /// Longest step, microseconds.
    pub step_us_max: u64,
    /// How well a step has to be measured to end before its longest time.
    pub precision: Precision,
    /// About how long the whole search may take. Steps are shortened, but not below the shortest step; when
    /// it is spent the search ends. `None`: as long as it takes.
    pub total_us: Option<u64>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            users: UsersRange::Range { lo: 1, hi: 1_024 },
            step_us_min: 2_000_000,
            step_us_max: 6_000_000,
            precision: Precision::default(),
            total_us: Some(50_000_000),
        }
    }
}

impl SearchOptions {
    /// The same with steps of at most this length, microseconds; the shortest step is never longer.
    #[must_use]
    pub fn with_longest_step(self, longest_us: u64) -> Self {
        Self { step_us_max: longest_us, step_us_min: self.step_us_min.min(longest_us), ..self }
    }
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Begin a step: set the number of users and collect.
    Begin {
        /// Users.
        users: u32,
        /// How long, microseconds.
        for_us: u64,
    },
    /// Go on with the current step.
    Extend {
        /// How much longer, microseconds.
        for_us: u64,
    },
    /// Nothing more to measure.
    Finished,
}

/// A step with the ticks that it was estimated from.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredStep {
    /// Everything counted, warm-up included.
    pub ticks: Vec<Tick>,
    /// The step itself.
    pub step: Step,
}

/// The search.
#[derive(Debug, Clone)]
pub struct Search {
    options: SearchOptions,
    /// Ascending by users.
    steps: Vec<MeasuredStep>,
    next: Next,
    current: Option<Current>,
    /// Numbers of users in the order in which they were measured.
    order: Vec<u32>,
    /// One of them, measured once more at the end.
    again: Option<MeasuredStep>,
    refinements: usize,
    spent_us: u64,
}

/// The step under way.
#[derive(Debug, Clone, Copy)]
struct Current {
    users: u32,
    /// Whether it is one that was measured before.
    again: bool,
    spent_us: u64,
    /// How long it may become in all.
    allowed_us: u64,
}

/// Most steps spent on refinement.
const MAX_REFINEMENTS: usize = 8;

/// How many refinements the time plan expects.
const EXPECTED_REFINEMENTS: usize = 3;

/// At the end the search returns to one step.
const RETURN: usize = 1;

/// The share of the shortest step that is measured before the step's length is planned.
///
/// An interval taken as soon as it happens to be narrow covers less than it says (Chow and Robbins 1965). So
/// the length is planned from the start of the step (Stein 1945) and only a clear miss makes it longer.
const PILOT: f64 = 0.6;

/// An interval wider than the target by this factor after the planned length is a clear miss.
const CLEAR_MISS: f64 = 1.3;

/// An extension after a clear miss is at least this share of what was measured.
const EXTENSION: f64 = 0.5;

/// An extension by less than one in so many parts is not worth making.
const WORTHWHILE: u64 = 20;

/// How many of the longest steps to wait for a first response.
const PATIENCE: u64 = 5;

/// Growth per doubling of users that only a server far from saturation shows.
const STEEP: f64 = 0.6;

impl Search {
    /// A search that has measured nothing yet.
    pub fn new(options: SearchOptions) -> Self {
        let mut search = Self {
            options,
            steps: Vec::new(),
            next: Next::Finished,
            current: None,
            order: Vec::new(),
            again: None,
            refinements: 0,
            spent_us: 0,
        };
        search.next = search.begin();
        search
    }

    /// The next thing to do. Changes only by [`Search::add`].
    pub fn next(&self) -> Next {
        self.next
    }

    /// Adds the ticks counted while doing what [`Search::next`] said. A step that yields no ticks is taken to be
    /// over.
    pub fn add(&mut self, ticks: &[Tick]) {
        let users = match (self.next, self.current) {
            (Next::Begin { users, .. }, _) => users,
            (Next::Extend { .. }, Some(current)) => current.users,
            _ => return,
        };
        let length_us = sum(ticks, |tick| tick.length_us);
        self.enter(users, length_us);
        self.record(users, ticks);
        let extension = if length_us == 0 { None } else { self.extension() };
        self.next = extension.map_or_else(|| self.begin(), |for_us| Next::Extend { for_us });
    }

    /// The steps measured so far, ascending by users.
    pub fn steps(&self) -> &[MeasuredStep] {
        &self.steps
    }

    /// The step measured last.
    pub fn latest(&self) -> Option<&Step> {
        self.measured().map(|measured| &measured.step)
    }

    /// The steps, ascending by users, without copying their ticks.
    pub fn into_steps(mut self) -> Vec<MeasuredStep> {
        let again = self.again.take().map(|measured| measured.step);
        if let Some(again) = again
            && let Some(first) = self.steps.iter_mut().find(|measured| measured.step.users == again.users)
        {
            first.step.again = Some(Again::from(&again));
        }
        self.steps
    }

    /// Time measured so far, microseconds.
    pub fn spent_us(&self) -> u64 {
        self.spent_us
    }

    fn estimated(&self) -> Vec<&Step> {
        self.steps.iter().map(|measured| &measured.step).collect()
    }

    fn find(&self, users: u32) -> Option<&MeasuredStep> {
        self.steps.iter().find(|measured| measured.step.users == users)
    }

    /// The current step, or the last one.
    fn measured(&self) -> Option<&MeasuredStep> {
        let current = self.current?;
        if current.again { self.again.as_ref() } else { self.find(current.users) }
    }

    /// Accounts for the time of the step with `users`.
    fn enter(&mut self, users: u32, length_us: u64) {
        if let Next::Begin { .. } = self.next {
            let again = self.find(users).is_some();
            let allowed_us = self.allowance_us(again);
            self.refinements += usize::from(!again && self.refining(users));
            self.current = Some(Current { users, again, spent_us: 0, allowed_us });
            self.order.push(users);
        }
        if let Some(current) = &mut self.current {
            current.spent_us = current.spent_us.saturating_add(length_us);
        }
        self.spent_us = self.spent_us.saturating_add(length_us);
    }

    fn record(&mut self, users: u32, ticks: &[Tick]) {
        let precision = self.options.precision.clone();
        let measured = self.record_of_current(users);
        measured.ticks.extend_from_slice(ticks);
        measured.step = estimate(users, &measured.ticks, &precision);
    }

    /// Where the current step is recorded.
    fn record_of_current(&mut self, users: u32) -> &mut MeasuredStep {
        let new = || MeasuredStep { ticks: Vec::new(), step: Step { users, ..Step::default() } };
        if self.current.is_some_and(|current| current.again) {
            return self.again.get_or_insert_with(new);
        }
        let index = self.steps.partition_point(|measured| measured.step.users < users);
        if self.steps.get(index).is_none_or(|measured| measured.step.users != users) {
            self.steps.insert(index, new());
        }
        &mut self.steps[index]
    }

    /// How much longer the current step should go on, if at all.
    fn extension(&self) -> Option<u64> {
        let (current, measured) = (self.current?, self.measured()?);
        let users = current.users;
        let needed_us = needed_us(&measured.step, &self.options.precision);
        let wanted_us = if current.spent_us < self.options.step_us_min {
            if self.far_from_the_knee(users) {
                self.options.step_us_min
            } else {
                needed_us.max(self.options.step_us_min)
            }
        } else if clear_miss(&measured.step, &self.options.precision) && !self.far_from_the_knee(users) {
            needed_us.max((current.spent_us as f64 * (1.0 + EXTENSION)) as u64)
        } else {
            0
        };
        let wanted_us = wanted_us.min(current.allowed_us).max(self.patience_us(measured));
        let for_us = wanted_us.saturating_sub(current.spent_us);
        (for_us * WORTHWHILE >= current.spent_us && for_us > 0).then_some(for_us)
    }

    /// A step in which nothing completed and nothing failed goes on: responses may simply take that long.
    /// This is how long it may become.
    fn patience_us(&self, measured: &MeasuredStep) -> u64 {
        if measured.ticks.iter().any(|tick| tick.completed > 0 || !tick.errors.is_empty()) {
            return 0;
        }
        let spent_us = self.current.map_or(0, |current| current.spent_us);
        let before_us = self.spent_us.saturating_sub(spent_us);
        let longest_us = self.options.step_us_max.max(self.options.step_us_min).saturating_mul(PATIENCE);
        longest_us.min(self.options.total_us.map_or(u64::MAX, |total_us| total_us.saturating_sub(before_us)))
    }

    /// Throughput grew from the rung below by so much that the time is better spent elsewhere.
    fn far_from_the_knee(&self, users: u32) -> bool {
        let UsersRange::Range { lo, hi } = self.options.users else { return false };
        let Some(below) = rung_below(lo, hi, users) else { return false };
        let both = |step: &&Step| step.users == below || step.users == users;
        let pair: Vec<&Step> = self.estimated().into_iter().filter(both).collect();
        certain_growth(&pair) > STEEP
    }

    fn begin(&self) -> Next {
        let for_us = ((self.options.step_us_min as f64 * PILOT) as u64).max(1);
        if self.options.total_us.is_some_and(|total_us| self.spent_us >= total_us) {
            return Next::Finished;
        }
        let users = self.next_users().or_else(|| self.users_again());
        users.map_or(Next::Finished, |users| Next::Begin { users, for_us })
    }

    /// The number of users to return to at the end: of those that hold the maximum throughput, the one that was measured
    /// first, as most may have changed since. `None` where none of them was measured long ago, or there is no time.
    fn users_again(&self) -> Option<u32> {
        if self.again.is_some() || !self.has_time_for(RETURN) {
            return None;
        }
        let [fewest, most] = saturated(&self.estimated())?;
        let (_, before_the_last) = self.order.split_last()?;
        before_the_last.iter().copied().find(|users| (fewest..=most).contains(users))
    }

    fn next_users(&self) -> Option<u32> {
        match &self.options.users {
            UsersRange::List(users) => {
                users.iter().copied().find(|&users| users > 0 && self.find(users).is_none())
            }
            &UsersRange::Range { lo, hi } => {
                next_rung(lo, hi, &self.estimated()).or_else(|| self.next_refinement())
            }
        }
    }

    fn next_refinement(&self) -> Option<u32> {
        if self.refinements >= MAX_REFINEMENTS || !self.has_time_for(1 + RETURN) {
            return None;
        }
        refinement(&self.estimated()).filter(|&users| self.find(users).is_none())
    }

    /// Whether so many of the shortest steps can still be made.
    fn has_time_for(&self, steps: usize) -> bool {
        let needed_us = self.options.step_us_min.saturating_mul(steps as u64);
        self.options.total_us.is_none_or(|total_us| self.spent_us.saturating_add(needed_us) <= total_us)
    }

    fn refining(&self, users: u32) -> bool {
        match self.options.users {
            UsersRange::Range { lo, hi } => next_rung(lo, hi, &self.estimated()) != Some(users),
            UsersRange::List(_) => false,
        }
    }

    /// How long the step about to begin may become: a fair share of the time left. `again`: it is the last.
    fn allowance_us(&self, again: bool) -> u64 {
        let longest_us = self.options.step_us_max.max(self.options.step_us_min);
        let Some(total_us) = self.options.total_us else { return longest_us };
        let steps = if again { 1 } else { self.expected_steps().max(1) + RETURN };
        let share_us = total_us.saturating_sub(self.spent_us) / steps as u64;
        share_us.clamp(self.options.step_us_min, longest_us)
    }

    /// How many steps, the one about to begin included, are likely to come.
    fn expected_steps(&self) -> usize {
        match &self.options.users {
            UsersRange::List(users) => users.len().saturating_sub(self.steps.len()),
            &UsersRange::Range { lo, hi } => match next_rung(lo, hi, &self.estimated()) {
                Some(_) => rungs_left(lo, hi, &self.estimated()) + EXPECTED_REFINEMENTS,
                None => EXPECTED_REFINEMENTS.saturating_sub(self.refinements).max(1),
            },
        }
    }
}

fn clear_miss(step: &Step, precision: &Precision) -> bool {
    let wider = Precision {
        relative_half_width: precision.relative_half_width * CLEAR_MISS,
        response_relative_half_width: precision.response_relative_half_width * CLEAR_MISS,
        ..precision.clone()
    };
    !precise_enough(step, &wider)
}

/// The length at which the intervals would be as narrow as asked for, a tenth on top; the width falls with
/// the root of the length.
fn needed_us(step: &Step, precision: &Precision) -> u64 {
    let excess =
        |width: Option<f64>, target: f64| width.map_or(1.0, |width| width / target.max(f64::MIN_POSITIVE));
    let throughput = excess(step.throughput_relative_half_width(), precision.relative_half_width);
    let response = excess(step.response_relative_half_width(), precision.response_relative_half_width);
    let whole_us = step.measured_us() as f64 * throughput.max(response).powi(2) * 1.1;
    (whole_us + step.warmup_us() as f64) as u64
}
