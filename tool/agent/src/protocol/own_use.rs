//! What the host of a generator does to the load that it makes there.

use serde::{Deserialize, Serialize};

use super::in_one_line;

/// The longest name of a link that is shown: the kernel's own are shorter.
const NAME_CHARS_MAX: usize = 32;

/// How full what a generator's own host gives it was, over a few seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnUse {
    /// The link that carries the load, where it has a limit.
    pub link: Option<OwnLink>,
    /// The CPU quota of its cgroup, if it has one.
    pub quota: Option<OwnQuota>,
}

/// The link that carries the load, in the direction in which it was fuller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnLink {
    /// Its name.
    pub name: String,
    /// What it carried, bits per second.
    pub used_bits_per_s: f64,
    /// What it can carry, bits per second.
    pub limit_bits_per_s: f64,
}

/// A CPU quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnQuota {
    /// Processors that it allows.
    pub cores: f64,
    /// Share of its periods in which it stopped the generator, 0 to 1.
    pub stopped: f64,
}

impl OwnLink {
    /// The share of its limit that is used.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.used_bits_per_s / self.limit_bits_per_s
    }

    fn believed(self) -> Option<Self> {
        let figures = [self.used_bits_per_s, self.limit_bits_per_s];
        let name = in_one_line(&self.name, NAME_CHARS_MAX);
        figures.into_iter().all(is_positive).then_some(Self { name, ..self })
    }
}

impl OwnUse {
    /// The same cut to what is believed of it and can be shown.
    pub(crate) fn believed(self) -> Self {
        let is_quota = |quota: &OwnQuota| is_positive(quota.cores) && (0.0..=1.0).contains(&quota.stopped);
        Self { link: self.link.and_then(OwnLink::believed), quota: self.quota.filter(is_quota) }
    }

    /// Of each what was fuller. A link that ever carried more than its limit stays the fullest, so that whoever reads it can
    /// tell that this limit is made up, and that no other period shows it to be full.
    pub(crate) fn fuller(self, other: Self) -> Self {
        let link = self.link.into_iter().chain(other.link);
        let quota = self.quota.into_iter().chain(other.quota);
        Self {
            link: link.max_by(|a, b| a.share().total_cmp(&b.share())),
            quota: quota.max_by(|a, b| a.stopped.total_cmp(&b.stopped)),
        }
    }
}

fn is_positive(figure: f64) -> bool {
    figure.is_finite() && figure > 0.0
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
    fn the_fullest_of_each_is_kept() {
        let fullest = OwnUse::default().fuller(own(9e8, 0.1)).fuller(own(1e8, 0.4)).fuller(OwnUse::default());
        assert_eq!(fullest, own(9e8, 0.4));
    }

    #[test]
    fn a_link_that_once_carried_more_than_its_limit_is_not_full_in_other_periods() {
        let fullest = own(9.5e8, 0.1).fuller(own(2e9, 0.1)).fuller(own(9.9e8, 0.1));
        assert_eq!(fullest, own(2e9, 0.1));
    }

    #[test]
    fn what_cannot_be_is_not_believed_and_names_are_fit_to_be_shown() {
        assert_eq!(own(9e8, 0.4).believed(), own(9e8, 0.4));
        for (used, stopped) in [(f64::NAN, f64::NAN), (f64::INFINITY, 1.1), (-1.0, -0.1)] {
            assert_eq!(own(used, stopped).believed(), OwnUse::default(), "{used} {stopped}");
        }
        let odd = OwnLink { name: "a\n\x1b[31m".repeat(99), used_bits_per_s: 1.0, limit_bits_per_s: 2.0 };
        let shown = OwnUse { link: Some(odd), quota: None }.believed().link.unwrap().name;
        assert!(shown.chars().count() <= NAME_CHARS_MAX && !shown.contains(char::is_control), "{shown:?}");
    }
}
