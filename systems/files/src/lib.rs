//! The file server of S1: sends a file to a user the accounts server knows.
//!
//! | request | answers |
//! |---|---|
//! | `GET`, `HEAD /files/NAME` with Basic or Bearer | 200; 206 for a range; 304; 401; 403; 404; 412; 416 |
//! | `GET /files/`, `GET /files/FOLDER/` | 200 with what it holds, as JSON, or as HTML for `Accept: text/html` |
//! | `POST /accounts`, `POST /sessions` | passed on to the accounts server |
//! | `GET /healthz`, `GET /metrics` | 200, for anyone |
//!
//! and 503 with `Retry-After` while the accounts server is away or busy. Multiple ranges in one request are answered
//! with the whole file. A file is never found outside the root: see [`Options::root`].
//!
//! The way of a request: `service` takes it, `gate` lets it in, `open_files` finds what it names, `selection`
//! decides what of that is wanted, and `sending` answers.

mod authority;
mod caller;
mod error;
mod fingerprint;
mod flights;
mod gate;
mod identity;
mod lister;
mod listing;
mod media_type;
mod metrics;
mod open_files;
mod options;
mod remote;
mod representation;
mod root;
mod selection;
mod sending;
mod service;
mod target;
mod verdict;
mod verified;

pub use self::{
    error::FilesError,
    options::{AccountsBackend, Options, check_exposure},
    service::{FilesFactory, FilesHandler, factory},
};
