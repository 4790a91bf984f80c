//! Flags that several systems share.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use http_io::server::{Hosts, Network, Proxies};
use nstar::{
    exit::Failure,
    flags::DatabaseLogin,
    values::{Processors, duration},
};
use store::Database;

use crate::{concurrency::ConcurrencyFlags, confinement::Rights};

/// How a server runs.
#[derive(Debug, Args)]
pub struct ServerFlags {
    /// The concurrency model.
    #[command(flatten)]
    pub concurrency: ConcurrencyFlags,
    /// TLS.
    #[command(flatten)]
    pub encryption: Encryption,
    /// Connections served at once; more wait in the listen queue
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,
    /// Connections of one client at once, by address (IPv6: by /64 network); further ones are closed. Clients behind one
    /// proxy or router count as one [default: any number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections_per_client: Option<u32>,
    /// Show /metrics to all clients, not only to programs on this machine
    #[arg(long)]
    pub open_metrics: bool,
    /// Processors for the server, such as 1 or 0-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
    /// How long requests in flight may take after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub drain: Duration,
    /// Stop when stdin closes, so that a server never outlives the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
    /// Log every request
    #[arg(long)]
    pub access_log: bool,
    /// Append the log to this file, not to stderr; SIGHUP opens it anew, so that logrotate may move it away
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// The rights of the process.
    #[command(flatten)]
    pub rights: Rights,
    /// A configuration file.
    #[command(flatten)]
    pub configuration: Configuration,
}

/// Flags that come from a file.
#[derive(Debug, Args)]
pub struct Configuration {
    /// File (TOML) with flags under their names, such as max-connections = 100; flags given here win
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the flags in force as such a file, defaults as comments, without passwords; do nothing else
    #[arg(long)]
    pub print_config: bool,
}

/// Proxies in front of a server that uses the addresses of its clients.
#[derive(Debug, Args)]
pub struct TrustedProxies {
    /// A proxy whose Forwarded or X-Forwarded-For header names the client; may be repeated
    #[arg(long = "trusted-proxy", value_name = "ADDR[/BITS]")]
    pub proxies: Vec<Network>,
}

impl TrustedProxies {
    /// The proxies.
    pub fn proxies(&self) -> Proxies {
        self.proxies.iter().copied().collect()
    }

    /// Whether others than programs of this machine reach a server that listens on `listen`: directly or through a proxy.
    pub fn exposes(&self, listen: SocketAddr) -> bool {
        !self.proxies.is_empty() || !listen.ip().to_canonical().is_loopback()
    }
}

/// Names of a server that is open without credentials.
#[derive(Debug, Args)]
pub struct HostNames {
    /// Where no credentials are needed: a name to which it answers, besides its addresses and localhost; may be repeated
    #[arg(long = "host-name", value_name = "NAME")]
    pub host_names: Vec<String>,
}

impl HostNames {
    /// The names to which a server that listens on `listen` answers, besides its addresses and `localhost`: these alone if there
    /// are any, or if it is on loopback, which another site could reach through a browser of this machine. Otherwise any, as over
    /// TLS, where no certificate is that site's.
    pub fn hosts(&self, listen: SocketAddr, is_encrypted: bool) -> Hosts {
        let any = is_encrypted || !listen.ip().to_canonical().is_loopback();
        if any && self.host_names.is_empty() {
            return Hosts::default();
        }
        Hosts::only(self.host_names.clone(), "--host-name NAME lets it answer to a name as well")
    }
}

/// TLS, if asked for.
#[derive(Debug, Args)]
pub struct Encryption {
    /// Serve over TLS with the certificate in this file (PEM), followed by its chain
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// File with the certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
}

/// The database that `--database` names, with its password from wherever that is.
///
/// # Errors
/// When there is no password where the flags say, or SQLite is given one.
pub fn with_password(database: &Database, login: &DatabaseLogin) -> Result<Database, Failure> {
    let database = database.clone();
    if database.path().is_some() {
        return match login.database_password_file {
            None => Ok(database),
            Some(_) => Err(Failure::usage(
                "--database-password-file goes with a database server: SQLite asks for none",
            )),
        };
    }
    let password = login.password("--database", database.shows_password())?;
    Ok(match password {
        None => database,
        Some(password) => database.with_password(password),
    })
}
