//! Samples of the memory limits of cgroups: version 2 (`memory.max`, `memory.high`) and version 1
//! (`memory.limit_in_bytes`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::counters::MemoryLimit;
use analysis::doctor::LimitedMemory;

use super::cgroup::{Membership, ancestors};
use crate::clock::page_bytes;
use crate::kernel_files::{KernelPaths, Pid, read, read_or_empty};
use crate::proc::host::pressure_total_us;
use crate::proc::named;
use crate::proc::process::Cgroups;
use crate::topology::Topology;

/// Version 1 writes a number near the largest there is where nothing is limited.
const NO_LIMIT: u64 = 1 << 60;

/// Processes move between cgroups, and limits change, rarely: they are found again once in this many samples.
const SAMPLES_PER_SEARCH: u32 = 4;

/// Finds the limits on the server and the tiers behind it, and samples each once however many processes are under it.
#[derive(Debug)]
pub(super) struct MemoryLimitSampler {
    paths: KernelPaths,
    groups: BTreeMap<PathBuf, LimitedGroup>,
    /// Whether the groups of every process could be read: where not, there may be a limit that does not show.
    all_readable: bool,
    samples: u32,
}

#[derive(Debug, Clone)]
struct LimitedGroup {
    /// Path below the mount point.
    cgroup: String,
    pids: Vec<Pid>,
    version: Version,
}

#[derive(Debug, Clone, Copy)]
enum Version {
    One,
    Two,
}

impl MemoryLimitSampler {
    pub(super) fn new(paths: &KernelPaths) -> Self {
        Self { paths: paths.clone(), groups: BTreeMap::new(), all_readable: true, samples: 0 }
    }

    /// The limits; `None` where there is none among those that could be read, and not all could.
    pub(super) fn sample(&mut self, topology: &Topology) -> Option<Vec<MemoryLimit>> {
        if self.samples.is_multiple_of(SAMPLES_PER_SEARCH) {
            self.search(topology);
        }
        self.samples = self.samples.wrapping_add(1);
        let limits: Vec<_> =
            self.groups.iter().filter_map(|(directory, group)| limit(directory, group)).collect();
        (self.all_readable || !limits.is_empty()).then_some(limits)
    }

    fn search(&mut self, topology: &Topology) {
        self.groups.clear();
        self.all_readable = true;
        for pid in topology.servers.iter().chain(&topology.downstream) {
            let membership = Membership::of(&self.paths, *pid);
            let cgroups = membership.read();
            // The nearest of those that allow as little.
            let tightest = found(&membership, &cgroups).into_iter().min_by_key(|(bytes, ..)| *bytes);
            let Some((_, directory, group)) = tightest else {
                let has_ended = || !self.paths.process(*pid).exists();
                self.all_readable &= can_be_read(&membership, &cgroups) || has_ended();
                continue;
            };
            self.groups.entry(directory).or_insert(group).pids.push(*pid);
        }
        self.groups.values_mut().for_each(|group| group.pids.sort_unstable());
    }
}

/// The memory that a process may use by the fullest limit of its cgroups, and what of it is in use; `None` without a limit. A
/// group around others may have a larger one, and be nearer to it.
pub(super) fn in_use(paths: &KernelPaths, pid: Pid) -> Option<LimitedMemory> {
    let membership = Membership::of(paths, pid);
    let limits = found(&membership, &membership.read());
    let uses = limits.into_iter().filter_map(|(_, directory, group)| used(&directory, &group));
    uses.max_by(|one, other| one.share().total_cmp(&other.share()))
}

/// What a group uses of its limit.
fn used(directory: &Path, group: &LimitedGroup) -> Option<LimitedMemory> {
    let MemoryLimit { limit_bytes, used_bytes, .. } = limit(directory, group)?;
    let stat = read_or_empty(&directory.join("memory.stat"));
    // Version 1 has the sum over a group and those below it under a name of its own.
    let idle = named(&stat, "inactive_file ").max(named(&stat, "total_inactive_file "));
    Some(LimitedMemory { most_bytes: limit_bytes, used_bytes: used_bytes.saturating_sub(idle) })
}

/// A limit, the directory of its group, and the group.
type Limited = (u64, PathBuf, LimitedGroup);

/// The limits on a process, of its own group first.
fn found(membership: &Membership, cgroups: &Cgroups) -> Vec<Limited> {
    let of_version_2 = version_2(membership, cgroups);
    if of_version_2.is_empty() { version_1(membership, cgroups) } else { of_version_2 }
}

/// Whether a group of a process can be read: where none can, as where they are not mounted, a limit would not show.
fn can_be_read(membership: &Membership, cgroups: &Cgroups) -> bool {
    let is_there =
        |mount: &Path, path: &str| ancestors(path).any(|path| mount.join(path).join("cgroup.procs").exists());
    match (cgroups.memory.as_deref(), cgroups.unified.as_deref()) {
        (Some(path), _) => is_there(&membership.controller("memory"), path),
        (None, Some(path)) => membership.unified_mounts().iter().any(|mount| is_there(mount, path)),
        (None, None) => false,
    }
}

