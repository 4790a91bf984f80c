//! Observes servers where they are, and makes load from elsewhere: nstar at both ends of a byte stream.
//!
//! The stream is the standard input and output of a command that runs `nstar agent` where the server is: `docker exec -i
//! web nstar agent`, `ip netns exec s nstar agent`, or ssh. Nothing listens that did not listen before, and whoever may run
//! the command may do what it does.
//!
//! - [`protocol`] is what passes over the stream: bytes in, messages out, without I/O or clock. Every size that the other
//!   end decides has a limit.
//! - [`serve`](mod@serve) is the far end: commands in, counters and slices of a load out.
//! - [`Observer`] is the near end: it starts the command, keeps what comes back on the clock of this host, and never waits
//!   for the far end but where samples are asked for.
//! - [`RemoteGenerator`] is the near end of one that makes load. It waits for nothing while load is made.
//! - [`Endpoint`] is the command, the host to reach by ssh, or a stream that is open already.
//! - [`relay`](fn@relay) runs an agent of its own for one run that came over such a stream.

mod alignment;
mod allowance;
mod arrived;
mod endpoint;
mod generating;
mod heard;
mod kept;
mod link;
mod observer;
mod open;
mod own_program;
mod own_watch;
mod patience;
mod profiling;
pub mod protocol;
mod relay;
mod remote;
mod samples;
pub mod serve;
mod ssh;
mod stream;
mod trouble;

pub use self::serve::Uses;
pub use alignment::{Alignment, Ping};
pub use endpoint::{Endpoint, EndpointError};
pub use observer::{Asked, Observer, PROFILE_PATIENCE, ProfileAsked, Sighting, not_found};
pub use open::{Ended, OpenStream, Ways};
pub use patience::Patience;
pub use relay::relay;
pub use remote::{Progress, RemoteGenerator, TooLarge};
pub use ssh::BySsh;
pub use trouble::StartError;
