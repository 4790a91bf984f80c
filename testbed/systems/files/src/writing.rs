//! Taking files in, replacing and removing them.
//!
//! `writer` takes the requests, `upload` what they bring, into `staging`; `changes` put it in its place, and `ledger`
//! says for whom there is room.

pub(crate) mod changes;
pub(crate) mod condition;
pub(crate) mod ledger;
pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod refusal;
pub(crate) mod staging;
pub(crate) mod upload;
pub(crate) mod writer;
