//! The room booking system of S3: no room is ever booked twice.
//!
//! | request | response |
//! |---|---|
//! | `GET /` | the page to book and cancel on |
//! | `POST /bookings {"room","date","name","aadhaar"}` | 201; 409 if taken, with the next free time; 422 with `field` and `reason` |
//! | `GET /bookings/ID` | 200; 404 |
//! | `DELETE /bookings/ID` | 204; 404; 409 if its version is not the one in `If-Match` |
//! | `GET /rooms`, `GET /rooms?from=&to=` | 200 with the rooms, and when each is booked |
//! | `GET /rooms/N?from=&to=`, `GET /rooms/N/calendar.ics` | 200; 404 |
//! | `POST /rooms {"name","slots"}` by the administrator | 201; 401; 409; 422 |
//! | `GET /audit?after=&limit=` by the administrator | 200 with who booked what, when and from where; 401 |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! A server that is too busy responds 503 with `Retry-After`, one whose disk is full 507, and to a client that has booked too
//! often 429, where that is limited. A unique index in the database decides whether a room is free: no code here looks first and
//! books afterwards.
//!
//! [`Options`] say where the database is; [`factory`] makes the server. Inside, `api` and `requests` read requests and write
//! responses, `bookings` and `rooms` do what they ask, `tables` holds the SQL, and `values` the checked values that all
//! of them exchange.

mod api;
mod bookings;
mod calendar;
pub mod command;
mod limits;
mod options;
mod refusal;
mod requests;
mod rooms;
mod secrets;
mod service;
mod tables;
mod values;

pub use self::{
    api::BookingApi,
    options::{BookingError, Options},
    service::{BookingFactory, factory},
    tables::{Census, FillError, census, digest, fill, full_days},
    values::guest::IdPolicy,
};
