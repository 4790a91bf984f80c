//! A peer: shares the files of a folder and downloads files from other peers.
//!
//! `shared` keeps the catalogue of shared files as the folder is; `announcing` registers the catalogue in the index;
//! `downloads` fetches content from other peers, and `health` records how those answer. `api` and `service` answer
//! requests, and `browsers` rejects those that other sites make a browser send. Background work has threads of its own,
//! whatever runs the server.

mod announcing;
mod api;
mod browsers;
mod central_index;
mod downloads;
mod error;
mod health;
mod metrics;
mod options;
mod service;
mod shared;

pub use self::{
    downloads::{DownloadState, Progress, SourceProgress},
    error::PeerError,
    options::{IndexChoice, Options, own_key},
    service::{PeerFactory, PeerHandler, factory},
    shared::{journal::rewritten_journal, walk::is_hidden},
};
