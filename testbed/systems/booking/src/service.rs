//! The booking server as a service of an engine, and what it prepares before it starts: tables, the first rooms, and a check
//! of the key.

use std::{fs, sync::Arc};

use api_server::{Api as _, ApiFactory, Metrics};
use store::{Setup, Statement, Store};

use crate::{
    api::BookingApi,
    limits::ClientLimit,
    options::{BookingError, Options},
    secrets::Secrets,
    tables::{NewRoom, SCHEMA, first_rooms},
    values::room::Room,
};

/// Makes the booking server's services.
pub type BookingFactory = ApiFactory<BookingApi, BookingError>;

/// Makes the booking server. Prepares the database first, so that its problems show before the server starts.
///
/// # Errors
/// When the database or the key cannot be opened, or do not belong together.
pub fn factory(options: Options) -> Result<BookingFactory, BookingError> {
    let rooms = prepare(&options)?;
    // All processes share the counters.
    let connections = Arc::clone(&options.server.connections);
    let metrics = Metrics::new("booking", BookingApi::ROUTES, &[], &[], connections);
    let limit = options.bookings_per_client.map(ClientLimit::new).transpose()?;
    let server = options.server.clone();
    let open = move || BookingApi::open(&options, rooms.clone(), metrics.clone(), limit.clone());
    Ok(ApiFactory::new(&server, open))
}

/// Rooms that a server reads at its start; it looks up any others one by one.
const ROOMS_READ_AHEAD: i64 = 100_000;

/// Prepares the database and returns the rooms that a server knows from the start. Leaves no thread behind, so that the
/// process may fork afterwards.
pub(crate) fn prepare(options: &Options) -> Result<Vec<Room>, BookingError> {
    Secrets::check_access(&options.key)?;
    let mut setup = Store::prepare(&options.server.database, &SCHEMA)?;
    refuse_wrong_key(&mut setup, options)?;
    claim_with_key(&mut setup, options)?;
    add_first_rooms(&mut setup, options.rooms)?;
    Ok(first_rooms(&mut setup, ROOMS_READ_AHEAD)?)
}

/// Refuses a database that was created with another key. Runs before a key is created, so that a failed start leaves no
/// file behind.
fn refuse_wrong_key(setup: &mut Setup, options: &Options) -> Result<(), BookingError> {
    let Some(stored) = stored_check(setup)? else { return Ok(()) };
    let (path, database) = (options.key.clone(), options.server.database.to_string());
    match Secrets::check_of_file(&path)? {
        None => Err(BookingError::NoKey { path, database }),
        Some(check) if check[..] == stored[..] => Ok(()),
        Some(_) => Err(BookingError::WrongKey { path, database }),
    }
}

/// The check value that the first server stored for its key.
fn stored_check(setup: &mut Setup) -> Result<Option<Vec<u8>>, BookingError> {
    let rows = setup.query(&Statement::new("SELECT value FROM settings WHERE name = 'key'"))?;
    Ok(rows.first().map(|row| row.bytes(0).unwrap_or_default().to_vec()))
}

/// Stores the check value of the key if this is the first server, then compares it: two servers may start at once. The one
/// that comes second removes what it has just created, which no database knows.
fn claim_with_key(setup: &mut Setup, options: &Options) -> Result<(), BookingError> {
    let created = Secrets::missing(&options.key);
    let secrets = Secrets::open(&options.key)?;
    let insert = "INSERT INTO settings (name, value) VALUES ('key', ?)";
    setup.insert_all(&[Statement::new(insert).with(&secrets.check()[..])])?;
    if stored_check(setup)?.is_some_and(|stored| stored == secrets.check()) {
        return Ok(());
    }
    let (path, database) = (options.key.clone(), options.server.database.to_string());
    if !created.contains(&path) {
        return Err(BookingError::WrongKey { path, database });
    }
    for file in created {
        // If it cannot be removed, the next start says that it is the wrong one.
        let _ = fs::remove_file(file);
    }
    Err(BookingError::NoKey { path, database })
}

/// Adds rooms to a new database. Their names are unique, so that servers that start at once add each room once.
fn add_first_rooms(setup: &mut Setup, count: u32) -> Result<(), BookingError> {
    if !setup.query(&Statement::new("SELECT id FROM rooms LIMIT 1"))?.is_empty() {
        return Ok(());
    }
    let rooms =
        (1..=count).map(|number| NewRoom { name: format!("Room {number}"), slots: Vec::new() }.statement());
    Ok(setup.insert_all(&rooms.collect::<Vec<_>>())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two servers that started at one instant with keys of their own each kept one, and the second was told that its new
    /// key is wrong.
    #[test]
    fn of_two_servers_that_start_at_once_the_second_leaves_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let [first, second] = ["1.key", "2.key"].map(|name| {
            let mut options = Options::new(at("b.db"));
            options.key = at(name);
            options
        });
        // Both have found a database without a key.
        let mut setups = [&first, &second].map(|options| {
            let mut setup = Store::prepare(&options.server.database, &SCHEMA).unwrap();
            refuse_wrong_key(&mut setup, options).unwrap();
            setup
        });
        claim_with_key(&mut setups[0], &first).unwrap();
        let error = claim_with_key(&mut setups[1], &second).unwrap_err();
        assert!(matches!(error, BookingError::NoKey { .. }), "{error}");
        assert!(at("1.key").exists() && at("1.admin").exists());
        assert!(!at("2.key").exists() && !at("2.admin").exists());
        // A key that was there before is nobody's to remove.
        Secrets::open(&second.key).unwrap();
        let error = claim_with_key(&mut setups[1], &second).unwrap_err();
        assert!(matches!(error, BookingError::WrongKey { .. }) && at("2.key").exists(), "{error}");
        claim_with_key(&mut setups[1], &first).unwrap();
    }
}
