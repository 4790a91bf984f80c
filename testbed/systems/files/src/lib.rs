//! The file server of S1: sends files to users that the accounts server knows.
//!
//! | request | response |
//! |---|---|
//! | `GET`, `HEAD /files/NAME` with Basic or Bearer | 200; 206 for a range; 304; 401; 403; 404; 412; 416 |
//! | `GET /files/`, `GET /files/FOLDER/` | 200 with the contents as JSON, or as HTML for `Accept: text/html` |
//! | `PUT /files/NAME` | 201, 204 once the file is on the disk; 104 and how to resume for `Upload-Complete`; 400; 403; 404; 409; 412; 413; 422; 507 |
//! | `DELETE /files/NAME` | 204; 403; 404; 409; 412 |
//! | `HEAD`, `PATCH`, `DELETE /uploads/ID` | how much of an upload has arrived; continues it; abandons it |
//! | `GET /me` | 200 with the caller's name, role, space used and quota |
//! | `GET /` | the page, for `Accept: text/html`; otherwise 302 to `/files/` |
//! | `POST /login`, `POST /logout` | 204 and a cookie that replaces `Authorization`; 401; 204 and no cookie |
//! | `/accounts`, `/accounts/..`, `/sessions`, `/audit` | forwarded to the accounts server |
//! | `GET /healthz`, `GET /metrics` | 200, for anyone |
//!
//! Responses are 503 with `Retry-After` while the accounts server is down or busy, and 429 after too many failed logins. A
//! request for multiple ranges gets the whole file. No file outside the root can be reached: see [`folder`].
//!
//! A request goes through `routes`. `access` admits it and decides what its caller may do. `reading` and [`folder`] respond
//! to requests that only read; `writing` handles uploads and deletions.

mod access;
mod audit;
pub mod command;
mod error;
mod metrics;
mod options;
mod reading;
mod refusal;
mod routes;
mod service;
mod writing;

pub use self::{
    access::{
        permissions::{Permissions, PermissionsError},
        session::session_token,
    },
    error::FilesError,
    options::{AccountsBackend, Options, UploadOptions, Uploaders, check},
    routes::FilesHandler,
    service::{FilesFactory, factory},
    writing::{UploadHeaders, rewritten_record, rewritten_usage},
};
