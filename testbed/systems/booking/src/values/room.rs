//! Rooms, the slots of a day that they may be booked by, and the periods they can be booked for.

use serde::Serialize;

use super::day::Day;

/// Maximum length of a room's name, characters.
pub(crate) const NAME_CHARS_MAX: usize = 100;

/// A room. Rooms may be added, but never change and are never removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Room {
    pub(crate) id: i64,
    pub(crate) name: String,
    /// The parts of a day it is booked by. Empty if it is booked by whole days.
    pub(crate) slots: Vec<Slot>,
}

/// What a room is booked for: a day, or a slot of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Period {
    #[serde(rename = "date")]
    pub(crate) day: Day,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<Slot>,
}

impl Room {
    /// Checks that the requested slot is one of the room's, or absent if the room has none. The error says what it must
    /// be.
    pub(crate) fn check_slot(&self, asked: Option<Slot>) -> Result<Option<Slot>, String> {
        match asked {
            None if self.slots.is_empty() => Ok(None),
            Some(slot) if self.slots.contains(&slot) => Ok(Some(slot)),
            Some(_) if self.slots.is_empty() => {
                Err("must be left out: this room is booked by whole days".into())
            }
            _ => Err(format!("must be one of {}", Slot::list(&self.slots).replace(',', ", "))),
        }
    }

    /// The first free period after `period` within the next `days` days. `booked` must be in order.
    pub(crate) fn free_after(&self, period: &Period, booked: &[Period], days: i32) -> Option<Period> {
        let days = (0..=days).map(|later| period.day.plus(later));
        let periods = days.flat_map(|day| self.periods_of(day));
        periods.filter(|other| other > period).find(|other| booked.binary_search(other).is_err())
    }

    fn periods_of(&self, day: Day) -> Vec<Period> {
        if self.slots.is_empty() {
            return vec![Period { day, slot: None }];
        }
        self.slots.iter().map(|slot| Period { day, slot: Some(slot.clone()) }).collect()
    }
}

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

    fn room(slots: &[&str]) -> Room {
        let slots = slots.iter().map(|slot| Slot::parse(slot).unwrap()).collect();
        Room { id: 1, name: "Room 1".into(), slots }
    }

    fn period(day: &str, slot: &str) -> Period {
        Period { day: Day::parse(day).unwrap(), slot: Slot::parse(slot).ok() }
    }

    #[test]
    fn the_next_free_period_is_the_first_gap() {
        let room = room(&[]);
        let asked = period("2026-11-30", "");
        let booked = ["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-04"].map(|day| period(day, ""));
        assert_eq!(room.free_after(&asked, &booked, 10), Some(period("2026-12-03", "")));
        assert_eq!(room.free_after(&asked, &booked, 2), None);
        assert_eq!(room.free_after(&asked, &[], 2), Some(period("2026-12-01", "")));
    }

    #[test]
    fn a_later_slot_of_the_same_day_comes_before_the_next_day() {
        let room = room(&["09:00-10:00", "10:00-11:00"]);
        let asked = period("2026-11-30", "09:00-10:00");
        let first = period("2026-11-30", "10:00-11:00");
        assert_eq!(room.free_after(&asked, std::slice::from_ref(&asked), 10), Some(first.clone()));
        let booked = [asked.clone(), first, period("2026-12-01", "09:00-10:00")];
        assert_eq!(room.free_after(&asked, &booked, 10), Some(period("2026-12-01", "10:00-11:00")));
    }

    #[test]
    fn a_slot_is_required_by_rooms_with_slots_and_refused_by_others() {
        let slot = || Slot::parse("09:00-10:00").ok();
        assert_eq!(room(&[]).check_slot(None), Ok(None));
        assert!(room(&[]).check_slot(slot()).unwrap_err().contains("left out"));
        assert_eq!(room(&["09:00-10:00"]).check_slot(slot()), Ok(slot()));
        assert!(room(&["10:00-11:00"]).check_slot(slot()).unwrap_err().contains("10:00-11:00"));
        assert!(room(&["10:00-11:00"]).check_slot(None).is_err());
    }

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
