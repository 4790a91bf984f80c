//! Whether a database holds what was promised: each acknowledged booking once, and nothing that nobody asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::count;

/// What clients were told of one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// How many were told that it was done.
    pub acknowledged: u64,
    /// How many never learnt: no answer came, or one that leaves it open.
    pub uncertain: u64,
    /// How many were told that it was not done.
    pub refused: u64,
}

/// What a database of bookings holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Bookings that were made, cancelled ones included.
    pub booked: u64,
    /// Bookings that were cancelled.
    pub cancelled: u64,
    /// Rooms and times for which more than one booking stands.
    pub twice: u64,
    /// Days on which every room was booked, so that one more had to be refused.
    pub full_days: u64,
}

/// A comparison of what was promised with what is held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// Whether every promise was kept and every refusal explained.
    pub holds: bool,
    /// What was compared, in sentences with numbers.
    pub text: String,
}

/// Compares what was told of bookings and cancellations with what the database holds.
///
/// A request whose answer never came may have been done or not; so the database holds at least what was acknowledged, and
/// at most that and what is uncertain.
pub fn bookings(booked: Told, cancelled: Told, held: Held) -> Proof {
    let findings =
        [rows(booked, held), cancellations(cancelled, held), twice(held), refusals(booked, cancelled, held)];
    let (holds, texts): (Vec<bool>, Vec<String>) =
        findings.into_iter().filter(|(_, text)| !text.is_empty()).unzip();
    Proof { holds: holds.into_iter().all(|holds| holds), text: texts.join(" ") }
}

type Finding = (bool, String);

fn rows(told: Told, held: Held) -> Finding {
    compare(told, held.booked, "bookings acknowledged", "rows")
}

fn cancellations(told: Told, held: Held) -> Finding {
    if told == Told::default() && held.cancelled == 0 {
        return (true, String::new());
    }
    compare(told, held.cancelled, "cancellations acknowledged", "rows cancelled")
}

fn compare(told: Told, held: u64, promised: &str, kept: &str) -> Finding {
    let number = |number: u64| count(number as f64);
    let most = told.acknowledged.saturating_add(told.uncertain);
    let facts = match told.uncertain {
        0 => format!("{} {promised}, {} {kept}", number(told.acknowledged), number(held)),
        open => format!(
            "{} {promised} and {} without an answer, {} {kept}",
            number(told.acknowledged),
            number(open),
            number(held)
        ),
    };
    match held {
        held if held < told.acknowledged => {
            (false, format!("{facts}: {} WERE LOST.", number(told.acknowledged - held)))
        }
        held if held > most => (false, format!("{facts}: {} THAT NOBODY ASKED FOR.", number(held - most))),
        _ => (true, format!("{facts}.")),
    }
}

fn twice(held: Held) -> Finding {
    match held.twice {
        0 => (true, "No room is booked twice.".to_owned()),
        twice => (false, format!("{} TIMES A ROOM IS BOOKED TWICE.", count(twice as f64))),
    }
}

/// A booking is refused for want of a free room, and a cancellation never: users cancel only what they booked, once.
fn refusals(booked: Told, cancelled: Told, held: Held) -> Finding {
    let number = |number: u64| count(number as f64);
    if cancelled.refused > 0 {
        let text =
            format!("{} CANCELLATIONS OF ACKNOWLEDGED BOOKINGS WERE REFUSED.", number(cancelled.refused));
        return (false, text);
    }
    match (booked.refused, held.full_days) {
        (0, _) => (true, String::new()),
        (refused, 0) => (false, format!("{} BOOKINGS WERE REFUSED THOUGH NO DAY WAS FULL.", number(refused))),
        (refused, days) => {
            let text = format!(
                "{} bookings were refused: on {} days every room was taken.",
                number(refused),
                number(days)
            );
            (true, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NONE: Told = Told { acknowledged: 0, uncertain: 0, refused: 0 };

    fn told(acknowledged: u64, uncertain: u64) -> Told {
        Told { acknowledged, uncertain, refused: 0 }
    }

    #[test]
    fn what_was_promised_is_held() {
        let held = Held { booked: 12_345, ..Held::default() };
        let proof = bookings(told(12_345, 0), NONE, held);
        assert!(proof.holds);
        let expected = "12 345 bookings acknowledged, 12 345 rows. No room is booked twice.";
        assert_eq!(proof.text.replace('\u{a0}', " "), expected);
    }

    #[test]
    fn every_broken_promise_is_told() {
        let held = Held { booked: 10, cancelled: 3, ..Held::default() };
        let full = Told { refused: 2, ..told(10, 0) };
        for (booked, cancelled, held, word) in [
            (told(11, 0), told(3, 0), held, "1 WERE LOST"),
            (told(7, 2), told(3, 0), held, "1 THAT NOBODY"),
            (told(10, 0), told(4, 0), held, "1 WERE LOST"),
            (told(10, 0), NONE, held, "3 THAT NOBODY"),
            (told(10, 0), told(3, 0), Held { twice: 1, ..held }, "BOOKED TWICE"),
            (full, told(3, 0), held, "THOUGH NO DAY WAS FULL"),
            (told(10, 0), Told { refused: 1, ..told(3, 0) }, held, "CANCELLATIONS OF ACKNOWLEDGED"),
        ] {
            let proof = bookings(booked, cancelled, held);
            assert!(!proof.holds && proof.text.contains(word), "{word}: {}", proof.text);
        }
        let explained = bookings(full, told(3, 0), Held { full_days: 1, ..held });
        assert!(explained.holds && explained.text.contains("2 bookings were refused"), "{}", explained.text);
    }

    proptest! {
        /// However many of the uncertain were done, the proof holds; one more or one less, and it does not.
        #[test]
        fn the_uncertain_are_allowed_for_exactly(done in 1u64..1_000_000, open in 0u64..1_000, part in 0.0f64..=1.0) {
            let held = Held { booked: done + (open as f64 * part) as u64, ..Held::default() };
            prop_assert!(bookings(told(done, open), NONE, held).holds);
            let less = bookings(told(done, open), NONE, Held { booked: done - 1, ..held });
            let more = bookings(told(done, open), NONE, Held { booked: done + open + 1, ..held });
            prop_assert!(!less.holds && !more.holds);
        }
    }
}
