//! The HTTP interface: routes, requests read field by field, and the calendar feed.

pub(crate) mod api;
mod calendar;
pub(crate) mod requests;
