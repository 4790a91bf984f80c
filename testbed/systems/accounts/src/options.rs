//! What the accounts server is started with.

use std::{path::PathBuf, time::Duration};

use api_server::ServerOptions;
use store::Database;

use crate::registration::Registration;

/// The settings of an accounts server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What every API server has: the database, its queue, proxies, connection counters.
    pub server: ServerOptions,
    /// The file of the administrator's token; made, for its owner only, at the first start.
    pub admin_token: PathBuf,
    /// The file of the token by which file servers are known; made, for its owner only, at the first start. Without one
    /// there is no token. Default none.
    pub service_token: Option<PathBuf>,
    /// Whether those who do not show the token are refused. Default no.
    pub service_token_required: bool,
    /// Who may make accounts, beside administrators. Default everybody.
    pub registration: Registration,
    /// How long a session's token is good for. Default one hour. Longer means a stolen token is of use longer.
    pub session_life: Duration,
    /// How many passwords are hashed at once, each in 19 MiB. `None`: as many as cores, and no more than fit in
    /// a quarter of the free memory. More than the cores only makes every request slower.
    pub hashers: Option<usize>,
    /// How many requests may wait for a hasher before the next is refused with 503. `None`: 64 for each hasher, which
    /// at some 20 ms a hash means that the last in the queue waits about 1.3 s. Longer, and clients that gave up
    /// keep the hashers busy.
    pub hash_queue: Option<usize>,
}

impl Options {
    /// Where the service token of a server on this database lies, where nobody says: `accounts.db.service`.
    pub fn usual_service_token(&self) -> PathBuf {
        self.server.database.beside("accounts", "service")
    }

    /// The defaults, on this database. The administrator's token lies beside an SQLite file, `accounts.db.admin`, and
    /// else in the working folder, `accounts.admin`.
    pub fn new(database: impl Into<Database>) -> Self {
        let server = ServerOptions::new(database);
        let admin_token = server.database.beside("accounts", "admin");
        Self {
            server,
            admin_token,
            service_token: None,
            service_token_required: false,
            registration: Registration::default(),
            session_life: Duration::from_secs(3600),
            hashers: None,
            hash_queue: None,
        }
    }
}
