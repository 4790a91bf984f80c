//! The accounts server of S1: who a user is, kept durably.
//!
//! | request | answers |
//! |---|---|
//! | `POST /accounts {"name","password"}` | 201; 409 taken; 422 with `field` and `reason`; 507 disk full |
//! | `POST /sessions {"name","password"}` | 200 with `token` and `expires_in_s`; 401 |
//! | `GET /auth` with Basic or Bearer | 200 with `name`, `role` and `quota` (and `expires_in_s` for a token); 401 |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! and 503 with `Retry-After` wherever too much is waiting. `GET /auth` is what a file server asks, and what nginx's
//! `auth_request` can ask as well.
//!
//! [`Accounts`] is the library beneath: [`Options`] say where the database is; [`factory`] makes the server.

mod account;
mod accounts;
mod api;
mod capacity;
mod credentials;
mod error;
mod metrics;
mod options;
mod passwords;
mod problem;
mod service;
mod tables;
mod token;

pub use self::{
    account::{Account, Role, User},
    accounts::{Accounts, Identity, Refused, Session},
    api::{Api, BODY_LEN_MAX, Call, Recognised},
    credentials::{Invalid, NAME_LEN_MAX, Name, PASSWORD_LEN_MAX, PASSWORD_LEN_MIN, Password},
    error::AccountsError,
    options::Options,
    problem::problem,
    service::{AccountsFactory, AccountsHandler, factory},
};

/// The wall clock, Unix seconds: what the database stores.
fn now_s() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
