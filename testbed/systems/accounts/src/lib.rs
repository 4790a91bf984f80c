//! The accounts server of S1: stores accounts and checks credentials.
//!
//! | request | response |
//! |---|---|
//! | `POST /accounts {"name","password"}` | 201; 409 taken; 422 with `field` and `reason`; 507 disk full |
//! | `GET /accounts?after=&limit=`, `GET`, `PATCH`, `DELETE /accounts/NAME` by an administrator | 200, 204; 401; 403; 404; 422 |
//! | `PUT /accounts/NAME/password {"password","old_password"}` | 204; 401; 422 |
//! | `POST /sessions {"name","password"}` | 200 with `token` and `expires_in_s`; 401 |
//! | `DELETE /sessions` with Bearer | 204; 401 |
//! | `GET /auth` with Basic or Bearer | 200 with `name`, `role` and `quota`, and `expires_in_s` if the session or account ends; 401 |
//! | `GET /revocations?after=` | 200 with what caches must forget, see [`Revocations`] |
//! | `GET /audit?after=&limit=` by an administrator | 200; 401; 403 |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! Responses are 429 with `Retry-After` after too many failed logins, and 503 when too much is waiting. `GET /auth` is for
//! file servers, and for nginx's `auth_request`.
//!
//! [`Accounts`] is the library under it: [`Options`] say where the database is; [`factory`] makes the server.

mod account;
mod accounts;
mod admission;
mod api;
mod audit;
pub mod command;
mod common;
mod credentials;
mod metrics;
mod options;
mod passwords;
mod refusal;
mod regulars;
mod requests;
mod responses;
mod revocations;
mod service;
mod tables;

pub use self::{
    account::{Account, Role, User},
    accounts::{Accounts, Identity, Session},
    admission::{SERVICE_TOKEN, Sender},
    api::{AccountsApi, BODY_LEN_MAX, Call},
    audit::By,
    credentials::{Invalid, NAME_LEN_MAX, Name, PASSWORD_LEN_MAX, PASSWORD_LEN_MIN, Password},
    options::{AccountsError, Options, Registration},
    refusal::{Refusal, Refused, problem},
    responses::Recognised,
    revocations::{BUCKETS, Revocations, bucket},
    service::{AccountsFactory, factory},
    tables::Change,
};
