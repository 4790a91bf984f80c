//! Configures the parts of libp2p in use, and their limits.

use std::{future::ready, io, path::Path, time::Duration};

use libp2p_connection_limits::{self as connection_limits, ConnectionLimits};
use libp2p_core::{
    Transport as _,
    muxing::StreamMuxerBox,
    transport::{
        Boxed,
        timeout::{TransportTimeout, TransportTimeoutError},
    },
    upgrade::Version,
};
use libp2p_identify as identify;
use libp2p_identity::{Keypair, PeerId};
use libp2p_kad::{self as kad, store::MemoryStore};
use libp2p_mdns as mdns;
use libp2p_request_response::{self as request_response, ProtocolSupport, json};
use libp2p_swarm::{Config, NetworkBehaviour, StreamProtocol, Swarm, behaviour::toggle::Toggle};
use share::{IDENTITY, Key};
use store::{Secret, SecretError};

use super::admission::Admission;
use crate::{
    message::{REQUEST_LEN_MAX, RESPONSE_LEN_MAX, Request, Response},
    options::DhtError,
    placement::Placement,
};

/// Time-out for making a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Time-out for a response. A slower peer is as good as dead.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection is kept that nobody uses: renewals use it.
const IDLE_KEPT: Duration = Duration::from_secs(600);
/// Most concurrent requests on one connection.
const REQUESTS_MAX: usize = 64;
/// Most connections, in all and with one peer.
const CONNECTIONS_MAX: u32 = 2_000;
const CONNECTIONS_PER_PEER_MAX: u32 = 8;
const HANDSHAKES_MAX: u32 = 64;
/// Longest message of Kademlia, bytes.
const ROUTING_LEN_MAX: usize = 16 * 1024;

/// Connections with other peers that have proved their identity.
pub(super) type Connections = Boxed<(PeerId, StreamMuxerBox)>;

/// The protocols that peers speak.
#[derive(NetworkBehaviour)]
#[behaviour(prelude = "libp2p_swarm::derive_prelude")]
pub(crate) struct Behaviour {
    limits: connection_limits::Behaviour,
    pub(super) identify: identify::Behaviour,
    pub(super) kad: kad::Behaviour<MemoryStore>,
    pub(super) exchange: json::Behaviour<Request, Response>,
    multicast: Toggle<mdns::tokio::Behaviour>,
}

/// This peer's key pair, and its group.
pub(crate) struct Identity {
    pub(super) keys: Keypair,
    prologue: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

impl Identity {
    /// Opens the key in the state folder, or creates it at the first start. `group` is the file with the group's secret.
    pub(crate) fn open(state: &Path, group: Option<&Path>) -> Result<Self, DhtError> {
        let own = Key::open(&state.join(IDENTITY))?;
        let keys = Keypair::ed25519_from_bytes(*own.seed());
        let keys = keys.map_err(|error| DhtError::Key(error.to_string()))?;
        Ok(Self { keys, prologue: prologue(group)? })
    }

    /// A peer with this key pair, in no group.
    #[cfg(test)]
    pub(super) fn of(keys: Keypair) -> Self {
        Self { keys, prologue: Vec::new() }
    }

    pub(crate) fn peer(&self) -> PeerId {
        self.keys.public().to_peer_id()
    }

    /// Creates the peer's swarm, which does not listen yet. With `multicast` it looks for peers on the local network.
    pub(crate) fn swarm(
        self,
        placement: Placement,
        multicast: bool,
        admission: Admission,
    ) -> Result<Swarm<Behaviour>, DhtError> {
        let connections = self.connections(admission)?;
        self.swarm_over(connections, placement, multicast)
    }

    /// Creates a swarm over connections of any kind.
    pub(super) fn swarm_over(
        self,
        connections: Connections,
        placement: Placement,
        multicast: bool,
    ) -> Result<Swarm<Behaviour>, DhtError> {
        let behaviour = behaviour(&self.keys, placement, multicast)
            .map_err(|source| DhtError::System { what: "to look for peers by multicast", source })?;
        let config = Config::with_tokio_executor().with_idle_connection_timeout(IDLE_KEPT);
        Ok(Swarm::new(connections, behaviour, self.peer(), config))
    }

