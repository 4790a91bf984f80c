//! What the users do: requests with weights, and values that differ per user or per request.

mod capture_section;
pub(crate) mod definition;
pub(crate) mod error;
mod file;
pub(crate) mod section;
pub(crate) mod single;
pub(crate) mod sizes;
pub(crate) mod statuses;
pub(crate) mod template;
pub(crate) mod value;
