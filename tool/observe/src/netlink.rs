//! What the kernel tells by netlink but not in /proc: listen backlogs, both ends of unix sockets, shapers, routes, address
//! translation (netlink(7), rtnetlink(7), sock_diag(7), ctnetlink).
//!
//! Replies are parsed here rather than by the `netlink-packet-*` crates: those do not decode the options of the shapers
//! that matter (tbf, netem, cake, the classes of htb), and allocate for every attribute of every socket in a dump, which
//! on a busy host has thousands.

pub(crate) mod conntrack;
pub(crate) mod diag;
pub(crate) mod qdisc;
pub(crate) mod route;

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_BYTES: usize = 16;

/// Large enough: the kernel's dumps come in messages of at most 32 KiB.
const BUFFER_BYTES: usize = 64 << 10;

/// The time-out of a reply, in case something is wrong. The kernel replies at once.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// The two netlink sockets of a network namespace. A socket stays in the namespace in which it was made.
#[derive(Debug)]
pub(crate) struct NetlinkSockets {
    pub(crate) diag: NetlinkSocket,
    pub(crate) route: NetlinkSocket,
}

impl NetlinkSockets {
    /// Opens them in the namespace of a file such as `/proc/PID/ns/net`, which needs root, or in our own.
    pub(crate) fn open(namespace: Option<&Path>) -> io::Result<Self> {
        match namespace {
            Some(path) => inside(path, Self::here)?,
            None => Self::here(),
        }
    }

    fn here() -> io::Result<Self> {
        // Routing is protocol 0, which is the same as none.
        Ok(Self { diag: NetlinkSocket::open(Some(SOCK_DIAG))?, route: NetlinkSocket::open(None)? })
    }
}

/// Does something in the network namespace of a file such as `/proc/PID/ns/net`, which needs root.
pub(crate) fn inside<T: Send + 'static>(
    namespace: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let file = File::open(namespace)?;
    // Entering a namespace changes the thread, so use one that ends right after.
    let thread = std::thread::Builder::new().name("nstar-netns".to_owned()).spawn(move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    })?;
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that entered the namespace died")))
}

/// A netlink socket.
#[derive(Debug)]
pub(crate) struct NetlinkSocket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl NetlinkSocket {
    fn open(protocol: Option<Protocol>) -> io::Result<Self> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        set_socket_timeout(&fd, Timeout::Recv, Some(REPLY_TIMEOUT))?;
        Ok(Self { fd, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Requests all objects of a kind, and calls `each` with the payload of each.
    pub(crate) fn dump(&mut self, kind: u16, payload: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(kind, NLM_F_REQUEST | NLM_F_DUMP, payload, |reply| {
            each(reply);
            ControlFlow::Continue(())
        })
    }

    /// The same until `each` has seen enough. It uses up the socket: a dump that is not read to its end ends when that closes.
    pub(crate) fn dump_until(
        mut self,
        kind: u16,
        payload: &[u8],
        each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.ask(kind, NLM_F_REQUEST | NLM_F_DUMP, payload, each)
    }

    /// Requests one object.
    pub(crate) fn get(&mut self, kind: u16, payload: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.ask(kind, NLM_F_REQUEST, payload, |reply| {
            each(reply);
            ControlFlow::Continue(())
        })
    }

    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        payload: &[u8],
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(kind, flags, self.sequence, payload)?;
        rustix::net::send(&self.fd, &request, SendFlags::empty())?;
        loop {
            let (length, _) = rustix::net::recv(&self.fd, &mut self.buffer[..], RecvFlags::empty())?;
            let received = self.buffer.get(..length).unwrap_or_default();
            for message in Messages(received).filter(|message| message.sequence == self.sequence) {
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return error_of(message.payload),
                    _ if each(message.payload).is_break() => return Ok(()),
                    _ => {}
                }
                if flags & NLM_F_DUMP == 0 {
                    return Ok(());
                }
            }
        }
    }
}

fn request(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(HEADER_BYTES + payload.len()).map_err(io::Error::other)?;
    let mut request = Vec::with_capacity(HEADER_BYTES + payload.len());
    request.extend(length.to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    request.extend(0u32.to_ne_bytes());
    request.extend(payload);
    Ok(request)
}

fn error_of(payload: &[u8]) -> io::Result<()> {
    match u32_at(payload, 0) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code.cast_signed().saturating_neg())),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    payload: &'a [u8],
}

/// The messages of one read, up to the first truncated one.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let bytes = self.0;
        let length = u32_at(bytes, 0)? as usize;
        let payload = bytes.get(HEADER_BYTES..length)?;
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Message { kind: u16_at(bytes, 4)?, sequence: u32_at(bytes, 8)?, payload })
    }
}

/// Type-length-value attributes, up to the first truncated one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes after the first `fixed` bytes of a payload.
    pub(crate) fn after(payload: &'a [u8], fixed: usize) -> Self {
        Self(payload.get(fixed..).unwrap_or_default())
    }

    /// The value of the first attribute of a kind.
    pub(crate) fn find(self, kind: u16) -> Option<&'a [u8]> {
        { self }.find_map(|(found, value)| (found == kind).then_some(value))
    }

    /// The attributes inside an attribute.
    pub(crate) fn nested(self, kind: u16) -> Self {
        Self(self.find(kind).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        /// Flags for nesting and byte order, which are not part of the kind.
        const FLAGS: u16 = 0xc000;
        let bytes = self.0;
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !FLAGS;
        let value = bytes.get(4..length)?;
        self.0 = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

/// Encodes an attribute, with padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = Vec::from(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_break_a_parser(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Messages(&bytes).count();
            let _ = Attributes(&bytes).count();
            let _ = diag::tcp_socket(&bytes);
            let _ = diag::end(&bytes);
            let _ = diag::unix_socket(&bytes);
            let _ = qdisc::qdisc(&bytes);
            let _ = qdisc::class(&bytes);
            let _ = qdisc::root_of(0, &bytes);
            let _ = qdisc::default_of(0, &bytes);
            let _ = route::link(&bytes);
            let _ = route::address(&bytes);
            let _ = conntrack::entry(&bytes);
        }

        #[test]
        fn attributes_come_back(values in prop::collection::vec((0u16..0x3fff, prop::collection::vec(any::<u8>(), 0..20)), 0..8)) {
            let bytes: Vec<u8> = values.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect();
            let back: Vec<(u16, Vec<u8>)> = Attributes(&bytes).map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(back, values);
        }
    }

    #[test]
    fn a_refusal_by_the_kernel_is_an_error() {
        let mut sockets = NetlinkSockets::open(None).unwrap();
        assert!(sockets.route.dump(0xffff, &[0; 16], |_| {}).is_err());
        assert!(!route::names(&mut sockets.route).unwrap().is_empty(), "the socket still works");
    }
}
