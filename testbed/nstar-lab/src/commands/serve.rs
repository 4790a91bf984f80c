//! `nstar serve`: one of the systems, until it is told to stop.

mod beneath;
mod concurrency;
mod encryption;
mod sharing;
mod tiers;

use std::{
    ffi::CStr,
    io::{self, IsTerminal, Read},
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
    thread,
};

use engine::{Counters, Model, Overload, service::Factory};
use http_io::server::{HttpOptions, Secured};
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::database;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use nstar::{
    exit::{Exit, Failure},
    flags::Processors,
    interrupt::Interrupt,
    output,
};

use crate::flags::{Accounts, Booking, Files, FilesUploads, Serve, Server, Sink, Verify};

/// When a client that was refused may come again, seconds.
const RETRY_AFTER_S: u32 = 1;

pub(crate) fn run(flags: &Serve) -> Result<Exit, Failure> {
    match flags {
        Serve::Files(flags) => serve_files(flags),
        Serve::Accounts(flags) => serve_accounts(flags),
        Serve::Booking(flags) => serve_booking(flags),
        Serve::Sink(flags) => serve_sink(flags),
        Serve::Index(flags) => sharing::serve_index(flags),
        Serve::Peer(flags) => sharing::serve_peer(flags),
    }
}

fn serve_files(flags: &Files) -> Result<Exit, Failure> {
    let mut system = System::http("files", flags.listen, &flags.server);
    system.secrets = (flags.accounts != "none").then_some("passwords");
    system.prepare(c"nstar-files")?;
    let mut options = files::Options::new(&flags.root, flags.accounts.parse().map_err(Failure::usage)?);
    beneath::check(flags, &options.accounts)?;
    options.auth_cache_ttl = flags.auth_cache;
    options.open_to_all = flags.open_to_all;
    options.uploads = uploads(&flags.uploads, &options.accounts)?;
    if let Some(path) = &flags.permissions {
        options.permissions = files::Permissions::load(path).map_err(Failure::usage)?;
    }
    options.audit = flags.audit.clone();
    options.encrypted = system.identity.is_some();
    options.proxies = flags.behind.proxies.iter().copied().collect();
    options.connections = system.counters.clone();
    tiers::link(flags, &mut options)?;
    files::check(flags.listen, &options).map_err(Failure::usage)?;
    system.serve(files::factory(options).map_err(tiers::failure)?)
}

fn uploads(flags: &FilesUploads, accounts: &files::AccountsBackend) -> Result<files::UploadOptions, Failure> {
    if flags.open_uploads && *accounts != files::AccountsBackend::Open {
        return Err(Failure::usage(
            "--open-uploads goes with --accounts none: users of accounts upload anyway",
        ));
    }
    if flags.quota.is_some() && *accounts == files::AccountsBackend::Open {
        return Err(Failure::usage(
            "--quota is what each user may keep, and --accounts none knows none; name an accounts server, or leave it out",
        ));
    }
    let mut uploads = files::UploadOptions::default();
    uploads.of = match flags {
        FilesUploads { read_only: true, .. } => files::Uploaders::Nobody,
        FilesUploads { open_uploads: true, .. } => files::Uploaders::Everybody,
        _ => files::Uploaders::Users,
    };
    uploads.max_bytes = flags.max_upload;
    uploads.life = flags.upload_life;
    uploads.quota_bytes = flags.quota;
    Ok(uploads)
}

fn serve_accounts(flags: &Accounts) -> Result<Exit, Failure> {
    let mut system = System::http("accounts", flags.listen, &flags.server);
    system.secrets = Some("passwords");
    system.prepare(c"nstar-accounts")?;
    let mut options = accounts::Options::new(database::with_password(&flags.database, &flags.login)?);
    options.admin_token = flags.admin_token.clone().unwrap_or(options.admin_token);
    options.registration = flags.registration.into();
    tiers::door(flags, &mut options);
    options.server.proxies = flags.behind.proxies.iter().copied().collect();
    options.server.connections = system.counters.clone();
    system.serve(accounts::factory(options).map_err(Failure::failed)?)
}

fn serve_booking(flags: &Booking) -> Result<Exit, Failure> {
    let mut system = System::http("booking", flags.listen, &flags.server);
    system.secrets = Some("identity numbers");
    system.prepare(c"nstar-booking")?;
    let mut options = booking::Options::new(database::with_password(&flags.database, &flags.login)?);
    options.key = flags.key.clone().unwrap_or(options.key);
    options.rooms = flags.rooms.unwrap_or(options.rooms);
    options.ids = booking::IdPolicy::allow_test(flags.allow_test_ids);
    options.server.proxies = flags.behind.proxies.iter().copied().collect();
    options.server.connections = system.counters.clone();
    system.serve(booking::factory(options).map_err(Failure::failed)?)
}

fn serve_sink(flags: &Sink) -> Result<Exit, Failure> {
    let mut system = System::http("sink", flags.listen, &flags.server);
    if flags.raw {
        system.scheme = "tcp";
    }
    system.prepare(c"nstar-sink")?;
    let mut options = sink::Options::default();
    options.protocol = if flags.raw { sink::Protocol::Raw } else { sink::Protocol::Http };
    options.chunk = flags.chunk;
    options.verify = match flags.verify {
        Some(Verify::Blake3) => sink::Verify::Blake3,
        None => sink::Verify::Nothing,
    };
    options.max_body = flags.max_body.unwrap_or(u64::MAX);
    options.delay = flags.delay;
    options.connections = system.counters.clone();
    let factory = sink::factory(options);
    let totals = factory.totals();
    let exit = system.serve(factory)?;
    output::print(&format!("{totals}\n"))?;
    Ok(exit)
}

