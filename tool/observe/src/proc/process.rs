//! The files of a process and of its threads.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::number;

/// The fields in use of `/proc/PID/stat` and `/proc/PID/task/TID/stat` (proc_pid_stat(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    /// The letter of the state.
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// User and kernel time of children that were waited for.
    pub(crate) reaped_ticks: u64,
    pub(crate) thread_count: u32,
    pub(crate) started_ticks: u64,
    pub(crate) resident_pages: u64,
}

/// Parses `/proc/PID/stat`. Returns `None` for anything else: the process is gone, or the read was cut short.
pub(crate) fn stat(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    if fields.len() < 22 {
        return None;
    }
    let at = |index| number(&fields, index);
    Some(Stat {
        name: name.to_owned(),
        state: fields.first().and_then(|state| state.chars().next()).unwrap_or('?'),
        parent: u32::try_from(at(1)).unwrap_or(0),
        major_faults: at(9),
        user_ticks: at(11),
        system_ticks: at(12),
        reaped_ticks: at(13).saturating_add(at(14)),
        thread_count: u32::try_from(at(17)).unwrap_or(u32::MAX),
        started_ticks: at(19),
        resident_pages: at(21),
    })
}

/// The processors in `/proc/PID/status` (proc_pid_status(5)) on which it may run, ascending; none if there is no such line.
pub(crate) fn allowed_cpus(status: &str) -> Vec<u32> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    numbers(list.unwrap_or_default())
}

/// More processors than any kernel can be built for.
const CPUS_MAX: u32 = 1 << 16;

/// The numbers of a kernel list such as `0-3,8`, ascending.
pub(crate) fn numbers(list: &str) -> Vec<u32> {
    let range = |range: &str| -> Option<RangeInclusive<u32>> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last < CPUS_MAX).then_some(first..=last)
    };
    let numbers: BTreeSet<u32> = list.split(',').filter_map(range).flatten().collect();
    numbers.into_iter().collect()
}

/// The hard limit on open descriptors in `/proc/PID/limits`. `None` if there is no limit or no such line.
pub(crate) fn most_open_files(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The soft limit on open descriptors in `/proc/PID/limits` (proc_pid_limits(5)). `None` if there is no limit or no such
/// line.
pub(crate) fn open_files_limit(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The scheduler's account of a thread: `/proc/PID/task/TID/schedstat` (Documentation/scheduler/sched-stats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Schedstat {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
    /// How often it was put on a processor.
    pub(crate) slices: u64,
}

/// Parses a `schedstat` file. Returns `None` for anything else, and where all is zero because the kernel keeps no such
/// account.
pub(crate) fn schedstat(text: &str) -> Option<Schedstat> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() < 3 {
        return None;
    }
    let at = |index| number(&fields, index);
    let stat = Schedstat { cpu_ns: at(0), wait_ns: at(1), slices: at(2) };
    (stat != Schedstat::default()).then_some(stat)
}

/// The paths of a process's cgroups, below the mount points, in the hierarchies that matter here (cgroups(7)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cgroups {
    /// Version 2.
    pub(crate) unified: Option<String>,
    /// Version 1, controller `cpu`.
    pub(crate) cpu: Option<String>,
    /// Version 1, controller `cpuacct`.
    pub(crate) cpuacct: Option<String>,
    /// Version 1, controller `blkio`.
    pub(crate) blkio: Option<String>,
    /// Version 1, controller `memory`.
    pub(crate) memory: Option<String>,
}

/// Parses `/proc/PID/cgroup`: lines of `number:controllers:path`.
pub(crate) fn cgroups(text: &str) -> Cgroups {
    let mut cgroups = Cgroups::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if number == "0" && controllers.is_empty() {
            cgroups.unified = Some(path.to_owned());
        }
        for controller in controllers.split(',') {
            match controller {
                "cpu" => cgroups.cpu = Some(path.to_owned()),
                "blkio" => cgroups.blkio = Some(path.to_owned()),
                "memory" => cgroups.memory = Some(path.to_owned()),
                "cpuacct" => cgroups.cpuacct = Some(path.to_owned()),
                _ => {}
            }
        }
    }
    cgroups
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const NGINX: &str = "812 (nginx: (worker) 1) S 811 811 811 0 -1 4194368 31 0 9 0 120 80 5 7 20 0 3 0 131668 \
        2990080 411 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let expected = Stat {
            name: "nginx: (worker) 1".to_owned(),
            state: 'S',
            parent: 811,
            major_faults: 9,
            user_ticks: 120,
            system_ticks: 80,
            reaped_ticks: 12,
            thread_count: 3,
            started_ticks: 131_668,
            resident_pages: 411,
        };
        assert_eq!(stat(NGINX), Some(expected));
    }

    #[test]
    fn half_a_file_is_no_process() {
        assert_eq!(stat("812 (nginx) S 811 811"), None);
        assert_eq!(stat("812 (ngi"), None);
        assert_eq!(stat(""), None);
    }

    #[test]
    fn the_processors_in_a_status_file() {
        let text = "Name:\tpool 1\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nMems_allowed:\t1\n";
        assert_eq!(allowed_cpus(text), [0, 1, 2, 3, 8]);
        assert!(allowed_cpus("Cpus_allowed_list").is_empty());
    }

    #[test]
    fn the_valid_part_of_a_broken_list_counts() {
        assert_eq!(numbers("3-1,x,7"), [7]);
        assert_eq!(numbers("0-4294967295,1"), [1]);
        assert_eq!(numbers("2,0-2"), [0, 1, 2]);
        assert!(numbers("").is_empty());
    }

    #[test]
    fn the_soft_limit() {
        let text =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024       4096       files\n";
        assert_eq!(open_files_limit(text), Some(1024));
        assert_eq!(open_files_limit("Max open files   unlimited unlimited files\n"), None);
        assert_eq!(open_files_limit(""), None);
    }

    #[test]
    fn three_numbers_or_nothing() {
        let expected = Schedstat { cpu_ns: 1_263_803, wait_ns: 11_147, slices: 3 };
        assert_eq!(schedstat("1263803 11147 3\n"), Some(expected));
        assert_eq!(schedstat("0 0 0\n"), None);
        assert_eq!(schedstat("12 5"), None);
    }

    #[test]
    fn cgroups_of_both_versions() {
        let text = "5:blkio:/io\n4:memory:/m\n3:cpu,cpuacct:/web:1\n0::/user.slice\nbroken\n";
        let web = Some("/web:1".to_owned());
        let [unified, blkio, memory] = ["/user.slice", "/io", "/m"].map(|path| Some(path.to_owned()));
        assert_eq!(cgroups(text), Cgroups { unified, cpu: web.clone(), cpuacct: web, blkio, memory });
    }
}
