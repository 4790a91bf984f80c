//! The files of the host: processors, disks, memory, pressure.

use analysis::counters::{Cpu, Disk, Memory};

use super::named;

/// The processors of `/proc/stat` (proc_stat(5)), one per `cpuN` line. `ticks_per_second` is the unit of the file.
pub(crate) fn cpus(text: &str, ticks_per_second: u64) -> Vec<Cpu> {
    text.lines().filter_map(|line| cpu(line, ticks_per_second)).collect()
}

fn cpu(line: &str, ticks_per_second: u64) -> Option<Cpu> {
    let rest = line.strip_prefix("cpu")?;
    let (number, rest) = rest.split_once(' ')?;
    let number = number.parse().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let us = |index| super::number(&fields, index).saturating_mul(1_000_000) / ticks_per_second.max(1);
    // Guest time is already in user and nice (proc_stat(5)).
    Some(Cpu {
        number,
        user_us: us(0).saturating_add(us(1)),
        system_us: us(2).saturating_add(us(5)).saturating_add(us(6)),
        idle_us: us(3),
        iowait_us: us(4),
        steal_us: us(7),
        softirq_us: us(6),
        ..Cpu::default()
    })
}

/// The file counts sectors of 512 bytes, whatever the device's own size.
const SECTOR_BYTES: u64 = 512;

/// Every device of `/proc/diskstats` (Documentation/admin-guide/iostats.rst), including partitions and memory devices.
pub(crate) fn disks(text: &str) -> Vec<Disk> {
    text.lines().filter_map(disk).collect()
}

fn disk(line: &str) -> Option<Disk> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let name = *fields.get(2)?;
    if fields.len() < 14 {
        return None;
    }
    let at = |index| super::number(&fields, index);
    let us = |index| at(index).saturating_mul(1000);
    Some(Disk {
        name: name.to_owned(),
        reads: at(3),
        read_bytes: at(5).saturating_mul(SECTOR_BYTES),
        read_us: us(6),
        writes: at(7),
        written_bytes: at(9).saturating_mul(SECTOR_BYTES),
        write_us: us(10),
        in_flight: at(11),
        busy_us: us(12),
        weighted_us: us(13),
        flushes: at(18),
        flush_us: us(19),
    })
}

/// `/proc/meminfo` and `/proc/vmstat` (proc_meminfo(5), proc_vmstat(5)).
pub(crate) fn memory(meminfo: &str, vmstat: &str) -> Memory {
    Memory {
        total_bytes: named(meminfo, "MemTotal:").saturating_mul(1024),
        available_bytes: named(meminfo, "MemAvailable:").saturating_mul(1024),
        // This counts kilobytes, whatever the page size.
        paged_in_bytes: named(vmstat, "pgpgin ").saturating_mul(1024),
        cache_refaults: cache_refaults(vmstat),
        swapped_in_pages: named(vmstat, "pswpin "),
    }
}

/// Called `workingset_refault` before Linux 5.9, when anonymous pages were not counted.
fn cache_refaults(vmstat: &str) -> u64 {
    named(vmstat, "workingset_refault_file ").max(named(vmstat, "workingset_refault "))
}

/// The `total` of one line of `/proc/pressure/*` (Documentation/accounting/psi.rst), microseconds. `line` is `some` or
/// `full`.
pub(crate) fn pressure_total_us(text: &str, line: &str) -> u64 {
    let found = text.lines().find(|found| found.split_whitespace().next() == Some(line));
    found.and_then(|found| found.rsplit_once("total=")?.1.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn one_entry_per_processor() {
        let text = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 1 5 100 7 2 3 4 99 99\ncpu2 1 0 0 2\nintr 4\n";
        let first = Cpu {
            number: 0,
            user_us: 110_000,
            system_us: 100_000,
            idle_us: 1_000_000,
            iowait_us: 70_000,
            steal_us: 40_000,
            softirq_us: 30_000,
            ..Cpu::default()
        };
        let second = Cpu { number: 2, user_us: 10_000, idle_us: 20_000, ..Cpu::default() };
        assert_eq!(cpus(text, 100), vec![first, second]);
    }

    pub(crate) const DISKS: &str =
        " 254       0 vda 68154 12989 8021810 21029 38042 82489 27953280 99971 2 14904 122359 14232 45 1705664 1247 3413 110
 254       1 vda1 1 0 8 1 0 0 0 0 0 1 1
   7       0 loop0 0 0 0
";

    #[test]
    fn lines_of_old_and_new_kernels() {
        let disks = disks(DISKS);
        let vda = Disk {
            name: "vda".to_owned(),
            reads: 68_154,
            read_bytes: 8_021_810 * 512,
            read_us: 21_029_000,
            writes: 38_042,
            written_bytes: 27_953_280 * 512,
            write_us: 99_971_000,
            flushes: 3413,
            flush_us: 110_000,
            busy_us: 14_904_000,
            weighted_us: 122_359_000,
            in_flight: 2,
        };
        assert_eq!(disks.first(), Some(&vda));
        assert_eq!(disks.get(1).map(|disk| (disk.reads, disk.flushes)), Some((1, 0)));
        assert_eq!(disks.len(), 2, "the truncated line is left out");
    }

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
        assert_eq!(memory(meminfo, vmstat), expected);
        assert_eq!(memory("", "workingset_refault 4\n").cache_refaults, 4);
    }

    #[test]
    fn each_line_has_its_own_total() {
        let text = "some avg10=0.42 avg60=0.96 avg300=0.88 total=23252254\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!((pressure_total_us(text, "some"), pressure_total_us(text, "full")), (23_252_254, 7));
        assert_eq!(pressure_total_us("some avg10=0.42\n", "some"), 0);
        assert_eq!(pressure_total_us("", "full"), 0);
    }
}
