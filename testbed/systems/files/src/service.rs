//! The file server as a service of an engine.

use std::{io, net::SocketAddr, rc::Rc, sync::Arc, time::Instant};

use api_server::Api;
use engine::{
    service::{Connection, Factory},
    shared::Atomics,
};
use folder::{FindError, Found, Front, FrontEntry, Root};
use http_io::{
    Method, Problem, Response, metrics,
    server::{Error, Exchange, Handler, Http, HttpOptions},
};

use crate::{
    access::{
        authority::Authority,
        caller::Caller,
        fingerprint::Key,
        flights::Flights,
        gate::{Gate, Keeper},
        link::Link,
        permissions::Place,
        remote::Remote,
        session,
        verified::{self, Verified},
    },
    audit::{Action, Audit, Note},
    error::FilesError,
    me,
    metrics::{Counts, Metrics},
    options::{AccountsBackend, Options},
    reading::{OpenFiles, lister::Lister, sending},
    writing::{
        refusal::Refusal,
        upload::Uploads,
        writer::{RESUMED, Writer},
    },
};

/// The page to log in, list, download, upload and delete on.
const PAGE: &str = include_str!("page.html");

/// Makes the file server. Opens the folder, and the accounts where they are in this process, so that what is wrong with
/// them shows before the server starts. An accounts server may still be away.
///
/// # Errors
/// When the folder is missing, is none or cannot be read; when accounts in this process cannot be opened.
pub fn factory(options: Options) -> Result<FilesFactory, FilesError> {
    let root = Root::open(&options.root)?;
    let accounts = match &options.accounts {
        AccountsBackend::Local(database) => {
            let mut accounts = accounts::Options::new(database);
            accounts.registration = options.registration;
            Some(accounts::factory(accounts)?)
        }
        _ => None,
    };
    let audit = options
        .audit
        .as_deref()
        .map(|path| Audit::open(path).map_err(|source| FilesError::Audit { path: path.to_owned(), source }));
    let link = Link::of(&options)?;
    let gate = Gate {
        key: Key::random()?,
        verified: Verified::new(options.auth_cache_ttl, options.auth_cache_entries),
        flights: Flights::default(),
    };
    let permissions = options.permissions.clone();
    let files =
        Arc::new(OpenFiles::new(root, permissions, options.file_check_every, options.file_cache_bytes));
    let uploads = Uploads::new(options.uploads.clone(), &files)
        .map_err(|error| FilesError::Randomness(error.to_string()))?;
    let metrics = Metrics::new(Arc::clone(&options.connections));
    let shared = Arc::new(Shared {
        files,
        gate,
        metrics,
        uploads: Arc::new(uploads),
        audit: audit.transpose()?,
        lister: Lister::default(),
        encrypted: options.encrypted,
        accounts_away: Arc::new(Atomics::new(1)),
    });
    Ok(FilesFactory { options, shared, link, accounts })
}

/// Makes the file server's services. All of one process share what is remembered of files and credentials.
pub struct FilesFactory {
    options: Options,
    shared: Arc<Shared>,
    link: Option<Link>,
    accounts: Option<accounts::AccountsFactory>,
}

/// What the workers share.
struct Shared {
    files: Arc<OpenFiles>,
    gate: Gate,
    metrics: Metrics,
    uploads: Arc<Uploads>,
    audit: Option<Audit>,
    lister: Lister,
    encrypted: bool,
    accounts_away: Arc<Atomics>,
}

impl Factory for FilesFactory {
    type Service<C: Connection> = Http<FilesHandler<C>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let authority = match (&self.link, &self.accounts) {
            (Some(link), _) => {
                let away = Arc::clone(&self.shared.accounts_away);
                Authority::Remote(Box::new(Remote::new(link.clone(), self.options.accounts_timeout, away)))
            }
            (_, Some(accounts)) => Authority::Local(accounts.api().map_err(io::Error::other)?),
            (_, None) => Authority::Open,
        };
        let handler = FilesHandler {
            shared: Arc::clone(&self.shared),
            authority,
            credentials: verified::Front::default(),
            at_hand: Front::default(),
            counts: self.shared.metrics.worker(),
        };
        Ok(Http::new(handler, HttpOptions::behind(&self.options.proxies)))
    }
}

/// Answers the requests of one worker.
pub struct FilesHandler<C> {
    shared: Arc<Shared>,
    authority: Authority<C>,
    credentials: verified::Front,
    at_hand: Front<Place>,
    counts: Counts,
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
        if let Some(audit) = &self.shared.audit {
            audit.write(exchange, &note);
        }
        let (status, bytes) = (exchange.status().unwrap_or(0), exchange.body_bytes_sent());
        self.counts.answered(status, bytes);
        tracing::info!(
            target: "access",
            peer = %exchange.peer(), client = exchange.client(), method = exchange.method_text(),
            path = exchange.path(), status, bytes,
        );
        Ok(())
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        self.counts.failed();
        tracing::info!(target: "access", %peer, %error, "cut off");
    }
}

