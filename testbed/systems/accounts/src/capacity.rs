//! How many passwords may be hashed at once on this machine.

use std::{fs, thread};

use crate::passwords::MEMORY_KIB;

/// The fraction of the free memory that hashing may take: one in this many.
const MEMORY_SHARE: u64 = 4;

/// One per core, as far as they fit in a quarter of the free memory; at least one.
pub(crate) fn concurrent_hashes() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let memory = [free_in_machine(), free_in_cgroup()].into_iter().flatten().min();
    hashes_for(cores, memory)
}

fn hashes_for(cores: usize, memory_free_kib: Option<u64>) -> usize {
    let fitting = memory_free_kib.map_or(u64::MAX, |kib| kib / MEMORY_SHARE / u64::from(MEMORY_KIB));
    cores.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
}

fn free_in_machine() -> Option<u64> {
    memory_available_kib(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// In a container, the root of the cgroup file system shows the limit (cgroup v2).
fn free_in_cgroup() -> Option<u64> {
    let read = |name| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    Some(limit.saturating_sub(used) / 1024)
}

fn memory_available_kib(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_cap_where_memory_is_plenty_and_memory_where_it_is_not() {
        let gib = 1024 * 1024;
        assert_eq!(hashes_for(8, Some(64 * gib)), 8);
        assert_eq!(hashes_for(8, Some(256 * 1024)), 3, "a quarter of 256 MiB holds three of 19 MiB");
        assert_eq!(hashes_for(8, Some(0)), 1);
        assert_eq!(hashes_for(2, None), 2);
    }

    #[test]
    fn meminfo_is_read() {
        let text = "MemTotal:       24736748 kB\nMemFree: 1 kB\nMemAvailable:   24040120 kB\n";
        assert_eq!(memory_available_kib(text), Some(24_040_120));
        assert_eq!(memory_available_kib("MemAvailable: lots\n"), None);
        assert_eq!(memory_available_kib(""), None);
    }
}
