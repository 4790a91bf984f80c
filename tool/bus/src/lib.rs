//! Byte streams between machines that meet on a NATS server, where they come and go.
//!
//! A machine *joins* a fleet: it answers whoever asks who is there, and is *claimed* by one run at a time, which then has a
//! stream of bytes to it and from it. What the bytes say is none of this crate's business. Nothing is kept at the bus.
//!
//! - [`Bus`] is the connection: one thread with the runtime that the client library needs.
//! - [`Membership`] is the end of a machine that joined; [`reach`] and [`gather`] find and claim machines for a run.
//! - [`Reader`] and [`Writer`] are the two ways of a stream. NATS may lose a message: frames are numbered, so that a stream
//!   ends rather than have a hole, and a window bounds what waits anywhere.
//!
//! Subjects: `nstar.who` asks who is there, `nstar.member.ID.claim` claims one, `nstar.run.RUN.ID.down` and `.up` are the ways
//! of a stream to a member and from it.

mod address;
mod certificates;
mod connection;
mod flow;
mod gather;
mod member;
mod message;
mod stream;

pub use address::{Address, AddressError, Identity, Login};
pub use connection::{Bus, BusError, Notice};
pub use flow::Broken;
pub use gather::{GatherError, Member, Patience, Wanted, gather, reach};
pub use member::{Card, Membership, Run};
pub use stream::{Ending, Farewell, Reader, Writer};
