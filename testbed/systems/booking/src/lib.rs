//! The room booking system of S3: a room is promised once, and the promise is kept.
//!
//! | request | answers |
//! |---|---|
//! | `GET /` | the page to book and cancel on |
//! | `POST /bookings {"room","date","name","aadhaar"}` | 201; 409 taken, with when it is free next; 422 with `field` and `reason` |
//! | `GET /bookings/ID` | 200; 404 |
//! | `DELETE /bookings/ID` | 204; 404; 409 when it is no longer as `If-Match` says |
//! | `GET /rooms`, `GET /rooms?from=&to=` | 200 with the rooms, and when each is booked |
//! | `GET /rooms/N?from=&to=`, `GET /rooms/N/calendar.ics` | 200; 404 |
//! | `POST /rooms {"name","slots"}` by the administrator | 201; 401; 409; 422 |
//! | `GET /audit?after=&limit=` by the administrator | 200 with who booked what, when and from where; 401 |
//! | `GET /healthz`, `GET /metrics` | 200 |
//!
//! and 503 with `Retry-After` where too much is waiting, 507 when the disk is full. Whether a room is free is the
//! database's to say, by a unique index: nothing here looks first and books then.
//!
//! [`Options`] say where the database is; [`factory`] makes the server.

mod aadhaar;
mod api;
mod census;
mod day;
mod desk;
mod error;
mod feed;
mod guest;
mod metrics;
mod options;
mod refusal;
mod requests;
mod room;
mod secrets;
mod service;
mod setup;
mod slot;
mod tables;

pub use self::{
    aadhaar::Accepted,
    census::{Census, census},
    error::BookingError,
    options::Options,
    service::{BookingFactory, BookingHandler, factory},
};
