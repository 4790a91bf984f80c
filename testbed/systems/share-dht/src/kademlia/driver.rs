//! Drives the swarm: one task that executes commands, answers other peers, and keeps the routing table.

mod explaining;
mod peers;
mod refreshing;

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use futures::Stream;
use libp2p_identity::PeerId;
use libp2p_kad::{self as kad, QueryId, QueryResult};
use libp2p_request_response::{self as request_response, Message, OutboundFailure, OutboundRequestId};
use libp2p_swarm::{ConnectionId, DialError, Swarm, SwarmEvent, dial_opts::DialOpts};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Interval, MissedTickBehavior},
};

use self::{
    explaining::{explain, innermost},
    peers::RemoteEnd,
    refreshing::Refreshing,
};
use super::{
    Command, Joining, PeerNode,
    addresses::{of_multi, to_multi},
    behaviour::{Behaviour, BehaviourEvent},
};
use crate::{
    message::{Request, Response},
    network::Unanswered,
    options::DhtError,
    placement::Placement,
};

/// How often to check which peers to try again.
const TICK: Duration = Duration::from_millis(250);

type Event = SwarmEvent<BehaviourEvent>;
type RequestOutcome = Result<Response, Unanswered>;
type Exchange = request_response::Event<Request, Response>;

/// The task.
pub(crate) struct Driver {
    swarm: Swarm<Behaviour>,
    commands: mpsc::Receiver<Command>,
    node: Arc<PeerNode>,
    joining: Joining,
    joins: bool,
    asked: HashMap<OutboundRequestId, oneshot::Sender<RequestOutcome>>,
    lookups: HashMap<QueryId, oneshot::Sender<Vec<PeerId>>>,
    /// The remote end of each connection.
    seen: HashMap<ConnectionId, RemoteEnd>,
    /// Incompatible peers that were logged; bounded by [`peers::INCOMPATIBLE_MAX`].
    incompatible: HashSet<PeerId>,
    tick: Interval,
    refreshing: Refreshing,
}

/// What the driver waits for.
enum DriverEvent {
    Asked(Option<Command>),
    Event(Box<Event>),
    Tick,
}

impl Driver {
    pub(crate) fn new(
        swarm: Swarm<Behaviour>,
        commands: mpsc::Receiver<Command>,
        node: Arc<PeerNode>,
        joining: Joining,
    ) -> Self {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let refreshing = Refreshing::new(*swarm.local_peer_id(), Instant::now());
        Self {
            swarm,
            commands,
            node,
            joining,
            joins: false,
            asked: HashMap::new(),
            lookups: HashMap::new(),
            seen: HashMap::new(),
            incompatible: HashSet::new(),
            tick,
            refreshing,
        }
    }

    /// Starts to listen, and returns the address.
    pub(crate) async fn listen(&mut self, at: SocketAddr) -> Result<SocketAddr, DhtError> {
        let refused = |reason: String| DhtError::Listen { listen: at, reason };
        check_free(at).map_err(|error| refused(error.to_string()))?;
        self.swarm.listen_on(to_multi(at)).map_err(|error| refused(innermost(&error)))?;
        loop {
            match self.next_event().await {
                SwarmEvent::NewListenAddr { address, .. } => {
                    let port = of_multi(&address).map_or(at.port(), |found| found.port());
                    return Ok(SocketAddr::new(at.ip(), port));
                }
                SwarmEvent::ListenerError { error, .. } => return Err(refused(error.to_string())),
                SwarmEvent::ListenerClosed { reason, .. } => {
                    return Err(refused(reason.err().map(|error| error.to_string()).unwrap_or_default()));
                }
                _ => {}
            }
        }
    }

    /// Runs until nobody can send commands any more.
    pub(crate) async fn run(mut self) {
        loop {
            match self.next().await {
                DriverEvent::Asked(None) => return,
                DriverEvent::Asked(Some(command)) => self.execute(command),
                DriverEvent::Event(event) => self.take(*event),
                DriverEvent::Tick => {
                    self.try_joining();
                    self.refresh();
                    self.close_incompatible(Instant::now());
                }
            }
        }
    }

    async fn next(&mut self) -> DriverEvent {
        poll_fn(|cx| {
            if let Poll::Ready(command) = self.commands.poll_recv(cx) {
                return Poll::Ready(DriverEvent::Asked(command));
            }
            if let Poll::Ready(Some(event)) = std::pin::Pin::new(&mut self.swarm).poll_next(cx) {
                return Poll::Ready(DriverEvent::Event(Box::new(event)));
            }
            if self.joins {
                return self.tick.poll_tick(cx).map(|_| DriverEvent::Tick);
            }
            Poll::Pending
        })
        .await
    }