/// Every connection holds a future as large as the largest it may have to wait for, while it is idle too: what is rare is
/// boxed.
impl<C: Connection> FilesHandler<C> {
    async fn route(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let reads = matches!(exchange.method(), Method::Get | Method::Head);
        exchange.check_origin()?;
        match exchange.path() {
            path if path.starts_with("/files/") && reads => self.serve_file(exchange, note).await,
            path if path.starts_with("/files/") || path.starts_with(RESUMED) => {
                Box::pin(self.write(exchange, note)).await
            }
            path if concerns_accounts(path) => {
                let (method, target) = (exchange.method(), target_of(exchange));
                let answer = Box::pin(self.pass_on(exchange, method, &target)).await?;
                session::for_page(exchange, answer).send(exchange)
            }
            "/login" if exchange.method() == Method::Post => {
                let answer = Box::pin(self.pass_on(exchange, Method::Post, "/sessions")).await?;
                session::begun(answer, self.came_encrypted(exchange)).send(exchange)
            }
            "/logout" if exchange.method() == Method::Post => {
                // Without accounts, or without a session, there is nothing to be ended but the cookie.
                let _ended_or_none = Box::pin(self.pass_on(exchange, Method::Delete, "/sessions")).await;
                session::ended(self.came_encrypted(exchange)).send(exchange)
            }
            "/" if reads && sending::wants_html(exchange) => http_io::page(PAGE).send(exchange),
            "/me" if reads => {
                let caller = note.caller.insert(self.admit(exchange, Instant::now()).await?).clone();
                Box::pin(me::answer(exchange, &caller, &self.shared.uploads)).await
            }
            "/healthz" if reads => exchange.respond(200).text("ok\n"),
            "/metrics" if reads => metrics::page(self.metrics()).send(exchange),
            "/" | "/files" if reads => exchange.respond(302).header("Location", "/files/").empty(),
            "/login" | "/logout" => Err(not_allowed("POST")),
            "/" | "/files" | "/me" | "/healthz" | "/metrics" => Err(not_allowed("GET, HEAD")),
            _ => {
                Err(Problem::new(404, "there is nothing of this name").hint("files are under /files/").into())
            }
        }
    }

    /// Whether the client came over TLS: to this server, or to a proxy that is believed.
    fn came_encrypted(&self, exchange: &Exchange<'_, C>) -> bool {
        self.shared.encrypted || exchange.requester().came_encrypted
    }

    /// Lets the request pass, and tells whose it is.
    async fn admit(&self, exchange: &Exchange<'_, C>, now: Instant) -> Result<Caller, Problem> {
        let keeper = Keeper {
            gate: &self.shared.gate,
            front: &self.credentials,
            authority: &self.authority,
            counts: &self.counts,
        };
        keeper.admit(exchange, now).await
    }

    async fn serve_file(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let now = Instant::now();
        let caller = note.caller.insert(self.admit(exchange, now).await?).clone();
        if let Some(at_hand) = self.at_hand(exchange, now) {
            self.check_read(&at_hand.file.rule, &caller, note)?;
            return folder::send(exchange, &at_hand.file).await;
        }
        let encoded = name(exchange).to_owned();
        match self.find(&encoded, now) {
            Ok(Found::File(file)) => {
                self.check_read(&file.rule, &caller, note)?;
                self.at_hand.put(&encoded, &file);
                folder::send(exchange, &file).await
            }
            Ok(Found::Directory(path)) => {
                self.check_folder(&path, &caller, note)?;
                let listed = Box::pin(self.shared.lister.list(&self.shared.files, path, &caller)).await;
                sending::directory(exchange, &listed.map_err(sending::problem)?)
            }
            Ok(Found::Unslashed(path)) => {
                self.check_folder(&path, &caller, note)?;
                exchange.respond(301).header("Location", format!("/files/{encoded}/")).empty()
            }
            Err(error) => {
                // Whether it is there is told only to those who might read it.
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
        let permissions = self.shared.files.rules();
        if permissions.shows_folder(path, caller) {
            return Ok(());
        }
        self.check_read(&permissions.place(path), caller, note)
    }

    /// A request that changes files.
    async fn write(&self, exchange: &mut Exchange<'_, C>, note: &mut Note) -> Result<(), Error> {
        let caller = note.caller.insert(self.admit(exchange, Instant::now()).await?).clone();
        let permissions = self.shared.files.rules();
        let mut writer = Writer { uploads: &self.shared.uploads, permissions, caller: &caller, note };
        let path = exchange.path().to_owned();
        if let Some(id) = path.strip_prefix(RESUMED) {
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

    fn at_hand(&self, exchange: &Exchange<'_, C>, now: Instant) -> Option<Rc<FrontEntry<Place>>> {
        self.at_hand.get(name(exchange), &self.shared.files, now)
    }

    /// What the path names. A large file that was changed in place since it was looked at is looked at again.
    fn find(&self, encoded: &str, now: Instant) -> Result<Found<Place>, FindError> {
        match self.shared.files.find(encoded, now)? {
            Found::File(file) if !folder::is_current(&file) => {
                self.shared.files.forget(encoded);
                self.shared.files.find(encoded, now)
            }
            found => Ok(found),
        }
    }

    /// What is counted here, and in the accounts of this process.
    fn metrics(&self) -> String {
        let own = self.shared.metrics.text();
        match &self.authority {
            Authority::Local(accounts) => own + &accounts.metrics().text(),
            _ => own,
        }
    }

    /// What the accounts answer to whoever sends this request. What that changed is known here from now on.
    async fn pass_on(
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
        let answer = self.authority.pass_on(exchange, method, target).await;
        if changes {
            self.shared.gate.verified.revocations.distrust(Instant::now());
        }
        Ok(answer?.ok_or_else(|| Problem::new(404, "this server has no accounts: its files are open"))?)
    }
}

/// What follows `/files/`, still percent-encoded.
fn name<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> &'e str {
    exchange.path().strip_prefix("/files/").unwrap_or_default()
}

/// Whether a path is for the accounts server to answer. What it tells file servers only is not among them.
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
