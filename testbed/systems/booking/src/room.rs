//! Rooms, and what may be booked of them.

use serde::Serialize;

use crate::{day::Day, slot::Slot};

/// Longest name of a room, characters.
pub(crate) const NAME_CHARS_MAX: usize = 100;

/// A room. It never changes and never goes; more may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Room {
    pub(crate) id: i64,
    pub(crate) name: String,
    /// The parts of a day it is booked by; none: by whole days.
    pub(crate) slots: Vec<Slot>,
}

/// A day, or a part of one, on which a room may be or is booked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Time {
    #[serde(rename = "date")]
    pub(crate) day: Day,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<Slot>,
}

impl Room {
    /// Which of the room's slots is meant, or that it has none.
    pub(crate) fn slot(&self, asked: Option<Slot>) -> Result<Option<Slot>, String> {
        match asked {
            None if self.slots.is_empty() => Ok(None),
            Some(slot) if self.slots.contains(&slot) => Ok(Some(slot)),
            Some(_) if self.slots.is_empty() => {
                Err("must be left out: this room is booked by whole days".into())
            }
            _ => Err(format!("must be one of {}", Slot::list(&self.slots).replace(',', ", "))),
        }
    }

    /// The first time after `time` that is not among the `booked`, which are in order, on one of the next `days` days.
    pub(crate) fn free_after(&self, time: &Time, booked: &[Time], days: i32) -> Option<Time> {
        let days = (0..=days).map(|later| time.day.plus(later));
        let times = days.flat_map(|day| self.times_of(day));
        times.filter(|at| at > time).find(|at| booked.binary_search(at).is_err())
    }

    fn times_of(&self, day: Day) -> Vec<Time> {
        if self.slots.is_empty() {
            return vec![Time { day, slot: None }];
        }
        self.slots.iter().map(|slot| Time { day, slot: Some(slot.clone()) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(slots: &[&str]) -> Room {
        let slots = slots.iter().map(|slot| Slot::read(slot).unwrap()).collect();
        Room { id: 1, name: "Room 1".into(), slots }
    }

    fn time(day: &str, slot: &str) -> Time {
        Time { day: Day::read(day).unwrap(), slot: Slot::read(slot).ok() }
    }

    #[test]
    fn the_next_free_time_is_the_first_gap() {
        let room = room(&[]);
        let asked = time("2026-11-30", "");
        let booked = ["2026-11-30", "2026-12-01", "2026-12-02", "2026-12-04"].map(|day| time(day, ""));
        assert_eq!(room.free_after(&asked, &booked, 10), Some(time("2026-12-03", "")));
        assert_eq!(room.free_after(&asked, &booked, 2), None);
        assert_eq!(room.free_after(&asked, &[], 2), Some(time("2026-12-01", "")));
    }

    #[test]
    fn a_later_slot_of_the_same_day_comes_before_the_next_day() {
        let room = room(&["09:00-10:00", "10:00-11:00"]);
        let asked = time("2026-11-30", "09:00-10:00");
        let first = time("2026-11-30", "10:00-11:00");
        assert_eq!(room.free_after(&asked, std::slice::from_ref(&asked), 10), Some(first.clone()));
        let booked = [asked.clone(), first, time("2026-12-01", "09:00-10:00")];
        assert_eq!(room.free_after(&asked, &booked, 10), Some(time("2026-12-01", "10:00-11:00")));
    }

    #[test]
    fn a_slot_is_asked_for_where_a_room_has_some_and_nowhere_else() {
        let slot = || Slot::read("09:00-10:00").ok();
        assert_eq!(room(&[]).slot(None), Ok(None));
        assert!(room(&[]).slot(slot()).unwrap_err().contains("left out"));
        assert_eq!(room(&["09:00-10:00"]).slot(slot()), Ok(slot()));
        assert!(room(&["10:00-11:00"]).slot(slot()).unwrap_err().contains("10:00-11:00"));
        assert!(room(&["10:00-11:00"]).slot(None).is_err());
    }
}
