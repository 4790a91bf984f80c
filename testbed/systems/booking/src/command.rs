//! `nstar-lab serve booking`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Parser;
use serve::{
    DatabaseLogin, Exit, Failure, HostNames, ServerFlags, ServerProcess, System, TrustedProxies,
    values::{Unshown, listen, size},
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
    /// Bookings of one address, or of one /64 network of IPv6, after which it has to wait before each further one: 1 s at
    /// first, then twice as long each time, 30 s at most. One is forgotten for each minute without any [default: any number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    bookings_per_client: Option<u16>,
    /// Space on the disk of an SQLite file below which nothing is booked [default: 1GiB, or 5 % of the disk if that is less]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    keep_free: Option<u64>,
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
            let open = match self.bookings_per_client {
                None => "anybody may book any free room, as often as they like (no --bookings-per-client)",
                Some(_) => "anybody may book any free room",
            };
            warn_of_openness(self.listen, &[open]);
        }
        options.rooms = self.rooms.unwrap_or(options.rooms);
        options.ids = IdPolicy::allow_test(self.allow_test_ids);
        (options.bookings_per_client, options.keep_free) = (self.bookings_per_client, self.keep_free);
        options.server.proxies = self.proxies.proxies();
        options.server.connections = process.counters();
        options.server.open_metrics = process.open_metrics();
        options.server.encrypted = process.is_encrypted();
        options.server.hosts = self.names.hosts(self.listen, process.is_encrypted());
        process.serve(factory(options).map_err(Failure::failed)?)
    }
}
