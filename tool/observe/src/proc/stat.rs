//! `/proc/PID/stat` (proc_pid_stat(5)).

/// What is used of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
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

/// `None` where the text is no such file: the process is gone, or the read was cut short.
pub(crate) fn parse(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    if fields.len() < 22 {
        return None;
    }
    let at = |index| super::number(&fields, index);
    Some(Stat {
        name: name.to_owned(),
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const NGINX: &str = "812 (nginx: (worker) 1) S 811 811 811 0 -1 4194368 31 0 9 0 120 80 5 7 20 0 3 0 131668 \
        2990080 411 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = parse(NGINX).unwrap();
        let expected = Stat {
            name: "nginx: (worker) 1".to_owned(),
            parent: 811,
            major_faults: 9,
            user_ticks: 120,
            system_ticks: 80,
            reaped_ticks: 12,
            thread_count: 3,
            started_ticks: 131_668,
            resident_pages: 411,
        };
        assert_eq!(stat, expected);
    }

    #[test]
    fn half_a_file_is_no_process() {
        assert_eq!(parse("812 (nginx) S 811 811"), None);
        assert_eq!(parse("812 (ngi"), None);
        assert_eq!(parse(""), None);
    }
}
