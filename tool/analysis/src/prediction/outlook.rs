//! What models say, with what is drawn carried through: the curve, N*, what limits, what a tenth less brings.

use super::change::{Change, demands, refuse_shorter, scale, shared_devices};
use super::draw::{self, Irregularity};
use super::mix;
use super::model::Model;
use super::parts::Parts;
use super::quantile::Ratios;
use super::slowdown;
use super::solved::{Solved, irregularity, misses};
use super::{Caution, CurvePoint, Estimate, GoalAnswer, LimitFacts, Outlook, Question, Refusal, Sensitivity};
use crate::run::{Identity, Run, Words};
use crate::statistics::at_share;
use crate::statistics::random::Random;

/// How often what is not known is drawn.
const DRAWS: usize = 200;

/// A model before and after the change, and as both may be as well.
pub(super) struct Drawn {
    pub(super) before: Model,
    pub(super) after: Model,
    pub(super) irregularity: Irregularity,
    /// How far the model is from the steps, as a share.
    pub(super) misses: f64,
    pub(super) solved: Pair,
    /// Models after the change.
    pub(super) models: Vec<Model>,
    pairs: Vec<Pair>,
}

/// Both sides, solved.
pub(super) struct Pair {
    pub(super) before: Solved,
    pub(super) after: Solved,
}

/// One of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Before,
    After,
}

impl Pair {
    fn side(&self, side: Side) -> &Solved {
        match side {
            Side::Before => &self.before,
            Side::After => &self.after,
        }
    }
}

impl Drawn {
    pub(super) fn of(parts: &Parts, changes: &[Change], seed: u64) -> Result<Self, Refusal> {
        let elsewhere = changes.iter().any(Change::is_of_load);
        let (mut random, mut of_kinds) = (Random::seeded(seed), Random::seeded(!seed));
        let mut of_saturation = Random::seeded(seed ^ (1 << 63));
        let shape = slowdown::shape(parts);
        let mut before = slowdown::model(parts, shape);
        let fit = irregularity(&before, parts);
        before.irregularity = fit.mean();
        refuse_shorter(&before, parts, changes)?;
        let after = changed(&before, parts, changes)?;
        let (mut models, mut pairs) = (Vec::new(), Vec::new());
        for _ in 0..DRAWS {
            let mut drawn = draw::parts(parts, &mut random);
            // From numbers of their own, so that what is known by kind changes no answer for the same mix.
            drawn.kinds.iter_mut().for_each(|kind| kind.draw(&mut of_kinds));
            let mut model = slowdown::model(&drawn, shape);
            let fit = irregularity(&model, &drawn);
            model.irregularity = fit.drawn(false, &mut random);
            model.saturated = draw::saturated(&mut of_saturation);
            let mut after = changed(&model, &drawn, changes)?;
            if elsewhere {
                after.irregularity = fit.drawn(true, &mut random);
            }
            pairs.push(Pair { before: model.solved(), after: after.solved() });
            models.push(after);
        }
        let solved = Pair { before: before.solved(), after: after.solved() };
        let misses = misses(&before, parts);
        Ok(Self { before, after, irregularity: fit, misses, solved, models, pairs })
    }

    /// A figure and its interval: the middle 95 % of what was drawn, and as much beyond as the model misses the steps by.
    pub(super) fn estimate(&self, side: Side, read: impl Fn(&Solved) -> Option<f64>) -> Option<Estimate> {
        let drawn = self.pairs.iter().filter_map(|pair| read(pair.side(side)));
        Some(self.within(read(self.solved.side(side))?, drawn.collect()))
    }

    pub(super) fn within(&self, value: f64, mut drawn: Vec<f64>) -> Estimate {
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| at_share(&drawn, share).unwrap_or(value);
        let (low, high) = (at(0.025).min(value), at(0.975).max(value));
        Estimate { value, ci: [low * (1.0 - self.misses).max(0.0), high * (1.0 + self.misses)] }
    }

