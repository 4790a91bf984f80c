//! `nstar-lab prove bookings`: compares what clients were told about bookings with what the database holds.

use std::fs;

use booking::{BookingError, Census, census, digest, full_days};
use nstar::{
    exit::{Exit, Failure},
    output,
};
use serde::Deserialize;
use serve::with_password;
use store::Database;

use super::ProveBookings;

/// What clients were told about one kind of request, as the runner of experiments writes it.
#[derive(Debug, Deserialize)]
struct Total {
    method: String,
    acknowledged: u64,
    uncertain: u64,
    refused: u64,
}

/// Reads the database, and compares. Its server must have stopped: requests in flight are then done, or never will be.
pub(crate) fn prove(flags: &ProveBookings) -> Result<Exit, Failure> {
    let path = flags.totals.display();
    let text = fs::read_to_string(&flags.totals)
        .map_err(|error| Failure::usage(format!("cannot read {path}: {error}")))?;
    let totals: Vec<Total> =
        serde_json::from_str(&text).map_err(|error| Failure::usage(format!("{path}: {error}")))?;
    let database = with_password(&flags.database, &flags.login)?;
    // Exit status 1 is kept for a broken promise.
    let held = census(&database).map_err(Failure::usage)?;
    let agree = hosts_agree(&database).map_err(Failure::usage)?;
    let (booked, cancelled) = (told(&totals, "POST"), told(&totals, "DELETE"));
    // Only refusals need it, and it takes long.
    let full_days = if booked.refused > 0 { full_days(&database).map_err(Failure::usage)? } else { 0 };
    let proof = bookings(booked, cancelled, held, full_days).with(agree);
    output::print(&format!("{}\n", proof.json()))?;
    Ok(if proof.holds { Exit::Done } else { Exit::Failed })
}

/// Compares all bookings on the hosts of a database, if it has several.
fn hosts_agree(database: &Database) -> Result<Finding, BookingError> {
    let hosts = database.each_host();
    let digests = hosts.iter().map(digest).collect::<Result<Vec<_>, _>>()?;
    Ok(match (&digests[..], hosts.len()) {
        ([] | [_], _) => (true, String::new()),
        ([first, others @ ..], count) if others.iter().all(|other| other == first) => {
            (true, format!("All {count} nodes hold the same."))
        }
        (_, count) => (false, format!("THE {count} NODES HOLD DIFFERENT BOOKINGS.")),
    })
}

/// What clients were told about the requests of one method.
fn told(totals: &[Total], method: &str) -> Told {
    let those = totals.iter().filter(|total| total.method == method);
    those.fold(Told::default(), |told, total| Told {
        acknowledged: told.acknowledged + total.acknowledged,
        uncertain: told.uncertain + total.uncertain,
        refused: told.refused + total.refused,
    })
}

