//! Uploads and deletions.
//!
//! `writer` handles the requests. An `upload` gathers the bytes that it receives in `staging`. `changes` move the finished
//! file to its place, and `usage` enforces quotas.

pub(crate) mod changes;
mod headers;
mod names;
mod receive;
mod staging;
mod upload;
pub(crate) mod uploads;
mod usage;
pub(crate) mod writer;

pub use self::{headers::UploadHeaders, staging::rewritten_record, usage::rewritten_usage};
