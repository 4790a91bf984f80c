//! Days, and from which to which rooms may be booked.

use jiff::{Zoned, civil::Date};
use serde::{Serialize, Serializer};

/// How far ahead a room may be booked, days.
pub(crate) const HORIZON_DAYS: i32 = 5 * 366;

/// A day of the Gregorian calendar, written `2026-03-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(Date);

impl Day {
    /// Today, where the server stands: by `TZ`, or the system's time zone.
    pub(crate) fn today() -> Self {
        Self(Zoned::now().date())
    }

    /// Reads a day, in that form only.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
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
        Date::new(year, narrow(month), narrow(day)).map(Self).map_err(|_| "is a day that no calendar has")
    }

    /// That a room may be booked on this day, if today is `today`.
    pub(crate) fn may_be_booked(self, today: Self) -> Result<(), &'static str> {
        if self < today {
            return Err("is past: choose today or a later day");
        }
        if self > today.plus(HORIZON_DAYS) {
            return Err("is more than five years ahead: choose an earlier day");
        }
        Ok(())
    }

    /// So many days later; the last day there is, where that is beyond it.
    pub(crate) fn plus(self, days: i32) -> Self {
        Self(self.0.saturating_add(jiff::Span::new().days(days)))
    }

    /// How many days `later` is later.
    pub(crate) fn days_until(self, later: Self) -> i32 {
        self.0.until(later.0).map_or(0, |span| span.get_days())
    }

    /// As iCalendar writes it: `20260301`.
    pub(crate) fn compact(self) -> String {
        self.0.strftime("%Y%m%d").to_string()
    }
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
        Day::read(text).unwrap()
    }

    #[test]
    fn days_are_read_in_one_form_only() {
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
            assert!(Day::read(bad).unwrap_err().contains("such as 2030-01-31"), "{bad}");
        }
        for none in ["2026-02-29", "2026-02-30", "2026-13-01", "2026-00-10", "2026-01-00", "2026-01-99"] {
            assert_eq!(Day::read(none).unwrap_err(), "is a day that no calendar has", "{none}");
        }
    }

    #[test]
    fn days_are_counted_across_months_and_leap_years() {
        assert_eq!(day("2027-12-31").plus(60).to_string(), "2028-02-29");
        assert_eq!(day("2027-12-31").days_until(day("2028-02-29")), 60);
        assert_eq!(day("9999-12-31").plus(1), day("9999-12-31"));
    }

    #[test]
    fn only_today_and_the_next_five_years_may_be_booked() {
        let today = day("2026-11-21");
        assert!(today.may_be_booked(today).is_ok() && today.plus(HORIZON_DAYS).may_be_booked(today).is_ok());
        assert!(day("2026-11-20").may_be_booked(today).unwrap_err().contains("past"));
        assert!(today.plus(HORIZON_DAYS + 1).may_be_booked(today).unwrap_err().contains("ahead"));
    }
}
