//! Checks, after a load, whether the database holds what the users were told.

mod bookings;

use analysis::run::Proof;
use booking::{BookingError, census};
use load::RequestTotal;
use store::Database;

use self::bookings::{Held, Told, bookings};

/// Reads the database, and compares. Its server must have stopped: requests in flight are then done, or never will be.
pub(crate) fn prove(database: &Database, totals: &[RequestTotal]) -> Result<Proof, BookingError> {
    let census = census(database)?;
    let held = Held {
        booked: census.booked,
        cancelled: census.cancelled,
        twice: census.twice,
        full_days: census.full_days,
    };
    Ok(bookings(told(totals, "POST"), told(totals, "DELETE"), held))
}

/// What clients were told about the requests of one method.
fn told(totals: &[RequestTotal], method: &str) -> Told {
    let those = totals.iter().filter(|total| total.method == method);
    those.fold(Told::default(), |told, total| Told {
        acknowledged: told.acknowledged + total.completed,
        uncertain: told.uncertain + total.uncertain(),
        refused: told.refused + total.refused(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A room on a day, as the server writes it.
    const BOOK: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) \
                        VALUES (1, '2030-01-01', '', 'Asha', x'00', '2346', 1, 0, '127.0.0.1')";

    /// Books once, then a second time behind the back of the index that forbids it.
    #[test]
    fn a_row_that_breaks_the_promise_breaks_the_proof() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("booking.db");
        let database = Database::Sqlite(path.clone());
        drop(booking::factory(booking::Options::new(database.clone())).expect("a new database"));
        let file = rusqlite::Connection::open(path).expect("the file");
        let told =
            [RequestTotal { method: "POST".into(), begun: 1, completed: 1, ..RequestTotal::default() }];

        file.execute_batch(BOOK).expect("a booking");
        let proof = prove(&database, &told).expect("a census");
        assert!(proof.holds, "{}", proof.text);

        file.execute_batch(&format!("DROP INDEX bookings_that_stand; {BOOK}")).expect("the same again");
        let proof = prove(&database, &told).expect("a census");
        assert!(!proof.holds && proof.text.contains("BOOKED TWICE"), "{}", proof.text);
        assert!(proof.text.contains("1 THAT NOBODY ASKED FOR"), "{}", proof.text);
    }
}
