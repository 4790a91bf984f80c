//! `nstar-lab database`: an empty database server, for as long as it is wanted.

use std::{sync::atomic::Ordering, thread, time::Duration};

use database_server::{DatabaseServer, Kind, Password, Settings};
use nstar::{
    exit::{Exit, Failure},
    interrupt::Interrupt,
    output,
};
use store::Secret;

use super::{DatabaseKind, ServeDatabase};

/// How often to look whether to stop.
const INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn run(flags: &ServeDatabase) -> Result<Exit, Failure> {
    let kind = match flags.kind {
        DatabaseKind::Mariadb => Kind::Mariadb,
        DatabaseKind::Postgres => Kind::Postgres,
    };
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let secret = Secret::open(&flags.password_file).map_err(Failure::usage)?;
    let password = str::from_utf8(secret.as_bytes()).ok().and_then(Password::new);
    let settings =
        Settings { password, port: Some(flags.port), memory_mib: flags.cache, ..Settings::default() };
    let server = DatabaseServer::start(kind, settings).map_err(Failure::failed)?;
    server.create(&flags.create).map_err(Failure::failed)?;
    output::print(&format!("listening: {}\n", server.url(&flags.create)))?;
    while !interrupt.asked.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
    }
    drop(server);
    Ok(Exit::Done)
}
