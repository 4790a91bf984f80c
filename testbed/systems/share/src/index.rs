//! The central index: one server in which all peers register their files, and which they search.

mod api;
mod metrics;
mod options;
mod requests;
mod service;
mod tables;

pub use self::{
    options::{IndexServerError, Options},
    service::{IndexFactory, IndexHandler, factory},
};
