//! What is done once before a server starts: tables, rooms, and whether the key is the right one.

use store::{Setup, Statement, Store};

use crate::{
    error::BookingError,
    options::Options,
    room::Room,
    secrets::Secrets,
    tables::{self, NewRoom, SCHEMA},
};

/// Rooms that a server knows from its start; others it looks up one by one.
const KNOWN_ROOMS: i64 = 10_000;

/// Makes the database ready; tells the rooms to know from the start. Leaves no thread behind, so that a process may fork
/// after it.
pub(crate) fn prepare(options: &Options) -> Result<Vec<Room>, BookingError> {
    Secrets::can_be_had(&options.key)?;
    let mut setup = Store::prepare(&options.database, &SCHEMA)?;
    refuse_wrong_key(&mut setup, options)?;
    let secrets = Secrets::open(&options.key)?;
    check_key(&mut setup, &secrets, options)?;
    add_first_rooms(&mut setup, options.rooms)?;
    Ok(tables::first_rooms(&mut setup, KNOWN_ROOMS)?)
}

/// Refuses before a key is made where the database was begun with another, so that nothing is left behind.
fn refuse_wrong_key(setup: &mut Setup, options: &Options) -> Result<(), BookingError> {
    let Some(kept) = kept_check(setup)? else { return Ok(()) };
    let (path, database) = (options.key.clone(), options.database.to_string());
    match Secrets::check_of_file(&path)? {
        None => Err(BookingError::NoKey { path, database }),
        Some(check) if check[..] == kept[..] => Ok(()),
        Some(_) => Err(BookingError::WrongKey { path, database }),
    }
}

/// What the first server left of its key.
fn kept_check(setup: &mut Setup) -> Result<Option<Vec<u8>>, BookingError> {
    let rows = setup.query(&Statement::new("SELECT value FROM settings WHERE name = 'key'"))?;
    Ok(rows.first().map(|row| row.bytes(0).unwrap_or_default().to_vec()))
}

/// The first server leaves a trace of its key; the others compare.
fn check_key(setup: &mut Setup, secrets: &Secrets, options: &Options) -> Result<(), BookingError> {
    let insert = "INSERT INTO settings (name, value) VALUES ('key', ?)";
    setup.insert_all(&[Statement::new(insert).with(&secrets.check()[..])])?;
    if kept_check(setup)?.is_some_and(|kept| kept == secrets.check()) {
        return Ok(());
    }
    Err(BookingError::WrongKey { path: options.key.clone(), database: options.database.to_string() })
}

/// Rooms have unique names, so that servers that start at once add them once.
fn add_first_rooms(setup: &mut Setup, count: u32) -> Result<(), BookingError> {
    if !setup.query(&Statement::new("SELECT id FROM rooms LIMIT 1"))?.is_empty() {
        return Ok(());
    }
    let rooms =
        (1..=count).map(|number| NewRoom { name: format!("Room {number}"), slots: Vec::new() }.statement());
    Ok(setup.insert_all(&rooms.collect::<Vec<_>>())?)
}
