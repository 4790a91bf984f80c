//! The readiness family: loops that ask the system which sockets are ready, and poll tasks in between.
//!
//! A loop is generic over its [`Poller`](poller::Poller), which is resolved at compile time.

mod connection;
pub(crate) mod epoll;
pub(crate) mod event_loop;
pub(crate) mod poll;
pub(crate) mod poller;
pub(crate) mod polling;
mod reactor;
pub(crate) mod select;
#[cfg(test)]
mod tests;