    /// Encrypted connections over TCP, with members of the group only.
    fn connections(&self, admission: Admission) -> Result<Connections, DhtError> {
        let key = |error: &dyn std::fmt::Display| DhtError::Key(error.to_string());
        let noise = libp2p_noise::Config::new(&self.keys).map_err(|error| key(&error))?;
        let transport = libp2p_tcp::tokio::Transport::new(libp2p_tcp::Config::default())
            .map_err(Unconnected)
            .upgrade(Version::V1Lazy)
            .authenticate(noise.with_prologue(self.prologue.clone()))
            .multiplex(libp2p_yamux::Config::default())
            .and_then(move |(peer, muxer), endpoint| {
                let admitted = admission.check(peer, &endpoint);
                ready(admitted.map(|()| (peer, StreamMuxerBox::new(muxer))))
            });
        Ok(TransportTimeout::new(transport, CONNECT_WITHIN).map_err(in_time).boxed())
    }
}

/// An error of TCP itself. It is the source of this error, because libp2p shows only the sources of nested errors.
#[derive(Debug, thiserror::Error)]
#[error("no connection")]
struct Unconnected(#[source] io::Error);

/// Turns a time-out into an error like the system's.
fn in_time<E: std::error::Error + Send + Sync + 'static>(error: TransportTimeoutError<E>) -> io::Error {
    match error {
        TransportTimeoutError::Timeout => io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer within {} s", CONNECT_WITHIN.as_secs()),
        ),
        other => io::Error::other(other),
    }
}

/// What both ends of a connection must agree on for the handshake to succeed (The Noise Protocol Framework, revision 34,
/// section 6). Without the group's 256 random bits, no message can be made that its members accept.
fn prologue(group: Option<&Path>) -> Result<Vec<u8>, SecretError> {
    let secret = group.map(Secret::open).transpose()?;
    let bytes = secret.as_ref().map_or(&b""[..], Secret::as_bytes);
    Ok(blake3::derive_key("nstar share 1: group of peers", bytes).to_vec())
}

fn behaviour(keys: &Keypair, placement: Placement, multicast: bool) -> io::Result<Behaviour> {
    let peer = keys.public().to_peer_id();
    let limits = ConnectionLimits::default()
        .with_max_pending_incoming(Some(HANDSHAKES_MAX))
        .with_max_established(Some(CONNECTIONS_MAX))
        .with_max_established_per_peer(Some(CONNECTIONS_PER_PEER_MAX));
    let agent = concat!("nstar/", env!("CARGO_PKG_VERSION"));
    let identify = identify::Config::new(placement.protocol().into(), keys.public());
    let codec = json::codec::Codec::default()
        .set_request_size_maximum(REQUEST_LEN_MAX)
        .set_response_size_maximum(RESPONSE_LEN_MAX);
    let exchange = request_response::Config::default()
        .with_request_timeout(ANSWER_WITHIN)
        .with_max_concurrent_streams(REQUESTS_MAX);
    let protocols = [(StreamProtocol::new(placement.protocol()), ProtocolSupport::Full)];
    let multicast =
        multicast.then(|| mdns::tokio::Behaviour::new(mdns::Config::default(), peer)).transpose()?;
    Ok(Behaviour {
        limits: connection_limits::Behaviour::new(limits),
        identify: identify::Behaviour::new(identify.with_agent_version(agent.into())),
        kad: routing(peer, placement),
        exchange: json::Behaviour::with_codec(codec, protocols, exchange),
        multicast: multicast.into(),
    })
}

/// Kademlia for routing only: it stores no records for others.
fn routing(peer: PeerId, placement: Placement) -> kad::Behaviour<MemoryStore> {
    let mut config = kad::Config::new(placement.routing_protocol());
    config
        .set_record_filtering(kad::StoreInserts::FilterBoth)
        .set_replication_interval(None)
        .set_publication_interval(None)
        .set_provider_publication_interval(None)
        .set_kbucket_size(placement.bucket_size())
        .set_max_packet_size(ROUTING_LEN_MAX)
        .set_query_timeout(2 * ANSWER_WITHIN)
        .set_substreams_timeout(ANSWER_WITHIN)
        // The driver does this, as soon as there is a peer to ask.
        .set_periodic_bootstrap_interval(None);
    let mut kad = kad::Behaviour::with_config(peer, MemoryStore::new(peer), config);
    kad.set_mode(Some(kad::Mode::Server));
    kad
}
