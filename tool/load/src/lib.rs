//! Generates the load: scenario, users, requests, histograms.
//!
//! A [`Plan`] says what to run: a [`Scenario`] (what is requested), a [`Pacing`] (when), a connection policy, a time-out
//! and a number of threads. A [`Generator`] runs it: call [`Generator::set_users`], then [`Generator::collect`] for ticks
//! of 20 ms, as often as needed. Connections are kept from one step to the next.
//!
//! ```text
//! scenario -> requests (bytes with slots) -> worker (users on an event loop, one per thread)
//!                        ^ values              | exchange: connect, send, receive
//!                                             | transport: epoll, sockets, TLS
//!    Tick <- ticks::merger <- one Slice per thread <- ticks::recorder (histogram, counts)
//! ```
//!
//! The request path takes no lock, sends on no channel and allocates nothing. Threads hand over their counts once per
//! slice.

/// Reads files of TOML table by table; errors name file and line, and suggest the nearest name.
pub mod document {
    pub use toml::de::{DeTable, DeValue};

    pub use crate::scenario::error::{Problem, ScenarioError as DocumentError};
    pub use crate::scenario::section::{Field, Section, SourceText, elements_of, number_of, text_of, wrong};
}

mod ceiling;
mod clock;
mod digest;
mod error;
pub mod fleet;
mod generator;
#[cfg(test)]
mod instructions;
pub mod limits;
mod plan;
mod probe;
mod requests;
mod scenario;
mod ticks;
mod transport;
mod url;
mod values;
mod worker;

pub use self::url::{Credentials, Scheme, Url, UrlError};
pub use ceiling::null_server::NullServer;
pub use ceiling::{CEILING_BODY_BYTES, CEILING_USERS, Ceiling};
pub use error::{LoadError, ProbeError};
pub use generator::{Generator, stall_limit_us, stalled_us, trim};
pub use plan::{Arrivals, Connections, Pacing, Plan, Stop, THREADS_MAX, Think};
pub use probe::{ProbeReport, check, probe};
pub use scenario::definition::Scenario;
pub use scenario::error::{FlagError, Problem, ScenarioError};
pub use scenario::single::RequestTemplate;
pub use scenario::sizes::{SizeError, Sizes};
pub use scenario::statuses::Statuses;
pub use scenario::value::{CheckDigit, Each, Origin, Value, ValueKind};
pub use ticks::joined::{Part, joined};
pub use ticks::recorder::SLICE_US;
pub use ticks::totals::{RequestTotal, totals};
pub use transport::address::resolve;
