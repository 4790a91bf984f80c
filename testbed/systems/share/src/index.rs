//! The central index: one server in which all peers register their files, and which they search.

mod api;
pub mod command;
mod options;
mod requests;
mod service;
mod tables;

pub use self::{
    api::{Failure, IndexApi},
    options::{IndexServerError, Options},
    service::{IndexFactory, factory},
};
