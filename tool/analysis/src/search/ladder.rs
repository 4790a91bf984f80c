//! Which number of users to measure next: a geometric ladder, then refinement round the knee.
//!
//! Pure functions of what was measured so far.

use crate::run::Step;
use crate::search::growth::ended;
use crate::search::outlook::Purpose;
use crate::search::saturation::{Crossing, ascending, bounded};
use crate::thresholds::SATURATED;

/// This many rungs without growth end the ladder: the second of two may be a fluke, the third lies well
/// beyond the knee.
const LEVEL_RUNGS: usize = 3;

/// Neighbours this close in users are not split further.
const CLOSE: f64 = 1.10;

/// Ends of the interval of N* this close to N*, and a fall this close to the peak, are not narrowed further.
const CLOSE_ENDS: f64 = 1.25;

/// The next rung of the ladder `lo, 2 lo, 4 lo, .. hi`, or `None` once throughput stopped growing or `hi` was
/// measured.
pub(crate) fn next_rung(lo: u32, hi: u32, steps: &[&Step]) -> Option<u32> {
    let measured = |users: &u32| steps.iter().find(|step| step.users == *users).copied();
    let climbed: Vec<&Step> = rungs(lo, hi).map_while(|users| measured(&users)).collect();
    if ended(&climbed, LEVEL_RUNGS) || nothing_completes(&climbed) {
        return None;
    }
    rungs(lo, hi).nth(climbed.len())
}

/// How many rungs are likely to follow, to share out the time.
pub(crate) fn rungs_left(lo: u32, hi: u32, steps: &[&Step]) -> usize {
    let highest = steps.iter().map(|step| step.users).max().unwrap_or(0);
    rungs(lo, hi).filter(|&users| users > highest).count().min(LEVEL_RUNGS)
}

/// The rung below `users`, if that is a rung.
pub(crate) fn rung_below(lo: u32, hi: u32, users: u32) -> Option<u32> {
    rungs(lo, hi).zip(rungs(lo, hi).skip(1)).find(|pair| pair.1 == users).map(|pair| pair.0)
}

/// The rung above `users`, if there is one and `users` is a rung.
pub(crate) fn rung_above(lo: u32, hi: u32, users: u32) -> Option<u32> {
    rungs(lo, hi).skip_while(|&rung| rung != users).nth(1)
}

fn rungs(lo: u32, hi: u32) -> impl Iterator<Item = u32> {
    let lo = lo.max(1);
    let hi = hi.max(lo);
    std::iter::successors(Some(lo), move |&users| (users < hi).then(|| users.saturating_mul(2).min(hi)))
}

/// Two rungs without a single completion: more users will not help.
fn nothing_completes(climbed: &[&Step]) -> bool {
    climbed.len() >= 2 && climbed.iter().all(|step| step.completed == 0)
}

/// The number of users, between measured ones, that would narrow N* most, and what it decides; `None` when that is as good as
/// it gets.
pub(crate) fn refinement(steps: &[&Step]) -> Option<(u32, Purpose)> {
    let steps = ascending(steps);
    let crossing = Crossing::find(&steps);
    if !bounded(&steps) {
        return None;
    }
    beyond_the_peak(&steps, &crossing)
        .or_else(|| at_the_knee(&crossing))
        .or_else(|| at_the_ends(&steps, &crossing))
}

/// Where throughput falls right after its highest step, the maximum may lie between the two.
fn beyond_the_peak(steps: &[&Step], crossing: &Crossing) -> Option<(u32, Purpose)> {
    let top = steps.get(crossing.plateau.top)?;
    let next = steps.get(crossing.plateau.top + 1)?;
    let falls = crossing.plateau.deviation(crossing.plateau.top + 1, steps, SATURATED) < 0.0;
    let users = between(top.users, next.users, CLOSE_ENDS).filter(|_| falls)?;
    Some((users, Purpose::Maximum { between: [top.users, next.users] }))
}

fn at_the_knee(crossing: &Crossing) -> Option<(u32, Purpose)> {
    let (below, above) = crossing.bracket.filter(|(below, _)| *below > 0)?;
    Some((between(below, above, CLOSE)?, Purpose::Saturation { between: [below, above] }))
}

/// Splits the wider of the gaps between N* and the ends of its interval.
fn at_the_ends(steps: &[&Step], crossing: &Crossing) -> Option<(u32, Purpose)> {
    let (below, above) = crossing.bracket?;
    let [low, high] = crossing.interval?;
    let users = |wanted: &dyn Fn(u32) -> bool| {
        steps.iter().map(|step| step.users).filter(|&u| wanted(u)).collect::<Vec<_>>()
    };
    let left = users(&|u| u < low).last().copied().zip(users(&|u| u >= low && u <= below).first().copied());
    let right = users(&|u| u >= above && u < high).last().copied().map(|last| (last, high));
    let ratio = |gap: &(u32, u32)| f64::from(gap.1) / f64::from(gap.0.max(1));
    let widest = [left, right].into_iter().flatten().max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let users = between(widest.0, widest.1, CLOSE_ENDS)?;
    Some((users, Purpose::Interval { between: [widest.0, widest.1] }))
}

/// The middle of a gap wider than `close`; `None` if it is narrower or holds no number.
fn between(below: u32, above: u32, close: f64) -> Option<u32> {
    let wide = f64::from(above) > f64::from(below) * close && above > below.saturating_add(1);
    wide.then(|| below + (above - below) / 2)
}
