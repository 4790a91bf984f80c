//! `nstar-lab serve booking`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use serve::{
    DatabaseLogin, Exit, Failure, HostNames, ServerFlags, ServerProcess, System, TrustedProxies,
    values::{Unshown, listen},
    warn_of_openness, with_password,
};
use store::Database;

use crate::{options::Options, service::factory, values::guest::IdPolicy};

/// Room booking: no room is ever booked twice
#[derive(Debug, Parser)]
#[command(name = "booking")]
pub struct BookingFlags {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<Database>::default(), default_value = "booking.db")]
    database: Database,
    #[command(flatten)]
    login: DatabaseLogin,
    /// File with the key that hides identity numbers, created at the first start; the administrator's token is beside
    /// it, ending in .admin [default: DATABASE.key; booking.key where the database is a server's]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Number of rooms in a new database [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    rooms: Option<u32>,
    /// Accept Aadhaar numbers that begin with 0 or 1: nobody has such a number, so they suit tests and loads
    #[arg(long)]
    allow_test_ids: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083", value_parser = listen)]
    listen: SocketAddr,
    #[command(flatten)]
    proxies: TrustedProxies,
    #[command(flatten)]
    names: HostNames,
    #[command(flatten)]
    server: ServerFlags,
}

impl System for BookingFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("booking", self.listen, &self.server);
        process.secrets = Some("identity numbers");
        process.is_exposed = self.proxies.exposes(self.listen);
        let mut options = Options::new(with_password(&self.database, &self.login)?);
        options.key = self.key.clone().unwrap_or(options.key);
        process.files.uses(&self.database);
        process.files.writes_beside(&options.key);
        process.prepare()?;
        if self.proxies.exposes(self.listen) {
            warn_of_openness(self.listen, &["anybody may book any free room, as often as they like"]);
        }
        options.rooms = self.rooms.unwrap_or(options.rooms);
        options.ids = IdPolicy::allow_test(self.allow_test_ids);
        options.server.proxies = self.proxies.proxies();
        options.server.connections = process.counters();
        options.server.open_metrics = process.open_metrics();
        options.server.encrypted = process.is_encrypted();
        options.server.hosts = self.names.hosts(self.listen, process.is_encrypted());
        process.serve(factory(options).map_err(Failure::failed)?)
    }
}
