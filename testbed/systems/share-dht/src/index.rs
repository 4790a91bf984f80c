//! The index as a peer uses it: blocking calls over tasks in a thread of their own.

use std::{
    error::Error,
    fmt,
    future::Future,
    net::{SocketAddr, UdpSocket},
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, text::encode},
    registry::Registry,
};
use share::{
    entry::{Entry, Query, SearchResult},
    interfaces::{Index, IndexError, OpenIndex},
};
use tokio::runtime::{Builder, Handle};

use crate::{
    kademlia::{Admission, Driver, Identity, Joining, Network, PeerNode, Table},
    node::Node,
    options::{DhtError, Options},
};

/// How long to wait for more peers that come or go at the same time.
const GATHER: Duration = Duration::from_millis(30);
/// How often expired publishers are removed.
const EXPIRE_EVERY: Duration = Duration::from_millis(500);

/// One peer's part of the index. It stops when it is dropped.
#[derive(Debug)]
pub struct Dht {
    node: Arc<PeerNode>,
    runtime: Handle,
    listen: SocketAddr,
    bootstrap: Vec<SocketAddr>,
    /// Closed on drop, which ends the thread.
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Dht {
    /// Joins the index and listens. The peer's identity is kept in the folder `state`.
    ///
    /// # Errors
    /// See [`DhtError`].
    pub fn open(options: &Options, state: &Path) -> Result<Self, DhtError> {
        // With members known by keys, the secret belongs to one peer and no other knows it.
        let common = options.secret.as_deref().filter(|_| options.members.is_none());
        let identity = Identity::open(state, common)?;
        let (network, commands) = Network::new(Table::new(identity.peer(), options.placement));
        let node = Arc::new(Node::new(network.clone(), network, options.life));
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (say, said) = mpsc::channel();
        let (peer, options_of_thread) = (Arc::clone(&node), options.clone());
        let work = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(source) => {
                    let _ = say.send(Err(DhtError::System { what: "its tasks", source }));
                    return;
                }
            };
            let handle = runtime.handle().clone();
            runtime.block_on(async {
                let started = start(identity, commands, peer, &options_of_thread).await;
                let (driver, listen) = match started {
                    Ok(started) => started,
                    Err(error) => return drop(say.send(Err(error))),
                };
                let _ = say.send(Ok((handle, listen)));
                let driving = tokio::spawn(driver.run());
                // The channel closing ends the wait too.
                let _ = stopped.await;
                driving.abort();
            });
        };
        let refused = |source| DhtError::System { what: "a thread", source };
        thread::Builder::new().name("share-dht".into()).spawn(work).map_err(refused)?;
        let (runtime, listen) = said.recv().map_err(|_| refused(std::io::Error::other("it ended")))??;
        if let Some(own) = options.bootstrap.iter().find(|address| is_met_at(listen, **address)) {
            return Err(DhtError::Itself(*own));
        }
        options.listening.get_or_init(|| listen);
        Ok(Self { node, runtime, listen, bootstrap: options.bootstrap.clone(), _stop: stop })
    }

    /// The address at which other peers reach it.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Returns its metrics in the text form of OpenMetrics, for programs that have no server with a `/metrics`.
    ///
    /// # Errors
    /// A metric that cannot be encoded.
    pub fn metrics_text(&self) -> Result<String, fmt::Error> {
        let (mut text, mut registry) = (String::new(), Registry::default());
        registry.register_collector(Box::new(Counted(Arc::clone(&self.node))));
        encode(&mut text, &registry)?;
        Ok(text)
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// The metrics of a peer.
#[derive(Debug)]
struct Counted(Arc<PeerNode>);

impl Counted {
    fn show(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Self(node) = self;
        node.metrics.show(encoder, (node.routing.table.len(), node.records()))
    }
}

impl Collector for Counted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.show(&mut encoder)
    }
}

