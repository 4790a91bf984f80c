//! Thresholds that several rules share. One that a single rule uses stands beside that rule.

use crate::run::Probability;

/// The share of the maximum throughput that counts as saturated.
pub(crate) const SATURATED: f64 = 0.95;

/// Steps beyond N* that hold this share of the maximum throughput are the plateau: N* itself is where [`SATURATED`] of it
/// is reached, and five points are left for noise and for throughput that falls slightly.
pub(crate) const PLATEAU: f64 = 0.90;

const _: () = assert!(PLATEAU < SATURATED);

/// A step this many standard errors below the highest throughput is lower beyond chance.
pub(crate) const BELOW: f64 = 2.6;

/// Steps with at least this share of the maximum throughput tell what a request costs: with less, what is done without requests
/// shows.
pub(crate) const LOADED: f64 = 0.5;

/// Demands below this many microseconds cannot be told from the system's own work.
pub(crate) const NEGLIGIBLE_US: f64 = 0.01;

/// Throughput below this share of the maximum is low enough for a resource that limits it to have been clearly less busy.
pub(crate) const LOW: f64 = 0.70;

/// Busy at least this share on the plateau is full. Where the plateau begins, a queueing resource is as busy as the
/// throughput is near its maximum, by the utilisation law (U = X D); five points are left for samples that do not line up
/// with the step.
pub const FULL: f64 = 0.90;

const _: () = assert!(FULL < SATURATED);

/// A link whose traffic ever exceeded its stated speed by this factor has no such limit: virtual devices state made-up speeds.
pub const IMPOSSIBLE_RATE: f64 = 1.1;

/// Shared processors this busy are full, and those less busy had room for everybody. Higher than for one group's own use:
/// part of what keeps them busy may be work that would have waited.
pub(crate) const PROCESSORS_FULL: f64 = 0.93;

/// Rivals closer than this cannot be told apart with confidence: clock-tick accounting of CPU time is good to one or two
/// per cent, and the plateau itself spans five.
pub(crate) const RIVAL_WITHIN: f64 = 0.07;

/// A resource less busy than this was not in the way: queueing at 80 % busy may double a response time, but it does not
/// stop throughput from growing.
pub(crate) const NOT_BUSY: f64 = 0.80;

/// Processes stopped by their CPU quota in fewer periods than this were stopped by bursts, not by lack of CPU time.
pub const THROTTLED: f64 = 0.10;

/// Cores of unwatched work that follows the load: with this much of it, idle watched resources prove nothing.
pub(crate) const UNWATCHED: f64 = 0.15;

/// Others that take this share of the processors lower the maximum throughput by as much.
pub(crate) const DISTURBING: f64 = 0.10;

/// With more users idle than this, a step measures fewer users than it says.
pub(crate) const IDLE_USERS: f64 = 0.05;

/// Responses that pause for some 40 ms by chance, or because of lost segments, are fewer than this share.
pub(crate) const HELD_BACK: f64 = 0.2;

/// Threads of one name with less of the CPU time are not listed.
pub(crate) const LISTED: f64 = 0.01;

/// A verdict that is less probable is inconclusive.
pub(crate) const DECIDED: Probability = Probability::new(0.60);

/// An explanation that is less probable is not named as the bottleneck: twice as much speaks against it as for it.
pub(crate) const NAMED: Probability = Probability::new(1.0 / 3.0);
