//! Observes servers where they are: nstar at both ends of a byte stream.
//!
//! The stream is the standard input and output of a command that runs `nstar agent` where the server is: `docker exec -i
//! web nstar agent`, `ip netns exec s nstar agent`, or ssh. Nothing listens that did not listen before, and whoever may run
//! the command may observe.
//!
//! - [`protocol`] is what passes over the stream: bytes in, messages out, without I/O or clock. Every size that the other
//!   end decides has a limit.
//! - [`serve`](mod@serve) is the far end: commands in, counters out.
//! - [`Observer`] is the near end: it starts the command, keeps what comes back on the clock of this host, and never waits
//!   for the far end but where samples are asked for.
//! - [`Endpoint`] is the command, or the host to reach by ssh.

mod alignment;
mod allowance;
mod endpoint;
mod kept;
mod observer;
pub mod protocol;
pub mod serve;
mod ssh;
mod stream;
mod trouble;

pub use alignment::{Alignment, Ping};
pub use endpoint::{Endpoint, EndpointError};
pub use observer::{Observer, Sighting, not_found};
pub use trouble::StartError;
