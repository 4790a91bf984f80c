//! Settings of the booking server.

use std::{path::PathBuf, sync::Arc};

use http_io::server::Proxies;
use store::Database;

use crate::values::aadhaar::IdPolicy;

/// Default number of rooms in a new database.
const ROOMS: u32 = 10;

/// The settings of a booking server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The database. Missing tables are created.
    pub database: Database,
    /// The file with the key that identity numbers are hashed with, created at the first start. The administrator's
    /// token lies beside it, in a file that ends in `.admin`. Without the key, existing bookings can be neither shown nor
    /// cancelled.
    pub key: PathBuf,
    /// How many rooms a new database starts with. Default 10.
    pub rooms: u32,
    /// Which identity numbers are accepted. Default: only those that are issued.
    pub ids: IdPolicy,
    /// How many requests may wait for the database; beyond that, requests get 503. Default 1024.
    pub queue: usize,
    /// Proxies that are trusted to name the client. Default: none.
    pub proxies: Proxies,
    /// The engine's connection counters, shown by `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults for this database. The key lies beside an SQLite file as `booking.db.key`, otherwise in the working
    /// directory as `booking.key`.
    pub fn new(database: impl Into<Database>) -> Self {
        let database = database.into();
        let key = database.beside("booking", "key");
        Self {
            database,
            key,
            rooms: ROOMS,
            ids: IdPolicy::IssuedOnly,
            queue: 1024,
            proxies: Proxies::default(),
            connections: Arc::default(),
        }
    }
}
