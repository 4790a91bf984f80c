//! Whether a generator's own host held it up.

use agent::protocol::{OwnLink, OwnQuota, OwnUse};
use analysis::run::GeneratorTrouble;
use analysis::thresholds::{FULL, IMPOSSIBLE_RATE, THROTTLED};

/// What to tell of what its host gave a generator.
pub(super) fn troubles(OwnUse { link, quota }: OwnUse) -> Vec<GeneratorTrouble> {
    let is_full = |link: &OwnLink| (FULL..=IMPOSSIBLE_RATE).contains(&link.share());
    let link = link.filter(is_full).map(|OwnLink { name, used_bits_per_s, limit_bits_per_s }| {
        GeneratorTrouble::LinkFull { link: name, used_bits_per_s, limit_bits_per_s }
    });
    let is_short = |quota: &OwnQuota| quota.stopped >= THROTTLED;
    let throttled = |OwnQuota { cores, stopped }| GeneratorTrouble::Throttled { cores, periods: stopped };
    link.into_iter().chain(quota.filter(is_short).map(throttled)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(used_bits_per_s: f64, stopped: f64) -> OwnUse {
        OwnUse {
            link: Some(OwnLink { name: "eth0".into(), used_bits_per_s, limit_bits_per_s: 1e9 }),
            quota: Some(OwnQuota { cores: 2.0, stopped }),
        }
    }

    #[test]
    fn a_generator_is_held_up_by_a_full_link_and_by_a_quota_that_stops_it() {
        let link =
            GeneratorTrouble::LinkFull { link: "eth0".into(), used_bits_per_s: 9.5e8, limit_bits_per_s: 1e9 };
        let quota = GeneratorTrouble::Throttled { cores: 2.0, periods: 0.3 };
        assert_eq!(troubles(own(9.5e8, 0.3)), [link, quota]);
        assert!(troubles(own(8e8, 0.05)).is_empty(), "there is room, and bursts are stopped");
        assert!(troubles(own(2e9, 0.0)).is_empty(), "no link carries twice what it can");
        assert!(troubles(OwnUse::default()).is_empty(), "nothing is known");
    }
}
