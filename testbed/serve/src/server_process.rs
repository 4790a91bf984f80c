//! The process of a server: preparation, start, drain.

use std::{
    ffi::CString,
    io::{self, Read},
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    thread,
};

use engine::{Counters, Listeners, Model, Overload, service::Factory};
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
    confinement::{self, Confinement, ServerFiles},
    flags::{Encryption, ServerFlags},
    log_file::LogFile,
    reloads::Reloads,
    service_manager,
    upkeep::{Hangup, Upkeep},
};

/// Seconds until a client that was refused may try again.
const RETRY_AFTER_S: u32 = 1;

/// The process of one server.
///
/// Set the public fields, call [`prepare`](Self::prepare), then [`serve`](Self::serve). What is read before the former is
/// read with the rights that the process was started with, everything else as the user that it becomes.
pub struct ServerProcess<'a> {
    name: &'static str,
    listen: SocketAddr,
    flags: &'a ServerFlags,
    identity: Option<Identity>,
    bound: Option<Listeners>,
    user: Option<String>,
    confinement: Option<Confinement>,
    log: Option<LogFile>,
    reloads: Reloads,
    counters: Arc<Counters>,
    /// The files that it uses once it is prepared. Default none but those of the certificate.
    pub files: ServerFiles,
    /// The scheme of its URL. Default `http`.
    pub scheme: &'static str,
    /// Added to the line that says where it listens. Default nothing.
    pub note: String,
    /// Whether others than programs of this machine reach it. Default: unless it listens on loopback.
    pub is_exposed: bool,
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
            bound: None,
            user: None,
            confinement: None,
            log: None,
            reloads: Reloads::default(),
            counters: Arc::default(),
            files: ServerFiles::default(),
            scheme: "http",
            note: String::new(),
            is_exposed: !listen.ip().to_canonical().is_loopback(),
            secrets: None,
            key: None,
            log_directive: None,
        }
    }

    /// The counters of the server's connections: the engine counts, and the service's `/metrics` shows them.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// How often SIGHUP asked for files to be opened anew, for a service that keeps some open besides the log.
    pub fn reloads(&self) -> Reloads {
        self.reloads.clone()
    }

    /// Whether clients on other machines may see the metrics.
    pub fn open_metrics(&self) -> bool {
        self.flags.open_metrics
    }

    /// Whether clients connect over TLS; unencrypted ones are then refused. Known once it is prepared.
    pub fn is_encrypted(&self) -> bool {
        self.identity.is_some()
    }

    /// Does what needs the rights that the process was started with: reads the certificate, binds the address. Then becomes
    /// the user that the flags name. A part of [`prepare`](Self::prepare), for servers that have to read files of that user
    /// before.
    ///
    /// # Errors
    /// When flags contradict each other, the certificate or the address cannot be had, or the process cannot become the user.
    pub fn begin(&mut self) -> Result<(), Failure> {
        if self.bound.is_some() {
            return Ok(());
        }
        self.flags.concurrency.check()?;
        self.identity = certified(&self.flags.encryption)?;
        Processors::confine(self.flags.cpus.as_ref())?;
        self.bound = Some(self.flags.concurrency.listeners(self.listen)?);
        self.user = confinement::leave_root(&self.flags.rights, &self.files)?;
        Ok(())
    }

    /// Sets up, before any thread starts, what threads inherit.
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin), and when the system refuses something.
    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.begin()?;
        self.encrypt()?;
        if self.scheme != "http" && self.flags.concurrency.overload == Some(Overload::Unavailable) {
            return Err(Failure::usage("--overload 503 is an answer of plain HTTP; choose backlog or reset"));
        }
        self.name_process()?;
        let allowed = raise_descriptor_limit(self.flags.max_connections);
        self.flags.concurrency.check_descriptors(allowed)?;
        self.log()?;
        self.confine()
    }

    /// Gives up what the server does not need, and tells so in `/healthz`.
    fn confine(&mut self) -> Result<(), Failure> {
        if self.is_exposed {
            confinement::refuse_root_exposed(&self.flags.rights, self.listen)?;
        }
        let encryption = &self.flags.encryption;
        self.flags.log_file.iter().for_each(|log| self.files.writes_beside(log));
        for renewed in [&encryption.tls_cert, &encryption.tls_key].into_iter().flatten() {
            self.files.reads_beside(renewed);
        }
        let models = &self.flags.concurrency.engine;
        let confinement = confinement::confine(&self.flags.rights, &self.files, self.user.take(), models)?;
        http_io::health::describe_process(&confinement.to_string());
        self.confinement = Some(confinement);
        Ok(())
    }

    /// Gives the process a short name of its own, which tells the tiers apart in lists of processes.
    fn name_process(&self) -> Result<(), Failure> {
        let name = CString::new(format!("nstar-{}", self.name)).map_err(Failure::failed)?;
        rustix::thread::set_name(&name)
            .map_err(|error| Failure::failed(format!("cannot name the process: {error}")))
    }

    /// Starts the log, in its file or on stderr.
    fn log(&mut self) -> Result<(), Failure> {
        self.log = self.flags.log_file.as_deref().map(LogFile::open).transpose()?;
        let level = if self.flags.access_log { LevelFilter::INFO } else { LevelFilter::WARN };
        let filter = match self.log_directive {
            None => EnvFilter::new(level.to_string()),
            Some(directive) => EnvFilter::new(format!("{level},{directive}")),
        };
        // Without colours: the library's part for them is not built, and it would complain on a terminal.
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
        match &self.log {
            Some(file) => log.with_writer(file.clone()).init(),
            None => log.with_writer(io::stderr).init(),
        }
        Ok(())
    }

    /// Encrypts connections if asked to; otherwise warns if it should have been.
    fn encrypt(&mut self) -> Result<(), Failure> {
        if let Some(key) = &self.key {
            self.identity = Some(Identity::of_key(key, self.identity.take()).map_err(Failure::failed)?);
        }
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
        let hangup = Hangup::listen(self.reloads()).map_err(Failure::failed)?;
        let (mut options, concurrency) = (self.options(), &self.flags.concurrency);
        let (model, server) = match self.identity.clone() {
            Some(identity) => {
                let secured = Secured::new(factory, identity, HttpOptions::default(), self.counters.clone());
                concurrency.start(&options, secured)?
            }
            None => concurrency.start(&options, factory)?,
        };
        // Another descriptor would keep the address open after the server has closed its own.
        options.bound = None;
        listening(server.local_addr())?;
        let greeting = self.greeting(server.local_addr(), model, &options);
        let mut upkeep = Upkeep::new(hangup, self.identity.take(), self.log.take(), self.counters());
        output::print(&greeting)?;
        service_manager::ready(&greeting);
        if self.flags.until_stdin_closes {
            stop_when_stdin_closes(&interrupt);
        }
        let mut is_left = false;
        let is_over = || {
            is_left = upkeep.look(&greeting);
            is_left || server.is_finished()
        };
        let asked = interrupt.wait_unless(is_over) || is_left;
        self.end(server, asked)
    }

    /// Finishes the requests in flight of a server that was asked to end, or what is left of one that was not.
    fn end(&self, server: engine::Server, asked: bool) -> Result<Exit, Failure> {
        if asked {
            service_manager::stopping();
        }
        server.drain(self.flags.drain);
        server.join();
        if asked {
            Ok(Exit::Done)
        } else {
            Err(Failure::failed("the server stopped unexpectedly; the messages above say why"))
        }
    }

    fn options(&mut self) -> engine::Options {
        let base = engine::Options {
            bound: self.bound.take(),
            max_connections: self.flags.max_connections as usize,
            max_connections_per_client: self.flags.max_connections_per_client.map(|most| most as usize),
            unavailable: http_io::server::unavailable(RETRY_AFTER_S),
            name: self.name.into(),
            counters: self.counters.clone(),
            ..engine::Options::new(self.listen)
        };
        self.flags.concurrency.options(base)
    }

    /// The first line on stdout: where it listens, with which concurrency model, and what the process has given up.
    fn greeting(&self, address: SocketAddr, model: Model, options: &engine::Options) -> String {
        let (name, scheme, how) = (self.name, self.scheme, describe(model, options));
        let given_up = self.confinement.as_ref().map_or_else(String::new, |given_up| format!("; {given_up}"));
        format!("listening on {scheme}://{address} ({name}, engine {model}, {how}{given_up}{})\n", self.note)
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

/// Loads the certificate and its key, if given. Warns of what their owner should know.
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