/// What came of the comparison.
#[derive(Debug)]
struct Proof {
    /// Whether every promise was kept and every refusal explained.
    holds: bool,
    /// What was compared, in sentences with numbers.
    text: String,
    /// The same as data: name and number.
    counts: [(&'static str, u64); 10],
}

impl Proof {
    /// The proof with a further finding.
    fn with(mut self, (holds, text): Finding) -> Self {
        self.holds &= holds;
        if !text.is_empty() {
            self.text = format!("{} {text}", self.text);
        }
        self
    }

    fn json(&self) -> serde_json::Value {
        let counts = self.counts.iter().map(|(name, count)| ((*name).to_owned(), (*count).into()));
        let text = [("text".to_owned(), self.text.clone().into())];
        serde_json::Value::Object(text.into_iter().chain(counts).collect())
    }
}

/// What clients were told about one kind of request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Told {
    /// Requests that the server said it had done.
    acknowledged: u64,
    /// Requests with no answer, or with one that leaves it open.
    uncertain: u64,
    /// Requests that the server said it had not done.
    refused: u64,
}

/// Compares what clients were told about bookings and cancellations with what the database holds.
///
/// A request without an answer may have been done or not. So the database must hold at least what was acknowledged, and
/// at most that plus what is uncertain.
fn bookings(booked: Told, cancelled: Told, held: Census, full_days: u64) -> Proof {
    let findings = [
        rows(booked, held),
        cancellations(cancelled, held),
        twice(held),
        refusals(booked, cancelled, full_days),
    ];
    let (holds, texts): (Vec<bool>, Vec<String>) =
        findings.into_iter().filter(|(_, text)| !text.is_empty()).unzip();
    Proof {
        holds: holds.into_iter().all(|holds| holds),
        text: texts.join(" "),
        counts: counts(booked, cancelled, held, full_days),
    }
}

fn counts(booked: Told, cancelled: Told, held: Census, full_days: u64) -> [(&'static str, u64); 10] {
    [
        ("bookings acknowledged", booked.acknowledged),
        ("bookings uncertain", booked.uncertain),
        ("bookings refused", booked.refused),
        ("bookings held", held.booked),
        ("cancellations acknowledged", cancelled.acknowledged),
        ("cancellations uncertain", cancelled.uncertain),
        ("cancellations refused", cancelled.refused),
        ("cancellations held", held.cancelled),
        ("booked twice", held.twice),
        ("full days", full_days),
    ]
}

type Finding = (bool, String);

fn rows(told: Told, held: Census) -> Finding {
    compare(told, held.booked, "bookings acknowledged", "rows")
}

fn cancellations(told: Told, held: Census) -> Finding {
    if told == Told::default() && held.cancelled == 0 {
        return (true, String::new());
    }
    compare(told, held.cancelled, "cancellations acknowledged", "rows cancelled")
}

fn compare(told: Told, held: u64, promised: &str, kept: &str) -> Finding {
    let most = told.acknowledged.saturating_add(told.uncertain);
    let facts = match told.uncertain {
        0 => format!("{} {promised}, {} {kept}", grouped(told.acknowledged), grouped(held)),
        open => format!(
            "{} {promised} and {} without an answer, {} {kept}",
            grouped(told.acknowledged),
            grouped(open),
            grouped(held)
        ),
    };
    match held {
        held if held < told.acknowledged => {
            (false, format!("{facts}: {} WERE LOST.", grouped(told.acknowledged - held)))
        }
        held if held > most => (false, format!("{facts}: {} THAT NOBODY ASKED FOR.", grouped(held - most))),
        _ => (true, format!("{facts}.")),
    }
}

fn twice(held: Census) -> Finding {
    match held.twice {
        0 => (true, "No room is booked twice.".to_owned()),
        twice => (false, format!("{} TIMES A ROOM IS BOOKED TWICE.", grouped(twice))),
    }
}

/// A booking is refused when no room is free. A cancellation never is: users cancel only what they booked, once.
fn refusals(booked: Told, cancelled: Told, full_days: u64) -> Finding {
    if cancelled.refused > 0 {
        let number = grouped(cancelled.refused);
        return (false, format!("{number} CANCELLATIONS OF ACKNOWLEDGED BOOKINGS WERE REFUSED."));
    }
    match (booked.refused, full_days) {
        (0, _) => (true, String::new()),
        (refused, 0) => {
            (false, format!("{} BOOKINGS WERE REFUSED THOUGH NO DAY WAS FULL.", grouped(refused)))
        }
        (refused, days) => {
            let (refused, days) = (grouped(refused), grouped(days));
            (true, format!("{refused} bookings were refused: on {days} days every room was taken."))
        }
    }
}

/// Digits in groups of three: `12 345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
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
        let held = Census { booked: 12_345, ..Census::default() };
        let proof = bookings(told(12_345, 0), NONE, held, 0);
        assert!(proof.holds);
        let expected = "12 345 bookings acknowledged, 12 345 rows. No room is booked twice.";
        assert_eq!(proof.text, expected);
    }

