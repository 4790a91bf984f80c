//! The view as a page: a small HTTP server on loopback, for browsers on this host.
//!
//! What keeps others out: nobody listens beyond loopback unless that was asked for; the path of every address holds a token
//! that is printed where nstar runs, and nowhere else; and requests are answered only where the browser was told an IP
//! address or `localhost`, so that no other site's name can be pointed here (DNS rebinding).

mod access;
mod address;
mod connection;
mod stream;

use std::{
    fs::File,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use report::live::Renderer;

pub use self::address::{Address, AddressError};
use crate::{Shared, shared::Outcome};

/// The longest that a client may take to ask, or to take what it asked for.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long pages that are open may take to fetch the report, once the sweep is over.
const FAREWELL: Duration = Duration::from_secs(10);

/// How long to wait for a thread or a descriptor where there is none just now.
const SHORTAGE: Duration = Duration::from_millis(50);

/// Reasons why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody else listens there.
    #[error(
        "--ui: {0} is in use, perhaps by another nstar: give another port, or {at}:0 for any that is free", at = .0.ip()
    )]
    InUse(SocketAddr),
    /// It cannot be listened on.
    #[error("--ui: cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// There is no random number, or no thread.
    #[error("--ui: {0}")]
    Start(io::Error),
    /// The page itself is broken.
    #[error(transparent)]
    Render(#[from] report::RenderError),
}

/// A page that is being served.
#[derive(Debug)]
pub struct Page {
    site: Arc<Site>,
}

/// What all connections share.
#[derive(Debug)]
struct Site {
    shared: Shared,
    renderer: Renderer,
    /// Where it listens.
    address: SocketAddr,
    /// The longest that a client may take to ask, or to take what it asked for.
    patience: Duration,
    /// In the path of every address.
    token: String,
    /// Allows the page's script to run.
    nonce: String,
    open: AtomicUsize,
    over: AtomicBool,
    farewells: Farewells,
}

/// Pages that are open, and reports that they have yet to fetch.
#[derive(Debug, Default)]
struct Farewells {
    awaited: Mutex<usize>,
    changed: Condvar,
}

impl Page {
    /// The most connections that are served at once, each by a thread of its own.
    pub const CONNECTIONS_MAX: usize = 16;

    /// Serves the page of a sweep from now on.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened on.
    pub fn serve(shared: &Shared, address: &Address) -> Result<Self, ServeError> {
        Self::serve_within(shared, address, PATIENCE)
    }

    /// The same, where a client may take so long to ask, or to take what it asked for.
    ///
    /// # Errors
    /// The address is taken, or cannot be listened on.
    pub fn serve_within(shared: &Shared, address: &Address, patience: Duration) -> Result<Self, ServeError> {
        let wanted = address.socket();
        let listener = TcpListener::bind(wanted).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse(wanted),
            _ => ServeError::Listen(wanted, error),
        })?;
        let address = listener.local_addr().map_err(ServeError::Start)?;
        let site = Arc::new(Site {
            shared: shared.clone(),
            renderer: Renderer::new()?,
            address,
            patience,
            token: secret().map_err(ServeError::Start)?,
            nonce: secret().map_err(ServeError::Start)?,
            open: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            farewells: Farewells::default(),
        });
        let serving = site.clone();
        let accepting = move || serving.accept(&listener);
        thread::Builder::new().name("page".into()).spawn(accepting).map_err(ServeError::Start)?;
        Ok(Self { site })
    }

    /// What to open in a browser. Whoever knows it may see the sweep, and end it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.site.address, self.site.token)
    }

    /// Ends it with the report: pages that are open go there, and are waited for as long as that may take.
    pub fn end_with(self, report: String) {
        self.end(Outcome::Report(report.into()));
    }

    /// Ends it without a report, for this reason.
    pub fn end_without(self, reason: &str) {
        self.end(Outcome::Failed(reason.into()));
    }

    fn end(self, outcome: Outcome) {
        self.site.shared.end(outcome);
        self.site.farewells.wait(FAREWELL);
        self.site.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts, which then closes the listener.
        let _ = TcpStream::connect_timeout(&self.site.address, SHORTAGE);
    }
}

impl Site {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for connection in listener.incoming() {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            match connection {
                Ok(stream) => self.clone().answer(stream),
                // No descriptor is free: the sweep has many, and the page can wait.
                Err(_) => thread::sleep(SHORTAGE),
            }
        }
    }

    /// Answers one connection in a thread of its own. One too many is closed.
    fn answer(self: Arc<Self>, stream: TcpStream) {
        if self.open.fetch_add(1, Ordering::Relaxed) >= Page::CONNECTIONS_MAX {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let site = self.clone();
        let answering = move || {
            // Whoever goes away meanwhile needs no answer.
            let _ = connection::answer(&site, stream);
            site.open.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("page-client".into()).spawn(answering).is_err() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Farewells {
    /// Somebody is to be waited for.
    fn begin(&self) {
        self.change(|awaited| awaited.saturating_add(1));
    }

    /// Somebody is no longer to be waited for.
    fn done(&self) {
        self.change(|awaited| awaited.saturating_sub(1));
    }

    fn change(&self, change: impl FnOnce(usize) -> usize) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        *awaited = change(*awaited);
        self.changed.notify_all();
    }

    /// Waits until nobody is to be waited for, or so long.
    fn wait(&self, at_most: Duration) {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether all came or the time is over, the page ends.
        drop(self.changed.wait_timeout_while(awaited, at_most, |awaited| *awaited > 0));
    }
}

/// 128 bits that nobody guesses, in hexadecimal.
fn secret() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
