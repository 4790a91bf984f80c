//! Which settings of the kernel mend a fault, and to what.

use super::{Facts, Fault};

/// A setting that may be changed. There are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// `net.ipv4.ip_local_port_range`.
    LocalPorts,
    /// `net.ipv4.tcp_tw_reuse`.
    TimeWaitReuse,
    /// `net.core.somaxconn`.
    ListenQueue,
    /// `net.ipv4.tcp_max_syn_backlog`.
    SynQueue,
    /// `net.core.netdev_max_backlog`.
    PacketQueue,
    /// `net.netfilter.nf_conntrack_max`.
    TrackedMax,
    /// The governor of a processor's speed.
    Governor {
        /// The processor.
        processor: u32,
    },
    /// Who gets large pages.
    HugePages,
    /// The source of the kernel's clock.
    Clock,
}

/// Where the settings without numbers are.
const PATHS: [(Setting, &str); 8] = [
    (Setting::LocalPorts, "/proc/sys/net/ipv4/ip_local_port_range"),
    (Setting::TimeWaitReuse, "/proc/sys/net/ipv4/tcp_tw_reuse"),
    (Setting::ListenQueue, "/proc/sys/net/core/somaxconn"),
    (Setting::SynQueue, "/proc/sys/net/ipv4/tcp_max_syn_backlog"),
    (Setting::PacketQueue, "/proc/sys/net/core/netdev_max_backlog"),
    (Setting::TrackedMax, "/proc/sys/net/netfilter/nf_conntrack_max"),
    (Setting::HugePages, "/sys/kernel/mm/transparent_hugepage/enabled"),
    (Setting::Clock, "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
];

const PROCESSOR: &str = "/sys/devices/system/cpu/cpu";
const GOVERNOR: &str = "/cpufreq/scaling_governor";

impl Setting {
    /// The file that holds it.
    pub fn path(self) -> String {
        match self {
            Self::Governor { processor } => [PROCESSOR, &processor.to_string(), GOVERNOR].concat(),
            other => PATHS.iter().find(|(of, _)| *of == other).map_or("", |(_, path)| path).to_owned(),
        }
    }

    /// The setting in a file; `None` for any file but those of [`Setting::path`].
    pub fn at(path: &str) -> Option<Self> {
        let known = PATHS.iter().find(|(_, at)| *at == path).map(|(of, _)| *of);
        known.or_else(|| {
            let processor = path.strip_prefix(PROCESSOR)?.strip_suffix(GOVERNOR)?.parse().ok()?;
            // Only as it is written by us: no signs, no zeros before it.
            Some(Self::Governor { processor }).filter(|of| of.path() == path)
        })
    }

    /// Whether each network namespace has its own.
    pub fn is_of_network(self) -> bool {
        self.path().starts_with("/proc/sys/net/")
    }
}

/// A setting that is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub setting: Setting,
    /// What it was.
    pub before: String,
    /// What it becomes.
    pub after: String,
}

impl Change {
    /// Whether both values are made of letters, digits and little else: any other is not put into a script.
    pub fn is_plain(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | ':');
        let is_plain = |value: &str| !value.is_empty() && value.len() <= 64 && value.chars().all(plain);
        is_plain(&self.before) && is_plain(&self.after)
    }
}

/// What puts changed settings back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undo {
    /// The network namespace that they were changed in, where it has settings of its own among them.
    pub network: Option<String>,
    /// What was changed.
    pub changes: Vec<Change>,
}

/// The settings that mend these faults as far as settings of the kernel can, each with its value, in the order of the faults.
pub fn remedies(faults: &[Fault], facts: &Facts) -> Vec<(Setting, String)> {
    faults.iter().flat_map(|fault| remedy(fault, facts)).collect()
}

/// How many of these faults [`remedies`] leaves alone.
pub fn left_alone(faults: &[Fault], facts: &Facts) -> usize {
    faults.iter().filter(|fault| remedy(fault, facts).is_empty()).count()
}

/// The first and the last port for connections that a wide range has: 1 024 and above need no rights.
const LOCAL_PORTS: [u16; 2] = [1_024, 65_000];

