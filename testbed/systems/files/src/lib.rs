//! The file server of S1: sends a file to a user the accounts server knows.
//!
//! | request | answers |
//! |---|---|
//! | `GET`, `HEAD /files/NAME` with Basic or Bearer | 200; 206 for a range; 304; 401; 403; 404; 412; 416 |
//! | `GET /files/`, `GET /files/FOLDER/` | 200 with what it holds, as JSON, or as HTML for `Accept: text/html` |
//! | `PUT /files/NAME` | 201, 204 once the file is on the disk; 104 and how to resume for `Upload-Complete`; 400; 403; 404; 409; 412; 413; 422; 507 |
//! | `DELETE /files/NAME` | 204; 403; 404; 409; 412 |
//! | `HEAD`, `PATCH`, `DELETE /uploads/ID` | how far an upload came; more of it; no more of it |
//! | `GET /me` | 200 with the caller's name, role, and what they keep and may keep |
//! | `GET /` | the page, for `Accept: text/html`; else 302 to `/files/` |
//! | `POST /login`, `POST /logout` | 204 and a cookie that stands for `Authorization`; 401; 204 and none |
//! | `/accounts`, `/accounts/..`, `/sessions`, `/audit` | passed on to the accounts server |
//! | `GET /healthz`, `GET /metrics` | 200, for anyone |
//!
//! and 503 with `Retry-After` while the accounts server is away or busy, 429 after too many failed logins. Multiple
//! ranges in one request are answered with the whole file. A file is never found outside the root: see
//! [`Options::root`].
//!
//! The way of a request: `service` takes it and `access` lets it in, which also says who may do what. `reading` answers
//! those that only want to see; `writing` takes in what is uploaded, puts it in its place and removes. Both reach the files
//! through [`folder`].

mod access;
mod audit;
mod error;
mod me;
mod metrics;
mod options;
mod reading;
mod service;
mod writing;

pub use self::{
    access::permissions::{Permissions, PermissionsError},
    error::FilesError,
    options::{AccountsBackend, Options, Uploaders, Uploads, check},
    service::{FilesFactory, FilesHandler, factory},
};