/// Whether a peer that listens at `listen` is the one reached at `address`.
fn is_met_at(listen: SocketAddr, address: SocketAddr) -> bool {
    let all = listen.ip().is_unspecified()
        && (listen.is_ipv4(), listen.port()) == (address.is_ipv4(), address.port());
    // Only this machine's own addresses can be bound.
    address == listen || all && UdpSocket::bind(SocketAddr::new(address.ip(), 0)).is_ok()
}

async fn start(
    identity: Identity,
    commands: tokio::sync::mpsc::Receiver<crate::kademlia::Command>,
    node: Arc<PeerNode>,
    options: &Options,
) -> Result<(Driver, SocketAddr), DhtError> {
    let multicast = !options.listen.ip().to_canonical().is_loopback();
    let joining = Joining::new(&options.bootstrap, Instant::now());
    let admission = Admission { members: options.members.clone(), metrics: node.metrics.clone() };
    let swarm = identity.swarm(options.placement, multicast, admission)?;
    let mut driver = Driver::new(swarm, commands, Arc::clone(&node), joining);
    let listen = driver.listen(options.listen).await?;
    Ok((driver, listen))
}

/// Announces this peer's files to peers that join.
async fn follow(node: Arc<PeerNode>) {
    loop {
        node.routing.table.changed.notified().await;
        tokio::time::sleep(GATHER).await;
        node.rearrange().await;
    }
}

/// Removes expired publishers.
async fn expire(node: Arc<PeerNode>) {
    loop {
        tokio::time::sleep(EXPIRE_EVERY).await;
        node.expire();
    }
}

impl Index for Dht {
    fn start(&self, own_address: SocketAddr) {
        self.node.set_at(own_address);
        self.runtime.spawn(follow(Arc::clone(&self.node)));
        self.runtime.spawn(expire(Arc::clone(&self.node)));
        self.node.routing.table.changed.notify_one();
        self.wait(self.node.routing.join());
    }

    fn register(&self, entries: &[Entry]) -> Result<(), IndexError> {
        self.wait(self.node.register(entries));
        Ok(())
    }

    fn deregister(&self, entries: &[Entry]) -> Result<(), IndexError> {
        self.wait(self.node.deregister(entries));
        Ok(())
    }

    fn leave(&self) -> Result<(), IndexError> {
        self.wait(self.node.leave());
        Ok(())
    }

    fn renew(&self) -> Result<(), IndexError> {
        self.wait(self.node.renew());
        Ok(())
    }

    fn renew_interval(&self) -> Duration {
        self.node.renew_interval()
    }

    fn search(&self, query: &Query) -> Result<Vec<SearchResult>, IndexError> {
        Ok(self.wait(self.node.search(query)))
    }

    fn search_local(&self, query: &Query) -> Option<Vec<SearchResult>> {
        self.node.search_here(query)
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.listen)
    }

    fn warning(&self) -> Option<String> {
        let table = &self.node.routing.table;
        let alone = table.is_alone().then(|| {
            let tried: Vec<_> = self.bootstrap.iter().map(SocketAddr::to_string).collect();
            format!("no other peer is reached, and only what is here is found; trying {}", tried.join(", "))
        });
        let incompatible = table.incompatible(Instant::now());
        let incompatible = incompatible.map(|why| format!("a peer was turned away lately: {why}"));
        let crowded = table.crowded().map(|most| {
            format!(
                "there are more than {most} peers, and not each of them may know all others: files may not be found; \
                 --dht is for so many"
            )
        });
        let all: Vec<_> = alone.into_iter().chain(incompatible).chain(crowded).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    fn encode_metrics(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        Counted(Arc::clone(&self.node)).show(encoder)
    }
}

impl OpenIndex for Options {
    fn open(&self, state: &Path) -> Result<Arc<dyn Index>, Box<dyn Error + Send + Sync>> {
        Ok(Arc::new(Dht::open(self, state)?))
    }
}
