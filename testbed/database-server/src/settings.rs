//! The settings of a database server, and why it could not be started.

use std::{fmt, io, net::Ipv4Addr};

use zeroize::Zeroizing;

/// The settings of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The password of the user `nstar`, who is no administrator. Administrators cannot log in at all. `None` means a
    /// random one.
    pub password: Option<Password>,
    /// The most connections at once.
    pub connections: usize,
    /// The size of its cache, MiB.
    pub memory_mib: u32,
    /// The port to listen on; `None` means any that is free.
    pub port: Option<u16>,
    /// Whether it listens at every address of its host and lets its user in from anywhere; otherwise only at 127.0.0.1. For
    /// network namespaces that nobody else reaches.
    pub network: bool,
    /// The host of its own on which it runs, which needs root; `None` means this one.
    pub host: Option<Host>,
    /// The processors that it may use; `None` means all.
    pub processors: Option<Vec<usize>>,
    /// What it presents to clients that want TLS; `None` means no TLS.
    pub identity: Option<Identity>,
    /// Statements that its administrator executes before anybody can log in, one per line, after creating the user
    /// `nstar`. MariaDB executes them at each start.
    pub first_statements: String,
}

impl Default for Settings {
    /// 64 connections, 256 MiB, all processors, at 127.0.0.1.
    fn default() -> Self {
        let (password, port, host, processors, identity) = (None, None, None, None, None);
        let (network, first_statements) = (false, String::new());
        let (connections, memory_mib) = (64, 256);
        Self {
            password,
            connections,
            memory_mib,
            port,
            network,
            host,
            processors,
            identity,
            first_statements,
        }
    }
}

impl Settings {
    /// The password of the user `nstar`: a new one, if none is given.
    pub(crate) fn password_or_random(&self) -> io::Result<Password> {
        self.password.clone().map_or_else(Password::random, Ok)
    }

    /// The address at which clients reach the server.
    pub(crate) fn for_clients(&self) -> Ipv4Addr {
        self.host.map_or(Ipv4Addr::LOCALHOST, |host| host.for_clients)
    }

    /// The address at which the other servers of one database reach it.
    pub(crate) fn among_servers(&self) -> Ipv4Addr {
        self.host.map_or(Ipv4Addr::LOCALHOST, |host| host.among_servers)
    }
}

/// A host of its own on this machine: a network namespace, with one network for the servers of a database and one for
/// their clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// The id of a process in the namespace.
    pub process: u32,
    /// Its address on the network of the servers.
    pub among_servers: Ipv4Addr,
    /// Its address on the network of the clients.
    pub for_clients: Ipv4Addr,
}

/// A password that needs no quoting in URLs and in SQL, wiped from memory when dropped. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<String>);

/// How many random bytes a password is made of.
const PASSWORD_LEN: usize = 24;

impl Password {
    /// A text as a password. `None` if it is empty or has other characters than ASCII letters, digits, `-` and `_`.
    pub fn new(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (!text.is_empty() && text.bytes().all(plain)).then(|| Self(text.to_owned().into()))
    }

    /// A random password.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = Zeroizing::new([0_u8; PASSWORD_LEN]);
        getrandom::fill(&mut bytes[..]).map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// A certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Why a database server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The server's programs are not installed.
    #[error(
        "{kind} is not installed: no program {program} was found; on Debian, as root: apt-get install {package}"
    )]
    NotInstalled {
        /// Which server.
        kind: &'static str,
        /// The missing program.
        program: &'static str,
        /// The Debian package that contains it.
        package: &'static str,
    },
    /// A program could not be run, or a file or folder not made.
    #[error("cannot {what} for {kind}: {source}")]
    Io {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// One of the server's programs failed.
    #[error("{kind} cannot {what}: {said}")]
    Failed {
        /// Which server.
        kind: &'static str,
        /// What was being done.
        what: &'static str,
        /// The last line that the program printed.
        said: String,
    },
}
