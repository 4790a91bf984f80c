//! Kademlia on libp2p: how peers find each other, which of them hold a key, and how to send them requests.
//!
//! libp2p's own records are not used: each holds one value of one publisher, and is found with a message per key. Only its
//! routing is used; records travel in batches, by a protocol of our own.

mod addresses;
mod admission;
mod behaviour;
mod driver;
mod joining;
#[cfg(test)]
mod simulation;
mod table;
mod walk;

use std::sync::Arc;

use libp2p_identity::PeerId;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::{
    admission::Admission, behaviour::Identity, driver::Driver, joining::Joining, table::Table,
};
use crate::{
    key::Key,
    message::{Request, Response},
    network::{Routing, Transport, Unanswered},
    node::Node,
    placement::QueryStrategy,
};

/// Most commands that may wait for the driver.
const COMMANDS: usize = 256;

/// A node on this network.
pub(crate) type PeerNode = Node<Network, Network>;

/// A command for the driver.
#[derive(Debug)]
pub(crate) enum Command {
    /// Start to join other peers.
    Join,
    Ask(PeerId, Request, oneshot::Sender<Result<Response, Unanswered>>),
    LookUp(Key, oneshot::Sender<Vec<PeerId>>),
}

/// The network as a node uses it.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub(crate) table: Arc<Table>,
    commands: mpsc::Sender<Command>,
}

impl Network {
    /// Creates the network, and the receiver of its commands.
    pub(crate) fn new(table: Table) -> (Self, mpsc::Receiver<Command>) {
        let (commands, receiver) = mpsc::channel(COMMANDS);
        (Self { table: Arc::new(table), commands }, receiver)
    }

    /// Starts to join other peers.
    pub(crate) async fn join(&self) {
        // A driver that has ended joins nobody.
        let _ = self.commands.send(Command::Join).await;
    }
}

impl Routing for Network {
    fn me(&self) -> PeerId {
        self.table.me()
    }

    fn known(&self, key: &Key) -> Option<Vec<PeerId>> {
        self.table.known(key)
    }

    async fn look_up(&self, key: &Key) -> Vec<PeerId> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Command::LookUp(*key, reply)).await;
        let found = if sent.is_ok() { answer.await.unwrap_or_default() } else { Vec::new() };
        self.table.holders(key, found)
    }

    fn outdated(&self, key: &Key, found: &[PeerId]) -> bool {
        self.table.outdated(key, found)
    }

    fn query_strategy(&self) -> QueryStrategy {
        self.table.query_strategy()
    }

    fn everyone(&self) -> Option<Vec<PeerId>> {
        self.table.everyone()
    }
}

impl Transport for Network {
    async fn ask(&self, peer: PeerId, request: Request) -> Result<Response, Unanswered> {
        let ended = || Unanswered("this peer is stopping".into());
        let (reply, answer) = oneshot::channel();
        self.commands.send(Command::Ask(peer, request, reply)).await.map_err(|_| ended())?;
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}
