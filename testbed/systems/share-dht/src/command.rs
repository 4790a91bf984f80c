//! `nstar-lab serve peer`: a peer, whose index is a server's or spread over the peers.

use std::{
    fmt::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use clap::{Args, Parser};
use http_io::client::{Scheme, Trust, Upstream};
use serve::{
    Exit, Failure, ServerFlags, ServerProcess, System,
    values::{address, listen},
};
use share::{
    Members,
    command::{self, AllowedKeys, life},
    peer::IndexChoice,
};

use crate::{options::Options, placement::Placement};

/// Where an index on this machine listens by default.
const INDEX: &str = "127.0.0.1:8084";

/// A peer of file sharing: shares a folder and fetches files from other peers
#[derive(Debug, Parser)]
#[command(name = "peer")]
pub struct PeerFlags {
    /// Folder to share, which also receives the files obtained
    #[arg(long, value_name = "DIR")]
    share: PathBuf,
    /// The index server; https:// if it speaks TLS [default: 127.0.0.1:8084, over TLS if this peer speaks it]
    #[arg(long, value_name = "URL", conflicts_with = "spread")]
    index: Option<String>,
    /// Authorities (PEM) to trust for the index and, with --tls-cert, for other peers, each at its address
    /// [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    spread: SpreadIndex,
    /// Folder for the peer's own data, on the same file system [default: .nstar in the shared folder]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// File with the group's secret, created if missing: only members that present it are answered. With --allow it is the
    /// owner's own, for the page and `nstar-lab share`
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    allowed: AllowedKeys,
    /// Where other peers can reach this one [default: where it listens]
    #[arg(long, value_name = "ADDR", value_parser = listen)]
    advertise: Option<SocketAddr>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8085", value_parser = listen)]
    listen: SocketAddr,
    #[command(flatten)]
    server: ServerFlags,
}

/// The index without a server.
#[derive(Debug, Args)]
struct SpreadIndex {
    /// No index server: the peers keep the index among themselves, in a distributed hash table
    #[arg(long, group = "spread")]
    dht: bool,
    /// No index server: the peers keep the index among themselves, and each knows all others (rendezvous hashing, for up to
    /// 1 000 peers), so that a search asks one peer
    #[arg(long, group = "spread")]
    partitioned: bool,
    /// Where another peer listens for peers; may be repeated [default: finds peers by multicast, if others can reach
    /// this one]
    #[arg(long, value_name = "ADDR", value_parser = contact, requires = "spread")]
    bootstrap: Vec<SocketAddr>,
    /// Address to listen on for other peers
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8086", value_parser = listen, requires = "spread")]
    dht_listen: SocketAddr,
    /// How long other peers keep what this one told them unless it renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = life, requires = "spread")]
    life: Duration,
}

impl System for PeerFlags {
    fn serve(&self) -> Result<Exit, Failure> {
        let mut process = ServerProcess::new("peer", self.listen, &self.server);
        self.server.concurrency.check_one_process(
            "a peer",
            "none of its processes would know what the others share and obtain",
        )?;
        let state = self.state.clone().unwrap_or_else(|| self.share.join(".nstar"));
        self.check_shared(&state)?;
        process.files.writes(&self.share);
        if self.share.is_dir() {
            process.files.keeps(&state);
        }
        self.secret_file.iter().for_each(|path| process.files.writes_beside(path));
        self.ca.iter().for_each(|path| process.files.reads(path));
        process.begin()?;
        let members =
            self.allowed.members(|| share::peer::own_key(&self.share, &state).map_err(Failure::usage))?;
        // libp2p warns whenever the only other peer leaves, which the peer itself reports.
        process.log_directive = Some("libp2p_kad=error");
        command::prepare(&mut process, self.listen, self.secret_file.is_some(), members.as_ref())?;
        self.check_reachable()?;
        let spread_on = Arc::new(OnceLock::new());
        let options = self.options(&state, process.is_encrypted(), members, &spread_on)?;
        self.run(process, options, &spread_on)
    }
}

impl PeerFlags {
    /// Refuses secrets of a peer in places that it would share. Its own folder, `state`, holds its key.
    fn check_shared(&self, state: &PathBuf) -> Result<(), Failure> {
        let own = [
            ("the peer's own folder with its key (--state)", Some(state)),
            ("the secret (--secret-file)", self.secret_file.as_ref()),
            ("the log (--log-file)", self.server.log_file.as_ref()),
            ("the certificate's key (--tls-key)", self.server.encryption.tls_key.as_ref()),
        ];
        match serve::first_inside(&self.share, &own, |path| !share::peer::is_hidden(path)) {
            Some((what, path)) => Err(Failure::usage(format!(
                "{what} at {} would be shared with the files in {}; keep it outside that folder, or under a name that \
                 begins with a dot",
                path.display(),
                self.share.display()
            ))),
            None => Ok(()),
        }
    }

    fn check_reachable(&self) -> Result<(), Failure> {
        if self.listen.ip().is_unspecified() && self.advertise.is_none() {
            return Err(Failure::usage(format!(
                "others cannot reach {}; say where they can reach this peer with --advertise ADDR:PORT",
                self.listen
            )));
        }
        Ok(())
    }

    fn options(
        &self,
        state: &Path,
        is_encrypted: bool,
        members: Option<Members>,
        spread_on: &Arc<OnceLock<SocketAddr>>,
    ) -> Result<share::peer::Options, Failure> {
        let trust = self.trust(is_encrypted, members.as_ref())?;
        let index = self.index(trust.as_ref(), members.as_ref(), spread_on)?;
        let mut options = share::peer::Options::new(&self.share, index);
        options.trust = trust;
        options.state = state.to_owned();
        options.secret = self.secret_file.clone();
        options.members = members;
        Ok(options)
    }

    fn run(
        &self,
        mut process: ServerProcess<'_>,
        mut options: share::peer::Options,
        spread_on: &OnceLock<SocketAddr>,
    ) -> Result<Exit, Failure> {
        options.connections = process.counters();
        options.open_metrics = process.open_metrics();
        let factory = share::peer::factory(&options).map_err(Failure::usage)?;
        if let Some(at) = spread_on.get() {
            // Writing to a string does not fail.
            let _ = write!(process.note, ", index among the peers on {at}");
        }
        let peer = factory.clone();
        let exit = process.serve_and(factory, |listening| {
            peer.listens_on(listening);
            peer.begin(self.advertise.unwrap_or(listening)).map_err(Failure::failed)
        });
        peer.end();
        exit
    }

    /// Whom to trust among peers over TLS.
    fn trust(&self, is_encrypted: bool, members: Option<&Members>) -> Result<Option<Trust>, Failure> {
        match members {
            Some(_) if self.ca.is_some() => Err(Failure::usage(
                "--ca goes with certificates; with --allow, others are known by their keys",
            )),
            Some(members) => members.trust().map(Some).map_err(Failure::failed),
            None => is_encrypted.then(|| command::authorities(self.ca.as_deref())).transpose(),
        }
    }

    /// The index server, or the peer's own part of the index, which sets `spread_on` to where it listens.
    fn index(
        &self,
        trust: Option<&Trust>,
        members: Option<&Members>,
        spread_on: &Arc<OnceLock<SocketAddr>>,
    ) -> Result<IndexChoice, Failure> {
        let index = match self.spread.placement() {
            Some(placement) => {
                let mut part = self.part_of_index(placement, spread_on)?;
                part.members = members.cloned();
                IndexChoice::Other(Arc::new(part))
            }
            None => IndexChoice::Central(self.index_server(trust)?),
        };
        match &index {
            IndexChoice::Central(server) if server.is_secure() => Ok(index),
            IndexChoice::Central(_) if members.is_some() => Err(Failure::usage(
                "with --allow, the index is known by its key: give --index https://HOST:PORT, and the index --allow too",
            )),
            _ if self.ca.is_none() || trust.is_some() => Ok(index),
            _ => Err(Failure::usage("--ca goes with --tls-cert, or with --index https://HOST:PORT")),
        }
    }

    fn index_server(&self, trust: Option<&Trust>) -> Result<Upstream, Failure> {
        let usual = if trust.is_some() { Scheme::Https } else { Scheme::Http };
        command::upstream("--index", self.index.as_deref().unwrap_or(INDEX), usual, || {
            trust.cloned().map_or_else(|| command::authorities(self.ca.as_deref()), Ok)
        })
    }

    fn part_of_index(
        &self,
        placement: Placement,
        spread_on: &Arc<OnceLock<SocketAddr>>,
    ) -> Result<Options, Failure> {
        let at = self.spread.dht_listen;
        share::check_exposure(at, self.secret_file.is_some() || self.allowed.is_given())
            .map_err(Failure::usage)?;
        serve::refuse_root(&self.server.rights, at)?;
        let mut options = Options::new(at);
        options.placement = placement;
        options.bootstrap.clone_from(&self.spread.bootstrap);
        options.secret = self.secret_file.clone();
        options.life = self.spread.life;
        options.listening = Arc::clone(spread_on);
        Ok(options)
    }
}

impl SpreadIndex {
    /// How the peers share out the index; `None` with an index server.
    fn placement(&self) -> Option<Placement> {
        match (self.dht, self.partitioned) {
            (true, _) => Some(Placement::Nearest),
            (_, true) => Some(Placement::Rendezvous),
            _ => None,
        }
    }
}

/// Parses where another peer listens for peers, `ADDR:PORT`. Looks up a name once, now.
fn contact(text: &str) -> Result<SocketAddr, String> {
    address(text).and_then(reachable).map_err(|why| {
        format!(
            "'{text}' is not an address of a peer: {why}; write ADDR:PORT as the peer prints it \
             ('index among the peers on ..'), such as 192.0.2.7:8086 or [2001:db8::7]:8086"
        )
    })
}

/// Refuses port 0, which is only for listening: it stands for any free port.
fn reachable(at: SocketAddr) -> Result<SocketAddr, String> {
    if at.port() == 0 { Err("nobody listens on port 0".into()) } else { Ok(at) }
}
