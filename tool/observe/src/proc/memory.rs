//! `/proc/meminfo` and `/proc/vmstat` (proc_meminfo(5), proc_vmstat(5)).

use analysis::counters::Memory;

use super::named;

/// `pgpgin` counts kilobytes, whatever the page size.
pub(crate) fn parse(meminfo: &str, vmstat: &str) -> Memory {
    Memory {
        total_bytes: named(meminfo, "MemTotal:").saturating_mul(1024),
        available_bytes: named(meminfo, "MemAvailable:").saturating_mul(1024),
        paged_in_bytes: named(vmstat, "pgpgin ").saturating_mul(1024),
        cache_refaults: cache_refaults(vmstat),
        swapped_in_pages: named(vmstat, "pswpin "),
    }
}

/// Called `workingset_refault` before Linux 5.9, when anonymous pages were not counted.
fn cache_refaults(vmstat: &str) -> u64 {
    named(vmstat, "workingset_refault_file ").max(named(vmstat, "workingset_refault "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kilobytes_become_bytes() {
        let meminfo = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n";
        let vmstat = "pgpgin 5\npgpgout 6\npswpin 3\nworkingset_refault_anon 9\nworkingset_refault_file 11\n";
        let expected = Memory {
            total_bytes: 1_024_000,
            available_bytes: 409_600,
            paged_in_bytes: 5120,
            cache_refaults: 11,
            swapped_in_pages: 3,
        };
        assert_eq!(parse(meminfo, vmstat), expected);
        assert_eq!(parse("", "workingset_refault 4\n").cache_refaults, 4);
    }
}
