//! Yardstick: the least that durable bookings can cost on SQLite. One process, one connection, no server.
//!
//! usage: `raw-inserts FILE TURN BATCH SECONDS` inserts into the table that `nstar serve booking` made, so many rows to a
//! commit, and prints how many.

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use rusqlite::{Connection, params};

const INSERT: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, version, booked_at_us, booked_from) \
                      VALUES (1, ?, '', 'abcdefghijkl', ?, '4315', 1, ?, '127.0.0.1')";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, turn, batch, seconds] = words.as_slice() else {
        return Err("usage: raw-inserts FILE TURN BATCH SECONDS".into());
    };
    let (turn, batch): (u32, i64) = (turn.parse()?, batch.parse()?);
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut inserted = 0;
    while Instant::now() < end {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for number in inserted..inserted + batch {
                insert.execute(params![format!("{turn:03}{number:07}"), [7_u8; 32].as_slice(), number])?;
            }
        }
        transaction.commit()?;
        inserted += batch;
    }
    println!("{inserted}");
    Ok(())
}