/// What every system needs to run.
struct System<'a> {
    name: &'static str,
    /// What clients speak, as a URL has it.
    scheme: &'static str,
    listen: SocketAddr,
    flags: &'a Server,
    /// What else there is to say of it when it starts.
    note: String,
    /// What its clients would not want others to read.
    secrets: Option<&'static str>,
    /// By what other servers know it, where they know each other so.
    key: Option<tls::Key>,
    /// What it shows to clients that want TLS; the others are refused then.
    identity: Option<tls::Identity>,
    /// Shared by the engine, which counts, and the service, whose `/metrics` shows them.
    counters: Arc<Counters>,
}

impl<'a> System<'a> {
    fn http(name: &'static str, listen: SocketAddr, flags: &'a Server) -> Self {
        let (note, counters) = (String::new(), Arc::default());
        Self { name, scheme: "http", listen, flags, note, secrets: None, key: None, identity: None, counters }
    }

    /// Before any thread starts: what threads inherit.
    fn prepare(&mut self, process: &CStr) -> Result<(), Failure> {
        concurrency::check(&self.flags.concurrency)?;
        self.encrypt()?;
        engine::check_address(self.listen).map_err(Failure::failed)?;
        if self.scheme != "http" && self.flags.concurrency.overload == Some(Overload::Unavailable) {
            return Err(Failure::usage("--overload 503 is an answer of plain HTTP; choose backlog or reset"));
        }
        // A short name of its own tells the tiers apart wherever processes are listed.
        rustix::thread::set_name(process)
            .map_err(|error| Failure::failed(format!("cannot name the process: {error}")))?;
        Processors::confine(self.flags.cpus.as_ref())?;
        let allowed = raise_descriptor_limit(self.flags.max_connections);
        concurrency::check_descriptors(&self.flags.concurrency, allowed)?;
        let level = if self.flags.access_log { LevelFilter::INFO } else { LevelFilter::WARN };
        tracing_subscriber::fmt()
            // libp2p warns whenever the only other peer goes: the peer itself tells of that.
            .with_env_filter(EnvFilter::new(format!("{level},libp2p_kad=error")))
            .with_writer(io::stderr)
            .with_ansi(io::stderr().is_terminal())
            .init();
        Ok(())
    }

    /// Has connections encrypted where that is asked for; where it is not but should be, says so.
    fn encrypt(&mut self) -> Result<(), Failure> {
        self.identity = encryption::identity(&self.flags.encryption, self.key.as_ref())?;
        match (&self.identity, self.secrets) {
            (Some(_), _) => self.scheme = if self.scheme == "tcp" { "tls" } else { "https" },
            (None, Some(secrets)) => encryption::warn_of_exposure(self.listen, secrets),
            (None, None) => {}
        }
        Ok(())
    }

    /// Runs until a signal, or the closing of stdin where that was asked for; then finishes what is in flight.
    fn serve<F: Factory>(self, factory: F) -> Result<Exit, Failure> {
        self.serve_and(factory, |_| Ok(()))
    }

    /// The same, and tells where it listens.
    fn serve_and<F: Factory>(
        mut self,
        factory: F,
        listening: impl FnOnce(SocketAddr) -> Result<(), Failure>,
    ) -> Result<Exit, Failure> {
        let interrupt = Interrupt::listen().map_err(Failure::failed)?;
        let (options, concurrency) = (self.options(), &self.flags.concurrency);
        let (model, server) = match self.identity.take() {
            Some(identity) => {
                let secured = Secured::new(factory, identity, HttpOptions::default(), self.counters.clone());
                concurrency::start(concurrency, &options, secured)?
            }
            None => concurrency::start(concurrency, &options, factory)?,
        };
        listening(server.local_addr())?;
        output::print(&self.greeting(server.local_addr(), model, &options))?;
        if self.flags.until_stdin_closes {
            stop_when_stdin_closes(&interrupt);
        }
        if !interrupt.wait_unless(|| server.is_finished()) {
            return Err(Failure::failed("the server has ended by itself; what it said above tells why"));
        }
        server.drain(self.flags.drain);
        server.join();
        Ok(Exit::Done)
    }

    fn options(&self) -> engine::Options {
        let base = engine::Options {
            max_connections: self.flags.max_connections as usize,
            unavailable: http_io::server::unavailable(RETRY_AFTER_S),
            name: self.name.into(),
            counters: self.counters.clone(),
            ..engine::Options::new(self.listen)
        };
        concurrency::options(&self.flags.concurrency, base)
    }

    /// The model that really runs, and where.
    fn greeting(&self, address: SocketAddr, model: Model, options: &engine::Options) -> String {
        let (name, scheme, how) = (self.name, self.scheme, concurrency::describe(model, options));
        format!("listening on {scheme}://{address} ({name}, engine {model}, {how}{})\n", self.note)
    }
}

/// Takes all the descriptors the hard limit allows, and says so where they are fewer than the connections asked for.
/// Tells how many there are.
fn raise_descriptor_limit(connections: u32) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, what there is is told below.
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
