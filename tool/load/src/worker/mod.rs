//! One generator thread: an event loop that runs its share of the users.
//!
//! [`event_loop`] waits and dispatches; `scheduler` decides when each user sends; `exchange` takes one request from
//! connect to its end.

mod event_loop;
mod exchange;
pub(crate) mod messages;
pub(crate) mod pacing;
mod scheduler;
pub(crate) mod target;
mod timers;
mod user;

pub(crate) use event_loop::Worker;
