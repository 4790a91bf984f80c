//! The two servers of file sharing.

use std::{
    ffi::CStr,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use engine::Model;
use http_io::client::{Server, Trust};
use share::peer::Which;
use share_dht::Placement;

use super::{super::reach, System};
use crate::{
    exit::{Exit, Failure},
    flags::{Index, Peer},
    values::Scheme,
};

/// The index on this machine.
const INDEX: &str = "127.0.0.1:8084";

pub(super) fn serve_index(flags: &Index) -> Result<Exit, Failure> {
    let mut system = System::http("index", flags.listen, &flags.server);
    prepare(&mut system, c"nstar-index", flags.secret_file.is_some())?;
    let mut options = share::index::Options::new(flags.database.clone());
    options.life = flags.life;
    options.secret = flags.secret_file.clone();
    options.connections = system.counters.clone();
    system.serve(share::index::factory(options).map_err(Failure::failed)?)
}

pub(super) fn serve_peer(flags: &Peer) -> Result<Exit, Failure> {
    let mut system = System::http("peer", flags.listen, &flags.server);
    check_models(&flags.server.concurrency.engine)?;
    prepare(&mut system, c"nstar-peer", flags.secret_file.is_some())?;
    if flags.listen.ip().is_unspecified() && flags.advertise.is_none() {
        return Err(Failure::usage(format!(
            "{} is no address that others can reach; say where they can with --advertise ADDR:PORT",
            flags.listen
        )));
    }
    let spread_on = Arc::new(OnceLock::new());
    let trust = system.identity.is_some().then(|| reach::authorities(flags.ca.as_deref())).transpose()?;
    let mut options = share::peer::Options::new(&flags.share, index(flags, trust.as_ref(), &spread_on)?);
    options.trust = trust;
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
fn index(
    flags: &Peer,
    trust: Option<&Trust>,
    spread_on: &Arc<OnceLock<SocketAddr>>,
) -> Result<Which, Failure> {
    let which = match flags.spread.placement() {
        Some(placement) => Which::Other(Arc::new(part_of_index(flags, placement, spread_on)?)),
        None => Which::Central(server(flags, trust)?),
    };
    match &which {
        Which::Central(server) if server.is_secure() => Ok(which),
        _ if flags.ca.is_none() || trust.is_some() => Ok(which),
        _ => Err(Failure::usage("--ca goes with --tls-cert, or with --index https://HOST:PORT")),
    }
}

fn server(flags: &Peer, trust: Option<&Trust>) -> Result<Server, Failure> {
    let usual = if trust.is_some() { Scheme::Https } else { Scheme::Http };
    reach::server("--index", flags.index.as_deref().unwrap_or(INDEX), usual, || {
        trust.cloned().map_or_else(|| reach::authorities(flags.ca.as_deref()), Ok)
    })
}

fn part_of_index(
    flags: &Peer,
    placement: Placement,
    spread_on: &Arc<OnceLock<SocketAddr>>,
) -> Result<share_dht::Options, Failure> {
    let at = flags.spread.dht_listen;
    share::check_exposure(at, flags.secret_file.is_some()).map_err(Failure::usage)?;
    let mut options = share_dht::Options::new(at);
    options.placement = placement;
    options.bootstrap.clone_from(&flags.spread.bootstrap);
    options.secret = flags.secret_file.clone();
    options.life = flags.spread.life;
    options.listening = Arc::clone(spread_on);
    Ok(options)
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

/// As every server is prepared, and closed where others could reach it.
fn prepare(system: &mut System<'_>, process: &CStr, is_closed: bool) -> Result<(), Failure> {
    share::check_exposure(system.listen, is_closed).map_err(Failure::usage)?;
    system.secrets = is_closed.then_some("files and the group's secret");
    system.prepare(process)
}
