//! The requests of the index server and their responses, without the connection.

use std::{net::SocketAddr, time::Duration};

use http_io::{FieldsError, Problem, Response};
use serde_json::json;
use store::{Commits, Store, StoreError};
use tls::PublicKey;

use super::{
    metrics::Metrics,
    options::{IndexServerError, Options},
    requests::{self, Deregistration},
    tables::{ChangeError, Registrant, SCHEMA, Tables},
};
use crate::{group::Group, query::Parameters, refusal};

/// Most files, or peers, in one response.
const RESULTS_MAX: usize = 1000;

/// A request.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) body: &'a [u8],
    /// The member that sends it, who may not change what other members registered.
    pub(crate) member: Option<PublicKey>,
}

/// Why a request fails.
#[derive(Debug)]
enum Failure {
    Fields(FieldsError),
    Store(StoreError),
    Problem(Problem),
}

/// Answers the requests of the index server.
#[derive(Debug)]
pub(crate) struct Api {
    tables: Tables,
    pub(crate) group: Group,
    life: Duration,
    pub(crate) metrics: Metrics,
}

impl Api {
    /// Opens the database and starts its threads.
    pub(crate) fn open(options: &Options, metrics: Metrics) -> Result<Self, IndexServerError> {
        let mut store = store::Options::default();
        let counts = metrics.clone();
        store.commits = Commits::new(move |changes, took| counts.committed(changes, took));
        store.queue = options.queue;
        let store = Store::open(&options.database, &SCHEMA, &store)?;
        let tables = Tables::new(store, options.database.dialect(), options.life);
        let group = Group::open(options.secret.as_deref(), options.members.clone())?;
        Ok(Self { tables, group, life: options.life, metrics })
    }

    /// Answers a request, and counts it.
    pub(crate) async fn answer(&self, call: Call<'_>) -> Response {
        let (route, answered) = self.answer_to(call).await;
        let answer = answered.unwrap_or_else(Response::from);
        self.metrics.answered(route, answer.status);
        answer
    }

    async fn answer_to(&self, call: Call<'_>) -> (&'static str, Result<Response, Failure>) {
        match (call.path, call.method) {
            ("/register", "POST") => ("/register", self.register(call).await),
            ("/deregister", "POST") => ("/deregister", self.deregister(call).await),
            ("/renew", "POST") => ("/renew", self.renew(call).await),
            ("/search", "GET" | "HEAD") => ("/search", self.search(call.query).await),
            ("/peers", "GET" | "HEAD") => ("/peers", self.peers(call.query).await),
            ("/files", "GET" | "HEAD") => ("/files", self.files(call.query).await),
            ("/healthz", "GET" | "HEAD") => ("/healthz", Ok(Response::new(200, "text/plain", "ok\n"))),
            ("/metrics", "GET" | "HEAD") => ("/metrics", Ok(self.metrics.show())),
            ("/register" | "/deregister" | "/renew", _) => {
                ("other", Ok(Response::method_not_allowed("POST")))
            }
            ("/search" | "/peers" | "/files" | "/healthz" | "/metrics", _) => {
                ("other", Ok(Response::method_not_allowed("GET, HEAD")))
            }
            _ => ("other", Err(Problem::new(404, "there is nothing of this name").into())),
        }
    }

    async fn register(&self, call: Call<'_>) -> Result<Response, Failure> {
        let (peer, files) = requests::registration(call.body)?;
        self.tables.register(&call.registrant(peer), &files).await.map_err(|error| self.unchanged(error))?;
        self.metrics.registered(files.len());
        self.tables.sweep().await?;
        Ok(Response::json(200, &json!({ "registered": files.len(), "expires_in_s": self.life.as_secs() })))
    }

    async fn deregister(&self, call: Call<'_>) -> Result<Response, Failure> {
        let (peer, what) = requests::deregistration(call.body)?;
        let who = call.registrant(peer);
        let done = match what {
            Deregistration::All => self.tables.leave(&who).await,
            Deregistration::Files(files) => self.tables.deregister(&who, &files).await,
        };
        done.map(|()| Response::done()).map_err(|error| self.unchanged(error))
    }

    async fn renew(&self, call: Call<'_>) -> Result<Response, Failure> {
        let who = call.registrant(requests::renewal(call.body)?);
        let known = self.tables.renew(&who).await.map_err(|error| self.unchanged(error))?;
        self.tables.sweep().await?;
        if known {
            return Ok(Response::json(200, &json!({ "expires_in_s": self.life.as_secs() })));
        }
        let problem = Problem::new(404, "this peer is not registered, or was too late to renew");
        Err(problem.hint("register its files again").into())
    }

    async fn search(&self, query: Option<&str>) -> Result<Response, Failure> {
        let mut parameters = Parameters::read(query)?;
        let (wanted, limit) = (parameters.search()?, parameters.limit(RESULTS_MAX)?);
        parameters.finish("name, words, hash and limit")?;
        let (found, truncated) = self.tables.search(&wanted, limit).await?;
        Ok(Response::json(200, &json!({ "found": found, "truncated": truncated })))
    }

    async fn peers(&self, query: Option<&str>) -> Result<Response, Failure> {
        let mut parameters = Parameters::read(query)?;
        let limit = parameters.limit(RESULTS_MAX)?;
        parameters.finish("limit")?;
        Ok(Response::json(200, &json!({ "peers": self.tables.peers(limit as i64).await? })))
    }

    async fn files(&self, query: Option<&str>) -> Result<Response, Failure> {
        let mut parameters = Parameters::read(query)?;
        let missing = || FieldsError::field("peer", "is missing: which peer's files?");
        let peer = requests::address(&parameters.take("peer").ok_or_else(missing)?)?;
        let limit = parameters.limit(RESULTS_MAX)?;
        parameters.finish("peer and limit")?;
        let files = self.tables.files(peer, limit as i64).await?;
        Ok(Response::json(200, &json!({ "truncated": files.len() == limit, "files": files })))
    }

    fn unchanged(&self, error: ChangeError) -> Failure {
        match error {
            ChangeError::Store(error) => error.into(),
            held => Problem::new(403, held.to_string())
                .hint(format!(
                    "give this peer an address of its own (--listen, --advertise), or the key that it had there before; \
                     the address is free when its holder leaves, or {} seconds after the holder last renewed it",
                    self.life.as_secs()
                ))
                .into(),
        }
    }
}

impl Call<'_> {
    fn registrant(&self, peer: SocketAddr) -> Registrant {
        Registrant { peer, key: self.member }
    }
}

impl From<Failure> for Response {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fields(error) => refusal::of_fields(&error),
            Failure::Problem(problem) => problem.into(),
            Failure::Store(error @ StoreError::DiskFull) => {
                refusal::new(507, &error.to_string(), "nothing was changed; tell the administrator")
            }
            Failure::Store(error) => refusal::new(503, &error.to_string(), "ask again in a moment"),
        }
    }
}

impl From<FieldsError> for Failure {
    fn from(error: FieldsError) -> Self {
        Self::Fields(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}
