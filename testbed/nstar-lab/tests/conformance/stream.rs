//! The stream of a client: a socket, or a TLS session over one. It can send and receive at once.

use std::{
    fs::{self, Permissions},
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use rcgen::{CertificateParams, CertifiedKey, KeyPair, date_time_ymd};
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto::ring, pki_types::CertificateDer};

use crate::program::{Folder, PATIENCE};

static CERTIFIED: LazyLock<CertifiedKey<rcgen::KeyPair>> =
    LazyLock::new(|| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap());

static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| trusting(CERTIFIED.cert.der()));

/// A client that accepts this certificate alone.
fn trusting(certificate: &CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Replaces the certificate and its key by others, valid until 2100. Returns whether a server shows the new one.
pub(crate) fn renew(folder: &Folder) -> impl Fn(SocketAddr) -> bool + use<> {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_after = date_time_ymd(2100, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    folder.write("cert.pem", certificate.pem());
    folder.write("key.pem", key.serialize_pem());
    // Without sessions to resume, in which no certificate is shown.
    move |server| Stream::secured(server, trusting(certificate.der())).is_ok()
}

/// Writes a certificate and its key. Returns the flags that name them.
pub(crate) fn certificate(folder: &Folder) -> &'static str {
    folder.write("cert.pem", CERTIFIED.cert.pem());
    let key = folder.write("key.pem", CERTIFIED.signing_key.serialize_pem());
    fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
    "--tls-cert cert.pem --tls-key key.pem"
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpStream::connect(to)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// One connection; clones are handles on the same one.
#[derive(Clone)]
pub(crate) enum Stream {
    Plain(Arc<TcpStream>),
    Secure(Arc<Secure>),
}

/// A TLS session over a socket.
pub(crate) struct Secure {
    socket: TcpStream,
    session: Mutex<ClientConnection>,
    /// Received bytes for which the session has no room yet.
    records: Mutex<Vec<u8>>,
    /// Locked while sending, so that records stay in order.
    sending: Mutex<()>,
}

impl Stream {
    pub(crate) fn connect(to: SocketAddr, secure: bool) -> io::Result<Self> {
        if secure { Self::secured(to, Arc::clone(&CONFIG)) } else { Ok(Self::Plain(Arc::new(connect(to)?))) }
    }

    fn secured(to: SocketAddr, config: Arc<ClientConfig>) -> io::Result<Self> {
        let socket = connect(to)?;
        let name = "localhost".try_into().map_err(io::Error::other)?;
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let secure = Secure {
            socket,
            session: Mutex::new(session),
            records: Mutex::default(),
            sending: Mutex::new(()),
        };
        secure.shake_hands()?;
        Ok(Self::Secure(Arc::new(secure)))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Secure(secure) => &secure.socket,
        }
    }

    /// Waits for a session ticket, without sending a request.
    pub(crate) fn await_ticket(&self) {
        let Self::Secure(secure) = self else { panic!("there are no tickets without TLS") };
        while secure.session().tls13_tickets_received() == 0 {
            secure.receive().unwrap();
        }
    }

    /// Closes the sending side.
    pub(crate) fn end(&self) -> io::Result<()> {
        if let Self::Secure(secure) = self {
            secure.send(|session| session.send_close_notify())?;
        }
        self.socket().shutdown(Shutdown::Write)
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&**socket).read(into),
            Self::Secure(secure) => secure.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => (&**socket).write(bytes),
            Self::Secure(secure) => {
                let piece = bytes.get(..16 << 10).unwrap_or(bytes);
                // Before the handshake is done it would be kept, and it is done.
                secure.send(|session| session.writer().write_all(piece).unwrap())?;
                Ok(piece.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Secure {
    fn shake_hands(&self) -> io::Result<()> {
        self.send(|_| ())?;
        while self.session().is_handshaking() {
            self.receive()?;
            self.send(|_| ())?;
        }
        Ok(())
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.session().reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            self.receive()?;
        }
    }

    /// Processes received bytes. An end without close_notify counts as a reset.
    fn receive(&self) -> io::Result<()> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if records.is_empty() {
            records.resize(16 << 10, 0);
            let count = (&self.socket).read(&mut records);
            records.truncate(*count.as_ref().unwrap_or(&0));
            if count? == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "it ended without a close_notify",
                ));
            }
        }
        let mut session = self.session();
        let taken = session.read_tls(&mut &records[..])?;
        records.drain(..taken);
        let processed = session.process_new_packets();
        processed.map(drop).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn send(&self, what: impl FnOnce(&mut ClientConnection)) -> io::Result<()> {
        let _mine = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut records = Vec::new();
        {
            let mut session = self.session();
            what(&mut session);
            while session.wants_write() {
                session.write_tls(&mut records)?;
            }
        }
        (&self.socket).write_all(&records)
    }

    fn session(&self) -> std::sync::MutexGuard<'_, ClientConnection> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
