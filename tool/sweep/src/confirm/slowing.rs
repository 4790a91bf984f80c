//! What a tier is slowed by, and how long it takes until that shows.

use std::time::Duration;

use analysis::run::{LeftAloneReason, SlowedBy};

use super::{link::LowerRate, quota::LowerQuota, stand_by::StandBy, stopping::Stopping};

/// The share by which a limit is lowered.
pub(super) const BY: f64 = 0.1;
/// Whether so much of a limit is used that lowering it costs at least half of that share in throughput. With less used, the test
/// speaks against the limit whatever the bottleneck is.
pub(super) fn is_nearly_full(used: f64, limit: f64) -> bool {
    limit > 0.0 && used >= (1.0 - BY / 2.0) * limit
}

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

    /// Begins to slow the tier.
    ///
    /// # Errors
    /// The reason to leave it alone.
    pub(super) fn start(&self) -> Result<Slowing, LeftAloneReason> {
        match self {
            Self::Stopping(pids) => Stopping::start(pids).map(Slowing::Stopping),
            Self::Quota(quota) => quota.start(),
            Self::Rate(rate) => rate.start(),
        }
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
    /// Ends it. Returns the share of the time for which processes were stopped, or by which a limit was lower, 0 to 1.
    pub(super) fn finish(self) -> f64 {
        match self {
            Self::Stopping(stopping) => stopping.finish(),
            Self::Lowered { stand_by, share } => {
                drop(stand_by);
                share
            }
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
