//! N*: the smallest number of users that reaches 95 % of the maximum throughput, with its interval.

use crate::estimate::Estimate;
use crate::laws::bounds;
use crate::search::growth::{ended, throughput_error};
use crate::search::plateau::{Plateau, plateau};
use crate::statistics::isotonic::non_decreasing;
use crate::statistics::student::NORMAL_95;

/// The share of the maximum throughput that counts as saturated.
pub const SATURATED: f64 = 0.95;

/// Steps closer than this factor in users say little about growth.
const APART: f64 = 1.5;

/// Where a sweep saturates.
#[derive(Debug, Clone, PartialEq)]
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

/// Where the measured steps saturate. `points` are (users, estimate) in any order, one per number of
/// users; `think_us` is the mean think time Z.
pub fn saturation(points: &[(u32, &Estimate)], think_us: f64) -> Saturation {
    let points = ascending(points);
    let crossing = Crossing::find(&points);
    let bounded = bounded(&points);
    Saturation {
        users: crossing.users.filter(|_| bounded),
        users_ci: crossing.users.and(crossing.interval).filter(|_| bounded),
        knee_users: knee(&points, think_us, crossing.plateau.throughput_per_s),
        bounded,
        throughput_max_per_s: crossing.plateau.throughput_per_s,
        throughput_max_ci_per_s: crossing.plateau.interval(),
    }
}

pub(crate) fn ascending<'a>(points: &[(u32, &'a Estimate)]) -> Vec<(u32, &'a Estimate)> {
    let mut sorted = points.to_vec();
    sorted.sort_by_key(|&(users, _)| users);
    sorted
}

/// Growth was seen to stop over steps at least [`APART`] from one another, the last of them included.
pub(crate) fn bounded(points: &[(u32, &Estimate)]) -> bool {
    let mut apart: Vec<(u32, &Estimate)> = Vec::new();
    for &point in points.iter().rev() {
        if apart.last().is_none_or(|next| f64::from(point.0) * APART <= f64::from(next.0)) {
            apart.push(point);
        }
    }
    apart.reverse();
    ended(&apart, 2)
}

fn knee(points: &[(u32, &Estimate)], think_us: f64, throughput_max_per_s: f64) -> Option<f64> {
    let alone = points.iter().find(|(users, estimate)| *users == 1 && estimate.completed > 0)?;
    Some(bounds(alone.1.response_time_us.mean, think_us, throughput_max_per_s).knee_users)
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
    /// `points` ascending.
    pub(crate) fn find(points: &[(u32, &Estimate)]) -> Self {
        let plateau = plateau(points);
        let rising = points.get(..=plateau.top).unwrap_or_default();
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
fn smoothed(rising: &[(u32, &Estimate)]) -> Vec<f64> {
    let values: Vec<f64> = rising.iter().map(|(_, estimate)| estimate.throughput_per_s).collect();
    let weights: Vec<f64> = rising
        .iter()
        .map(|(_, estimate)| throughput_error(estimate).max(f64::MIN_POSITIVE).powi(-2))
        .collect();
    non_decreasing(&values, &weights)
}

fn bracket(rising: &[(u32, &Estimate)], first: usize) -> (u32, u32) {
    let users = |index: usize| rising.get(index).map_or(0, |point| point.0);
    (first.checked_sub(1).map_or(0, users), users(first))
}

/// The smallest whole number of users at the level on the line between the two measured numbers around it.
fn interpolated(rising: &[(u32, &Estimate)], smooth: &[f64], first: usize, level: f64) -> u32 {
    let at = |index: usize| Some((f64::from(rising.get(index)?.0), *smooth.get(index)?));
    match (first.checked_sub(1).and_then(at), at(first)) {
        (Some((below, low)), Some((above, high))) if high > low => {
            (below + (above - below) * (level - low) / (high - low)).ceil() as u32
        }
        (_, Some((above, _))) => above as u32,
        (_, None) => 0,
    }
}

/// From just above the largest number significantly below the level to the smallest significantly above.
fn interval(rising: &[(u32, &Estimate)], plateau: &Plateau, bracket: (u32, u32)) -> [u32; 2] {
    let deviation = |index: usize| plateau.deviation(index, rising, SATURATED);
    let above = (0..rising.len()).find(|&index| deviation(index) > NORMAL_95);
    let searched = above.unwrap_or(rising.len());
    let below = (0..searched).rev().find(|&index| deviation(index) < -NORMAL_95);
    let users = |index: usize| rising.get(index).map(|point| point.0);
    let low = below.and_then(users).map_or(1, |users| users.saturating_add(1));
    let high = above.and_then(users).or(rising.last().map(|point| point.0)).unwrap_or(bracket.1);
    [low.min(bracket.1), high.max(bracket.1)]
}
