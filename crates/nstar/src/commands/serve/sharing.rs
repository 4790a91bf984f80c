//! The two servers of file sharing.

use std::{
    ffi::CStr,
    net::SocketAddr,
    path::Path,
    sync::{Arc, OnceLock},
};

use engine::Model;
use share::peer::Which;

use super::System;
use crate::{
    exit::{Exit, Failure},
    flags::{Index, Peer},
    values,
};

pub(super) fn serve_index(flags: &Index) -> Result<Exit, Failure> {
    let mut system = System::http("index", flags.listen, &flags.server);
    prepare(&mut system, c"nstar-index", flags.secret_file.as_deref())?;
    let mut options = share::index::Options::new(flags.database.clone());
    options.life = flags.life;
    options.secret = flags.secret_file.clone();
    options.connections = system.counters.clone();
    system.serve(share::index::factory(options).map_err(Failure::failed)?)
}

pub(super) fn serve_peer(flags: &Peer) -> Result<Exit, Failure> {
    let mut system = System::http("peer", flags.listen, &flags.server);
    check_models(&flags.server.concurrency.engine)?;
    prepare(&mut system, c"nstar-peer", flags.secret_file.as_deref())?;
    if flags.listen.ip().is_unspecified() && flags.advertise.is_none() {
        return Err(Failure::usage(format!(
            "{} is no address that others can reach; say where they can with --advertise ADDR:PORT",
            flags.listen
        )));
    }
    let spread_on = Arc::new(OnceLock::new());
    let mut options = share::peer::Options::new(&flags.share, index(flags, &spread_on)?);
    options.state = flags.state.clone().unwrap_or(options.state);
    options.secret = flags.secret_file.clone();
    options.connections = system.counters.clone();
    let factory = share::peer::factory(&options).map_err(Failure::usage)?;
    system.note = spread_on.get().map(|at| format!(", index among the peers on {at}")).unwrap_or_default();
    let peer = factory.clone();
    let exit = system.serve_and(factory, |listening: SocketAddr| {
        peer.begin(flags.advertise.unwrap_or(listening)).map_err(Failure::failed)
    });
    peer.end();
    exit
}

/// The index server, or the peer's own part of the index, which then tells where it listens.
fn index(flags: &Peer, spread_on: &Arc<OnceLock<SocketAddr>>) -> Result<Which, Failure> {
    let server = |flag: &str, text: &str| {
        values::server(text).map_err(|error| Failure::usage(format!("{flag} {error}")))
    };
    if !flags.dht.dht {
        return server("--index", &flags.index).map(Which::Central);
    }
    let at = flags.dht.dht_listen;
    share::check_exposure(at, flags.secret_file.is_some()).map_err(Failure::usage)?;
    let mut options = share_dht::Options::new(at);
    let contacts = flags.dht.bootstrap.iter().map(|text| server("--bootstrap", text));
    options.bootstrap = contacts.collect::<Result<_, _>>()?;
    options.secret = flags.secret_file.clone();
    options.life = flags.dht.life;
    options.listening = Arc::clone(spread_on);
    Ok(Which::Other(Arc::new(options)))
}

/// A peer is one: what it shares and obtains is known to one process.
fn check_models(models: &[Model]) -> Result<(), Failure> {
    match models.iter().find(|model| model.forks()) {
        None => Ok(()),
        Some(model) => Err(Failure::usage(format!(
            "a peer cannot run as {model}: its connections would each be answered by a process that knows nothing of \
             what the others share and obtain; choose another --engine, such as epoll or threads"
        ))),
    }
}

/// As every server is prepared, and closed by a secret where others could reach it.
fn prepare(system: &mut System<'_>, process: &CStr, secret: Option<&Path>) -> Result<(), Failure> {
    share::check_exposure(system.listen, secret.is_some()).map_err(Failure::usage)?;
    system.prepare(process)?;
    match system.identity {
        Some(_) => Err(Failure::usage("peers do not speak TLS: leave out --tls-cert and --tls-key")),
        None => Ok(()),
    }
}
