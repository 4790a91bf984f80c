//! The process of a server: preparation, start, drain.

use std::{
    ffi::CString,
    io::{self, IsTerminal, Read},
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    thread,
};

use engine::{Counters, Model, Overload, service::Factory};
use http_io::server::{HttpOptions, Secured};
use nstar::{
    exit::{Exit, Failure},
    interrupt::Interrupt,
    output,
    values::Processors,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tls::{Identity, Key};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use crate::{
    concurrency::describe,
    flags::{Encryption, ServerFlags},
};

/// Seconds until a client that was refused may try again.
const RETRY_AFTER_S: u32 = 1;

/// The process of one server.
///
/// Set the public fields, call [`prepare`](Self::prepare), then [`serve`](Self::serve).
pub struct ServerProcess<'a> {
    name: &'static str,
    listen: SocketAddr,
    flags: &'a ServerFlags,
    identity: Option<Identity>,
    counters: Arc<Counters>,
    /// The scheme of its URL. Default `http`.
    pub scheme: &'static str,
    /// Added to the line that says where it listens. Default nothing.
    pub note: String,
    /// Things that must not cross a network unencrypted, in the plural. Default nothing.
    pub secrets: Option<&'static str>,
    /// The key by which other servers know it. Default none.
    pub key: Option<Key>,
    /// A directive for the log's filter, such as `library=error`. Default none.
    pub log_directive: Option<&'static str>,
}

impl<'a> ServerProcess<'a> {
    /// The process of the HTTP server `name`, which is to listen on `listen`.
    pub fn new(name: &'static str, listen: SocketAddr, flags: &'a ServerFlags) -> Self {
        Self {
            name,
            listen,
            flags,
            identity: None,
            counters: Arc::default(),
            scheme: "http",
            note: String::new(),
            secrets: None,
            key: None,
            log_directive: None,
        }
    }

    /// The counters of the server's connections: the engine counts, and the service's `/metrics` shows them.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Whether clients on other machines may see the metrics.
    pub fn open_metrics(&self) -> bool {
        self.flags.open_metrics
    }

    /// Whether clients connect over TLS; unencrypted ones are then refused. Known once it is prepared.
    pub fn is_encrypted(&self) -> bool {
        self.identity.is_some()
    }

    /// Sets up, before any thread starts, what threads inherit.
    ///
    /// # Errors
    /// When flags contradict each other, the certificate cannot be loaded, or the system refuses.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.flags.concurrency.check()?;
        self.encrypt()?;
        engine::check_address(self.listen).map_err(Failure::failed)?;
        if self.scheme != "http" && self.flags.concurrency.overload == Some(Overload::Unavailable) {
            return Err(Failure::usage("--overload 503 is an answer of plain HTTP; choose backlog or reset"));
        }
        self.name_process()?;
        Processors::confine(self.flags.cpus.as_ref())?;
        let allowed = raise_descriptor_limit(self.flags.max_connections);
        self.flags.concurrency.check_descriptors(allowed)?;
        self.log();
        Ok(())
    }

    /// Gives the process a short name of its own, which tells the tiers apart in lists of processes.
    fn name_process(&self) -> Result<(), Failure> {
        let name = CString::new(format!("nstar-{}", self.name)).map_err(Failure::failed)?;
        rustix::thread::set_name(&name)
            .map_err(|error| Failure::failed(format!("cannot name the process: {error}")))
    }

    /// Starts the log on stderr.
    fn log(&self) {
        let level = if self.flags.access_log { LevelFilter::INFO } else { LevelFilter::WARN };
        let filter = match self.log_directive {
            None => EnvFilter::new(level.to_string()),
            Some(directive) => EnvFilter::new(format!("{level},{directive}")),
        };
        tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .init();
    }

    /// Encrypts connections if asked to; otherwise warns if it should have been.
    fn encrypt(&mut self) -> Result<(), Failure> {
        self.identity = identity(&self.flags.encryption, self.key.as_ref())?;
        match (&self.identity, self.secrets) {
            (Some(_), _) => self.scheme = if self.scheme == "tcp" { "tls" } else { "https" },
            (None, Some(secrets)) => warn_of_exposure(self.listen, secrets),
            (None, None) => {}
        }
        Ok(())
    }

    /// Runs until a signal arrives, or stdin closes if that was asked for; then finishes the requests in flight.
    ///
    /// # Errors
    /// When it cannot start, or stops unasked.
    pub fn serve<F: Factory>(self, factory: F) -> Result<Exit, Failure> {
        self.serve_and(factory, |_| Ok(()))
    }

    /// Serves like [`serve`](Self::serve), and calls `listening` with the address once the server listens.
    ///
    /// # Errors
    /// Those of [`serve`](Self::serve) and of `listening`.
    pub fn serve_and<F: Factory>(
        mut self,
        factory: F,
        listening: impl FnOnce(SocketAddr) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let interrupt = Interrupt::listen().map_err(Failure::failed)?;
        let (options, concurrency) = (self.options(), &self.flags.concurrency);
        let (model, server) = match self.identity.take() {
            Some(identity) => {
                let secured = Secured::new(factory, identity, HttpOptions::default(), self.counters.clone());
                concurrency.start(&options, secured)?
            }
            None => concurrency.start(&options, factory)?,
        };
        listening(server.local_addr())?;
        output::print(&self.greeting(server.local_addr(), model, &options))?;
        if self.flags.until_stdin_closes {
            stop_when_stdin_closes(&interrupt);
        }
        let asked = interrupt.wait_unless(|| server.is_finished());
        // If it ended unasked, this is for what is left of it.
        server.drain(self.flags.drain);
        server.join();
        if asked {
            Ok(Exit::Done)
        } else {
            Err(Failure::failed("the server stopped unexpectedly; the messages above say why"))
        }
    }

    fn options(&self) -> engine::Options {
        let base = engine::Options {
            max_connections: self.flags.max_connections as usize,
            max_connections_per_client: self.flags.max_connections_per_client.map(|most| most as usize),
            unavailable: http_io::server::unavailable(RETRY_AFTER_S),
            name: self.name.into(),
            counters: self.counters.clone(),
            ..engine::Options::new(self.listen)
        };
        self.flags.concurrency.options(base)
    }

    /// The first line on stdout: where it listens, and with which concurrency model.
    fn greeting(&self, address: SocketAddr, model: Model, options: &engine::Options) -> String {
        let (name, scheme, how) = (self.name, self.scheme, describe(model, options));
        format!("listening on {scheme}://{address} ({name}, engine {model}, {how}{})\n", self.note)
    }
}

