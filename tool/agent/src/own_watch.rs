//! The far end watches what its own host does to the load that it makes: nobody else may.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use analysis::resources::{LinkUse, Usage, usage};
use observe::{KernelPaths, Topology, Watcher, covering, monotonic_us};

use crate::protocol::{OwnLink, OwnQuota, OwnUse};

/// Time between samples: of what is told over seconds few are enough.
const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

/// Over how long what was used is told: a burst fills no link for so long.
const PERIOD_US: u64 = 3_000_000;

/// Watches this process and its host.
#[derive(Debug)]
pub(crate) struct OwnWatch {
    watcher: Watcher,
    told_us: u64,
}

impl OwnWatch {
    /// Begins to watch, for a load that goes to these addresses; `None` where that is not possible.
    pub(crate) fn start(addresses: &[SocketAddr]) -> Option<Self> {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let topology = Topology::unseen(addresses.first().copied().unwrap_or(nowhere));
        let watcher = Watcher::start(KernelPaths::default(), topology, SAMPLE_PERIOD).ok()?;
        Some(Self { watcher, told_us: monotonic_us() })
    }

    /// What was used since it was told last, once that is long ago. Takes no sample, so that it does not wait.
    pub(crate) fn look(&mut self, now_us: u64) -> Option<OwnUse> {
        if now_us < self.told_us + PERIOD_US {
            return None;
        }
        let since_us = std::mem::replace(&mut self.told_us, now_us);
        let (until_us, seen) = self.watcher.read(|samples| {
            let until_us = samples.last().map_or(0, |sample| sample.at_us);
            (until_us, covering(samples, (since_us, until_us)).to_vec())
        });
        let own = (since_us < until_us).then(|| own_use(&usage(&seen, &[], (since_us, until_us))))?;
        (own != OwnUse::default()).then_some(own)
    }
}

fn own_use(seen: &Usage) -> OwnUse {
    let quota = seen.generator().and_then(|generator| generator.quota.as_ref());
    OwnUse {
        link: seen.links.iter().find(|link| link.carries_load).and_then(own_link),
        quota: quota.map(|quota| OwnQuota { cores: quota.cores, stopped: quota.throttled_periods }),
    }
}

fn own_link(link: &LinkUse) -> Option<OwnLink> {
    let (used_bits_per_s, limit_bits_per_s) = link.use_of_limit()?;
    Some(OwnLink { name: link.name.clone(), used_bits_per_s, limit_bits_per_s })
}

#[cfg(test)]
mod tests {
    use analysis::counters::{Counters, CpuQuota, Interface, Process, Role};

    use super::*;

    /// This process, and a link that is shaped to a megabit.
    fn sample(at_us: u64, sent_bytes: u64, throttled_periods: u64) -> Counters {
        let quota =
            CpuQuota { cores: 1.0, periods: at_us / 100_000, throttled_periods, ..CpuQuota::default() };
        let process = Process {
            pid: 9,
            name: "nstar".into(),
            role: Role::Generator,
            cpu_quota: Some(quota),
            ..Process::default()
        };
        let link = |name: &str, carries_load, sent_bytes| Interface {
            name: name.into(),
            carries_load,
            shaped_bits_per_s: Some(1_000_000),
            sent_bytes,
            ..Interface::default()
        };
        let interfaces = vec![link("eth0", true, sent_bytes), link("eth1", false, 9 * sent_bytes)];
        Counters { at_us, processes: vec![process], interfaces, ..Counters::default() }
    }

    #[test]
    fn what_is_told_is_the_link_that_carries_the_load_and_the_quota_of_this_process() {
        let samples = [sample(0, 0, 0), sample(1_000_000, 60_000, 3), sample(2_000_000, 240_000, 8)];
        let own = own_use(&usage(&samples, &[], (0, 2_000_000)));
        let link = own.link.unwrap();
        assert_eq!((link.name.as_str(), link.limit_bits_per_s), ("eth0", 1e6));
        assert!((link.share() - 0.96).abs() < 1e-9, "{link:?}");
        assert_eq!(own.quota, Some(OwnQuota { cores: 1.0, stopped: 0.4 }));
    }

    #[test]
    fn a_load_without_limits_is_told_nothing_of() {
        assert_eq!(own_use(&Usage::default()), OwnUse::default());
        let mut watch = OwnWatch::start(&[([127, 0, 0, 1], 80).into()]).unwrap();
        let began_us = watch.told_us;
        assert_eq!(watch.look(began_us + PERIOD_US - 1), None, "it is not due");
        assert_eq!(watch.told_us, began_us);
    }
}
