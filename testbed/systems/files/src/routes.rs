//! The routes of the file server.

use std::{net::SocketAddr, sync::Arc, time::Instant};

use api_server::Api;
use engine::service::Connection;
use folder::{FindError, Found, Front, PathRules};
use http_io::{
    Method, Problem, Response, metrics,
    server::{Error, Exchange, Handler},
};

use crate::{
    access::{
        admission::Admission,
        authority::Authority,
        credential_cache::{CredentialCache, WorkerCache},
        identity::Caller,
        permissions::{OpenFiles, Place},
        session,
    },
    audit::{Action, Audit, Note},
    metrics::{Counts, Metrics},
    reading::{listing::Lister, me, sending},
    refusal::Refusal,
    writing::{
        uploads::Uploads,
        writer::{UPLOADS_PATH, Writer},
    },
};

/// The page to log in, list, download, upload and delete on.
const PAGE: &str = include_str!("page.html");

/// What the workers of a process share.
pub(crate) struct Shared {
    pub(crate) files: Arc<OpenFiles>,
    pub(crate) credentials: CredentialCache,
    pub(crate) metrics: Metrics,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) audit: Option<Audit>,
    pub(crate) lister: Lister,
}

/// Handles the requests of one worker.
pub struct FilesHandler<C> {
    shared: Arc<Shared>,
    authority: Authority<C>,
    credentials: WorkerCache,
    recent_files: Front<Place>,
    counts: Counts,
}

impl<C> FilesHandler<C> {
    /// A handler for one more worker.
    pub(crate) fn new(shared: Arc<Shared>, authority: Authority<C>) -> Self {
        let counts = shared.metrics.worker();
        let (credentials, recent_files) = (WorkerCache::default(), Front::default());
        Self { shared, authority, credentials, recent_files, counts }
    }
}

impl<C: Connection> Handler<C> for FilesHandler<C> {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let mut note = Note::default();
        match self.route(exchange, &mut note).await {
            Err(Error::Problem(problem)) => {
                note.refused(&problem);
                session::for_page(exchange, problem.into()).send(exchange)?;
            }
            other => other?,
        }
        if let (Some(Action::Upload | Action::Replace), Some(bytes)) = (note.action, note.bytes) {
            self.counts.uploaded(bytes);
        }
        let path = shown(exchange.path());
        if let Some(audit) = &self.shared.audit {
            audit.write(exchange, path, &note);
        }
        let (status, bytes) = (exchange.status().unwrap_or(0), exchange.body_bytes_sent());
        self.counts.answered(status, bytes);
        tracing::info!(
            target: "access",
            peer = %exchange.peer(), client = exchange.client(), method = exchange.method_text(),
            path, status, bytes,
        );
        Ok(())
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        self.counts.failed();
        tracing::info!(target: "access", %peer, %error, "cut off");
    }
}

/// Every connection, even an idle one, holds a future that is as large as the largest one it may wait for. Futures on rare
/// paths are therefore boxed.
impl<C: Connection> FilesHandler<C> {
    async fn route(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let reads = matches!(exchange.method(), Method::Get | Method::Head);
        exchange.check_origin()?;
        match exchange.path() {
            path if path.starts_with("/files/") && reads => self.serve_file(exchange, note).await,
            path if path.starts_with("/files/") || path.starts_with(UPLOADS_PATH) => {
                Box::pin(self.write(exchange, note)).await
            }
            path if concerns_accounts(path) => {
                let (method, target) = (exchange.method(), target_of(exchange));
                let response = Box::pin(self.forward(exchange, method, &target)).await?;
                session::for_page(exchange, response).send(exchange)
            }
            "/login" if exchange.method() == Method::Post => {
                let response = Box::pin(self.forward(exchange, Method::Post, "/sessions")).await?;
                session::begun(response, exchange.came_encrypted()).send(exchange)
            }
            "/logout" if exchange.method() == Method::Post => {
                // Without accounts or a session, there is only the cookie to remove.
                let _ended_or_none = Box::pin(self.forward(exchange, Method::Delete, "/sessions")).await;
                session::ended(exchange.came_encrypted()).send(exchange)
            }
            "/" if reads && sending::wants_html(exchange) => http_io::page(PAGE).send(exchange),
            "/me" if reads => {
                let caller = note.caller.insert(self.admit(exchange, Instant::now()).await?).clone();
                Box::pin(me::answer(exchange, &caller, &self.shared.uploads)).await
            }
            "/healthz" if reads => exchange.respond(200).text(http_io::health::text()),
            "/metrics" if reads => {
                exchange.check_metrics()?;
                metrics::page(self.metrics()).send(exchange)
            }
            "/" | "/files" if reads => exchange.respond(302).header("Location", "/files/").empty(),
            "/login" | "/logout" => Err(not_allowed("POST")),
            "/" | "/files" | "/me" | "/healthz" | "/metrics" => Err(not_allowed("GET, HEAD")),
            _ => {
                Err(Problem::new(404, "there is nothing at this path").hint("files are under /files/").into())
            }
        }
    }

    /// Admits a request and returns its caller.
    async fn admit(&self, exchange: &Exchange<'_, C>, now: Instant) -> Result<Caller, Problem> {
        let admission = Admission {
            shared: &self.shared.credentials,
            own: &self.credentials,
            authority: &self.authority,
            counts: &self.counts,
        };
        admission.admit(exchange, now).await
    }