    async fn next_event(&mut self) -> Event {
        futures::StreamExt::select_next_some(&mut self.swarm).await
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Join => {
                self.joins = true;
                self.try_joining();
            }
            Command::Ask(peer, request, reply) => {
                let id = self.swarm.behaviour_mut().exchange.send_request(&peer, request);
                self.asked.insert(id, reply);
            }
            Command::LookUp(key, reply) => {
                let id = self.swarm.behaviour_mut().kad.get_closest_peers(key.as_bytes().to_vec());
                self.lookups.insert(id, reply);
            }
        }
    }

    fn try_joining(&mut self) {
        if !self.joins {
            return;
        }
        let swarm = &mut self.swarm;
        self.joining.try_due(Instant::now(), |address| {
            let dial = DialOpts::unknown_peer_id().address(to_multi(address)).build();
            let connection = dial.connection_id();
            swarm.dial(dial).is_ok().then_some(connection)
        });
        self.node.routing.table.set_alone(self.joining.is_alone());
    }

    fn take(&mut self, event: Event) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Exchange(event)) => self.exchanged(event),
            SwarmEvent::Behaviour(BehaviourEvent::Kad(event)) => self.routed(event),
            SwarmEvent::Behaviour(BehaviourEvent::Identify(event)) => self.identified(event),
            SwarmEvent::Behaviour(BehaviourEvent::Multicast(event)) => self.discovered(event),
            SwarmEvent::ConnectionEstablished { connection_id, endpoint, .. } => {
                if let Some(at) = of_multi(endpoint.get_remote_address()) {
                    self.seen.insert(connection_id, RemoteEnd::at(at.ip()));
                }
                self.joining.connected(connection_id);
                self.node.routing.table.set_alone(self.joining.is_alone());
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, .. } => {
                self.seen.remove(&connection_id);
                self.joining.failed(connection_id, Instant::now(), String::new);
                if num_established == 0 {
                    self.lost(peer_id);
                }
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.not_reached(connection_id, peer_id, &error);
            }
            SwarmEvent::IncomingConnectionError { send_back_addr, error, .. } => {
                tracing::debug!(from = %send_back_addr, %error, "a connection was refused");
            }
            _ => {}
        }
    }

    fn not_reached(&mut self, connection: ConnectionId, peer: Option<PeerId>, error: &DialError) {
        match error {
            DialError::LocalPeerId { address }
                if self.swarm.listeners().any(|own| of_multi(own) == of_multi(address)) =>
            {
                self.joining.is_itself(connection);
            }
            // It has our own key, is being connected to already, or is refused by our own limits: no peer is gone.
            DialError::LocalPeerId { .. }
            | DialError::DialPeerConditionFalse(_)
            | DialError::Denied { .. }
            | DialError::Aborted => {}
            _ => {
                if let Some(peer) = peer {
                    self.forget(peer);
                }
            }
        }
        self.joining.failed(connection, Instant::now(), || explain(error));
        self.node.routing.table.set_alone(self.joining.is_alone());
    }

    fn exchanged(&mut self, event: Exchange) {
        match event {
            Exchange::Message { peer, connection_id, message: Message::Request { request, channel, .. } } => {
                let Some(seen) = self.seen.get(&connection_id).filter(|seen| seen.incompatible.is_none())
                else {
                    return;
                };
                let response = self.node.answer(peer, seen.at, &request);
                // If the peer has left meanwhile, nobody waits for the response.
                let _ = self.swarm.behaviour_mut().exchange.send_response(channel, response);
            }
            Exchange::Message { message: Message::Response { request_id, response }, .. } => {
                self.reply(request_id, Ok(response));
            }
            Exchange::OutboundFailure { peer, request_id, error, .. } => {
                match error {
                    OutboundFailure::UnsupportedProtocols => self.reject_incompatible(peer, "something else"),
                    OutboundFailure::Timeout => self.reconnect(peer),
                    _ => {}
                }
                self.reply(request_id, Err(Unanswered(error.to_string())));
            }
            Exchange::InboundFailure { .. } | Exchange::ResponseSent { .. } => {}
        }
    }

    fn reply(&mut self, request: OutboundRequestId, outcome: RequestOutcome) {
        if let Some(reply) = self.asked.remove(&request) {
            // The requester may have given up.
            let _ = reply.send(outcome);
        }
    }

    fn routed(&mut self, event: kad::Event) {
        match event {
            kad::Event::RoutingUpdated { .. } => self.note_table(),
            kad::Event::OutboundQueryProgressed {
                id,
                result: QueryResult::GetClosestPeers(result),
                stats,
                ..
            } => self.looked_up(id, result, stats.num_requests()),
            kad::Event::OutboundQueryProgressed { stats, .. } => {
                self.node.metrics.refreshed(stats.num_requests());
            }
            _ => {}
        }
    }

    fn looked_up(&mut self, lookup: QueryId, result: kad::GetClosestPeersResult, messages: u32) {
        match self.lookups.remove(&lookup) {
            Some(reply) => {
                self.node.metrics.looked_up(messages);
                // The requester may have given up.
                let _ = reply.send(self.found(result));
            }
            None => self.walked(lookup, messages),
        }
    }

    /// The peers that a lookup found. From now on they can be dialled.
    fn found(&mut self, result: kad::GetClosestPeersResult) -> Vec<PeerId> {
        let peers = match result {
            Ok(found) => found.peers,
            Err(kad::GetClosestPeersError::Timeout { peers, .. }) => peers,
        };
        for peer in &peers {
            for address in &peer.addrs {
                self.swarm.add_peer_address(peer.peer_id, address.clone());
            }
        }
        peers.into_iter().map(|peer| peer.peer_id).collect()
    }

    fn placement(&self) -> Placement {
        self.node.routing.table.placement()
    }

    /// Publishes the peers that are known now.
    fn note_table(&mut self) {
        let known = self.swarm.behaviour_mut().kad.kbuckets();
        let known = known.flat_map(|bucket| bucket.iter().map(|entry| *entry.node.key).collect::<Vec<_>>());
        self.node.routing.table.set(known.collect());
    }
}

/// Makes sure that nobody listens there: libp2p would share the port (SO_REUSEPORT), and connections would reach either
/// program.
fn check_free(at: SocketAddr) -> io::Result<()> {
    TcpListener::bind(at).map(drop)
}

#[cfg(test)]
mod tests;
