//! What to measure next: a state machine without I/O. A driver does what it says.
//!
//! ```text
//! loop {
//!     match search.next() {
//!         Next::WarmUp { users, for_us } => the same, but nothing that is counted is part of any figure
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
pub mod outlook;
pub(crate) mod peak;
pub(crate) mod plateau;
pub mod saturation;

pub use crate::estimate::replicates::Measured;
use crate::estimate::replicates::merged;
use crate::estimate::{Precision, estimate, precise_enough};
use crate::run::Step;
use crate::search::growth::certain_growth;
use crate::search::ladder::{next_rung, refinement, rung_above, rung_below, rungs_left};
use crate::search::outlook::Purpose;
use crate::search::saturation::{Crossing, bounded, saturated};
use crate::thresholds::{PLATEAU, SATURATED};
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

    /// The number of users, where there is only one.
    pub fn single(&self) -> Option<u32> {
        match self {
            UsersRange::Range { lo, hi } => (lo == hi).then_some(*lo),
            UsersRange::List(users) => <[u32; 1]>::try_from(users.as_slice()).ok().map(|[users]| users),
        }
    }

    /// The same with no more users than these: a range ends there, and numbers beyond it become it.
    #[must_use]
    pub fn at_most(&self, most: u32) -> Self {
        match self {
            UsersRange::Range { lo, hi } => UsersRange::Range { lo: (*lo).min(most), hi: (*hi).min(most) },
            UsersRange::List(users) => {
                let mut users: Vec<u32> = users.iter().map(|users| (*users).min(most)).collect();
                users.dedup();
                UsersRange::List(users)
            }
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
    /// How long the server is driven before the first step, microseconds; 0 for not at all.
    pub warm_up_us: u64,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            users: UsersRange::Range { lo: 1, hi: 1_024 },
            step_us_min: 2_000_000,
            step_us_max: 6_000_000,
            precision: Precision::default(),
            total_us: Some(50_000_000),
            warm_up_us: 1_000_000,
        }
    }
}

impl SearchOptions {
    /// The same with steps of at most this length, microseconds; the shortest step is never longer.
    #[must_use]
    pub fn with_longest_step(self, longest_us: u64) -> Self {
        Self {
            step_us_max: longest_us,
            step_us_min: self.step_us_min.min(longest_us),
            warm_up_us: self.warm_up_us.min(longest_us / 2),
            ..self
        }
    }
}

/// The next thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Before the first step: set the number of users and go on for that long, so that the first step finds a server that
    /// has served before.
    WarmUp {
        /// Users.
        users: u32,
        /// How long, microseconds.
        for_us: u64,
    },
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

/// A number of users, and every measurement of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredStep {
    /// In the order of time.
    pub measured: Vec<Measured>,
    /// The step that all of them make.
    pub step: Step,
}

/// The search.
#[derive(Debug, Clone)]
pub struct Search {
    options: SearchOptions,
    /// Ascending by users.
    steps: Vec<MeasuredStep>,
    next: Next,
    purpose: Purpose,
    current: Option<Current>,
    /// Numbers of users to come back to in this round, the next one last.
    to_replicate: Vec<u32>,
    /// Rounds of replicates begun.
    rounds: usize,
    /// Time measured before the first of them, microseconds.
    searched_us: u64,
    refinements: usize,
    spent_us: u64,
    /// When the first step began.
    origin_us: Option<u64>,
}

/// The step under way.
#[derive(Debug, Clone, Copy)]
struct Current {
    users: u32,
    /// Whether it is one that was measured before.
    again: bool,
    /// How long it goes on even where it is precise enough already.
    least_us: u64,
    spent_us: u64,
    /// How long it may become in all.
    allowed_us: u64,
    /// How long it was to be measured at first.
    first_us: u64,
}

/// Most steps spent on refinement.
const MAX_REFINEMENTS: usize = 8;

/// How many refinements the time plan expects.
const EXPECTED_REFINEMENTS: usize = 3;

/// Refinement leaves time to come back to so many steps.
const RETURN: usize = 2;

/// Rounds of replicates: with three, each step that is come back to was measured four times.
const MAX_ROUNDS: usize = 3;

/// After the first round, replicates get one part in so many of the time that was measured before them.
const REPLICATES: u64 = 2;

