//! How busy is full, and how close is a rival.

/// Busy at least this share on the plateau is full. The plateau begins where 95 % of the maximum
/// throughput is reached, and there a queueing resource is 95 % busy by the utilisation law (U = X D);
/// five points are left for looks that do not line up with the step.
pub const FULL: f64 = 0.90;

/// Rivals closer than this cannot be told apart with confidence: clock-tick accounting of CPU time is
/// good to one or two per cent, and the plateau itself spans five.
pub const NEAR: f64 = 0.07;

/// A resource less busy than this was not in the way: queueing at 80 % busy may double a response time, but
/// it does not stop throughput from growing.
pub const NOT_BUSY: f64 = 0.80;

/// Cores of unwatched work that follows the load: with this much of it, idle watched resources prove
/// nothing.
pub const UNWATCHED: f64 = 0.15;

/// Others that take this share of the processors lower the maximum throughput by as much.
pub const DISTURBING: f64 = 0.10;
