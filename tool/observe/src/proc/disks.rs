//! `/proc/diskstats` (Documentation/admin-guide/iostats.rst).

use analysis::counters::Disk;

/// The file counts sectors of 512 bytes whatever the device's own are.
const SECTOR_BYTES: u64 = 512;

/// Every line: partitions and memory devices are the caller's to leave out.
pub(crate) fn parse(text: &str) -> Vec<Disk> {
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const DISKS: &str =
        " 254       0 vda 68154 12989 8021810 21029 38042 82489 27953280 99971 2 14904 122359 14232 45 1705664 1247 3413 110
 254       1 vda1 1 0 8 1 0 0 0 0 0 1 1
   7       0 loop0 0 0 0
";

    #[test]
    fn old_and_new_lines() {
        let disks = parse(DISKS);
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
        assert_eq!(disks.len(), 2, "the cut line is left out");
    }
}