    async fn serve_file(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let now = Instant::now();
        let caller = note.caller.insert(self.admit(exchange, now).await?).clone();
        if let Some(recent) = self.recent_files.get(name(exchange), &self.shared.files, now) {
            self.check_read(&recent.file.rule, &caller, note)?;
            return folder::send(exchange, &recent.file).await;
        }
        let encoded = name(exchange).to_owned();
        match self.find(&encoded, now) {
            Ok(Found::File(file)) => {
                self.check_read(&file.rule, &caller, note)?;
                self.recent_files.put(&encoded, &file);
                folder::send(exchange, &file).await
            }
            Ok(Found::Directory(path)) => {
                self.check_folder(&path, &caller, note)?;
                let listed = Box::pin(self.shared.lister.list(&self.shared.files, path, &caller)).await;
                Box::pin(sending::directory(exchange, listed?)).await
            }
            Ok(Found::Unslashed(path)) => {
                self.check_folder(&path, &caller, note)?;
                exchange.respond(301).header("Location", format!("/files/{encoded}/")).empty()
            }
            Err(error) => {
                // Only callers that may read there learn whether it exists.
                if let Ok(target) = folder::decode(&encoded) {
                    let place = self.shared.files.rules().place(&target.path);
                    self.check_read(&place, &caller, note)?;
                }
                Err(sending::problem(error).into())
            }
        }
    }

    fn check_read(&self, place: &Place, caller: &Caller, note: &mut Note) -> Result<(), Refusal> {
        let may = self.shared.files.rules().check_read(place, caller);
        may.inspect_err(|_| note.denied = true)
    }

    fn check_folder(&self, path: &str, caller: &Caller, note: &mut Note) -> Result<(), Refusal> {
        let files = &self.shared.files;
        let shows = |path: &str| files.rules().shows_folder(path, caller);
        match files.root().link_target(path) {
            Ok(None) if shows(path) => Ok(()),
            Ok(Some(target)) if shows(path) && shows(&target) => Ok(()),
            Ok(Some(target)) => self.check_read(&files.rules().rule_of_link(path, &target), caller, note),
            _ => self.check_read(&files.rules().place(path), caller, note),
        }
    }

    /// Handles a request that changes files.
    async fn write(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let caller = note.caller.insert(self.admit(exchange, Instant::now()).await?).clone();
        let permissions = self.shared.files.rules();
        let mut writer = Writer { uploads: &self.shared.uploads, permissions, caller: &caller, note };
        let path = exchange.path().to_owned();
        if let Some(id) = path.strip_prefix(UPLOADS_PATH) {
            return match exchange.method() {
                Method::Head => writer.offset(exchange, id).await,
                Method::Patch => writer.resume(exchange, id).await,
                Method::Delete => writer.cancel(exchange, id).await,
                _ => Err(not_allowed("HEAD, PATCH, DELETE")),
            };
        }
        let encoded = path.strip_prefix("/files/").unwrap_or_default();
        match exchange.method() {
            Method::Put => writer.put(exchange, encoded).await,
            Method::Delete => writer.delete(exchange, encoded).await,
            _ => Err(not_allowed("GET, HEAD, PUT, DELETE")),
        }
    }

    /// Finds what a path names. Looks again if a large file was changed in place since it was cached.
    fn find(&self, encoded: &str, now: Instant) -> Result<Found<Place>, FindError> {
        match self.shared.files.find(encoded, now)? {
            Found::File(file) if !folder::is_current(&file) => {
                self.shared.files.forget(encoded);
                self.shared.files.find(encoded, now)
            }
            found => Ok(found),
        }
    }

    /// The metrics of this server and of any accounts in this process.
    fn metrics(&self) -> String {
        let own = self.shared.metrics.text();
        match &self.authority {
            Authority::Local(accounts) => own + &accounts.metrics().text(),
            _ => own,
        }
    }

    /// Forwards a request to the accounts and returns their response. A change takes effect here at once.
    async fn forward(
        &self,
        exchange: &mut Exchange<'_, C>,
        method: Method,
        target: &str,
    ) -> Result<Response, Error> {
        let changes = match method {
            Method::Get | Method::Head | Method::Post => false,
            Method::Put | Method::Patch | Method::Delete => true,
            _ => return Err(not_allowed("GET, HEAD, POST, PUT, PATCH, DELETE")),
        };
        let response = self.authority.forward(exchange, method, target).await;
        if changes {
            self.shared.credentials.revocations.distrust(Instant::now());
        }
        Ok(response?.ok_or_else(|| Problem::new(404, "this server has no accounts: its files are open"))?)
    }
}

/// The path of a request as the log and the audit file show it. Without accounts, whoever knows the id of an upload may
/// change it.
fn shown(path: &str) -> &str {
    if path.starts_with(UPLOADS_PATH) { "/uploads/{id}" } else { path }
}

/// What follows `/files/`, still percent-encoded.
fn name<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> &'e str {
    exchange.path().strip_prefix("/files/").unwrap_or_default()
}

/// Whether to forward requests for a path to the accounts. Paths that are only for file servers are not forwarded.
fn concerns_accounts(path: &str) -> bool {
    matches!(path, "/accounts" | "/sessions" | "/audit") || path.starts_with("/accounts/")
}

/// Path and query, still percent-encoded.
fn target_of<C: Connection>(exchange: &Exchange<'_, C>) -> String {
    let query = exchange.query().map(|query| format!("?{query}")).unwrap_or_default();
    exchange.path().to_owned() + &query
}

fn not_allowed(allowed: &'static str) -> Error {
    Problem::new(405, format!("only {allowed} may be used here")).header("Allow", allowed).into()
}
