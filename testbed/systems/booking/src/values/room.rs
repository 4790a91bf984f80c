//! Rooms, and the periods they can be booked for.

use serde::Serialize;

use super::{day::Day, slot::Slot};

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
}