/// Raises the limit on descriptors to the hard one, and warns if that is less than the connections asked for. Returns
/// the limit.
fn raise_descriptor_limit(connections: u32) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, the limit in force is reported below.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed < u64::from(connections) {
        nstar::exit::warn(format_args!(
            "this process may have {allowed} open files, fewer than {connections} connections need; \
             raise the limit as root with `ulimit -n {}`, or lower --max-connections",
            u64::from(connections) + 1_000
        ));
    }
    allowed
}

fn stop_when_stdin_closes(interrupt: &Interrupt) {
    let asked = interrupt.asked.clone();
    thread::spawn(move || {
        let mut ignored = [0; 64];
        while matches!(io::stdin().read(&mut ignored), Ok(count) if count > 0) {}
        asked.store(true, Ordering::Relaxed);
    });
}

/// Loads the certificate and its key, if given, and adds the key by which other servers know this one. Warns of what
/// their owner should know.
fn identity(flags: &Encryption, known_by: Option<&Key>) -> Result<Option<Identity>, Failure> {
    let certified = certified(flags)?;
    match known_by {
        Some(key) => Identity::of_key(key, certified).map(Some).map_err(Failure::failed),
        None => Ok(certified),
    }
}

fn certified(flags: &Encryption) -> Result<Option<Identity>, Failure> {
    let (certificate, key) = match (&flags.tls_cert, &flags.tls_key) {
        (Some(certificate), Some(key)) => (certificate, key),
        (None, None) => return Ok(None),
        (Some(_), None) => {
            return Err(Failure::usage("--tls-cert needs the certificate's key too: --tls-key FILE"));
        }
        (None, Some(_)) => {
            return Err(Failure::usage("--tls-key needs its certificate too: --tls-cert FILE"));
        }
    };
    let identity = Identity::load(certificate, key).map_err(Failure::usage)?;
    for caution in identity.cautions() {
        nstar::exit::warn(format_args!("{caution}"));
    }
    Ok(Some(identity))
}

/// Says what is open to others at a server that they can reach.
pub fn warn_of_openness(listen: SocketAddr, open: &[&str]) {
    if !open.is_empty() {
        nstar::exit::warn(format_args!("others can reach {listen}, and there {}", open.join("; ")));
    }
}

/// Warns if `secrets` would cross a network unencrypted.
fn warn_of_exposure(listen: SocketAddr, secrets: &str) {
    if !listen.ip().to_canonical().is_loopback() {
        nstar::exit::warn(format_args!(
            "{secrets} cross the network unencrypted, as others can reach {listen}; give --tls-cert and \
             --tls-key, or listen on 127.0.0.1 behind a proxy that encrypts"
        ));
    }
}
