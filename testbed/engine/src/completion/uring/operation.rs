//! The operations of a ring, how they are tagged, and how they complete.

use std::os::fd::{FromRawFd, OwnedFd};

use io_uring::cqueue;
use rustix::io::Errno;

use crate::loops::Key;

/// What an operation on a connection's socket does. At most one of each kind is in flight per socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Receive,
    Send,
    /// Waiting until the socket takes more.
    Writable,
}

/// Identifies an operation on its way through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub(super) u64);

/// The operation that a [`Tag`] identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Accepting connections.
    Accept,
    /// Watching the loop's notifier.
    Wake,
    /// A cancellation. Its own outcome does not matter, because the cancelled operation completes too.
    Cancel,
    /// A transfer or wait on a connection's socket.
    Socket(Key, Kind),
}

impl Tag {
    /// A key's index, which counts descriptors, stays below this bit, so the kind fits above.
    const KIND_SHIFT: u32 = 61;
    const ACCEPT: u64 = u64::MAX;
    const WAKE: u64 = u64::MAX - 1;
    const CANCEL: u64 = u64::MAX - 2;

    pub(crate) const fn new(operation: Operation) -> Self {
        match operation {
            Operation::Accept => Self(Self::ACCEPT),
            Operation::Wake => Self(Self::WAKE),
            Operation::Cancel => Self(Self::CANCEL),
            Operation::Socket(key, kind) => Self(key.to_bits() | (kind as u64) << Self::KIND_SHIFT),
        }
    }

    pub(crate) const fn operation(self) -> Operation {
        let kind = match (self.0, self.0 >> Self::KIND_SHIFT) {
            (Self::ACCEPT, _) => return Operation::Accept,
            (Self::WAKE, _) => return Operation::Wake,
            (_, 0) => Kind::Receive,
            (_, 1) => Kind::Send,
            (_, 2) => Kind::Writable,
            _ => return Operation::Cancel,
        };
        let bits = self.0 & (u64::MAX >> (u64::BITS - Self::KIND_SHIFT));
        Operation::Socket(Key::from_bits(bits), kind)
    }
}

/// What the kernel reports about an operation.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) operation: Operation,
    /// What the corresponding system call would have returned.
    pub(crate) result: Result<u32, Errno>,
    /// The buffer of the buffer ring that was used.
    pub(crate) buffer: Option<u16>,
    /// The operation continues, and the kernel still uses what it was given.
    pub(crate) more: bool,
}

impl Completion {
    pub(super) fn read(entry: &cqueue::Entry) -> Self {
        let (result, flags) = (entry.result(), entry.flags());
        Self {
            operation: Tag(entry.user_data()).operation(),
            result: u32::try_from(result).map_err(|_| Errno::from_raw_os_error(-result)),
            buffer: cqueue::buffer_select(flags),
            more: cqueue::more(flags),
        }
    }

    /// The connection that was accepted.
    pub(crate) fn accepted(self) -> Result<OwnedFd, Errno> {
        // SAFETY: the kernel made the descriptor for this completion, and nobody else knows it.
        self.result.map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor.cast_signed()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::Arena;

    #[test]
    fn tags_identify_what_they_were_made_of() {
        let mut arena = Arena::new();
        let keys = [arena.insert(()), arena.insert(())];
        for operation in [Operation::Accept, Operation::Wake, Operation::Cancel] {
            assert_eq!(Tag::new(operation).operation(), operation);
        }
        for key in keys {
            for kind in [Kind::Receive, Kind::Send, Kind::Writable] {
                assert_eq!(Tag::new(Operation::Socket(key, kind)).operation(), Operation::Socket(key, kind));
            }
        }
    }
}
