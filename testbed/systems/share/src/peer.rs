//! A peer: shares the files of a folder, and takes from other peers what it is asked to.
//!
//! `sharing` finds what there is in the folder and has it hashed; `catalogue` holds what is shared; `announcing` tells
//! the index; `obtaining` takes content from others, and `health` notes how those do; `api` and `service` answer requests,
//! and `browsers` says which of a page. The work in the background has threads of its own, whatever runs the server.

mod announcing;
mod api;
mod browsers;
mod catalogue;
pub(crate) mod central;
mod error;
mod failures;
mod hashing;
mod health;
mod memory;
mod metrics;
mod obtaining;
mod options;
mod outboards;
mod root;
mod service;
mod sharing;
mod walk;
mod watch;

pub use self::{
    error::PeerError,
    obtaining::{Progress, Source, State},
    options::{Options, Which, own_key},
    service::{PeerFactory, PeerHandler, factory},
    walk::is_hidden,
};
