//! Connections of simulated peers: pipes in memory that carry libp2p's own streams.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::{BoxFuture, FutureExt, Ready, ready};
use libp2p_core::{
    Multiaddr, Transport,
    muxing::StreamMuxerBox,
    transport::{DialOpts, ListenerId, TransportError, TransportEvent},
    upgrade::{InboundConnectionUpgrade, OutboundConnectionUpgrade},
};
use libp2p_identity::PeerId;
use tokio::{io::DuplexStream, sync::mpsc};
use tokio_util::compat::Compat;

use super::world::{World, at, number};
use crate::kademlia::addresses::{of_multi, to_multi};

type Connection = (PeerId, StreamMuxerBox);
pub(super) type End = Compat<DuplexStream>;
/// Who connects, and the other end of the pipe.
type Call = (usize, End);
/// Connects to a peer.
pub(super) type Caller = mpsc::UnboundedSender<Call>;

/// The connections of one peer.
pub(super) struct Wire {
    me: usize,
    world: Arc<World>,
    calls: mpsc::UnboundedReceiver<Call>,
    listener: Option<ListenerId>,
    /// Whether the swarm knows the listening address.
    told: bool,
}

impl Wire {
    pub(super) fn new(me: usize, world: Arc<World>) -> (Self, Caller) {
        let (caller, calls) = mpsc::unbounded_channel();
        (Self { me, world, calls, listener: None, told: false }, caller)
    }

    fn taken(&self, from: usize, end: End) -> io::Result<Connection> {
        let streams = libp2p_yamux::Config::default().upgrade_inbound(end, "").now_or_never();
        Ok((self.world.peer(from), StreamMuxerBox::new(streams.unwrap()?)))
    }
}

async fn made(world: Arc<World>, from: usize, to: usize) -> io::Result<Connection> {
    let end = Arc::clone(&world).connect(from, to).await;
    Ok((
        world.peer(to),
        StreamMuxerBox::new(libp2p_yamux::Config::default().upgrade_outbound(end, "").await?),
    ))
}

impl Transport for Wire {
    type Output = Connection;
    type Error = io::Error;
    type ListenerUpgrade = Ready<io::Result<Connection>>;
    type Dial = BoxFuture<'static, io::Result<Connection>>;

    fn listen_on(&mut self, id: ListenerId, _: Multiaddr) -> Result<(), TransportError<io::Error>> {
        self.listener = Some(id);
        Ok(())
    }

    fn remove_listener(&mut self, _: ListenerId) -> bool {
        self.listener.take().is_some()
    }

    fn dial(&mut self, address: Multiaddr, _: DialOpts) -> Result<Self::Dial, TransportError<io::Error>> {
        let Some(to) = of_multi(&address).and_then(number) else {
            return Err(TransportError::MultiaddrNotSupported(address));
        };
        Ok(made(Arc::clone(&self.world), self.me, to).boxed())
    }

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let Some(listener_id) = self.listener else { return Poll::Pending };
        let here = to_multi(at(self.me));
        if !std::mem::replace(&mut self.told, true) {
            return Poll::Ready(TransportEvent::NewAddress { listener_id, listen_addr: here });
        }
        let Poll::Ready(Some((from, end))) = self.calls.poll_recv(cx) else { return Poll::Pending };
        let (upgrade, send_back_addr) = (ready(self.taken(from, end)), to_multi(at(from)));
        Poll::Ready(TransportEvent::Incoming { listener_id, upgrade, local_addr: here, send_back_addr })
    }
}
