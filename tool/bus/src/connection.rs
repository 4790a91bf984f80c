//! The connection to the bus: one thread with the runtime that the client library needs, while anything uses it.

use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use async_nats::rustls::{AlertDescription, Error as TlsError};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

use crate::address::{Address, Login};
use crate::certificates;
use crate::message::shown;

/// How long the bus may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between signs of life on a connection that carries nothing else.
const PING_PERIOD: Duration = Duration::from_secs(5);

/// How often is looked whether the user asked to stop.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Messages of a subscription that wait: more than a window, and the beats of a while.
const WAITING_MAX: usize = 256;

/// A connection to the bus. It lasts until the last of its copies, and of what came from them, is dropped.
#[derive(Clone)]
pub struct Bus {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    runtime: Handle,
    heard: Arc<Heard>,
    address: Address,
    /// Ends the thread when it is dropped.
    _stop: oneshot::Sender<()>,
}

/// What came of the connection itself.
#[derive(Debug)]
struct Heard {
    /// How often it broke.
    breaks: watch::Sender<u64>,
    complaint: Mutex<Option<String>>,
}

/// What becomes of a connection, for whoever watches a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It broke. It is made again.
    Gone,
    /// It was made again.
    Back,
    /// The bus refused something.
    Refused(String),
}

/// Reasons why there is no connection to a bus.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// It did not let this user in.
    #[error(
        "the bus {0} does not let this user in: its name, password, token, credentials or certificate are wrong or missing"
    )]
    NotLetIn(Address),
    /// It did not answer as a bus does.
    #[error("the bus {0} did not answer within {limit} s; is it a NATS server?", limit = PATIENCE.as_secs())]
    Silent(Address),
    /// TLS could not be agreed upon.
    #[error(
        "no TLS with the bus {0}: {1}; --nats-ca names a file with the certificate of who signed its own"
    )]
    Tls(Address, String),
    /// It wants to see a certificate, and was shown none.
    #[error("the bus {0} wants to see a certificate, which --nats-cert and --nats-key name: {1}")]
    NoCertificate(Address, String),
    /// It does not accept the certificate that it was shown.
    #[error("the bus {0} does not accept the certificate that --nats-cert names: {1}")]
    CertificateRefused(Address, String),
    /// It ended the connection before it let anybody in.
    #[error(
        "the bus {0} broke the connection off: {1}; where it asks for certificates, --nats-cert has to name one that it accepts"
    )]
    BrokenOff(Address, String),
    /// It could not be reached.
    #[error("the bus {0} cannot be reached: {1}")]
    NotReached(Address, String),
    /// A file could not be read.
    #[error("cannot read {path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key belongs to another certificate.
    #[error("{key} is not the key of the certificate in {certificate}")]
    OtherKey {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// The thread could not be started.
    #[error("cannot start a thread for the bus: {0}")]
    Thread(#[from] io::Error),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl BusError {
    /// Whether it may be otherwise in a moment, as while a bus restarts.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, BusError::Silent(_) | BusError::BrokenOff(..) | BusError::NotReached(..))
    }
}