    pub(super) fn outlook(&self, side: Side) -> Outlook {
        let users = |solved: &Solved| solved.users_at_saturation().map(f64::from);
        let at = self.solved.side(side).users_at_saturation();
        let model = if side == Side::Before { &self.before } else { &self.after };
        let limits = model.limits_while_queued().into_iter().map(|limit| LimitFacts {
            kind: limit.kind,
            holder: Words::default(),
            identity: limit.identity,
            throughput_per_s: limit.per_s,
        });
        let max = |solved: &Solved| Some(solved.throughput_max_per_s()).filter(|most| most.is_finite());
        let max = self.estimate(side, max);
        Outlook {
            throughput_max_per_s: max.unwrap_or_default(),
            users_at_saturation: self.estimate(side, users).map(whole),
            response_time_at_saturation_us: at
                .and_then(|users| self.estimate(side, |solved| Some(solved.response_us(users)))),
            limits: limits.collect(),
        }
    }
}

/// Users are whole.
pub(super) fn whole(of: Estimate) -> Estimate {
    Estimate { value: of.value, ci: [of.ci[0].floor().max(1.0), of.ci[1].ceil()] }
}

/// The model with these changes made.
pub(super) fn changed(model: &Model, parts: &Parts, changes: &[Change]) -> Result<Model, Refusal> {
    let mut after = model.clone();
    changes.iter().try_for_each(|change| change.make(&mut after, parts))?;
    Ok(after)
}

/// The curve has no more points than this.
const POINTS_MAX: usize = 24;

/// More throughput than measured by this share is beyond what was measured.
const BEYOND: f64 = 1.05;

fn most(parts: &Parts) -> u32 {
    parts.points.iter().map(|point| point.users).max().unwrap_or(0)
}

pub(super) fn curve(drawn: &Drawn, parts: &Parts, asked: Option<u32>, ratios: &Ratios) -> Vec<CurvePoint> {
    let all = users_of(drawn, parts, asked).into_iter();
    all.map(|users| CurvePoint { asked: asked == Some(users), ..point(drawn, parts, users, ratios) })
        .collect()
}

fn point(drawn: &Drawn, parts: &Parts, users: u32, ratios: &Ratios) -> CurvePoint {
    let after = |read: &dyn Fn(&Solved) -> f64| {
        drawn.estimate(Side::After, |solved| Some(read(solved))).unwrap_or_default()
    };
    let throughput_per_s = after(&|solved| solved.throughput_per_s(users));
    let response_time_us = after(&|solved| solved.response_us(users).max(0.0));
    let [p95_us, p99_us] = ratios.percentiles(users, &drawn.solved.after, response_time_us);
    let measured = parts.points.iter().find(|point| point.users == users);
    let fast = throughput_per_s.value > BEYOND * parts.throughput_max_per_s.value;
    CurvePoint {
        users,
        asked: false,
        measured_per_s: measured.map(|point| point.throughput_per_s.value),
        before_per_s: drawn.solved.before.throughput_per_s(users),
        throughput_per_s,
        response_time_us,
        p95_us,
        p99_us,
        beyond_measured: fast || users > most(parts),
    }
}

/// Users that were measured, that are asked for, and those that show both knees.
fn users_of(drawn: &Drawn, parts: &Parts, asked: Option<u32>) -> Vec<u32> {
    let knees = [&drawn.solved.before, &drawn.solved.after].map(Solved::users_at_saturation);
    let knees = knees.into_iter().flatten();
    let doubled = std::iter::successors(Some(1u32), |users| users.checked_mul(2));
    let after = drawn.solved.after.users_at_saturation().unwrap_or(0);
    let end = after.saturating_mul(2).max(most(parts));
    let mut all: Vec<u32> = parts.points.iter().map(|point| point.users).collect();
    all.extend(doubled.take_while(|users| *users > most(parts) && *users <= end));
    all.sort_unstable();
    all.dedup();
    let every = all.len().div_ceil(POINTS_MAX).max(1);
    let mut all: Vec<u32> = all.into_iter().step_by(every).collect();
    all.extend(knees.chain(asked));
    all.sort_unstable();
    all.dedup();
    all
}

/// By how much a demand is made smaller.
const LESS: f64 = 0.9;