    #[test]
    fn every_broken_promise_is_told() {
        let held = Census { booked: 10, cancelled: 3, ..Census::default() };
        let full = Told { refused: 2, ..told(10, 0) };
        for (booked, cancelled, held, word) in [
            (told(11, 0), told(3, 0), held, "1 WERE LOST"),
            (told(7, 2), told(3, 0), held, "1 THAT NOBODY"),
            (told(10, 0), told(4, 0), held, "1 WERE LOST"),
            (told(10, 0), NONE, held, "3 THAT NOBODY"),
            (told(10, 0), told(3, 0), Census { twice: 1, ..held }, "BOOKED TWICE"),
            (full, told(3, 0), held, "THOUGH NO DAY WAS FULL"),
            (told(10, 0), Told { refused: 1, ..told(3, 0) }, held, "CANCELLATIONS OF ACKNOWLEDGED"),
        ] {
            let proof = bookings(booked, cancelled, held, 0);
            assert!(!proof.holds && proof.text.contains(word), "{word}: {}", proof.text);
        }
        let explained = bookings(full, told(3, 0), held, 1);
        assert!(explained.holds && explained.text.contains("2 bookings were refused"), "{}", explained.text);
    }

    /// A room on a day, as the server writes it.
    const BOOK: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) \
                        VALUES (1, '2030-01-01', '', 'Asha', x'00', '2346', 1, 0, '127.0.0.1')";

    /// Books once, then a second time behind the back of the index that forbids it.
    #[test]
    fn a_row_that_breaks_the_promise_breaks_the_proof() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("booking.db");
        let database = store::Database::Sqlite(path.clone());
        drop(booking::factory(booking::Options::new(database.clone())).expect("a new database"));
        let file = rusqlite::Connection::open(path).expect("the file");
        let booked = told(1, 0);

        file.execute_batch(BOOK).expect("a booking");
        let proof = bookings(booked, NONE, census(&database).expect("a census"), 0);
        assert!(proof.holds, "{}", proof.text);

        file.execute_batch(&format!("DROP INDEX bookings_that_stand; {BOOK}")).expect("the same again");
        let proof = bookings(booked, NONE, census(&database).expect("a census"), 0);
        assert!(!proof.holds && proof.text.contains("BOOKED TWICE"), "{}", proof.text);
        assert!(proof.text.contains("1 THAT NOBODY ASKED FOR"), "{}", proof.text);
    }

    #[test]
    fn nodes_that_differ_break_the_proof() {
        let held = Census { booked: 1, ..Census::default() };
        let proof = |finding: Finding| bookings(told(1, 0), NONE, held, 0).with(finding);
        assert!(
            proof((true, "All 3 nodes hold the same.".into()))
                .text
                .ends_with("twice. All 3 nodes hold the same.")
        );
        assert!(!proof((false, "THEY DIFFER.".into())).holds);
        assert!(proof((true, String::new())).text.ends_with("twice."));
    }

    #[test]
    fn a_file_agrees_with_itself_in_silence() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::Sqlite(folder.path().join("booking.db"));
        drop(booking::factory(booking::Options::new(database.clone())).expect("a new database"));
        assert_eq!(hosts_agree(&database).expect("a digest"), (true, String::new()));
    }

    proptest! {
        /// However many of the uncertain were done, the proof holds; one more or one less, and it does not.
        #[test]
        fn the_uncertain_are_allowed_for_exactly(done in 1u64..1_000_000, open in 0u64..1_000, part in 0.0f64..=1.0) {
            let held = Census { booked: done + (open as f64 * part) as u64, ..Census::default() };
            prop_assert!(bookings(told(done, open), NONE, held, 0).holds);
            let less = bookings(told(done, open), NONE, Census { booked: done - 1, ..held }, 0);
            let more = bookings(told(done, open), NONE, Census { booked: done + open + 1, ..held }, 0);
            prop_assert!(!less.holds && !more.holds);
        }
    }
}
