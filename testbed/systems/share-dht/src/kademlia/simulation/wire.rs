//! Connections of simulated peers: pipes in memory that carry libp2p's own streams.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
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

use crate::kademlia::addresses::{of_multi, to_multi};

type Connection = (PeerId, StreamMuxerBox);
pub(super) type End = Compat<DuplexStream>;
/// Who connects, and the other end of the pipe.
type Call = (usize, End);
/// Connects to a peer.
pub(super) type Caller = mpsc::UnboundedSender<Call>;

/// The address of a peer.
pub(super) fn at(peer: usize) -> SocketAddr {
    let number = u32::try_from(peer).unwrap();
    SocketAddr::from((Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + number), 80))
}

/// The peer at an address.
fn number(at: SocketAddr) -> Option<usize> {
    let std::net::IpAddr::V4(ip) = at.ip() else { return None };
    u32::from(ip).checked_sub(u32::from(Ipv4Addr::new(10, 0, 0, 1))).map(|number| number as usize)
}

/// The peers of a network, as a transport needs them.
pub(super) trait Peers: Send + Sync {
    /// The id of a peer.
    fn id(&self, peer: usize) -> PeerId;

    /// Connects one peer to another. Returns the near end of the pipe, or why there is none.
    fn connect(self: Arc<Self>, from: usize, to: usize) -> BoxFuture<'static, io::Result<End>>;
}

/// The connections of one peer.
pub(super) struct Wire {
    me: usize,
    peers: Arc<dyn Peers>,
    calls: mpsc::UnboundedReceiver<Call>,
    listener: Option<ListenerId>,
    /// Whether the swarm knows the listening address.
    told: bool,
}

impl Wire {
    pub(super) fn new(me: usize, peers: Arc<dyn Peers>) -> (Self, Caller) {
        let (caller, calls) = mpsc::unbounded_channel();
        (Self { me, peers, calls, listener: None, told: false }, caller)
    }

    fn accepted(&self, from: usize, end: End) -> io::Result<Connection> {
        let streams = libp2p_yamux::Config::default().upgrade_inbound(end, "").now_or_never();
        Ok((self.peers.id(from), StreamMuxerBox::new(streams.unwrap()?)))
    }
}

async fn dialled(peers: Arc<dyn Peers>, from: usize, to: usize) -> io::Result<Connection> {
    let end = Arc::clone(&peers).connect(from, to).await?;
    Ok((peers.id(to), StreamMuxerBox::new(libp2p_yamux::Config::default().upgrade_outbound(end, "").await?)))
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
        Ok(dialled(Arc::clone(&self.peers), self.me, to).boxed())
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
        let (upgrade, send_back_addr) = (ready(self.accepted(from, end)), to_multi(at(from)));
        Poll::Ready(TransportEvent::Incoming { listener_id, upgrade, local_addr: here, send_back_addr })
    }
}
