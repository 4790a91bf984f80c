//! Times as they are stored (Unix seconds) and shown (RFC 3339).

use jiff::Timestamp;

/// The current time, Unix seconds.
pub(crate) fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Formats a time, as in `2027-01-31T18:00:00Z`.
pub(crate) fn show(at_s: i64) -> String {
    Timestamp::from_second(at_s).unwrap_or(Timestamp::MAX).to_string()
}

/// Parses a time.
pub(crate) fn read(text: &str) -> Result<i64, &'static str> {
    let read = text.parse::<Timestamp>();
    read.map(Timestamp::as_second).map_err(|_| "must be a time such as 2027-01-31T18:00:00Z, or null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_format_of_rfc_3339() {
        assert_eq!(read("2027-01-31T18:00:00Z"), Ok(1_801_418_400));
        assert_eq!(read("2027-01-31T19:00:00+01:00"), Ok(1_801_418_400));
        assert_eq!(show(1_801_418_400), "2027-01-31T18:00:00Z");
        for wrong in
            ["", "tomorrow", "2027-02-30T00:00:00Z", "2027-01-31", "2027-01-31T18:00:00", "1801418400"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
