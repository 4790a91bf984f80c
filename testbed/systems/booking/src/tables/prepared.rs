//! Bookings that a database is filled with before a load, so that the table keeps about its size while it is measured.
//!
//! They are spread evenly over all rooms and days, as bookings of random rooms on random days would be, so that those of the
//! load lie between them in the index. They come in several passes through the index: each pass fills pages in order,
//! which is fast, and splits those of the passes before, which leaves pages as full as random inserts do.

use std::sync::LazyLock;

use store::{Database, OpenError, Setup, Statement, Store, StoreError, Value};

use super::{SCHEMA, now_us};
use crate::values::day::Day;

/// The days that are filled: 1 to this many ahead. Loads book the same days.
const DAYS: u64 = 1800;
/// How often the index is gone through.
const PASSES: u64 = 8;
/// How many rows a statement inserts: some thousand values, as SQLite and PostgreSQL allow.
const ROWS_PER_STATEMENT: usize = 250;
/// How many statements a transaction holds.
const STATEMENTS_PER_COMMIT: usize = 40;
/// The setting that holds the number of the last booking of these.
const SETTING: &str = "prepared";

macro_rules! row {
    () => {
        "(?, ?, '', ?, ?, ?, ?, 'prepared', 1)"
    };
}

const INSERT_ONE: &str = concat!(
    "INSERT INTO bookings (room, day, slot, name, aadhaar_hash, aadhaar_last4, booked_at_us, booked_from, version) VALUES ",
    row!()
);
static INSERT_MANY: LazyLock<String> =
    LazyLock::new(|| INSERT_ONE.to_owned() + &concat!(", ", row!()).repeat(ROWS_PER_STATEMENT - 1));

/// Why a database could not be filled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FillError {
    /// The database cannot be opened or fails.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// A reply of the database cannot be read.
    #[error(transparent)]
    Reply(#[from] StoreError),
    /// There are bookings already.
    #[error("{0} already holds bookings; only a new database can be filled")]
    NotEmpty(String),
    /// Too few rooms.
    #[error(
        "{database} has {rooms} rooms that are booked by whole days: {rows} bookings within {DAYS} days need \
         {wanted}, so that half of the days stay free (--rooms of the server)"
    )]
    TooFewRooms {
        /// The database.
        database: String,
        /// Rooms that it has.
        rooms: u64,
        /// Rooms that it needs.
        wanted: u64,
        /// Bookings that were asked for.
        rows: u64,
    },
    /// Fewer rows than were inserted.
    #[error("{database} holds {held} of {rows} bookings: others used it meanwhile")]
    Disturbed {
        /// The database.
        database: String,
        /// Bookings found.
        held: u64,
        /// Bookings inserted.
        rows: u64,
    },
}

/// Fills a database that has rooms, but no bookings yet, with `rows` of them; then gathers statistics and writes the log
/// to its place. They belong to nobody: no id for them is ever given out, and [`census`](super::census) does not count
/// them. Blocks.
///
/// # Errors
/// See [`FillError`]. If it fails half-way, start again with a new database.
pub fn fill(database: &Database, rows: u64) -> Result<(), FillError> {
    let mut setup = Store::prepare(database, &SCHEMA)?;
    let rooms = rooms_to_fill(&mut setup, database, rows)?;
    let made = Made::new(rooms, rows);
    let mut numbers = 0..rows;
    while !numbers.is_empty() {
        let commit: Vec<u64> = numbers.by_ref().take(ROWS_PER_STATEMENT * STATEMENTS_PER_COMMIT).collect();
        let whole = commit.chunks_exact(ROWS_PER_STATEMENT);
        let rest = whole.remainder().chunks(1).map(|number| made.statement(INSERT_ONE, number));
        let whole = whole.map(|numbers| made.statement(&INSERT_MANY, numbers));
        setup.insert_all(&whole.chain(rest).collect::<Vec<_>>())?;
    }
    let (held, last) = held(&mut setup)?;
    if held != rows {
        return Err(FillError::Disturbed { database: database.to_string(), held, rows });
    }
    if rows > 0 {
        let setting = Statement::new("INSERT INTO settings (name, value) VALUES (?, ?)").with(SETTING);
        setup.insert_all(&[setting.with(last.to_string().as_bytes())])?;
    }
    Ok(setup.settle("bookings")?)
}

