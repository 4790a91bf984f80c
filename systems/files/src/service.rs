//! The file server as a service of an engine.

use std::{io, net::SocketAddr, rc::Rc, sync::Arc, time::Instant};

use engine::{
    service::{Connection, Factory},
    shared::Cells,
};
use http_io::{
    Method, Problem, metrics as form,
    server::{Error, Exchange, Handler, Http, ServerOptions},
};

use crate::{
    authority::Authority,
    error::FilesError,
    fingerprint::Key,
    flights::Flights,
    gate::{Gate, Keeper},
    lister::Lister,
    metrics::{Counts, Metrics},
    open_files::{self, AtHand, FindError, Found, OpenFiles},
    options::{AccountsBackend, Options},
    remote::Remote,
    root::Root,
    sending,
    verified::{self, Verified},
};

/// Makes the file server. Opens the folder, and the accounts where they are in this process, so that what is wrong with
/// them shows before the server starts. An accounts server may still be away.
///
/// # Errors
/// When the folder is missing, is none or cannot be read; when accounts in this process cannot be opened.
pub fn factory(options: Options) -> Result<FilesFactory, FilesError> {
    let root = Root::open(&options.root)?;
    let accounts = match &options.accounts {
        AccountsBackend::Local(database) => Some(accounts::factory(accounts::Options::new(database))?),
        AccountsBackend::Remote(_) | AccountsBackend::Open => None,
    };
    let gate = Gate {
        key: Key::random()?,
        verified: Verified::new(options.auth_cache_ttl, options.auth_cache_entries),
        flights: Flights::default(),
    };
    let files = Arc::new(OpenFiles::new(root, options.file_check_every, options.file_cache_bytes));
    let metrics = Metrics::new(Arc::clone(&options.connections));
    let shared = Arc::new(Shared {
        files,
        gate,
        metrics,
        lister: Lister::default(),
        accounts_away: Arc::new(Cells::new(1)),
    });
    Ok(FilesFactory { options, shared, accounts })
}

/// Makes the file server's services. All of one process share what is remembered of files and credentials.
pub struct FilesFactory {
    options: Options,
    shared: Arc<Shared>,
    accounts: Option<accounts::AccountsFactory>,
}

/// What the workers share.
struct Shared {
    files: Arc<OpenFiles>,
    gate: Gate,
    metrics: Metrics,
    lister: Lister,
    accounts_away: Arc<Cells>,
}

impl Factory for FilesFactory {
    type Service<C: Connection> = Http<FilesHandler<C>>;

    fn make<C: Connection>(&self) -> io::Result<Self::Service<C>> {
        let authority = match (&self.options.accounts, &self.accounts) {
            (AccountsBackend::Remote(to), _) => {
                let away = Arc::clone(&self.shared.accounts_away);
                Authority::Remote(Box::new(Remote::new(*to, self.options.accounts_timeout, away)))
            }
            (_, Some(accounts)) => Authority::Local(accounts.api().map_err(io::Error::other)?),
            (_, None) => Authority::Open,
        };
        let handler = FilesHandler {
            shared: Arc::clone(&self.shared),
            authority,
            credentials: verified::Front::default(),
            at_hand: open_files::Front::default(),
            counts: self.shared.metrics.worker(),
        };
        Ok(Http::new(handler, ServerOptions::default()))
    }
}

/// Answers the requests of one worker.
pub struct FilesHandler<C> {
    shared: Arc<Shared>,
    authority: Authority<C>,
    credentials: verified::Front,
    at_hand: open_files::Front,
    counts: Counts,
}

impl<C: Connection> Handler<C> for FilesHandler<C> {
    async fn handle(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        match self.route(exchange).await {
            Err(Error::Problem(problem)) => exchange.answer_problem(&problem)?,
            other => other?,
        }
        let (status, bytes) = (exchange.status().unwrap_or(0), exchange.body_bytes_sent());
        self.counts.answered(status, bytes);
        tracing::info!(
            target: "access",
            peer = %exchange.peer(), method = exchange.method_text(), path = exchange.path(), status, bytes,
        );
        Ok(())
    }

    fn failed(&self, peer: SocketAddr, error: &Error) {
        self.counts.failed();
        tracing::info!(target: "access", %peer, %error, "cut off");
    }
}

impl<C: Connection> FilesHandler<C> {
    async fn route(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let reads = matches!(exchange.method(), Method::Get | Method::Head);
        match exchange.path() {
            path if path.starts_with("/files/") && reads => self.serve_file(exchange).await,
            "/accounts" | "/sessions" if exchange.method() == Method::Post => self.pass_on(exchange).await,
            "/healthz" if reads => exchange.reply(200).text("ok\n"),
            "/metrics" if reads => exchange.reply(200).body(form::CONTENT_TYPE, self.metrics().as_bytes()),
            "/" | "/files" if reads => exchange.reply(302).header("Location", "/files/").empty(),
            "/accounts" | "/sessions" => Err(not_allowed("POST")),
            "/" | "/files" | "/healthz" | "/metrics" => Err(not_allowed("GET, HEAD")),
            path if path.starts_with("/files/") => Err(not_allowed("GET, HEAD")),
            _ => {
                Err(Problem::new(404, "there is nothing of this name").hint("files are under /files/").into())
            }
        }
    }

    async fn serve_file(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        let now = Instant::now();
        let keeper = Keeper {
            gate: &self.shared.gate,
            front: &self.credentials,
            authority: &self.authority,
            counts: &self.counts,
        };
        keeper.admit(exchange, now).await?;
        if let Some(file) = self.at_hand(exchange, now) {
            return sending::file(exchange, &file.file).await;
        }
        let encoded = name(exchange).to_owned();
        match self.find(&encoded, now).map_err(sending::problem)? {
            Found::File(file) => {
                self.at_hand.put(&encoded, &file);
                sending::file(exchange, &file).await
            }
            Found::Directory(path) => {
                let listed = self.shared.lister.list(&self.shared.files, path).await;
                sending::directory(exchange, &listed.map_err(sending::problem)?)
            }
            Found::Unslashed => exchange.reply(301).header("Location", format!("/files/{encoded}/")).empty(),
        }
    }

    fn at_hand(&self, exchange: &Exchange<'_, C>, now: Instant) -> Option<Rc<AtHand>> {
        self.at_hand.get(name(exchange), &self.shared.files, now)
    }

    /// What the path names. A large file that was changed in place since it was looked at is looked at again.
    fn find(&self, encoded: &str, now: Instant) -> Result<Found, FindError> {
        match self.shared.files.find(encoded, now)? {
            Found::File(file) if !sending::is_current(&file) => {
                self.shared.files.forget(encoded);
                self.shared.files.find(encoded, now)
            }
            found => Ok(found),
        }
    }

    /// What is counted here, and in the accounts of this process.
    fn metrics(&self) -> String {
        let mut shown = self.shared.metrics.text();
        if let Authority::Local(accounts) = &self.authority {
            accounts.show(&mut shown);
        }
        shown + form::END
    }

    async fn pass_on(&self, exchange: &mut Exchange<'_, C>) -> Result<(), Error> {
        match self.authority.pass_on(exchange).await? {
            Some(answer) => answer.send(exchange),
            None => Err(Problem::new(404, "this server has no accounts: its files are open").into()),
        }
    }
}

/// What follows `/files/`, still percent-encoded.
fn name<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> &'e str {
    exchange.path().strip_prefix("/files/").unwrap_or_default()
}

fn not_allowed(allowed: &'static str) -> Error {
    Problem::new(405, format!("only {allowed} may be used here")).header("Allow", allowed).into()
}