/// A replicate at N* is at least so many of the shortest steps long.
const AT_STAR: u64 = 2;

/// A number of users this close to N*, as a ratio, stands for it.
const STANDS_FOR: f64 = 1.05;

/// The warm-up takes at most one part in so many of the whole time.
const WARM_UP: u64 = 20;

/// The share of the shortest step that is measured before the step's length is planned.
///
/// An interval taken as soon as it happens to be narrow covers less than it says (Chow and Robbins 1965). So
/// the length is planned from the start of the step (Stein 1945) and only a clear miss makes it longer.
const PILOT: f64 = 0.6;

/// An interval wider than the target by this factor after the planned length is a clear miss.
const CLEAR_MISS: f64 = 1.3;

/// What rounding may add to an interval of one request more or less.
const ONE_REQUEST_ROUNDING: f64 = 1e-6;

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
            purpose: Purpose::WarmUp,
            current: None,
            to_replicate: Vec::new(),
            rounds: 0,
            searched_us: 0,
            refinements: 0,
            spent_us: 0,
            origin_us: None,
        };
        search.next = search.warm_up().unwrap_or_else(|| search.begin());
        search
    }

    /// A warm-up with the users of the first step takes no more than a small share of the time.
    fn warm_up(&self) -> Option<Next> {
        let most_us = self.options.total_us.map_or(u64::MAX, |total_us| total_us / WARM_UP);
        let for_us = self.options.warm_up_us.min(most_us);
        self.next_users().filter(|_| for_us > 0).map(|(users, _)| Next::WarmUp { users, for_us })
    }

    /// The next thing to do. Changes only by [`Search::add`].
    pub fn next(&self) -> Next {
        self.next
    }

    /// Whether the time was up before all users that were asked for, or those of a range up to where throughput stops
    /// growing, were tried.
    pub fn is_out_of_time(&self) -> bool {
        let untried = match &self.options.users {
            UsersRange::List(users) => users.iter().any(|users| *users > 0 && self.find(*users).is_none()),
            &UsersRange::Range { lo, hi } => next_rung(lo, hi, &self.estimated()).is_some(),
        };
        untried && self.next == Next::Finished
    }

    /// Whether the next thing to do is part of a replicate: the ladder is done.
    pub fn is_replicating(&self) -> bool {
        self.rounds > 0
    }

    /// Adds the ticks counted while doing what [`Search::next`] said. A step that yields no ticks is taken to be
    /// over.
    pub fn add(&mut self, ticks: &[Tick]) {
        let length_us = sum(ticks, |tick| tick.length_us);
        match self.next {
            Next::Finished => return,
            Next::WarmUp { .. } => {
                self.spent_us = length_us;
                self.next = self.begin();
                return;
            }
            Next::Begin { users, for_us } => self.enter(users, for_us),
            Next::Extend { .. } => {}
        }
        if let Some(current) = &mut self.current {
            current.spent_us = current.spent_us.saturating_add(length_us);
        }
        self.spent_us = self.spent_us.saturating_add(length_us);
        self.origin_us = self.origin_us.or(ticks.first().map(|tick| tick.start_us));
        self.record(ticks);
        let extension = if length_us == 0 { None } else { self.extension() };
        self.next = extension.map_or_else(|| self.begin(), |for_us| Next::Extend { for_us });
    }

    /// Forgets the measurement under way, which cannot be finished, and has it begun again. Time spent on it stays spent.
    pub fn begin_again(&mut self) {
        let Next::Extend { .. } = self.next else { return };
        let Some(Current { users, again, first_us, .. }) = self.current else { return };
        if let Some(step) = self.steps.iter_mut().find(|step| step.step.users == users) {
            step.measured.pop();
        }
        self.steps.retain(|step| !step.measured.is_empty());
        self.refinements -= usize::from(!again && self.refining(users)).min(self.refinements);
        self.next = Next::Begin { users, for_us: first_us };
    }

    /// The steps measured so far, ascending by users.
    pub fn steps(&self) -> &[MeasuredStep] {
        &self.steps
    }

    /// The latest measurement, by itself where its number of users was measured before.
    pub fn latest(&self) -> Option<&Step> {
        self.measured().map(|measured| &measured.step)
    }

    /// The steps, ascending by users, without copying their ticks.
    pub fn into_steps(mut self) -> Vec<MeasuredStep> {
        self.merge();
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

    /// The measurement under way, or the last one.
    fn measured(&self) -> Option<&Measured> {
        self.find(self.current?.users)?.measured.last()
    }

    /// Begins a measurement of `users`.
    fn enter(&mut self, users: u32, first_us: u64) {
        let again = self.find(users).is_some();
        let (least_us, allowed_us) = self.allowance_us(users);
        self.refinements += usize::from(!again && self.refining(users));
        self.current = Some(Current { users, again, least_us, spent_us: 0, allowed_us, first_us });
        let index = self.steps.partition_point(|measured| measured.step.users < users);
        let new = Step { users, ..Step::default() };
        if !again {
            self.steps.insert(index, MeasuredStep { measured: Vec::new(), step: new.clone() });
        }
        if let Some(step) = self.steps.get_mut(index) {
            step.measured.push(Measured { ticks: Vec::new(), step: new });
        }
    }

    fn record(&mut self, ticks: &[Tick]) {
        let Some(Current { users, again, .. }) = self.current else { return };
        let of_users = |step: &&mut MeasuredStep| step.step.users == users;
        let Some(step) = self.steps.iter_mut().find(of_users) else { return };
        let Some(measured) = step.measured.last_mut() else { return };
        measured.ticks.extend_from_slice(ticks);
        measured.step = estimate(users, &measured.ticks, &self.options.precision);
        if !again {
            step.step = measured.step.clone();
        }
    }

    /// Makes one step of all measurements of the users measured last.
    fn merge(&mut self) {
        let Some(Current { users, again: true, .. }) = self.current else { return };
        let origin_us = self.origin_us.unwrap_or(0);
        if let Some(step) = self.steps.iter_mut().find(|step| step.step.users == users) {
            step.step = merged(&step.measured, origin_us);
        }
    }

    /// How much longer the current step should go on, if at all.
    fn extension(&self) -> Option<u64> {
        let (current, measured) = (self.current?, self.measured()?);
        let users = current.users;
        let precision = self.precision(users);
        let needed_us = needed_us(&measured.step, &precision);
        let far = self.far_from_the_knee(users);
        // A step that has not settled may be the knee itself, however much throughput grew up to it.
        let missed = if far { !measured.step.steady } else { clear_miss(&measured.step, &precision) };
        let wanted_us = match current.spent_us < self.options.step_us_min {
            true if far => self.options.step_us_min.max(current.least_us),
            true => needed_us.max(self.options.step_us_min).max(current.least_us),
            false if missed => needed_us.max((current.spent_us as f64 * (1.0 + EXTENSION)) as u64),
            false => 0,
        };
        let wanted_us = wanted_us.min(current.allowed_us).max(self.patience_us(measured));
        let for_us = wanted_us.saturating_sub(current.spent_us);
        (for_us * WORTHWHILE >= current.spent_us && for_us > 0).then_some(for_us)
    }

    /// A step in which nothing completed and nothing failed goes on: responses may simply take that long.
    /// This is how long it may become.
    fn patience_us(&self, measured: &Measured) -> u64 {
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
        rung_below(lo, hi, users).is_some_and(|below| self.grows_steeply(below, users))
    }

    /// How well the step of `users` has to be measured. With the fewest users only the response time counts, unless the
    /// knee is there: throughput follows from it, and few requests a second make a coarse count. Beyond the knee it is the
    /// other way round: users wait for each other in an order that may be any, and the mean follows from Little's law.
    fn precision(&self, users: u32) -> Precision {
        self.precision_of(users, self.measured().map_or(0.0, |measured| measured.step.throughput_per_s))
    }

    /// The same where these users complete so many requests a second.
    fn precision_of(&self, users: u32, own_per_s: f64) -> Precision {
        let all = self.options.precision.clone();
        let UsersRange::Range { lo, hi } = self.options.users else { return all };
        if self.is_beyond_the_knee(users, own_per_s) {
            return Precision { response_relative_half_width: f64::INFINITY, ..all };
        }
        let above = rung_above(lo, hi, users).filter(|_| users == lo.max(1));
        let is_below_the_knee = |above| self.find(above).is_none() || self.grows_steeply(users, above);
        match above.is_some_and(is_below_the_knee) {
            true => Precision { relative_half_width: f64::INFINITY, ..all },
            false => all,
        }
    }

    /// Whether fewer users had nearly all of the throughput.
    fn is_beyond_the_knee(&self, users: u32, own_per_s: f64) -> bool {
        let fewer = self.steps.iter().map(|measured| &measured.step).filter(|step| step.users < users);
        fewer.map(|step| step.throughput_per_s).any(|per_s| per_s > 0.0 && per_s >= SATURATED * own_per_s)
    }

    fn grows_steeply(&self, below: u32, users: u32) -> bool {
        let both = |step: &&Step| step.users == below || step.users == users;
        let pair: Vec<&Step> = self.estimated().into_iter().filter(both).collect();
        certain_growth(&pair) > STEEP
    }

    fn begin(&mut self) -> Next {
        self.merge();
        let for_us = ((self.options.step_us_min as f64 * PILOT) as u64).max(1);
        if self.options.total_us.is_some_and(|total_us| self.spent_us >= total_us) {
            return Next::Finished;
        }
        let Some((users, purpose)) = self.next_users().or_else(|| self.next_replicate()) else {
            return Next::Finished;
        };
        self.purpose = purpose;
        Next::Begin { users, for_us }
    }

    /// The number of users to come back to, as long as there is time.
    fn next_replicate(&mut self) -> Option<(u32, Purpose)> {
        if !self.has_time_for(1) {
            return None;
        }
        if self.to_replicate.is_empty() && self.is_worth_a_round() {
            if self.rounds == 0 {
                self.searched_us = self.spent_us;
            }
            self.to_replicate = self.round();
            self.rounds += 1;
        }
        let users = self.to_replicate.pop()?;
        Some((users, Purpose::Again { round: self.rounds, left: self.to_replicate.len() }))
    }

    /// Replicates take no more time than the search before them, so that short sweeps stay short.
    fn is_worth_a_round(&self) -> bool {
        let replicating_us = self.spent_us.saturating_sub(self.searched_us);
        self.rounds == 0
            || (self.rounds < MAX_ROUNDS
                && replicating_us < self.searched_us / REPLICATES
                && !self.maximum_is_precise())
    }

    /// Whether the maximum is known as well as a step has to be, from steps that were come back to.
    fn maximum_is_precise(&self) -> bool {
        let found = Crossing::find(&self.estimated()).plateau;
        let [low, high] = found.interval();
        let aim = self.options.precision.relative_half_width * found.throughput_per_s;
        (high - low) / 2.0 <= aim
    }

    /// The numbers of users to come back to, in reverse order: one user (or the fewest), N* and twice as many, as far as
    /// they were measured, in a range that saturates, and where throughput seems to fall. From the most down, so that what
    /// changes with time is not taken for an effect of users. One measured just now is left out.
    fn round(&self) -> Vec<u32> {
        let steps = self.estimated();
        let Crossing { plateau, users: star, .. } = Crossing::find(&steps);
        let (Some([fewest, most]), Some(star)) = (saturated(&steps), star) else {
            return if bounded(&steps) { contradicting(&steps) } else { Vec::new() };
        };
        let beyond = |step: &&&Step| (fewest..=most).contains(&step.users) && step.users > star;
        let twice = nearest(steps.iter().filter(beyond).map(|step| step.users), star.saturating_mul(2));
        let at = nearest(steps.iter().map(|step| step.users), star);
        let may_be_measured = matches!(self.options.users, UsersRange::Range { .. });
        let at = at.map(|at| if ratio(at, star) > STANDS_FOR && may_be_measured { star } else { at });
        let alone = steps.first().map(|step| step.users);
        let fallen =
            least(&steps, star).filter(|step| step.throughput_per_s < PLATEAU * plateau.throughput_per_s);
        let fallen = fallen.map(|step| step.users);
        let mut round: Vec<u32> = [alone, at, twice, fallen].into_iter().flatten().collect();
        round.sort_unstable();
        round.dedup();
        if round.last().copied() == self.current.map(|current| current.users) {
            round.pop();
        }
        round
    }

    fn next_users(&self) -> Option<(u32, Purpose)> {
        match &self.options.users {
            UsersRange::List(users) => {
                let (at, users_now) = users
                    .iter()
                    .enumerate()
                    .find(|(_, users)| **users > 0 && self.find(**users).is_none())?;
                Some((*users_now, Purpose::Listed { number: at + 1, of: users.len() }))
            }
            &UsersRange::Range { lo, hi } => {
                let climbs = |users| (users, climbing(lo, hi, users));
                next_rung(lo, hi, &self.estimated()).map(climbs).or_else(|| self.next_refinement())
            }
        }
    }

    fn next_refinement(&self) -> Option<(u32, Purpose)> {
        if self.refinements >= MAX_REFINEMENTS || !self.has_time_for(1 + RETURN) {
            return None;
        }
        refinement(&self.estimated()).filter(|(users, _)| self.find(*users).is_none())
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

    /// How long the step about to begin lasts at least, and how long it may become: a fair share of the time left. At N*
    /// a replicate may take two shares and lasts for two of the shortest steps, since most figures of a report are from there.
    fn allowance_us(&self, users: u32) -> (u64, u64) {
        let longest_us = self.options.step_us_max.max(self.options.step_us_min);
        let at_star = self.rounds > 0
            && Crossing::find(&self.estimated()).users.is_some_and(|star| ratio(star, users) <= STANDS_FOR);
        let shares = if self.rounds > 0 {
            1 + u64::from(at_star) + self.to_replicate.len() as u64
        } else {
            (self.expected_steps().max(1) + RETURN) as u64
        };
        let left_us =
            self.options.total_us.map_or(u64::MAX, |total_us| total_us.saturating_sub(self.spent_us));
        let own = 1 + u64::from(at_star);
        let allowed_us = (left_us / shares).saturating_mul(own).clamp(self.options.step_us_min, longest_us);
        let least_us = self.options.step_us_min.saturating_mul(if at_star { AT_STAR } else { 1 });
        (least_us.min(allowed_us), allowed_us)
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

/// What a rung of the ladder is measured for.
fn climbing(lo: u32, hi: u32, users: u32) -> Purpose {
    let next = rung_above(lo, hi, users);
    rung_below(lo, hi, users).map_or(Purpose::Fewest { next }, |from| Purpose::Growth { from, next })
}

/// The users of the step with the most throughput and of that with the least beyond it, for where throughput stopped growing
/// but N* cannot be told.
fn contradicting(steps: &[&Step]) -> Vec<u32> {
    let most = steps.iter().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s));
    let Some(most) = most.map(|step| step.users) else { return Vec::new() };
    [most].into_iter().chain(least(steps, most).map(|step| step.users)).collect()
}

/// The step with the least throughput of those with more than so many users.
fn least<'a>(steps: &[&'a Step], users: u32) -> Option<&'a Step> {
    let beyond = steps.iter().copied().filter(|step| step.users > users);
    beyond.min_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))
}

