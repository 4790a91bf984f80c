//! N*: the smallest number of users that reaches 95 % of the maximum throughput, with its interval.

use crate::laws::bounds;
use crate::run::Step;
use crate::search::growth::{ended, throughput_error};
use crate::search::plateau::{Plateau, plateau};
use crate::statistics::regression::non_decreasing;
use crate::thresholds::SATURATED;

/// Steps closer than this factor in users say little about growth.
const APART: f64 = 1.5;

/// Where a sweep saturates.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saturation {
    /// N*; `None` if throughput was not seen to stop growing.
    pub users: Option<u32>,
    /// 95 % interval of N*: every smaller measured number was significantly below 95 % of the maximum, the
    /// upper end significantly above (or no larger number could be told).
    pub users_ci: Option<[u32; 2]>,
    /// Crossing of the asymptotes, (R(1) + Z) X_max (Denning and Buzen 1978); needs a step of one user.
    pub knee_users: Option<f64>,
    /// Whether throughput was seen to stop growing. If not, the maximum is a lower bound.
    pub bounded: bool,
    /// Maximum throughput, completed requests per second.
    pub throughput_max_per_s: f64,
    /// 95 % interval of it.
    pub throughput_max_ci_per_s: [f64; 2],
}

/// Where steps saturate, given in any order, one per number of users; `think_us` is the mean think time Z.
pub fn saturation(steps: &[&Step], think_us: f64) -> Saturation {
    let steps = ascending(steps);
    let crossing = Crossing::find(&steps);
    let bounded = bounded(&steps);
    Saturation {
        users: crossing.users.filter(|_| bounded),
        users_ci: crossing.users.and(crossing.interval).filter(|_| bounded),
        knee_users: knee(&steps, think_us, crossing.plateau.throughput_per_s),
        bounded,
        throughput_max_per_s: crossing.plateau.throughput_per_s,
        throughput_max_ci_per_s: crossing.plateau.interval(),
    }
}

pub(crate) fn ascending<'a>(steps: &[&'a Step]) -> Vec<&'a Step> {
    let mut sorted = steps.to_vec();
    sorted.sort_by_key(|step| step.users);
    sorted
}

/// Growth was seen to stop over steps at least [`APART`] from one another, the last of them included.
pub(crate) fn bounded(steps: &[&Step]) -> bool {
    let mut apart: Vec<&Step> = Vec::new();
    for &step in steps.iter().rev() {
        if apart.last().is_none_or(|next| f64::from(step.users) * APART <= f64::from(next.users)) {
            apart.push(step);
        }
    }
    apart.reverse();
    ended(&apart, 2)
}

/// The fewest and the most users that were measured at the maximum throughput, from `steps` (ascending); `None` where
/// throughput was not seen to stop growing.
pub(crate) fn saturated(steps: &[&Step]) -> Option<[u32; 2]> {
    let crossing = Crossing::find(steps);
    let most = steps.get(crossing.plateau.top)?.users;
    bounded(steps).then_some([crossing.bracket?.1, most])
}

fn knee(steps: &[&Step], think_us: f64, throughput_max_per_s: f64) -> Option<f64> {
    let alone = steps.iter().find(|step| step.users == 1 && step.completed > 0)?;
    Some(bounds(alone.response_time_us.mean, think_us, throughput_max_per_s).knee_users)
}

/// Where throughput crosses 95 % of its maximum.
pub(crate) struct Crossing {
    pub(crate) plateau: Plateau,
    /// The last number of users below the level and the first at it, by the smoothed estimates; the former
    /// is 0 if the smallest number measured is at it already.
    pub(crate) bracket: Option<(u32, u32)>,
    pub(crate) users: Option<u32>,
    pub(crate) interval: Option<[u32; 2]>,
}

impl Crossing {
    /// `steps` ascending.
    pub(crate) fn find(steps: &[&Step]) -> Self {
        let plateau = plateau(steps);
        let rising = steps.get(..=plateau.top).unwrap_or_default();
        let level = SATURATED * plateau.throughput_per_s;
        let smooth = smoothed(rising);
        let first = smooth.iter().position(|&throughput| throughput >= level);
        let bracket = first.map(|first| bracket(rising, first));
        let interval = bracket.map(|bracket| interval(rising, &plateau, bracket));
        let users = first
            .zip(interval)
            .map(|(first, [low, high])| interpolated(rising, &smooth, first, level).clamp(low, high));
        Self { plateau, bracket, users, interval }
    }
}

/// Throughput without the dips that a rising curve cannot have.
fn smoothed(rising: &[&Step]) -> Vec<f64> {
    let values: Vec<f64> = rising.iter().map(|step| step.throughput_per_s).collect();
    let weight = |step: &&Step| throughput_error(step).max(f64::MIN_POSITIVE).powi(-2);
    let weights: Vec<f64> = rising.iter().map(weight).collect();
    non_decreasing(&values, &weights)
}

fn bracket(rising: &[&Step], first: usize) -> (u32, u32) {
    let users = |index: usize| rising.get(index).map_or(0, |step| step.users);
    (first.checked_sub(1).map_or(0, users), users(first))
}

/// The smallest whole number of users at the level on the line between the two measured numbers around it.
fn interpolated(rising: &[&Step], smooth: &[f64], first: usize, level: f64) -> u32 {
    let at = |index: usize| Some((f64::from(rising.get(index)?.users), *smooth.get(index)?));
    match (first.checked_sub(1).and_then(at), at(first)) {
        (Some((below, low)), Some((above, high))) if high > low => {
            (below + (above - below) * (level - low) / (high - low)).ceil() as u32
        }
        (_, Some((above, _))) => above as u32,
        (_, None) => 0,
    }
}

/// From just above the largest number significantly below the level to the smallest significantly above.
fn interval(rising: &[&Step], plateau: &Plateau, bracket: (u32, u32)) -> [u32; 2] {
    let deviation = |index: usize| plateau.deviation(index, rising, SATURATED);
    let above = (0..rising.len()).find(|&index| deviation(index) > 1.0);
    let searched = above.unwrap_or(rising.len());
    let below = (0..searched).rev().find(|&index| deviation(index) < -1.0);
    let users = |index: usize| rising.get(index).map(|step| step.users);
    let low = below.and_then(users).map_or(1, |users| users.saturating_add(1));
    let high = above.and_then(users).or(rising.last().map(|step| step.users)).unwrap_or(bracket.1);
    [low.min(bracket.1), high.max(bracket.1)]
}
