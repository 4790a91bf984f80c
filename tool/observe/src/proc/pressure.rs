//! `/proc/pressure/*` (Documentation/accounting/psi.rst).

/// The `total` of the line that begins with `which` (`some` or `full`), microseconds.
pub(crate) fn total_us(text: &str, which: &str) -> u64 {
    let line = text.lines().find(|line| line.split_whitespace().next() == Some(which));
    line.and_then(|line| line.rsplit_once("total=")?.1.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_own_total() {
        let text = "some avg10=0.42 avg60=0.96 avg300=0.88 total=23252254\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!((total_us(text, "some"), total_us(text, "full")), (23_252_254, 7));
        assert_eq!(total_us("some avg10=0.42\n", "some"), 0);
        assert_eq!(total_us("", "full"), 0);
    }
}