/// The number of users nearest to this one, by ratio.
fn nearest(all: impl Iterator<Item = u32>, users: u32) -> Option<u32> {
    all.min_by(|a, b| ratio(*a, users).total_cmp(&ratio(*b, users)))
}

/// The larger of two numbers of users over the smaller.
fn ratio(one: u32, other: u32) -> f64 {
    let (one, other) = (f64::from(one.max(1)), f64::from(other.max(1)));
    (one / other).max(other / one)
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
/// the root of the length, or with the length itself where it is that of one request.
fn needed_us(step: &Step, precision: &Precision) -> u64 {
    let excess =
        |width: Option<f64>, target: f64| width.map_or(1.0, |width| width / target.max(f64::MIN_POSITIVE));
    let throughput = excess(step.throughput_relative_half_width(), precision.relative_half_width);
    let response = excess(step.response_relative_half_width(), precision.response_relative_half_width);
    let is_of_one_request =
        |width: f64| width * step.completed as f64 <= 1.0 + ONE_REQUEST_ROUNDING && step.completed > 0;
    let power = if step.throughput_relative_half_width().is_some_and(is_of_one_request) { 1 } else { 2 };
    let longer = throughput.powi(power).max(response.powi(2));
    let whole_us = step.measured_us() as f64 * longer * 1.1;
    (whole_us + step.warmup_us() as f64) as u64
}