fn version_2(membership: &Membership, cgroups: &Cgroups) -> Vec<Limited> {
    let path = cgroups.unified.as_deref();
    let limited = |mount: &PathBuf| path.map(|path| limited(mount, path, Version::Two));
    let of_mounts = membership.unified_mounts();
    of_mounts.iter().filter_map(limited).find(|limits| !limits.is_empty()).unwrap_or_default()
}

fn version_1(membership: &Membership, cgroups: &Cgroups) -> Vec<Limited> {
    let path = cgroups.memory.as_deref();
    path.map(|path| limited(&membership.controller("memory"), path, Version::One)).unwrap_or_default()
}

/// The limits of a group and of its ancestors.
fn limited(mount: &Path, path: &str, version: Version) -> Vec<Limited> {
    let limited = ancestors(path).filter_map(|path| {
        let directory = mount.join(path);
        let bytes = limit_bytes(&directory, version)?;
        Some((bytes, directory, LimitedGroup { cgroup: format!("/{path}"), pids: Vec::new(), version }))
    });
    limited.collect()
}

fn limit_bytes(directory: &Path, version: Version) -> Option<u64> {
    // `max` is not a number, and means no limit.
    let value = |name| read(&directory.join(name)).ok()?.trim().parse().ok();
    let lowest = match version {
        Version::One => value("memory.limit_in_bytes"),
        Version::Two => [value("memory.max"), value("memory.high")].into_iter().flatten().min(),
    };
    lowest.filter(|bytes| (1..NO_LIMIT).contains(bytes))
}

/// What was counted against the limit; `None` where it was lifted, or its group is gone.
fn limit(directory: &Path, group: &LimitedGroup) -> Option<MemoryLimit> {
    let limit_bytes = limit_bytes(directory, group.version)?;
    let text = |name: &str| read_or_empty(&directory.join(name));
    let limit = MemoryLimit {
        cgroup: group.cgroup.clone(),
        pids: group.pids.clone(),
        limit_bytes,
        ..evicted(&text("memory.stat"))
    };
    let number = |name| text(name).trim().parse().unwrap_or(0);
    Some(match group.version {
        Version::One => MemoryLimit {
            used_bytes: number("memory.usage_in_bytes"),
            reached: number("memory.failcnt"),
            killed: named(&text("memory.oom_control"), "oom_kill "),
            ..limit
        },
        Version::Two => {
            let (events, pressure) = (text("memory.events"), text("memory.pressure"));
            MemoryLimit {
                used_bytes: number("memory.current"),
                reached: named(&events, "high ").saturating_add(named(&events, "max ")),
                killed: named(&events, "oom_kill "),
                stalled_us: pressure.starts_with("some").then(|| pressure_total_us(&pressure, "some")),
                ..limit
            }
        }
    })
}

