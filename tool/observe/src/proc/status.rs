//! `/proc/PID/status` and `/proc/PID/task/TID/status` (proc_pid_status(5)).

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// More processors than any kernel can be built for.
const CPUS_MAX: u32 = 1 << 16;

/// What is used of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) name: String,
    /// The letter of the state, `?` where there is none.
    pub(crate) state: char,
    pub(crate) allowed_cpus: Vec<u32>,
    pub(crate) voluntary_switches: u64,
}

/// Lines that are missing leave their defaults.
pub(crate) fn parse(text: &str) -> Status {
    let mut status = Status { state: '?', ..Status::default() };
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "Name" => value.clone_into(&mut status.name),
            "State" => status.state = value.chars().next().unwrap_or('?'),
            "Cpus_allowed_list" => status.allowed_cpus = numbers(value),
            "voluntary_ctxt_switches" => status.voluntary_switches = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    status
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_used() {
        let text = "Name:\tpool 1\nUmask:\t0022\nState:\tS (sleeping)\nCpus_allowed:\tff\n\
            Cpus_allowed_list:\t0-3,8\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n";
        let expected = Status {
            name: "pool 1".to_owned(),
            state: 'S',
            allowed_cpus: vec![0, 1, 2, 3, 8],
            voluntary_switches: 42,
        };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn of_broken_lists_the_sound_part_counts() {
        assert_eq!(numbers("3-1,x,7"), [7]);
        assert_eq!(numbers("0-4294967295,1"), [1]);
        assert_eq!(numbers("2,0-2"), [0, 1, 2]);
        assert!(numbers("").is_empty());
    }
}
