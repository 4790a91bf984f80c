//! Parts of a day, for rooms that are not booked by whole days.

use serde::Serialize;

/// Maximum number of slots that a room may have in a day.
pub(crate) const SLOTS_MAX: usize = 48;

/// A part of a day, written as `09:00-10:30`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Slot(String);

impl Slot {
    /// Parses a slot. The error says what it must be.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let form = "must be two times of a day, such as 09:00-10:30";
        let (from, to) = text.split_once('-').ok_or(form)?;
        match (minutes(from), minutes(to)) {
            (Some(from), Some(to)) if from < to => Ok(Self(text.to_owned())),
            (Some(_), Some(_)) => Err("must end after it begins"),
            _ => Err(form),
        }
    }

    /// Checks that the slots of a room are in order and do not overlap.
    pub(crate) fn check_all(slots: &[Self]) -> Result<(), &'static str> {
        if slots.len() > SLOTS_MAX {
            return Err("must be 48 at most");
        }
        // Times of the same width compare correctly as text.
        let apart = slots.windows(2).all(|pair| matches!(pair, [a, b] if a.end() <= b.begin()));
        if apart { Ok(()) } else { Err("must be in order and must not overlap") }
    }

    /// Joins slots into the form that is stored: `09:00-10:30,11:00-12:00`.
    pub(crate) fn list(slots: &[Self]) -> String {
        slots.iter().map(Self::as_str).collect::<Vec<_>>().join(",")
    }

    /// Parses the form that is stored.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, &'static str> {
        text.split(',').filter(|part| !part.is_empty()).map(Self::parse).collect()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The start, as in `09:00`.
    pub(crate) fn begin(&self) -> &str {
        self.0.split_once('-').map_or("", |(begin, _)| begin)
    }

    /// The end, as in `10:30`.
    pub(crate) fn end(&self) -> &str {
        self.0.split_once('-').map_or("", |(_, end)| end)
    }
}

/// Parses `09:30` into minutes since midnight. `24:00` is the end of a day.
fn minutes(time: &str) -> Option<u16> {
    let (hour, minute) = time.split_once(':')?;
    let number = |text: &str| {
        let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<u16>().ok()).flatten()
    };
    let minutes = number(hour)? * 60 + number(minute).filter(|minute| *minute < 60)?;
    (minutes <= 24 * 60).then_some(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_two_times_in_order() {
        let slot = Slot::parse("09:00-10:30").unwrap();
        assert_eq!((slot.begin(), slot.end()), ("09:00", "10:30"));
        assert!(Slot::parse("00:00-24:00").is_ok());
        for bad in [
            "",
            "9:00-10:00",
            "09:00",
            "09:00-25:00",
            "09:60-10:00",
            "10:00-09:00",
            "10:00-10:00",
            "+9:00-10:00",
            "24:00-24:30",
        ] {
            assert!(Slot::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_slots_of_a_room_do_not_overlap() {
        let all = |texts: &[&str]| {
            let slots: Vec<_> = texts.iter().map(|text| Slot::parse(text).unwrap()).collect();
            Slot::check_all(&slots)
        };
        assert!(all(&[]).is_ok() && all(&["09:00-10:00", "10:00-11:00"]).is_ok());
        assert!(all(&["09:00-10:00", "09:30-11:00"]).is_err());
        assert!(all(&["10:00-11:00", "09:00-10:00"]).is_err());
        assert!(all(&["09:00-10:00", "09:00-10:00"]).is_err());
    }
}
