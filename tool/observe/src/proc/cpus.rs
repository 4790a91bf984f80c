//! The processors of `/proc/stat` (proc_stat(5)).

use analysis::counters::Cpu;

/// One entry per `cpuN` line; `ticks_per_second` is the unit of the file.
pub(crate) fn parse(text: &str, ticks_per_second: u64) -> Vec<Cpu> {
    text.lines().filter_map(|line| cpu(line, ticks_per_second)).collect()
}

fn cpu(line: &str, ticks_per_second: u64) -> Option<Cpu> {
    let rest = line.strip_prefix("cpu")?;
    let (number, rest) = rest.split_once(' ')?;
    let number = number.parse().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let us = |index| super::number(&fields, index).saturating_mul(1_000_000) / ticks_per_second.max(1);
    // Time of guests is already in user and nice (proc_stat(5)).
    Some(Cpu {
        number,
        user_us: us(0).saturating_add(us(1)),
        system_us: us(2).saturating_add(us(5)).saturating_add(us(6)),
        idle_us: us(3),
        iowait_us: us(4),
        steal_us: us(7),
    })
}

#[cfg(test)]
mod tests {
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
        };
        let second = Cpu { number: 2, user_us: 10_000, idle_us: 20_000, ..Cpu::default() };
        assert_eq!(parse(text, 100), vec![first, second]);
    }
}
