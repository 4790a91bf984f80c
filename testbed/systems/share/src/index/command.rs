//! `nstar-lab serve index`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use serve::{
    DatabaseLogin, Exit, Failure, ServerFlags, ServerProcess, System,
    values::{Unshown, listen},
    with_password,
};
use store::Database;

use super::{options::Options, service::factory};
use crate::{
    command::{AllowedKeys, life, prepare},
    group::{IDENTITY, Key},
};

/// The central index of file sharing: knows which peer has which files
#[derive(Debug, Parser)]
#[command(name = "index")]
pub struct IndexFlags {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<Database>::default(), default_value = "index.db")]
    database: Database,
    #[command(flatten)]
    login: DatabaseLogin,
    /// How long a registration lasts unless the peer renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = life)]
    life: Duration,
    /// File with the group's secret, created if missing: only peers that present it are answered. With --allow peers do
    /// not need it; it is for whoever runs the index
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    allowed: AllowedKeys,
    /// File with the index's own key, created if missing [default: DATABASE.identity; index.identity where the database
    /// is a server's]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8084", value_parser = listen)]
    listen: SocketAddr,
    #[command(flatten)]
    server: ServerFlags,
}

impl System for IndexFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("index", self.listen, &self.server);
        let mut options = Options::new(with_password(&self.database, &self.login)?);
        process.files.uses(&self.database);
        self.secret_file.iter().for_each(|path| process.files.writes_beside(path));
        process.begin()?;
        let members = self.allowed.members(|| self.own_key())?;
        prepare(&mut process, self.listen, self.secret_file.is_some(), members.as_ref())?;
        options.life = self.life;
        options.secret = self.secret_file.clone();
        options.members = members;
        options.server.connections = process.counters();
        options.server.open_metrics = process.open_metrics();
        options.server.encrypted = process.is_encrypted();
        process.serve(factory(options).map_err(Failure::failed)?)
    }
}

impl IndexFlags {
    fn own_key(&self) -> Result<Key, Failure> {
        let path = self.key_file.clone().unwrap_or_else(|| self.database.beside("index", IDENTITY));
        Key::open(&path).map_err(|error| Failure::usage(format!("--key-file: {error}")))
    }
}
