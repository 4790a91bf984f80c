//! A room's bookings as an iCalendar feed (RFC 5545) for calendar programs. It says when the room is booked, never by
//! whom.

use std::fmt::Write;

use crate::{
    rooms::RoomSchedule,
    values::{
        day::{Day, DayRange},
        room::Period,
    },
};

/// The media type of a feed.
pub(crate) const CONTENT_TYPE: &str = "text/calendar; charset=utf-8";
/// How many days before today the feed starts.
const DAYS_BACK: i32 = 31;
/// Days from the first to the last.
const DAYS_SHOWN: i32 = 365;
/// Maximum length of a line without its end, bytes (section 3.1).
const LINE_LEN_MAX: usize = 75;

/// The days that a feed covers.
pub(crate) fn days() -> DayRange {
    let from = Day::today().plus(-DAYS_BACK);
    DayRange { from, to: from.plus(DAYS_SHOWN) }
}

/// Renders the feed of a room.
pub(crate) fn render(room: &RoomSchedule, days: DayRange) -> String {
    let mut lines = Lines(String::new());
    let name = escaped(&room.room.name);
    lines.add("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//nstar//booking//EN");
    lines.add(&format!("X-WR-CALNAME:{name}"));
    for period in &room.booked {
        lines.add("BEGIN:VEVENT");
        lines.add(&format!("UID:{}@nstar-booking", event_name(room.room.id, period)));
        lines.add(&format!("DTSTAMP:{}T000000Z", period.day.compact()));
        lines.add(&begin_and_end(period));
        lines.add(&format!("SUMMARY:Booked: {name}"));
        lines.add("END:VEVENT");
    }
    if room.booked.is_empty() {
        lines.add(&free(room.room.id, days));
    }
    lines.add("END:VCALENDAR");
    lines.0
}

/// A component that says the room is free all the time. A calendar must contain at least one (section 3.6).
fn free(room: i64, days: DayRange) -> String {
    let (from, to) = (days.from.compact(), days.to.plus(1).compact());
    format!(
        "BEGIN:VFREEBUSY\nUID:room-{room}-free@nstar-booking\nDTSTAMP:{from}T000000Z\n\
         DTSTART:{from}T000000Z\nDTEND:{to}T000000Z\nEND:VFREEBUSY"
    )
}

fn event_name(room: i64, period: &Period) -> String {
    let slot = period.slot.as_ref().map_or("day", |slot| slot.as_str());
    format!("room-{room}-{}-{slot}", period.day)
}

/// The lines for start and end. Times are local to the room (section 3.3.5, form 1). The end is exclusive.
fn begin_and_end(period: &Period) -> String {
    let day = period.day.compact();
    match &period.slot {
        None => format!("DTSTART;VALUE=DATE:{day}\nDTEND;VALUE=DATE:{}", period.day.plus(1).compact()),
        Some(slot) if slot.end() == "24:00" => {
            format!("DTSTART:{day}T{}00\nDTEND:{}T000000", digits(slot.begin()), period.day.plus(1).compact())
        }
        Some(slot) => {
            format!("DTSTART:{day}T{}00\nDTEND:{day}T{}00", digits(slot.begin()), digits(slot.end()))
        }
    }
}

fn digits(time: &str) -> String {
    time.replace(':', "")
}

/// Escapes text (section 3.3.11).
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace(';', "\\;").replace(',', "\\,").replace('\n', "\\n")
}

struct Lines(String);

impl Lines {
    /// Adds lines, and folds long ones between characters.
    fn add(&mut self, lines: &str) {
        for line in lines.lines() {
            let mut width = 0;
            for character in line.chars() {
                if width + character.len_utf8() > LINE_LEN_MAX {
                    self.0.push_str("\r\n ");
                    width = 1;
                }
                width += character.len_utf8();
                self.0.push(character);
            }
            // Writing to a string cannot fail.
            let _ = self.0.write_str("\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded_between_characters() {
        let mut lines = Lines(String::new());
        lines.add(&format!("SUMMARY:{}", "ü".repeat(100)));
        assert!(lines.0.split("\r\n").all(|line| line.len() <= LINE_LEN_MAX));
        assert_eq!(lines.0.replace("\r\n ", "").trim_end(), format!("SUMMARY:{}", "ü".repeat(100)));
    }

    #[test]
    fn names_cannot_add_lines_or_parts() {
        assert_eq!(escaped("a;b,c\\d\nEND:VEVENT"), "a\\;b\\,c\\\\d\\nEND:VEVENT");
    }
}
