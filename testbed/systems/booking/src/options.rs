//! Settings of the booking server.

use std::path::PathBuf;

use api_server::ServerOptions;
use store::Database;

use crate::values::aadhaar::IdPolicy;

/// Default number of rooms in a new database.
const ROOMS: u32 = 10;

/// The settings of a booking server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What every API server has: the database, its queue, proxies, connection counters.
    pub server: ServerOptions,
    /// The file with the key that identity numbers are hashed with, created at the first start. The administrator's
    /// token lies beside it, in a file that ends in `.admin`. Without the key, existing bookings can be neither shown nor
    /// cancelled.
    pub key: PathBuf,
    /// How many rooms a new database starts with. Default 10.
    pub rooms: u32,
    /// Which identity numbers are accepted. Default: only those that are issued.
    pub ids: IdPolicy,
}

impl Options {
    /// The defaults for this database. The key lies beside an SQLite file as `booking.db.key`, otherwise in the working
    /// directory as `booking.key`.
    pub fn new(database: impl Into<Database>) -> Self {
        let server = ServerOptions::new(database);
        let key = server.database.beside("booking", "key");
        Self { server, key, rooms: ROOMS, ids: IdPolicy::IssuedOnly }
    }
}