pub(super) fn sensitivity(model: &Model) -> Vec<Sensitivity> {
    let solved = model.solved();
    let users = solved.users_at_saturation().unwrap_or(1);
    let most_per_s = solved.throughput_max_per_s();
    let of = |demand: String| {
        let mut less = model.clone();
        scale(&mut less, &demand, LESS).ok()?;
        let less = less.solved();
        Some(Sensitivity {
            demand,
            throughput_ratio: less.throughput_max_per_s() / most_per_s,
            response_time_ratio: less.response_us(users) / solved.response_us(users),
            users_at_saturation: less.users_at_saturation(),
        })
    };
    let mut all: Vec<Sensitivity> = demands(model).into_iter().filter_map(of).collect();
    all.sort_by(|a, b| {
        let throughput = b.throughput_ratio.total_cmp(&a.throughput_ratio);
        throughput.then(a.response_time_ratio.total_cmp(&b.response_time_ratio))
    });
    all
}

/// A model that misses the steps by less than this is not worth a caution.
const MISSES: f64 = 0.05;

/// The farthest that a prediction was held against a changed server (`docs/predict.md`): so many times the measured throughput.
const FAR: f64 = 4.0;

pub(super) fn cautions(
    run: &Run,
    question: &Question,
    goal: Option<&GoalAnswer>,
    drawn: &Drawn,
    parts: &Parts,
) -> Vec<Caution> {
    let max = parts.throughput_max_per_s.value;
    let mut all = Vec::new();
    let after_per_s = drawn.solved.after.throughput_max_per_s();
    if after_per_s > BEYOND * max {
        all.push(Caution::BeyondThroughput { measured_per_s: max });
    }
    if question.users.is_some_and(|users| users > most(parts)) {
        all.push(Caution::BeyondUsers { measured: most(parts) });
    }
    if let Some((users, share)) = slowdown::fell(parts) {
        all.push(Caution::Fell { users, share, followed: drawn.before.slow.is_some() });
    }
    if drawn.misses > MISSES {
        all.push(Caution::Misses { share: drawn.misses });
    }
    let limits = drawn.after.limits_while_queued();
    if limits.len() < 2 {
        all.push(Caution::NoOtherLimit);
    }
    if limits.first().is_some_and(|limit| matches!(limit.identity, Some(Identity::Host { .. }))) {
        all.push(Caution::SharedWithLoad);
    }
    let proposed = goal.into_iter().flat_map(|goal| &goal.options).map(|option| &option.change);
    for caution in question.changes.iter().chain(proposed).filter_map(|change| of_change(change, drawn)) {
        // Servers of several tiers may be added where the same disks are shared.
        if !all.contains(&caution) {
            all.push(caution);
        }
    }
    let (changes, times) = (question.changes.len() as u32, after_per_s / max);
    if changes > 1 {
        all.push(Caution::SeveralChanges { changes });
    }
    if changes > 1 && times > FAR && times.is_finite() {
        all.push(Caution::FarBeyond { changes, times });
    }
    all.extend(question.changes.iter().flat_map(|change| of_mix(change, drawn, parts)));
    if run.requests.len() > 1 && !question.changes.iter().any(Change::is_of_mix) {
        all.push(Caution::Mix);
    }
    all
}

fn of_mix(change: &Change, drawn: &Drawn, parts: &Parts) -> Vec<Caution> {
    let Change::Mix { shares } = change else { return Vec::new() };
    let kept = mix::kept(&drawn.before, parts, shares).into_iter();
    kept.map(|demand| Caution::MixKept { demand }).chain([Caution::OtherMix]).collect()
}

fn of_change(change: &Change, drawn: &Drawn) -> Option<Caution> {
    match change {
        Change::Cpus { name, cpus } => {
            let more = |tier: &&super::model::Tier| {
                tier.of.name == *name
                    && *cpus > 1.0
                    && tier.threads.is_none()
                    && tier.quota.unwrap_or(tier.cpus) < *cpus
            };
            let tier = drawn.before.tiers.iter().find(more)?;
            Some(Caution::MoreProcessors { name: tier.of.name.clone() })
        }
        Change::Think { .. } => Some(Caution::OtherThinkTime),
        Change::UpstreamDelay { name, .. } => Some(Caution::OneCall { name: name.clone() }),
        Change::AddServer { name, .. } => {
            let demands = shared_devices(&drawn.before, name.as_deref());
            (!demands.is_empty()).then_some(Caution::SharedDevices { demands })
        }
        _ => None,
    }
}
