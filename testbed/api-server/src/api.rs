//! An API: requests in, responses out, apart from connections.

use std::future::Future;

use engine::service::Connection;
use http_io::{
    Problem, Response,
    server::{Exchange, RequestHead},
};
use store::StoreError;

use crate::{
    metrics::Metrics,
    route::{self, Route, RouteMatch},
};

/// After how many seconds a client may retry a request that was refused with 503.
const RETRY_AFTER_S: &str = "1";

/// The requests that a system answers.
pub trait Api: Send + Sync + 'static {
    /// The routes, besides `/healthz` and `/metrics`.
    const ROUTES: &'static [Route];
    /// The longest request body, bytes. A longer one is refused with 413.
    const BODY_LEN_MAX: u64;
    /// Whether paths hold secrets: then the access log shows routes instead.
    const PATHS_ARE_SECRET: bool = false;
    /// What [`admit`](Self::admit) found out about the sender of a request.
    type Sender;
    /// Why a request was not fulfilled.
    type Error: Into<Response>;

    /// The system's counters.
    fn metrics(&self) -> &Metrics;

    /// Decides, before the body is read, whether a request is let in.
    ///
    /// # Errors
    /// The problem to respond with.
    fn admit<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<Self::Sender, Problem>;

    /// Answers a request of one of [`ROUTES`](Self::ROUTES), whose method is one that the route takes; `HEAD` is given as
    /// `GET`.
    fn answer(
        &self,
        found: RouteMatch<'_>,
        call: Call<'_, Self::Sender>,
    ) -> impl Future<Output = Result<Response, Self::Error>>;
}

/// A request to an API.
#[derive(Clone, Copy)]
pub struct Call<'a, S> {
    /// The method, such as `POST`.
    pub method: &'a str,
    /// The path, without the query, still percent-encoded.
    pub path: &'a str,
    /// What follows `?`, still percent-encoded.
    pub query: Option<&'a str>,
    /// The header fields.
    pub headers: Headers<'a>,
    /// The body.
    pub body: &'a [u8],
    /// Who sent it.
    pub sender: S,
}

/// The header fields of a [`Call`].
#[derive(Clone, Copy)]
pub enum Headers<'a> {
    /// As received over a connection.
    Received(RequestHead<'a>),
    /// Names in lower case, and values.
    Given(&'a [(&'a str, &'a [u8])]),
}

impl<'a> Headers<'a> {
    /// The first value of the field `name`, which is in lower case.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        match self {
            Self::Received(head) => head.header(name),
            Self::Given(all) => all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value),
        }
    }
}

impl<'a, S> Call<'a, S> {
    /// The request of an exchange whose body has been read.
    pub(crate) fn of<C: Connection>(exchange: &'a Exchange<'_, C>, sender: S) -> Self {
        Self {
            method: exchange.method_text(),
            path: exchange.path(),
            query: exchange.query(),
            headers: Headers::Received(exchange.request_head()),
            body: exchange.body(),
            sender,
        }
    }

    /// The value of the `Authorization` header.
    pub fn authorization(&self) -> Option<&'a [u8]> {
        self.headers.get("authorization")
    }
}

/// Responds to a request and counts it. Returns the label of its route too.
pub async fn respond<A: Api>(api: &A, call: Call<'_, A::Sender>) -> (&'static str, Response) {
    let found = route::find(A::ROUTES, call.path);
    let label = found.map_or(route::OTHER, |found| found.path);
    let response = match found {
        None => not_found().into(),
        Some(found) if !found.allows(call.method) => Response::method_not_allowed(found.methods),
        Some(found) => answer(api, found, call).await,
    };
    let response = with_retry_after(response);
    api.metrics().answered(label, response.status);
    (label, response)
}

async fn answer<A: Api>(api: &A, found: RouteMatch<'_>, call: Call<'_, A::Sender>) -> Response {
    let method = if call.method == "HEAD" { "GET" } else { call.method };
    if found.path == route::HEALTH.path {
        return Response::new(200, "text/plain", http_io::health::text());
    }
    if found.path == route::METRICS.path {
        return api.metrics().page();
    }
    api.answer(found, Call { method, ..call }).await.unwrap_or_else(Into::into)
}

/// Every 503 says when to retry.
fn with_retry_after(response: Response) -> Response {
    if response.status != 503 || response.fields.iter().any(|(name, _)| *name == "Retry-After") {
        return response;
    }
    response.with("Retry-After", RETRY_AFTER_S)
}

/// 404: no route has this path.
pub fn not_found() -> Problem {
    Problem::new(404, "there is nothing of this name")
}

/// The problem of a request whose statement the database did not carry out: 507 for a full disk, else 503.
pub fn of_store(error: &StoreError) -> Problem {
    let (status, hint) = match error {
        StoreError::DiskFull => (507, "nothing was changed; tell the administrator"),
        StoreError::Uncertain => (503, "check whether it was done before you try again"),
        _ => (503, "nothing was changed; try again in a moment"),
    };
    Problem::new(status, error.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_is_not_worth_a_retry() {
        assert_eq!(of_store(&StoreError::DiskFull).status(), 507);
        for error in
            [StoreError::Busy, StoreError::Unavailable("gone"), StoreError::Uncertain, StoreError::Failed]
        {
            assert_eq!(of_store(&error).status(), 503, "{error}");
        }
        assert!(!of_store(&StoreError::Uncertain).body().contains("nothing was changed"));
    }
}
