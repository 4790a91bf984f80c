//! What the booking server is started with.

use std::{path::PathBuf, sync::Arc};

use http_io::server::Proxies;
use store::Database;

use crate::aadhaar::Accepted;

/// Rooms of a new database, where nobody says how many.
const ROOMS: u32 = 10;

/// The settings of a booking server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The database. Its tables are made when they are not there.
    pub database: Database,
    /// The file of the key that identity numbers are hashed with; made at the first start. Beside it, ending in
    /// `.admin`, lies the administrator's token. Without the key, bookings made before can be neither shown nor cancelled.
    pub key: PathBuf,
    /// How many rooms a new database begins with. Default 10.
    pub rooms: u32,
    /// Which identity numbers are taken. Default: those that are issued.
    pub accepted: Accepted,
    /// How many requests may wait for the database before the next is refused with 503. Default 1024.
    pub queue: usize,
    /// The proxies that are believed when they say for whom they ask. Default: none.
    pub proxies: Proxies,
    /// What the engine counts of the server's connections, to be shown by `GET /metrics`.
    pub connections: Arc<engine::Counters>,
}

impl Options {
    /// The defaults, on this database. The key lies beside an SQLite file, `booking.db.key`, and else in the working
    /// folder, `booking.key`.
    pub fn new(database: impl Into<Database>) -> Self {
        let database = database.into();
        let key = database.beside("booking", "key");
        Self {
            database,
            key,
            rooms: ROOMS,
            accepted: Accepted::Issued,
            queue: 1024,
            proxies: Proxies::default(),
            connections: Arc::default(),
        }
    }
}
