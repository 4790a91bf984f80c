//! The requests of the index server and their responses, without the connection.

use std::{net::SocketAddr, time::Duration};

use api_server::{Api, Call, Metrics, Route, RouteMatch};
use engine::service::Connection;
use http_io::{FieldsError, Problem, Response, metrics::Counter, server::Exchange};
use serde_json::json;
use store::StoreError;
use tls::PublicKey;

use super::{
    options::{IndexServerError, Options},
    requests::{self, Deregistration},
    tables::{ChangeError, Registrant, SCHEMA, Tables},
};
use crate::{
    group::{self, Access, Authentication, Group},
    query::Parameters,
    refusal,
};

/// Most files, or peers, in one response.
const RESULTS_MAX: usize = 1000;
const REGISTERED: Counter = Counter { name: "files_registered", help: "Files registered, renewals left out" };
const TURNED_AWAY: Counter = Counter { name: "turned_away", help: "Requests of others than members" };

/// Why a request fails.
#[derive(Debug)]
pub enum Failure {
    /// A field or parameter is invalid.
    Fields(FieldsError),
    /// The database did not carry it out.
    Store(StoreError),
    /// Another reason.
    Problem(Problem),
}

/// A request, with the member that sent it, who may not change what other members registered.
type MemberCall<'a> = Call<'a, Option<PublicKey>>;

/// Answers the requests of the index server.
#[derive(Debug)]
pub struct IndexApi {
    tables: Tables,
    group: Group,
    life: Duration,
    metrics: Metrics,
}

impl Api for IndexApi {
    const ROUTES: &'static [Route] = &[
        Route::new("/register", "POST"),
        Route::new("/deregister", "POST"),
        Route::new("/renew", "POST"),
        Route::new("/search", "GET, HEAD"),
        Route::new("/peers", "GET, HEAD"),
        Route::new("/files", "GET, HEAD"),
    ];
    const BODY_LEN_MAX: u64 = requests::BODY_LEN_MAX;
    type Sender = Option<PublicKey>;
    type Error = Failure;

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn admit<C: Connection>(&self, exchange: &Exchange<'_, C>) -> Result<Option<PublicKey>, Problem> {
        let client = Authentication::of(exchange);
        if !matches!(exchange.path(), "/healthz" | "/metrics") {
            let admitted = self.group.admit(&client, Access::Member);
            let counts = !self.group.wants_nonce(&client);
            admitted.inspect_err(|_| self.metrics.count(TURNED_AWAY.name, counts.into()))?;
        }
        Ok(self.group.member(&client))
    }

    async fn answer(&self, found: RouteMatch<'_>, call: MemberCall<'_>) -> Result<Response, Failure> {
        group::check_body(call.authorization(), call.body)?;
        match found.path {
            "/register" => self.register(call).await,
            "/deregister" => self.deregister(call).await,
            "/renew" => self.renew(call).await,
            "/search" => self.search(call.query).await,
            "/peers" => self.peers(call.query).await,
            "/files" => self.files(call.query).await,
            _ => Err(api_server::not_found().into()),
        }
    }
}

impl IndexApi {
    /// Counters at zero. Create them before the process forks.
    pub(crate) fn new_metrics(options: &Options) -> Metrics {
        let (counters, connections) = (&[REGISTERED, TURNED_AWAY], options.server.connections.clone());
        Metrics::new("index", Self::ROUTES, counters, &[], connections)
    }

    /// Opens the database and starts its threads.
    pub(crate) fn open(options: &Options, metrics: Metrics) -> Result<Self, IndexServerError> {
        let store = options.server.open_store(&SCHEMA, &metrics)?;
        let tables = Tables::new(store, options.server.database.dialect(), options.life);
        let group = Group::open(options.secret.as_deref(), options.members.clone())?;
        Ok(Self { tables, group, life: options.life, metrics })
    }

    async fn register(&self, call: MemberCall<'_>) -> Result<Response, Failure> {
        let (peer, files) = requests::registration(call.body)?;
        self.tables.register(&registrant(call, peer), &files).await.map_err(|error| self.unchanged(error))?;
        self.metrics.count(REGISTERED.name, files.len() as u64);
        self.tables.sweep().await?;
        Ok(Response::json(200, &json!({ "registered": files.len(), "expires_in_s": self.life.as_secs() })))
    }

    async fn deregister(&self, call: MemberCall<'_>) -> Result<Response, Failure> {
        let (peer, what) = requests::deregistration(call.body)?;
        let who = registrant(call, peer);
        let done = match what {
            Deregistration::All => self.tables.leave(&who).await,
            Deregistration::Files(files) => self.tables.deregister(&who, &files).await,
        };
        done.map(|()| Response::done()).map_err(|error| self.unchanged(error))
    }

    async fn renew(&self, call: MemberCall<'_>) -> Result<Response, Failure> {
        let who = registrant(call, requests::renewal(call.body)?);
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

/// The peer at an address, as the sender of a request names it.
fn registrant(call: MemberCall<'_>, peer: SocketAddr) -> Registrant {
    Registrant { peer, key: call.sender }
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
