//! The file server of S1: sends a file to a user the accounts server knows.

mod error;
mod options;

pub use self::{
    error::FilesError,
    options::{AccountsBackend, Options, check_exposure},
};
