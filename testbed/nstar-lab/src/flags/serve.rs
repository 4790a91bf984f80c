//! Flags of `nstar-lab serve`, system by system.

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use share_dht::Placement;

use nstar::{
    flags::DatabaseLogin,
    values::{Unshown, duration, duration_or_zero},
};

use super::server::{Behind, Server};
use crate::values;

#[derive(Debug, Subcommand)]
pub(crate) enum Serve {
    /// The file server, for users that an accounts server knows
    Files(Files),
    /// The accounts server: keeps users durably and checks their passwords
    Accounts(Accounts),
    /// Room booking: no room is ever booked twice
    Booking(Booking),
    /// The upload sink: accepts everything and keeps nothing
    Sink(Sink),
    /// The central index of file sharing: knows which peer has which files
    Index(Index),
    /// A peer of file sharing: shares a folder and fetches files from other peers
    Peer(Peer),
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Folder to serve
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Where users are known: URL of an accounts server (http or https), sqlite:PATH for both tiers in one process, or none
    #[arg(long, value_name = "URL|sqlite:PATH|none")]
    pub accounts: String,
    /// Authorities (PEM) to trust for an accounts server over https [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    pub accounts_ca: Option<PathBuf>,
    /// File with the accounts server's service token, if it requires one
    #[arg(long, value_name = "FILE")]
    pub accounts_token_file: Option<PathBuf>,
    /// Who may create accounts besides administrators, with --accounts sqlite:PATH [default: open]
    #[arg(long, value_enum)]
    pub registration: Option<Registration>,
    /// How long to remember verified credentials; 0 checks them every time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration_or_zero)]
    pub auth_cache: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = values::listen)]
    pub listen: SocketAddr,
    /// Serve without accounts even on an address that others can reach
    #[arg(long)]
    pub open_to_all: bool,
    #[command(flatten)]
    pub uploads: FilesUploads,
    /// Rules (TOML) for who may read and write what [default: users write in users/NAME, which only they can read,
    /// and read everything else]
    #[arg(long, value_name = "FILE")]
    pub permissions: Option<PathBuf>,
    /// Append a line of JSON to this file for every upload, deletion and refusal
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    #[command(flatten)]
    pub behind: Behind,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct FilesUploads {
    /// Accept no uploads
    #[arg(long, conflicts_with = "open_uploads")]
    pub read_only: bool,
    /// Without accounts, accept uploads from everybody
    #[arg(long)]
    pub open_uploads: bool,
    /// Largest upload
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = values::size)]
    pub max_upload: u64,
    /// How long an interrupted upload can be resumed
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
    pub upload_life: Duration,
    /// Quota in users/NAME for users whose account sets none [default: the disk]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub quota: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Accounts {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "accounts.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// File with the administrator's token, created at the first start
    /// [default: DATABASE.admin; accounts.admin where the database is a server's]
    #[arg(long, value_name = "FILE")]
    pub admin_token: Option<PathBuf>,
    /// Answer only clients that present the service token in this file, created at the first start. Without this flag the
    /// token is in DATABASE.service, and is required only if other machines can reach the server
    #[arg(long, value_name = "FILE")]
    pub service_token_file: Option<PathBuf>,
    /// Who may create accounts besides administrators
    #[arg(long, value_enum, default_value_t = Registration::Open)]
    pub registration: Registration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081", value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub behind: Behind,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Booking {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "booking.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// File with the key that hides identity numbers, created at the first start; the administrator's token is beside
    /// it, ending in .admin [default: DATABASE.key; booking.key where the database is a server's]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Number of rooms in a new database [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub rooms: Option<u32>,
    /// Accept Aadhaar numbers that begin with 0 or 1: nobody has such a number, so they suit tests and loads
    #[arg(long)]
    pub allow_test_ids: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083", value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub behind: Behind,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The database: an SQLite file (created if missing), mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "index.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// How long a registration lasts unless the peer renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::life)]
    pub life: Duration,
    /// File with the group's secret, created if missing: only peers that present it are answered. With --allow peers do
    /// not need it; it is for whoever runs the index
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    #[command(flatten)]
    pub allowed: Allowed,
    /// File with the index's own key, created if missing [default: DATABASE.identity; index.identity where the database
    /// is a server's]
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8084", value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Peer {
    /// Folder to share, which also receives the files obtained
    #[arg(long, value_name = "DIR")]
    pub share: PathBuf,
    /// The index server; https:// if it speaks TLS [default: 127.0.0.1:8084, over TLS if this peer speaks it]
    #[arg(long, value_name = "URL", conflicts_with = "spread")]
    pub index: Option<String>,
    /// Authorities (PEM) to trust for the index and, with --tls-cert, for other peers, each at its address
    /// [default: those of this machine]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    #[command(flatten)]
    pub spread: PeerIndex,
    /// Folder for the peer's own data, on the same file system [default: .nstar in the shared folder]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// File with the group's secret, created if missing: only members that present it are answered. With --allow it is the
    /// owner's own, for the page and `nstar-lab share`
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    #[command(flatten)]
    pub allowed: Allowed,
    /// Where other peers can reach this one [default: where it listens]
    #[arg(long, value_name = "ADDR", value_parser = values::listen)]
    pub advertise: Option<SocketAddr>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8085", value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

