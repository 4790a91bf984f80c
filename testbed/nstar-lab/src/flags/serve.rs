//! Flags of `nstar serve`: the systems, one by one.

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
    /// The file server: sends a file to a user the accounts server knows
    Files(Files),
    /// The accounts server: who a user is, kept durably
    Accounts(Accounts),
    /// Room booking: a room is promised once, and the promise is kept
    Booking(Booking),
    /// The upload sink: takes whatever is sent, and keeps nothing
    Sink(Sink),
    /// The central index of file sharing: peers tell it what they share, and ask it who has what
    Index(Index),
    /// A peer of file sharing: shares a folder, and takes from other peers what it is asked to
    Peer(Peer),
}

#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Folder whose files are served
    #[arg(long, value_name = "DIR")]
    pub root: PathBuf,
    /// Who knows the users: URL of an accounts server (http or https), sqlite:PATH for both tiers in this process, or none
    #[arg(long, value_name = "URL|sqlite:PATH|none")]
    pub accounts: String,
    /// Certificates (PEM) that vouch for an accounts server over https [default: those this machine trusts]
    #[arg(long, value_name = "FILE")]
    pub accounts_ca: Option<PathBuf>,
    /// File of the accounts server's service token: where it asks for one, it answers nobody else
    #[arg(long, value_name = "FILE")]
    pub accounts_token_file: Option<PathBuf>,
    /// Who may make accounts, beside administrators, where --accounts is sqlite:PATH [default: open]
    #[arg(long, value_enum)]
    pub registration: Option<Registration>,
    /// How long verified credentials are remembered; 0 asks every time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration_or_zero)]
    pub auth_cache: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = values::listen)]
    pub listen: SocketAddr,
    /// Serve without accounts on an address that others can reach
    #[arg(long)]
    pub open_to_all: bool,
    #[command(flatten)]
    pub uploads: FilesUploads,
    /// Rules (TOML) of who may read and write what, beyond: users write in users/NAME, which is theirs alone, and read
    /// the rest
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
    /// Take no uploads
    #[arg(long, conflicts_with = "open_uploads")]
    pub read_only: bool,
    /// Without accounts, take uploads from everybody who reaches the server
    #[arg(long)]
    pub open_uploads: bool,
    /// Longest upload
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = values::size)]
    pub max_upload: u64,
    /// How long an upload that was broken off can be resumed
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = duration)]
    pub upload_life: Duration,
    /// What a user may keep in users/NAME whose account does not say [default: what the disk holds]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub quota: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Accounts {
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "accounts.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// File of the administrator's token, made at the first start
    /// [default: DATABASE.admin; accounts.admin where the database is a server's]
    #[arg(long, value_name = "FILE")]
    pub admin_token: Option<PathBuf>,
    /// Answer only those who know the service token in this file, made at the first start. Without this flag it is
    /// DATABASE.service, and need not be known as long as only this machine can reach the server
    #[arg(long, value_name = "FILE")]
    pub service_token_file: Option<PathBuf>,
    /// Who may make accounts, beside administrators
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
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "booking.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// File of the key that hides identity numbers, made at the first start; the administrator's token lies beside
    /// it, ending in .admin [default: DATABASE.key; booking.key where the database is a server's]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Rooms of a new database [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub rooms: Option<u32>,
    /// Take Aadhaar numbers that begin with 0 or 1: nobody has them, so they are for tests and loads
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
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", value_parser = Unshown::<store::Database>::default(), default_value = "index.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// How long what a peer registered stays, unless the peer renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::life)]
    pub life: Duration,
    /// File of the group's secret, made if it is not there: only peers that present it are answered. With --allow no peer
    /// needs it: it is for whoever runs the index
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    #[command(flatten)]
    pub allowed: Allowed,
    /// File of the index's own key, made if it is not there [default: DATABASE.identity; index.identity where the database
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
    /// Folder whose files are shared, and where those go that are obtained
    #[arg(long, value_name = "DIR")]
    pub share: PathBuf,
    /// The index server; https:// where it speaks TLS [default: 127.0.0.1:8084, over TLS where this peer speaks it]
    #[arg(long, value_name = "URL", conflicts_with = "spread")]
    pub index: Option<String>,
    /// Certificates (PEM) that vouch for the index and, with --tls-cert, for other peers, each at its address
    /// [default: those this machine trusts]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    #[command(flatten)]
    pub spread: PeerIndex,
    /// Folder for what the peer remembers, on the same file system [default: .nstar in the shared folder]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// File of the group's secret, made if it is not there: only members who present it are answered. With --allow it is
    /// the owner's own, for the page and `nstar share`
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

/// The members of a group that is closed by keys.
#[derive(Debug, Args)]
pub(crate) struct Allowed {
    /// Key of a member, as `nstar share key` prints it; may be repeated. All connections are encrypted then, and both ends
    /// prove their keys: nobody else is answered, or asked
    #[arg(long = "allow", value_name = "KEY")]
    pub keys: Vec<tls::PublicKey>,
    /// File of members' keys, one a line; what follows # is a comment
    #[arg(long, value_name = "FILE")]
    pub allow_file: Option<PathBuf>,
}

impl Allowed {
    /// Whether the group is closed by keys.
    pub(crate) fn is_given(&self) -> bool {
        !self.keys.is_empty() || self.allow_file.is_some()
    }
}

/// Who may make accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Registration {
    /// Everybody, few at a time from one address
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
    /// No index server: the peers keep the index among themselves (a distributed hash table)
    #[arg(long, group = "spread")]
    pub dht: bool,
    /// No index server: the peers keep the index among themselves, and each knows all others (rendezvous hashing, for up to
    /// 1 000 peers): a search asks one
    #[arg(long, group = "spread")]
    pub partitioned: bool,
    /// Where another peer listens for peers; may be repeated [default: peers are looked for by multicast, where others
    /// can reach this one]
    #[arg(long, value_name = "ADDR", value_parser = values::contact, requires = "spread")]
    pub bootstrap: Vec<SocketAddr>,
    /// Address to listen on for other peers
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8086", value_parser = values::listen, requires = "spread")]
    pub dht_listen: SocketAddr,
    /// How long other peers keep what this one told them, unless it renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::life, requires = "spread")]
    pub life: Duration,
}

impl PeerIndex {
    /// Which of the peers keep what, where they keep the index themselves.
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
    /// No HTTP: take bytes until the client closes its side, so that `nc` is a client
    #[arg(long, conflicts_with_all = ["verify", "delay", "max_body"])]
    pub raw: bool,
    /// Bytes read at a time
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = values::chunk)]
    pub chunk: NonZeroUsize,
    /// Hash what comes, and tell the hash in the answer
    #[arg(long, value_enum)]
    pub verify: Option<Verify>,
    /// Longest body accepted [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_body: Option<u64>,
    /// Wait so long before each answer, as a server does that waits for something else
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
