//! Yardstick: the least that durable bookings can cost on SQLite. One process, one connection, no server.
//!
//! Usage: `raw-inserts FILE FIRST_ROOM USERS BATCH SECONDS` inserts into the table that `nstar serve booking` made. The
//! rows are those that this many users of the case `bookings` would book from that room on, in the same order, BATCH of them
//! to a commit. Prints the number of rows.

use std::{
    env,
    error::Error,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bench::{DAYS, ROOMS_PER_USER, days};
use rusqlite::{Connection, params};

/// Every column that a booking fills in, including `request`, which is null without an `Idempotency-Key`.
const INSERT: &str = "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, request, version, booked_at_us, \
                      booked_from) VALUES (?, ?, '', 'abcdefghijkl', ?, '4315', NULL, 1, ?, '127.0.0.1')";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, first, users, batch, seconds] = words.as_slice() else {
        return Err("usage: raw-inserts FILE FIRST_ROOM USERS BATCH SECONDS".into());
    };
    let (first, users, batch): (u32, u32, u32) = (first.parse()?, users.parse()?, batch.parse()?);
    let days = days();
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
    let end = Instant::now() + Duration::from_secs(seconds.parse()?);
    let mut inserted = 0;
    while Instant::now() < end {
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for number in inserted..inserted + batch {
                let (turn, user) = (number / users, number % users);
                let room = first + user * ROOMS_PER_USER + turn % ROOMS_PER_USER;
                let day = days.get(turn as usize % DAYS).ok_or("no such day")?;
                insert.execute(params![room, day, hash(number).as_slice(), now_us()?])?;
            }
        }
        transaction.commit()?;
        inserted += batch;
    }
    println!("{inserted}");
    Ok(())
}

/// As long as the hash of an identity number.
fn hash(number: u32) -> [u8; 32] {
    let mut hash = [7; 32];
    hash[..4].copy_from_slice(&number.to_le_bytes());
    hash
}

fn now_us() -> Result<i64, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros().try_into()?)
}