/// What came back soon after it was evicted, by `memory.stat`. Version 1 has the sums over a group and those below it under
/// names of their own, and older kernels do not tell files from the rest.
fn evicted(stat: &str) -> MemoryLimit {
    let bytes = |names: &[&str]| {
        let pages = names.iter().map(|name| named(stat, name)).max().unwrap_or(0);
        pages.saturating_mul(page_bytes())
    };
    MemoryLimit {
        refaulted_bytes: bytes(&[
            "workingset_refault_file ",
            "total_workingset_refault_file ",
            "workingset_refault ",
            "total_workingset_refault ",
        ]),
        swapped_in_bytes: bytes(&["workingset_refault_anon ", "total_workingset_refault_anon "]),
        ..MemoryLimit::default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sampler::cgroup::fake::{PID, Tree};

    fn sampled(tree: &Tree) -> Option<Vec<MemoryLimit>> {
        let mut topology = Topology::unseen(([127, 0, 0, 1], 80).into());
        topology.servers = vec![PID];
        MemoryLimitSampler::new(&tree.paths()).sample(&topology)
    }

    fn limits(tree: &Tree) -> Vec<MemoryLimit> {
        sampled(tree).unwrap_or_default()
    }

    /// As Linux 6.18 writes it.
    const STAT: &str = "anon 4096\nfile 8192\nworkingset_nodes 9\nworkingset_refault_anon 2\nworkingset_refault_file 70\n\
                        workingset_activate_file 7\nworkingset_restore_file 1\npgfault 900\npgmajfault 8\n";

    #[test]
    fn version_2_counts_events_refaults_and_stalls() {
        let tree = Tree::new("0::/slice/web\n");
        tree.file("cg/slice/web/memory.max", "200000000\n");
        tree.file("cg/slice/web/memory.high", "max\n");
        tree.file("cg/slice/memory.max", "134217728\n");
        tree.file("cg/slice/memory.high", "100000000\n");
        tree.file("cg/slice/memory.current", "99999744\n");
        tree.file("cg/slice/memory.events", "low 0\nhigh 30\nmax 4\noom 1\noom_kill 2\noom_group_kill 0\n");
        tree.file("cg/slice/memory.stat", STAT);
        tree.file(
            "cg/slice/memory.pressure",
            "some avg10=1.00 avg60=0.00 avg300=0.00 total=77000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n",
        );
        let expected = MemoryLimit {
            cgroup: "/slice".to_owned(),
            pids: vec![PID],
            limit_bytes: 100_000_000,
            used_bytes: 99_999_744,
            reached: 34,
            killed: 2,
            refaulted_bytes: 70 * page_bytes(),
            swapped_in_bytes: 2 * page_bytes(),
            stalled_us: Some(77_000),
        };
        assert_eq!(limits(&tree), [expected]);
    }

    #[test]
    fn version_1_counts_failures_and_sums_over_groups() {
        let tree = Tree::new("4:memory:/web\n0::/\n");
        tree.file("cg/memory/web/memory.limit_in_bytes", "67108864\n");
        tree.file("cg/memory/web/memory.usage_in_bytes", "67104768\n");
        tree.file("cg/memory/web/memory.failcnt", "912\n");
        tree.file("cg/memory/web/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        tree.file(
            "cg/memory/web/memory.stat",
            "cache 1\nworkingset_refault_file 11\ntotal_cache 1\ntotal_workingset_refault_anon 3\n\
             total_workingset_refault_file 1110\n",
        );
        let found = limits(&tree).remove(0);
        assert_eq!(
            (found.cgroup.as_str(), found.limit_bytes, found.used_bytes),
            ("/web", 67_108_864, 67_104_768)
        );
        assert_eq!((found.reached, found.killed, found.stalled_us), (912, 1, None));
        assert_eq!(found.refaulted_bytes / page_bytes(), 1110);
        assert_eq!(found.swapped_in_bytes / page_bytes(), 3);
    }

    #[test]
    fn files_that_were_not_read_for_a_while_are_not_in_use() {
        let tree = Tree::new("4:memory:/web\n0::/a\n");
        let expected = |used_bytes| Some(LimitedMemory { most_bytes: 1_000_000, used_bytes });
        tree.file("cg/memory/web/memory.limit_in_bytes", "1000000\n");
        tree.file("cg/memory/web/memory.usage_in_bytes", "900000\n");
        tree.file("cg/memory/web/memory.stat", "inactive_file 10000\ntotal_inactive_file 300000\n");
        assert_eq!(in_use(&tree.paths(), PID), expected(600_000));
        tree.file("cg/a/memory.max", "1000000\n");
        tree.file("cg/a/memory.current", "700000\n");
        tree.file("cg/a/memory.stat", "inactive_anon 9\ninactive_file 200000\n");
        assert_eq!(in_use(&tree.paths(), PID), expected(500_000));
        tree.file("cg/a/memory.current", "0\n");
        assert_eq!(in_use(&tree.paths(), PID), expected(0), "the files were read at different times");
    }

    #[test]
    fn a_group_around_that_is_fuller_is_what_is_in_use() {
        let tree = Tree::new("0::/slice/web\n");
        tree.file("cg/slice/web/memory.max", "1000000\n");
        tree.file("cg/slice/web/memory.current", "100000\n");
        tree.file("cg/slice/memory.max", "4000000\n");
        tree.file("cg/slice/memory.current", "3800000\n");
        let slice = LimitedMemory { most_bytes: 4_000_000, used_bytes: 3_800_000 };
        assert_eq!(in_use(&tree.paths(), PID), Some(slice));
        assert_eq!(limits(&tree)[0].limit_bytes, 1_000_000, "what a run tells is the tightest");
    }

    #[test]
    fn no_limit_is_none() {
        let tree = Tree::new("4:memory:/web\n0::/a\n");
        tree.file("cg/memory/web/memory.limit_in_bytes", "9223372036854771712\n");
        tree.file("cg/a/memory.max", "max\n");
        assert_eq!((limits(&tree), in_use(&tree.paths(), PID)), (Vec::new(), None));
        assert_eq!(limits(&Tree::new("")), []);
    }

    #[test]
    fn a_cgroup_that_cannot_be_read_is_not_taken_to_have_no_limit() {
        for (membership, group) in [("0::/web\n", "cg/web"), ("4:memory:/web\n0::/\n", "cg/memory/web")] {
            let tree = Tree::new(membership);
            assert_eq!(sampled(&tree), None, "{membership}");
            tree.file(&format!("{group}/cgroup.procs"), "7\n");
            assert_eq!(sampled(&tree), Some(Vec::new()), "{membership}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "((max|some|oom_kill|workingset_refault_file)?[ \t:0-9a-z=.-]{0,40}\n?){0,8}") {
            let tree = Tree::new("4:memory:/web\n0::/a\n");
            for file in ["a/memory.events", "a/memory.stat", "a/memory.pressure", "a/memory.current", "memory/web/memory.stat"] {
                tree.file(&format!("cg/{file}"), &text);
            }
            tree.file("cg/a/memory.max", "4096\n");
            prop_assert_eq!(limits(&tree).len(), 1);
            tree.file("cg/a/memory.max", &text);
            let _ = limits(&tree);
        }
    }
}
