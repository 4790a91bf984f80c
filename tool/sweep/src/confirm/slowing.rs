//! What a tier is slowed by, and how long it takes until that shows.

use std::time::Duration;

use analysis::run::{LeftAloneReason, SlowedBy};

use super::{link::LowerRate, lock::Lock, quota::LowerQuota, stand_by::StandBy, stopping::Stopping};
use crate::progress::NotPutBack;

/// The share by which a limit is lowered.
pub(super) const BY: f64 = 0.1;
/// The start of a stretch that is left out: requests of the one before.
pub(super) const SETTLING: Duration = Duration::from_millis(60);
/// The same where packets may have been dropped: longer than TCP takes to send them again at first (RTO, at least 200 ms on
/// Linux).
const SETTLING_OF_LINK: Duration = Duration::from_millis(250);

/// What slows a tier.
#[derive(Debug)]
pub(super) enum Means {
    /// These processes are stopped for short slices.
    Stopping(Vec<u32>),
    /// A CPU quota.
    Quota(LowerQuota),
    /// The rate of a link.
    Rate(LowerRate),
}

impl Means {
    /// Their name in reports.
    pub(super) fn by(&self) -> SlowedBy {
        match self {
            Self::Stopping(_) => SlowedBy::Stopping,
            Self::Quota(_) => SlowedBy::Quota,
            Self::Rate(_) => SlowedBy::Rate,
        }
    }

    /// Keeps other runs of nstar from lowering the same limit, as long as the tier is tested.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn hold(&self) -> Result<Held<'_>, LeftAloneReason> {
        Ok(match self {
            Self::Stopping(pids) => Held::Stopping(pids),
            Self::Quota(quota) => Held::Quota(quota, quota.lock()?),
            Self::Rate(rate) => Held::Rate(rate, rate.lock()?),
        })
    }

    /// How long to wait after a change before anything is counted. A quota that was changed is handed out anew, so that there
    /// is more of it until its period ends.
    pub(super) fn settling(&self) -> Duration {
        match self {
            Self::Stopping(_) => SETTLING,
            Self::Quota(quota) => SETTLING.max(quota.period()),
            Self::Rate(_) => SETTLING_OF_LINK,
        }
    }

    /// How often processor time is handed out, where a quota is lowered.
    pub(super) fn period(&self) -> Option<Duration> {
        match self {
            Self::Quota(quota) => Some(quota.period()),
            Self::Stopping(_) | Self::Rate(_) => None,
        }
    }

    /// How long to stay at one speed, at least as long as wanted. With a quota it is a number of its periods: in any stretch of
    /// such a length processor time is handed out equally often.
    pub(super) fn stretch(&self, wanted: Duration) -> Duration {
        self.period().map_or(wanted, |period| whole(period, wanted))
    }
}

/// So many periods that they take as long as wanted.
fn whole(period: Duration, wanted: Duration) -> Duration {
    let periods = wanted.as_micros().div_ceil(period.as_micros().max(1));
    period.saturating_mul(u32::try_from(periods).unwrap_or(u32::MAX))
}

/// What slows a tier, now and then. [`Held`] is the real one; in tests it is a tier in virtual time.
pub(super) trait Slows {
    /// A tier that is slowed, until this is finished or dropped.
    type Slowing;

    /// Begins to slow the tier.
    ///
    /// # Errors
    /// The reason to leave it alone.
    fn start(&self) -> Result<Self::Slowing, LeftAloneReason>;

    /// Ends it. Returns the share of the time for which the tier was stopped, or by which its limit was lower, 0 to 1; `None`
    /// where that was over before.
    fn finish(&self, slowing: Self::Slowing) -> Option<f64>;
}

/// Means that no other run of nstar uses until this is dropped.
#[derive(Debug)]
pub(super) enum Held<'a> {
    Stopping(&'a [u32]),
    Quota(&'a LowerQuota, Lock),
    Rate(&'a LowerRate, Lock),
}

impl Slows for Held<'_> {
    type Slowing = Slowing;

    fn start(&self) -> Result<Slowing, LeftAloneReason> {
        match self {
            Self::Stopping(pids) => Stopping::start(pids).map(Slowing::Stopping),
            Self::Quota(quota, lock) => quota.start(lock),
            Self::Rate(rate, lock) => rate.start(lock),
        }
    }

    fn finish(&self, slowing: Slowing) -> Option<f64> {
        slowing.finish()
    }
}

impl Held<'_> {
    /// The limit, where it is still lower though nothing slows the tier any longer.
    pub(super) fn not_put_back(&self) -> Option<NotPutBack> {
        match self {
            // Whoever was stopped is let go by two, each by itself.
            Self::Stopping(_) => None,
            Self::Quota(quota, _) => quota.not_put_back(),
            Self::Rate(rate, _) => rate.not_put_back(),
        }
    }
}

/// A tier that is being slowed, until this is finished or dropped.
#[derive(Debug)]
pub(super) enum Slowing {
    Stopping(Stopping),
    /// A limit is lower by this share, 0 to 1.
    Lowered {
        stand_by: StandBy,
        share: f64,
    },
}

impl Slowing {
    /// Ends it. Returns the share of the time for which processes were stopped, or by which a limit was lower, 0 to 1; `None`
    /// where that was over before.
    pub(super) fn finish(self) -> Option<f64> {
        match self {
            Self::Stopping(stopping) => stopping.finish(),
            Self::Lowered { stand_by, share } => stand_by.finish().then_some(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_with_a_quota_are_whole_periods_of_it() {
        let ms = Duration::from_millis;
        for (period, wanted, found) in [(100, 250, 300), (100, 300, 300), (50, 125, 150), (900, 250, 900)] {
            assert_eq!(whole(ms(period), ms(wanted)), ms(found), "{period} ms, {wanted} ms");
        }
    }
}