/// The members of a group closed by keys.
#[derive(Debug, Args)]
pub(crate) struct Allowed {
    /// Key of a member, as `nstar-lab share key` prints it; may be repeated. Closes the group: all connections are
    /// encrypted, and both ends must prove that they own a member's key
    #[arg(long = "allow", value_name = "KEY")]
    pub keys: Vec<tls::PublicKey>,
    /// File with the keys of members, one per line; # begins a comment
    #[arg(long, value_name = "FILE")]
    pub allow_file: Option<PathBuf>,
}

impl Allowed {
    /// Whether the group is closed by keys.
    pub(crate) fn is_given(&self) -> bool {
        !self.keys.is_empty() || self.allow_file.is_some()
    }
}

/// Who may create accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Registration {
    /// Everybody, a few at a time from one address
    Open,
    /// Administrators only
    Closed,
}

impl From<Registration> for accounts::Registration {
    fn from(registration: Registration) -> Self {
        match registration {
            Registration::Open => Self::Open,
            Registration::Closed => Self::Closed,
        }
    }
}

/// The index without a server.
#[derive(Debug, Args)]
pub(crate) struct PeerIndex {
    /// No index server: the peers keep the index among themselves, in a distributed hash table
    #[arg(long, group = "spread")]
    pub dht: bool,
    /// No index server: the peers keep the index among themselves, and each knows all others (rendezvous hashing, for up to
    /// 1 000 peers), so that a search asks one peer
    #[arg(long, group = "spread")]
    pub partitioned: bool,
    /// Where another peer listens for peers; may be repeated [default: finds peers by multicast, if others can reach
    /// this one]
    #[arg(long, value_name = "ADDR", value_parser = values::contact, requires = "spread")]
    pub bootstrap: Vec<SocketAddr>,
    /// Address to listen on for other peers
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8086", value_parser = values::listen, requires = "spread")]
    pub dht_listen: SocketAddr,
    /// How long other peers keep what this one told them unless it renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::life, requires = "spread")]
    pub life: Duration,
}

impl PeerIndex {
    /// How the peers share out the index; `None` with an index server.
    pub(crate) fn placement(&self) -> Option<Placement> {
        match (self.dht, self.partitioned) {
            (true, _) => Some(Placement::Nearest),
            (_, true) => Some(Placement::Rendezvous),
            _ => None,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Sink {
    /// No HTTP: accept bytes until the client closes its side, so that `nc` can be a client
    #[arg(long, conflicts_with_all = ["verify", "delay", "max_body"])]
    pub raw: bool,
    /// Bytes read at a time
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = values::chunk)]
    pub chunk: NonZeroUsize,
    /// Hash the body and return the hash
    #[arg(long, value_enum)]
    pub verify: Option<Verify>,
    /// Largest body accepted [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_body: Option<u64>,
    /// Wait this long before each response, as if for another service
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration_or_zero)]
    pub delay: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8082", value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    Blake3,
}