impl Bus {
    /// Connects to the bus. Whatever becomes of the connection later is told to `notice`; where it breaks, it is made again,
    /// and all streams over it end.
    ///
    /// # Errors
    /// If there is no bus, or it does not let this user in.
    pub fn connect(
        address: &Address,
        login: &Login,
        notice: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Result<Self, BusError> {
        Self::connect_unless(address, login, notice, &AtomicBool::new(false))
    }

    /// Connects to the bus, unless the user asks to stop meanwhile.
    pub(crate) fn connect_unless(
        address: &Address,
        login: &Login,
        notice: impl Fn(Notice) + Send + Sync + 'static,
        interrupt: &AtomicBool,
    ) -> Result<Self, BusError> {
        let heard = Arc::new(Heard { breaks: watch::Sender::new(0), complaint: Mutex::new(None) });
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let connecting = connecting(address.clone(), login.clone(), Arc::clone(&heard), notice);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        thread::Builder::new().name("nstar-bus".to_owned()).spawn(move || {
            let connected = runtime.block_on(connecting);
            let is_connected = connected.is_ok();
            if tell.send(connected).is_ok() && is_connected {
                // It ends with an error: nothing is ever sent.
                let _ = runtime.block_on(stopped);
            }
        })?;
        let client = loop {
            match told.recv_timeout(LOOK) {
                Ok(connected) => break connected?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(BusError::Thread(io::Error::other("it ended")));
                }
                // The thread ends by itself: nobody takes its connection.
                Err(RecvTimeoutError::Timeout) if interrupt.load(Ordering::Relaxed) => {
                    return Err(BusError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let inner = Inner { client, runtime: handle, heard, address: address.clone(), _stop: stop };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Where the bus is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// The last thing that the bus refused, for messages: it says so, but not to whom.
    pub(crate) fn complaint(&self) -> Option<String> {
        self.inner.heard.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn client(&self) -> Client {
        self.inner.client.clone()
    }

    pub(crate) fn breaks(&self) -> watch::Receiver<u64> {
        self.inner.heard.breaks.subscribe()
    }

    /// Waits for something that happens on the connection's thread.
    pub(crate) fn wait_for<T>(&self, future: impl Future<Output = T>) -> T {
        self.inner.runtime.block_on(future)
    }

    /// Has something happen on the connection's thread.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.inner.runtime.spawn(future);
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bus").field(&self.inner.address).finish()
    }
}

async fn connecting(
    address: Address,
    login: Login,
    heard: Arc<Heard>,
    notice: impl Fn(Notice) + Send + Sync + 'static,
) -> Result<Client, BusError> {
    let options = options(&address, &login).await?.event_callback(move |event| {
        heard.event(event, &notice);
        std::future::ready(())
    });
    let connected = tokio::time::timeout(PATIENCE, options.connect(address.to_string())).await;
    let Ok(connected) = connected else { return Err(BusError::Silent(address)) };
    connected.map_err(|error| why_not(address, &login, &error))
}

/// Why there is no connection.
fn why_not(address: Address, login: &Login, error: &ConnectError) -> BusError {
    let reason = shown(&error.source().map_or_else(|| error.to_string(), ToString::to_string));
    let from_system = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let inner = from_system.and_then(io::Error::get_ref);
    let of_tls = inner.and_then(|inner| inner.downcast_ref::<TlsError>());
    match (error.kind(), of_tls) {
        (ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation, _) => {
            BusError::NotLetIn(address)
        }
        (ConnectErrorKind::TimedOut, _) => BusError::Silent(address),
        (_, Some(TlsError::AlertReceived(alert))) if is_about_our_certificate(*alert) => {
            match login.identity {
                Some(_) => BusError::CertificateRefused(address, reason),
                None => BusError::NoCertificate(address, reason),
            }
        }
        (ConnectErrorKind::Tls, _) | (_, Some(_)) => BusError::Tls(address, reason),
        _ if from_system.is_some_and(is_broken_off) => BusError::BrokenOff(address, reason),
        _ => BusError::NotReached(address, reason),
    }
}

/// Whether the other end of TLS says with this that it does not like the certificate of this one, or lacks it.
fn is_about_our_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired
    )
}

/// Whether the other end was there, and left. In TLS 1.3 a client is done before the server has looked at its certificate: what
/// a client sends on meanwhile may meet a closed connection before it hears why that is closed.
fn is_broken_off(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::UnexpectedEof
    )
}

async fn options(address: &Address, login: &Login) -> Result<ConnectOptions, BusError> {
    let mut options = ConnectOptions::new()
        .name("nstar")
        .connection_timeout(PATIENCE)
        .ping_interval(PING_PERIOD)
        .subscription_capacity(WAITING_MAX)
        .require_tls(address.is_tls());
    if let Some((user, password)) = address.user_and_password() {
        options = options.user_and_password(user.to_owned(), password.to_owned());
    }
    if let Some(token) = address.token() {
        options = options.token(token.to_owned());
    }
    if let Some(path) = &login.authorities {
        certificates::check_authorities(path)?;
        options = options.add_root_certificates(path.clone());
    }
    if let Some(identity) = &login.identity {
        certificates::check_identity(identity)?;
        options = options.add_client_certificate(identity.certificate.clone(), identity.key.clone());
    }
    if let Some(path) = &login.credentials {
        options = options.credentials_file(path).await.map_err(|error| unreadable(path, &error))?;
    }
    Ok(options)
}

/// A file that cannot be used.
pub(crate) fn unreadable(path: &Path, why: &dyn fmt::Display) -> BusError {
    BusError::File { path: path.to_owned(), reason: shown(&why.to_string()) }
}

impl Heard {
    fn event(&self, event: Event, notice: &dyn Fn(Notice)) {
        match event {
            Event::Disconnected | Event::Closed => {
                self.breaks.send_modify(|breaks| *breaks += 1);
                notice(Notice::Gone);
            }
            Event::Connected if *self.breaks.borrow() > 0 => notice(Notice::Back),
            Event::ServerError(error) => {
                let said = shown(&error.to_string());
                *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = Some(said.clone());
                notice(Notice::Refused(said));
            }
            _ => {}
        }
    }
}
