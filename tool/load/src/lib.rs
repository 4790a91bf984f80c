//! Makes the load: scenario, users, requests, histograms.
//!
//! A [`Plan`] says what to run: a [`Scenario`] (what is requested), a [`Pacing`] (when), a connection policy,
//! a time-out, threads. A [`Generator`] runs it: [`Generator::set_users`], then [`Generator::collect`]
//! for ticks of 20 ms, again and again; connections stay from step to step.
//!
//! ```text
//! Scenario -> render (bytes with patch slots) -> worker (users on an event loop, one per thread)
//!                                                  | protocol: connect, send, receive, complete, fail
//!                                                  | transport: epoll, sockets, TLS
//!          Tick <- merge <- one Slice per thread <- record (histogram, counts)
//! ```
//!
//! The request path takes no lock, sends on no channel and allocates nothing; threads hand over what
//! they counted once a slice.

mod catch;
mod ceiling;
mod clock;
mod error;
mod generator;
mod held;
#[cfg(test)]
mod instructions;
pub mod limits;
mod merge;
mod null;
mod plan;
mod probe;
mod record;
mod render;
mod resolve;
mod response;
mod scenario;
mod tally;
mod threads;
mod transport;
mod url;
mod worker;

pub use self::url::{Credentials, Scheme, Url, UrlError};
pub use ceiling::{CEILING_BODY_BYTES, CEILING_USERS, Ceiling};
pub use clock::now_us;
pub use error::LoadError;
pub use generator::Generator;
pub use null::NullServer;
pub use plan::{Arrivals, Connections, Pacing, Plan, Stop, Think};
pub use probe::{ProbeError, ProbeReport, probe};
pub use record::SLICE_US;
pub use resolve::resolve;
pub use scenario::sizes::{SizeError, Sizes};
pub use scenario::statuses::Statuses;
pub use scenario::value::{Check, Each, Value, ValueKind};
pub use scenario::{FlagError, Problem, RequestTemplate, Scenario, ScenarioError};
pub use tally::RequestTotal;
