//! Kademlia on libp2p: how peers find each other, who answers for a key, and how they are asked.
//!
//! libp2p's own records are not used: each would be one value of one publisher, found by one message per key. Its routing
//! says who is near to a key; what is told them goes by a protocol of our own, in batches.

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
    placement::Asks,
};

/// Commands that may wait for the driver.
const COMMANDS: usize = 256;

/// A node on this network.
pub(crate) type PeerNode = Node<Network, Network>;

/// What is asked of the driver.
#[derive(Debug)]
pub(crate) enum Command {
    /// Begin to join others.
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
    /// The network, and what is asked of it.
    pub(crate) fn new(table: Table) -> (Self, mpsc::Receiver<Command>) {
        let (commands, receiver) = mpsc::channel(COMMANDS);
        (Self { table: Arc::new(table), commands }, receiver)
    }

    /// Begins to join others.
    pub(crate) async fn join(&self) {
        // Where the driver has ended there is nothing to join.
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
        self.table.keepers(key, found)
    }

    fn outdated(&self, key: &Key, found: &[PeerId]) -> bool {
        self.table.outdated(key, found)
    }

    fn asks(&self) -> Asks {
        self.table.asks()
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
