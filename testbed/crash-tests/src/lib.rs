//! Power cuts and kill -9 under load: whether the systems keep what they acknowledged.
//!
//! The real program serves from a folder while clients load it and remember what was acknowledged. Then it is killed, or its
//! disk loses power; what is left is looked at directly, and through a server that starts on it. No program that is shipped
//! uses this crate.

mod campaign;
pub mod disk;
mod ledger;
mod server;
mod storage;
mod systems;

pub use self::{
    campaign::{Campaign, Outcome},
    storage::Crash,
    systems::Kind,
};
