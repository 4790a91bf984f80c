//! `nstar-lab database`: an empty database server, for as long as it is wanted.

use std::{any::Any, sync::atomic::Ordering, thread, time::Duration};

use database_server::{DatabaseError, DatabaseServer, GaleraCluster, Kind, Password, Settings};
use nstar::{
    exit::{Exit, Failure},
    interrupt::Interrupt,
    output,
};
use store::Secret;

use super::{DatabaseKind, ServeDatabase};

/// How often to look whether to stop.
const INTERVAL: Duration = Duration::from_millis(20);

/// What runs until it is dropped, and its URL.
type Running = (Box<dyn Any>, String);

pub(crate) fn run(flags: &ServeDatabase) -> Result<Exit, Failure> {
    let interrupt = Interrupt::listen().map_err(Failure::failed)?;
    let secret = Secret::open(&flags.password_file).map_err(Failure::usage)?;
    let password = str::from_utf8(secret.as_bytes()).ok().and_then(Password::new);
    let settings = Settings { password, memory_mib: flags.cache, ..Settings::default() };
    let (running, url) = match flags.kind {
        DatabaseKind::Mariadb => one(Kind::Mariadb, flags, settings)?,
        DatabaseKind::Postgres => one(Kind::Postgres, flags, settings)?,
        DatabaseKind::Galera => several(flags, settings).map_err(Failure::failed)?,
    };
    output::print(&format!("listening: {url}\n"))?;
    while !interrupt.asked.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
    }
    drop(running);
    Ok(Exit::Done)
}

fn one(kind: Kind, flags: &ServeDatabase, settings: Settings) -> Result<Running, Failure> {
    let [port] = flags.port[..] else {
        return Err(Failure::usage(format!("{kind} listens on one --port; several are for galera")));
    };
    let settings = Settings { port: Some(port), ..settings };
    let server = DatabaseServer::start(kind, settings).map_err(Failure::failed)?;
    server.create(&flags.create).map_err(Failure::failed)?;
    let url = server.url(&flags.create);
    Ok((Box::new(server), url))
}

fn several(flags: &ServeDatabase, settings: Settings) -> Result<Running, DatabaseError> {
    let cluster = GaleraCluster::start(&flags.port, settings)?;
    cluster.create(&flags.create)?;
    let url = cluster.url(&flags.create);
    Ok((Box::new(cluster), url))
}
