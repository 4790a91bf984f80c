//! A framework for servers that answer an HTTP API from a database.
//!
//! A system states its routes and answers them, by implementing [`Api`]. The framework does the rest, the same way for
//! every system: it finds the route, refuses other methods with 405 and other paths with 404, serves `GET /healthz` and
//! `GET /metrics`, counts requests, writes the access log, and shares one open database among the workers of a process
//! ([`ApiFactory`]).
//!
//! ```
//! use api_server::{Api, Call, Metrics, Route, RouteMatch};
//! use http_io::{Problem, Response, server::Exchange};
//!
//! struct Greeter {
//!     metrics: Metrics,
//! }
//!
//! impl Api for Greeter {
//!     const ROUTES: &'static [Route] = &[Route::new("/greetings/{name}", "GET, HEAD")];
//!     const BODY_LEN_MAX: u64 = 1024;
//!     type Sender = ();
//!     type Error = Problem;
//!
//!     fn metrics(&self) -> &Metrics {
//!         &self.metrics
//!     }
//!
//!     fn admit<C: engine::service::Connection>(&self, exchange: &Exchange<'_, C>) -> Result<(), Problem> {
//!         exchange.check_origin()
//!     }
//!
//!     async fn answer(&self, found: RouteMatch<'_>, call: Call<'_, ()>) -> Result<Response, Problem> {
//!         match (found.path, call.method) {
//!             ("/greetings/{name}", "GET") => Ok(Response::new(200, "text/plain", format!("hello {}", found.parameter))),
//!             _ => Err(api_server::not_found()),
//!         }
//!     }
//! }
//! ```

mod api;
mod factory;
mod metrics;
mod route;
mod slowdown;

pub use self::{
    api::{Api, Call, Headers, not_found, of_store, respond},
    factory::{ApiFactory, ApiHandler, ServerOptions},
    metrics::Metrics,
    route::{Route, RouteMatch},
    slowdown::{Attempt, Noted, Slowdown, network},
};
