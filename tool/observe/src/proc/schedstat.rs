//! `/proc/PID/task/TID/schedstat` (Documentation/scheduler/sched-stats.rst).

/// One thread's account with the scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Schedstat {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
    /// Times it was put on a processor.
    pub(crate) slices: u64,
}

/// `None` where the text is no such file, or all zero: then the kernel does not keep the account.
pub(crate) fn parse(text: &str) -> Option<Schedstat> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() < 3 {
        return None;
    }
    let at = |index| super::number(&fields, index);
    let stat = Schedstat { cpu_ns: at(0), wait_ns: at(1), slices: at(2) };
    (stat != Schedstat::default()).then_some(stat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_or_nothing() {
        assert_eq!(
            parse("1263803 11147 3\n"),
            Some(Schedstat { cpu_ns: 1_263_803, wait_ns: 11_147, slices: 3 })
        );
        assert_eq!(parse("0 0 0\n"), None);
        assert_eq!(parse("12 5"), None);
    }
}
