//! The two servers of file sharing.

use std::{
    ffi::CStr,
    fmt::Write,
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use engine::Model;
use http_io::client::{Trust, Upstream};
use share::{IDENTITY, Key, Members, peer::IndexChoice};
use share_dht::Placement;

use super::{
    super::{database, reach},
    beneath,
    skeleton::Skeleton,
};
use nstar::exit::{Exit, Failure};

use crate::{
    flags::{Allowed, Index, Peer},
    values::Scheme,
};

/// Where an index on this machine listens by default.
const INDEX: &str = "127.0.0.1:8084";

pub(super) fn serve_index(flags: &Index) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("index", flags.listen, &flags.server);
    let own = || {
        let path = flags.key_file.clone().unwrap_or_else(|| flags.database.beside("index", IDENTITY));
        Key::open(&path).map_err(|error| Failure::usage(format!("--key-file: {error}")))
    };
    let members = members(&flags.allowed, own)?;
    prepare(&mut system, c"nstar-index", flags.secret_file.is_some(), members.as_ref())?;
    let database = database::with_password(&flags.database, &flags.login)?;
    let mut options = share::index::Options::new(database);
    options.life = flags.life;
    options.secret = flags.secret_file.clone();
    options.members = members;
    options.server.connections = system.counters.clone();
    system.serve(share::index::factory(options).map_err(Failure::failed)?)
}

pub(super) fn serve_peer(flags: &Peer) -> Result<Exit, Failure> {
    let mut system = Skeleton::http("peer", flags.listen, &flags.server);
    check_models(&flags.server.concurrency.engine)?;
    let state = flags.state.clone().unwrap_or_else(|| flags.share.join(".nstar"));
    beneath::check_shared(flags, &state)?;
    let members =
        members(&flags.allowed, || share::peer::own_key(&flags.share, &state).map_err(Failure::usage))?;
    prepare(&mut system, c"nstar-peer", flags.secret_file.is_some(), members.as_ref())?;
    if flags.listen.ip().is_unspecified() && flags.advertise.is_none() {
        return Err(Failure::usage(format!(
            "others cannot reach {}; say where they can reach this peer with --advertise ADDR:PORT",
            flags.listen
        )));
    }
    let spread_on = Arc::new(OnceLock::new());
    let trust = trust(flags, &system, members.as_ref())?;
    let which = index(flags, (trust.as_ref(), members.as_ref()), &spread_on)?;
    let mut options = share::peer::Options::new(&flags.share, which);
    options.trust = trust;
    options.state = state;
    options.secret = flags.secret_file.clone();
    options.members = members;
    options.connections = system.counters.clone();
    let factory = share::peer::factory(&options).map_err(Failure::usage)?;
    if let Some(at) = spread_on.get() {
        let _ = write!(system.note, ", index among the peers on {at}");
    }
    let peer = factory.clone();
    let exit = system.serve_and(factory, |listening: SocketAddr| {
        peer.begin(flags.advertise.unwrap_or(listening)).map_err(Failure::failed)
    });
    peer.end();
    exit
}

/// The members by key, if any are given; the server then needs its own key too.
fn members(flags: &Allowed, own: impl FnOnce() -> Result<Key, Failure>) -> Result<Option<Members>, Failure> {
    if !flags.is_given() {
        return Ok(None);
    }
    let listed = flags.allow_file.as_deref().map(Members::read_list).transpose();
    let listed = listed.map_err(|error| Failure::usage(format!("--allow-file: {error}")))?;
    let keys = flags.keys.iter().copied().chain(listed.unwrap_or_default());
    Ok(Some(Members::new(own()?, keys)))
}

/// Whom to trust among peers over TLS.
fn trust(flags: &Peer, system: &Skeleton<'_>, members: Option<&Members>) -> Result<Option<Trust>, Failure> {
    match members {
        Some(_) if flags.ca.is_some() => {
            Err(Failure::usage("--ca goes with certificates; with --allow, others are known by their keys"))
        }
        Some(members) => members.trust().map(Some).map_err(Failure::failed),
        None => system.identity.is_some().then(|| reach::authorities(flags.ca.as_deref())).transpose(),
    }
}

/// The index server, or the peer's own part of the index, which sets `spread_on` to where it listens.
fn index(
    flags: &Peer,
    (trust, members): (Option<&Trust>, Option<&Members>),
    spread_on: &Arc<OnceLock<SocketAddr>>,
) -> Result<IndexChoice, Failure> {
    let which = match flags.spread.placement() {
        Some(placement) => {
            let mut part = part_of_index(flags, placement, spread_on)?;
            part.members = members.cloned();
            IndexChoice::Other(Arc::new(part))
        }
        None => IndexChoice::Central(server(flags, trust)?),
    };
    match &which {
        IndexChoice::Central(server) if server.is_secure() => Ok(which),
        IndexChoice::Central(_) if members.is_some() => Err(Failure::usage(
            "with --allow, the index is known by its key: give --index https://HOST:PORT, and the index --allow too",
        )),
        _ if flags.ca.is_none() || trust.is_some() => Ok(which),
        _ => Err(Failure::usage("--ca goes with --tls-cert, or with --index https://HOST:PORT")),
    }
}

fn server(flags: &Peer, trust: Option<&Trust>) -> Result<Upstream, Failure> {
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
    share::check_exposure(at, flags.secret_file.is_some() || flags.allowed.is_given())
        .map_err(Failure::usage)?;
    let mut options = share_dht::Options::new(at);
    options.placement = placement;
    options.bootstrap.clone_from(&flags.spread.bootstrap);
    options.secret = flags.secret_file.clone();
    options.life = flags.spread.life;
    options.listening = Arc::clone(spread_on);
    Ok(options)
}

/// Refuses models that fork: a peer must be one process, which knows all that it shares and obtains.
fn check_models(models: &[Model]) -> Result<(), Failure> {
    match models.iter().find(|model| model.forks()) {
        None => Ok(()),
        Some(model) => Err(Failure::usage(format!(
            "a peer cannot run as {model}: none of its processes would know what the others share and obtain; choose \
             another --engine, such as epoll or threads"
        ))),
    }
}

/// Prepares a server. Refuses an open group if others could reach it.
fn prepare(
    system: &mut Skeleton<'_>,
    process: &CStr,
    has_secret: bool,
    members: Option<&Members>,
) -> Result<(), Failure> {
    share::check_exposure(system.listen, has_secret || members.is_some()).map_err(Failure::usage)?;
    system.secrets = has_secret.then_some("files and the group's secret");
    if let Some(members) = members {
        system.key = Some(members.own().pair().clone());
        system.note = format!(", key {}", members.own().public());
    }
    system.prepare(process)
}
