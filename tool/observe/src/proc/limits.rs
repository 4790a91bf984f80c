//! `/proc/PID/limits` (proc_pid_limits(5)).

/// The soft limit on open descriptors; `None` for none or where the line is missing.
pub(crate) fn open_files(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit() {
        let text =
            "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024       4096       files\n";
        assert_eq!(open_files(text), Some(1024));
        assert_eq!(open_files("Max open files   unlimited unlimited files\n"), None);
        assert_eq!(open_files(""), None);
    }
}