/// How many packets may wait to be handled. A queue that is as long already is left as it is.
pub const PACKET_QUEUE: u64 = 10_000;

/// A range as the kernel takes it.
fn range(ends: [u16; 2]) -> String {
    let [first, last] = ends.map(|end| end.to_string());
    [first, last].join(' '.encode_utf8(&mut [0; 4]))
}

fn remedy(fault: &Fault, facts: &Facts) -> Vec<(Setting, String)> {
    let one = |setting, value: &str| vec![(setting, value.to_owned())];
    match fault {
        Fault::FewPorts { .. } => one(Setting::LocalPorts, &range(LOCAL_PORTS)),
        Fault::TimeWait { reuse, .. } if *reuse != Some(1) => one(Setting::TimeWaitReuse, "1"),
        Fault::ListenQueue { .. } => one(Setting::ListenQueue, "4096"),
        Fault::SynQueue { .. } => one(Setting::SynQueue, "4096"),
        Fault::PacketsDropped { limit, .. } | Fault::DroppedSinceStart { limit, .. }
            if limit.is_none_or(|limit| limit < PACKET_QUEUE) =>
        {
            one(Setting::PacketQueue, &PACKET_QUEUE.to_string())
        }
        Fault::Tracking { table } => one(Setting::TrackedMax, &table.most.saturating_mul(4).to_string()),
        Fault::HugePages => one(Setting::HugePages, "madvise"),
        Fault::Clock { better: Some(better), .. } => one(Setting::Clock, better),
        Fault::Governor { .. } => {
            let slow = |processor: &&super::Processor| {
                processor.governor.as_ref().is_some_and(|name| name != "performance")
            };
            let setting = |of: &super::Processor| Setting::Governor { processor: of.number };
            facts.processors.iter().filter(slow).map(|of| (setting(of), "performance".to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Processor;

    #[test]
    fn a_setting_is_found_by_its_file_and_no_other_file_is_one() {
        let all = PATHS.iter().map(|(of, _)| *of).chain([Setting::Governor { processor: 12 }]);
        for setting in all {
            assert_eq!(Setting::at(&setting.path()), Some(setting));
        }
        let others = [
            "/etc/passwd",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/net/core/../../kernel/core_pattern",
            "/sys/devices/system/cpu/cpu../cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu007/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu+1/cpufreq/scaling_governor",
            "",
        ];
        assert!(others.iter().all(|path| Setting::at(path).is_none()));
    }

    #[test]
    fn what_a_setting_mends_is_set_and_the_rest_is_left_alone() {
        let processor = |number, governor: &str| Processor {
            number,
            governor: Some(governor.into()),
            ..Processor::default()
        };
        let processors =
            vec![processor(0, "powersave"), processor(1, "performance"), processor(2, "ondemand")];
        let facts = Facts { processors, ..Facts::default() };
        let faults = [
            Fault::Steal { share: 0.2 },
            Fault::ListenQueue { limit: 128 },
            Fault::Governor { name: "powersave".into(), processors: 2 },
            Fault::Clock { source: "hpet".into(), better: None },
        ];
        let set = remedies(&faults, &facts);
        let governor = |processor| (Setting::Governor { processor }, "performance".to_owned());
        assert_eq!(set, [(Setting::ListenQueue, "4096".to_owned()), governor(0), governor(2)]);
        assert_eq!(left_alone(&faults, &facts), 2);
    }

    #[test]
    fn what_is_set_already_is_not_set_again() {
        let set = |fault: Fault| remedies(&[fault], &Facts::default());
        let held = |reuse| Fault::TimeWait { held: 90, ports: 100, reuse };
        assert_eq!(set(held(Some(1))), []);
        assert_eq!(set(held(Some(2))), [(Setting::TimeWaitReuse, "1".to_owned())]);
        let dropped = |limit| Fault::PacketsDropped { per_s: 9.0, limit: Some(limit) };
        assert_eq!(set(dropped(20_000)), []);
        assert_eq!(set(dropped(1_000)), [(Setting::PacketQueue, "10000".to_owned())]);
    }
}
