//! Days of the calendar, and which of them can be booked.

use jiff::{Zoned, civil::Date};
use serde::{Serialize, Serializer};

/// How far ahead a room can be booked, days.
pub(crate) const HORIZON_DAYS: i32 = 5 * 366;

/// A day of the Gregorian calendar, written as `2026-03-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(Date);

impl Day {
    /// Today in the server's time zone: that of `TZ`, or else the system's.
    pub(crate) fn today() -> Self {
        Self(Zoned::now().date())
    }

    /// Parses a day in exactly this form.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let form = "must be a day written as year, month and day, such as 2030-01-31";
        let shaped = text.len() == 10
            && text.bytes().enumerate().all(|(place, byte)| match place {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Err(form);
        }
        let number =
            |place: std::ops::Range<usize>| text.get(place).and_then(|part| part.parse::<i16>().ok());
        let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
            return Err(form);
        };
        let narrow = |number: i16| i8::try_from(number).unwrap_or(-1);
        Date::new(year, narrow(month), narrow(day)).map(Self).map_err(|_| "does not exist in the calendar")
    }

    /// Checks that a room can be booked on this day. The error says why not.
    pub(crate) fn check_bookable(self, today: Self) -> Result<(), &'static str> {
        if self < today {
            return Err("is in the past: choose today or a later day");
        }
        if self > today.plus(HORIZON_DAYS) {
            return Err("is more than five years ahead: choose an earlier day");
        }
        Ok(())
    }

    /// The day this many days later, or the last day of the calendar.
    pub(crate) fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(jiff::Span::new().days(days)))
    }

    /// The number of days from this one to `later`.
    pub(crate) fn days_until(self, later: Self) -> i32 {
        self.0.until(later.0).map_or(0, |span| span.get_days())
    }

    /// The form used by iCalendar: `20260301`.
    pub(crate) fn compact(self) -> String {
        self.0.strftime("%Y%m%d").to_string()
    }
}

/// A range of days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct DayRange {
    pub(crate) from: Day,
    pub(crate) to: Day,
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    #[test]
    fn only_one_form_is_parsed() {
        assert_eq!(day("2028-02-29").to_string(), "2028-02-29");
        assert_eq!(day("2028-02-29").compact(), "20280229");
        for bad in [
            "",
            "2026-3-1",
            "20260301",
            "01-03-2026",
            "2026-03-01T00:00",
            "2026/03/01",
            "２０２６-03-01",
            "-026-03-01",
        ] {
            assert!(Day::parse(bad).unwrap_err().contains("such as 2030-01-31"), "{bad}");
        }
        for none in ["2026-02-29", "2026-02-30", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-99"] {
            assert_eq!(Day::parse(none).unwrap_err(), "does not exist in the calendar", "{none}");
        }
    }

    #[test]
    fn days_are_counted_across_months_and_leap_years() {
        assert_eq!(day("2027-12-31").plus(60).to_string(), "2028-02-29");
        assert_eq!(day("2027-12-31").days_until(day("2028-02-29")), 60);
        assert_eq!(day("9999-12-31").plus(1), day("9999-12-31"));
    }

    #[test]
    fn only_today_and_the_next_five_years_can_be_booked() {
        let today = day("2026-11-21");
        assert!(
            today.check_bookable(today).is_ok() && today.plus(HORIZON_DAYS).check_bookable(today).is_ok()
        );
        assert!(day("2026-11-20").check_bookable(today).unwrap_err().contains("past"));
        assert!(today.plus(HORIZON_DAYS + 1).check_bookable(today).unwrap_err().contains("ahead"));
    }
}