/// The number of the last booking that the database was filled with, 0 if it was not.
pub(super) fn last(setup: &mut Setup) -> Result<i64, OpenError> {
    let rows = setup.query(&Statement::new("SELECT value FROM settings WHERE name = ?").with(SETTING))?;
    let value = rows.first().and_then(|row| std::str::from_utf8(row.bytes(0).ok()?).ok()?.parse().ok());
    Ok(value.unwrap_or(0))
}

/// The rooms that are booked by whole days, if they are enough and nothing is booked yet.
fn rooms_to_fill(setup: &mut Setup, database: &Database, rows: u64) -> Result<Vec<i64>, FillError> {
    if held(setup)?.0 > 0 {
        return Err(FillError::NotEmpty(database.to_string()));
    }
    let found = setup.query(&Statement::new("SELECT id FROM rooms WHERE slots = '' ORDER BY id"))?;
    let (rooms, wanted) = (found.len() as u64, rows.saturating_mul(2).div_ceil(DAYS).max(1));
    if rooms < wanted {
        return Err(FillError::TooFewRooms { database: database.to_string(), rooms, wanted, rows });
    }
    Ok(found.iter().map(|row| row.int(0)).collect::<Result<_, _>>()?)
}

/// How many bookings there are, and the number of the last.
fn held(setup: &mut Setup) -> Result<(u64, i64), FillError> {
    let found = setup.query(&Statement::new("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM bookings"))?;
    let Some(row) = found.first() else { return Ok((0, 0)) };
    Ok((row.int(0)?.unsigned_abs(), row.int(1)?))
}

/// The bookings to fill a database with, by their number from 0.
struct Made {
    rooms: Vec<i64>,
    days: Vec<String>,
    booked_at_us: i64,
    /// From one booking to the next in the order of rooms and days. It has no divisor in common with their number, so that
    /// no room is booked twice on a day.
    stride: u64,
}

impl Made {
    fn new(rooms: Vec<i64>, rows: u64) -> Self {
        let (cells, today) = (rooms.len() as u64 * DAYS, Day::today());
        let days = (1..).take(DAYS as usize).map(|ahead| today.plus(ahead).to_string()).collect();
        let about = (PASSES.saturating_mul(cells) / rows.max(1)).clamp(1, cells);
        let stride = (about..).find(|stride| coprime(*stride, cells)).unwrap_or(1);
        Self { rooms, days, booked_at_us: now_us(), stride }
    }

    /// The room and the day of a booking, as indices.
    fn cell(&self, number: u64) -> (usize, usize) {
        let cells = self.rooms.len() as u128 * u128::from(DAYS);
        let cell = u128::from(number) * u128::from(self.stride) % cells.max(1);
        let days = u128::from(DAYS);
        ((cell / days) as usize, (cell % days) as usize)
    }

    fn statement(&self, insert: &'static str, numbers: &[u64]) -> Statement {
        numbers.iter().flat_map(|number| self.row(*number)).fold(Statement::new(insert), Statement::with)
    }

    fn row(&self, number: u64) -> [Value; 6] {
        let (room, day) = self.cell(number);
        let hash = *blake3::hash(&number.to_le_bytes()).as_bytes();
        let name = hash.iter().take(12).map(|byte| char::from(b'a' + byte % 26)).collect::<String>();
        [
            self.rooms.get(room).copied().unwrap_or_default().into(),
            self.days.get(day).cloned().unwrap_or_default().into(),
            name.into(),
            hash[..].into(),
            format!("{:04}", number % 10_000).into(),
            self.booked_at_us.into(),
        ]
    }
}

fn coprime(a: u64, b: u64) -> bool {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_room_is_filled_twice_on_a_day_and_all_are_used_alike() {
        for (rooms, rows) in [(1, 900), (7, 1), (100, 90_000), (1_000, 100_000), (1_000, 17)] {
            let made = Made::new((1..=rooms).collect(), rows);
            let cells: BTreeSet<_> = (0..rows).map(|number| made.cell(number)).collect();
            assert_eq!(cells.len() as u64, rows, "{rooms} rooms");
            let first_half = cells.iter().filter(|(room, _)| (*room as i64) < rooms / 2).count() as f64;
            let share = first_half / rows as f64;
            assert!(rows < 100 || rooms < 2 || (share - 0.5).abs() < 0.05, "{rooms} rooms: {share}");
        }
    }

    #[test]
    fn days_are_those_that_loads_book() {
        let (made, today) = (Made::new(vec![1], 1), Day::today());
        assert_eq!(made.days.len() as u64, DAYS);
        let ends = made.days.first().zip(made.days.last());
        assert_eq!(ends, Some((&today.plus(1).to_string(), &today.plus(1800).to_string())));
    }
}
