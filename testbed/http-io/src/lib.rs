//! HTTP over an engine's connection: servers, and clients of upstream servers.
//!
//! [`wire`] knows what the bytes mean and an [`engine`] moves them. This crate combines the two for every concurrency
//! model. A server is a [`server::Handler`]:
//!
//! ```
//! use engine::service::Connection;
//! use http_io::{Method, Problem, server::{Error, Exchange, Handler}};
//!
//! struct Greeter;
//!
//! impl<C: Connection> Handler<C> for Greeter {
//!     async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
//!         match (exchange.method(), exchange.path()) {
//!             (Method::Get | Method::Head, "/healthz") => exchange.respond(200).text("ok\n"),
//!             (Method::Post, "/echo") => {
//!                 let body = exchange.read_body(64 * 1024).await?.to_vec();
//!                 exchange.respond(200).body("application/octet-stream", &body)
//!             }
//!             (_, "/healthz" | "/echo") => Err(Problem::new(405, "method not allowed").into()),
//!             _ => Err(Problem::new(404, "no such page").hint("try /healthz").into()),
//!         }
//!     }
//! }
//! ```
//!
//! [`server::Http`]`::new(Greeter, options)` makes it a service of an engine.

pub mod client;
mod credentials;
mod decode;
mod fields;
pub mod health;
pub mod metrics;
mod problem;
mod response;
pub mod server;

pub use credentials::{Basic, Credentials, without_user};
pub use decode::{DecodeError, Query, decode_path};
pub use fields::{Fields, FieldsError};
pub use problem::Problem;
pub use response::{Response, page};
pub use wire::{ByteRange, Method, conditional, range};
