//! Settings of the booking server, and why it could not start.

use std::path::PathBuf;

use api_server::ServerOptions;
use store::Database;

use crate::values::guest::IdPolicy;

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
    /// Bookings of one address, or one /64 network of IPv6, before it has to wait. Default: any number.
    pub bookings_per_client: Option<u16>,
    /// Space on the disk of an SQLite file below which nothing is booked, bytes. Default: 1 GiB, or 5 % of the disk if that is
    /// less.
    pub keep_free: Option<u64>,
}

impl Options {
    /// The defaults for this database. The key lies beside an SQLite file as `booking.db.key`, otherwise in the working
    /// directory as `booking.key`.
    pub fn new(database: impl Into<Database>) -> Self {
        let server = ServerOptions::new(database);
        let key = server.database.beside("booking", "key");
        let (ids, bookings_per_client, keep_free) = (IdPolicy::IssuedOnly, None, None);
        Self { server, key, rooms: ROOMS, ids, bookings_per_client, keep_free }
    }
}

/// Why a booking server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BookingError {
    /// The database cannot be opened.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// A secret cannot be read or created.
    #[error("{0} (--key names the file)")]
    Secret(#[from] store::SecretError),
    /// The folder of the database cannot be asked about its disk.
    #[error("the folder of {path} cannot be opened: {source}")]
    Folder {
        /// The database.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The database was created with a key, and the file of the key is missing.
    #[error(
        "the identity numbers in {database} were hashed with the key in {path}, and there is no such file; name the right one \
         with --key, or restore it from a backup"
    )]
    NoKey {
        /// Where the key's file should be.
        path: PathBuf,
        /// The database.
        database: String,
    },
    /// The identity numbers in the database were hashed with another key.
    #[error(
        "the key in {path} is not the one that the identity numbers in {database} were hashed with; \
         name the right one with --key"
    )]
    WrongKey {
        /// The key's file.
        path: PathBuf,
        /// The database.
        database: String,
    },
}
