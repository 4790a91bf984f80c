//! Parts of a day, for rooms that are not booked by the whole of it.

use serde::Serialize;

/// Most slots a room may have in a day.
pub(crate) const SLOTS_MAX: usize = 48;

/// A part of a day, written `09:00-10:30`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Slot(String);

impl Slot {
    /// Reads a slot.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let form = "must be two times of a day, such as 09:00-10:30";
        let (from, to) = text.split_once('-').ok_or(form)?;
        match (minutes(from), minutes(to)) {
            (Some(from), Some(to)) if from < to => Ok(Self(text.to_owned())),
            (Some(_), Some(_)) => Err("must end after it begins"),
            _ => Err(form),
        }
    }

    /// Checks the slots of one room: in order, and no two at a time.
    pub(crate) fn check_all(slots: &[Self]) -> Result<(), &'static str> {
        if slots.len() > SLOTS_MAX {
            return Err("must be no more than 48");
        }
        // Text of one width compares as times do.
        let apart = slots.windows(2).all(|pair| matches!(pair, [a, b] if a.end() <= b.begin()));
        if apart { Ok(()) } else { Err("must be in order and must not overlap") }
    }

    /// Slots as one text, to be kept: `09:00-10:30,11:00-12:00`.
    pub(crate) fn list(slots: &[Self]) -> String {
        slots.iter().map(Self::as_str).collect::<Vec<_>>().join(",")
    }

    /// Slots from that text.
    pub(crate) fn read_list(text: &str) -> Result<Vec<Self>, &'static str> {
        text.split(',').filter(|part| !part.is_empty()).map(Self::read).collect()
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// `09:00`
    pub(crate) fn begin(&self) -> &str {
        self.0.split_once('-').map_or("", |(begin, _)| begin)
    }

    /// `10:30`
    pub(crate) fn end(&self) -> &str {
        self.0.split_once('-').map_or("", |(_, end)| end)
    }
}

/// Minutes since midnight of `09:30`; `24:00` ends a day.
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
        let slot = Slot::read("09:00-10:30").unwrap();
        assert_eq!((slot.begin(), slot.end()), ("09:00", "10:30"));
        assert!(Slot::read("00:00-24:00").is_ok());
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
            assert!(Slot::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_slots_of_a_room_do_not_overlap() {
        let all = |texts: &[&str]| {
            let slots: Vec<_> = texts.iter().map(|text| Slot::read(text).unwrap()).collect();
            Slot::check_all(&slots)
        };
        assert!(all(&[]).is_ok() && all(&["09:00-10:00", "10:00-11:00"]).is_ok());
        assert!(all(&["09:00-10:00", "09:30-11:00"]).is_err());
        assert!(all(&["10:00-11:00", "09:00-10:00"]).is_err());
        assert!(all(&["09:00-10:00", "09:00-10:00"]).is_err());
    }
}
