//! The central index: one server that all peers tell what they share, and ask who has what.

mod api;
mod error;
mod metrics;
mod options;
mod requests;
mod service;
mod tables;

pub use self::{
    error::IndexServerError,
    options::Options,
    service::{IndexFactory, IndexHandler, factory},
};
