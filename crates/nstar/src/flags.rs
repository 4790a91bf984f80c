//! The command line as typed: every flag, its default, and its one line of help.

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use load::{Sizes, Think};
use model::search::UsersRange;

use crate::{gate::Gate, values};

/// Finds N*, the load at which a server saturates, and names the resource that stops it.
#[derive(Debug, Parser)]
#[command(name = "nstar", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the run failed or no request completed; 2 usage; 3 a --gate was breached;
4 inconclusive (generator-limited, not steady, never bounded); 130/143 interrupted, partial report written.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a system of this repository, sweep it, report; with no name: the authenticated file server
    Lab(Lab),
    /// Raise the number of users until the server stops growing, and say what stops it
    Sweep(Sweep),
    /// Make one load and measure it
    Load(Load),
    /// Run one of the systems
    #[command(subcommand)]
    Serve(Serve),
    /// Share files with other peers: search, get, list, remove
    #[command(subcommand)]
    Share(Share),
    /// Show a run file again: as text, HTML, CSV or JSON
    Report(Report),
}

/// What to send and where.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// A URL, or a scenario file (.toml)
    #[arg(value_name = "URL|SCENARIO", required = true)]
    target: Option<String>,
    /// Base URL for a scenario, in place of its own
    #[arg(long, value_name = "URL")]
    pub base: Option<String>,
    /// A header to send, `Name: value`; may be given again
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Request method
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Request body, or @FILE to read it from a file
    #[arg(short = 'b', long, value_name = "BODY|@FILE")]
    pub body: Option<String>,
    /// Request body of so many bytes that do not compress; of several sizes (`100KB,1MB`) each request draws one
    #[arg(long, value_name = "SIZE[,SIZE..]", conflicts_with = "body", value_parser = values::sizes)]
    pub body_size: Option<Sizes>,
    /// Status that counts as success; may be given again [default: 200 to 399]
    #[arg(long = "expect", value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub expect: Vec<u16>,
    /// What the body of every response must be, or @FILE to read it from a file; others count as errors
    #[arg(long, value_name = "BODY|@FILE")]
    pub verify: Option<String>,
    /// Another weight for a request of the scenario, such as book=50; may be given again
    #[arg(long = "weight", value_name = "REQUEST=WEIGHT", value_parser = values::weight)]
    pub weights: Vec<(String, u32)>,
    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    #[command(flatten)]
    pub drive: Drive,
}

impl Target {
    /// What was given; nothing only where another flag makes it needless.
    pub(crate) fn name(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }
}

/// How the load is made.
#[derive(Debug, Args)]
pub(crate) struct Drive {
    /// Time a user waits between a response and its next request; `exponential:TIME` draws it with this mean
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::think)]
    pub think: Think,
    /// Whether a user keeps its connection or opens one per request
    #[arg(long, value_enum, default_value_t = Connections::Kept)]
    pub connections: Connections,
    /// A request that takes longer counts as timed out
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub timeout: Duration,
    /// Generator threads [default: one per processor it may use]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Processors for the generator, such as 1 or 0-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = processors)]
    pub cpus: Option<Processors>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// With too few descriptors for the users asked for, run with as many as there are
    #[arg(long)]
    pub fewer_users: bool,
}

/// A list of processor numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Processors(pub Vec<usize>);

fn processors(text: &str) -> Result<Processors, String> {
    values::processors(text).map(Processors)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Connections {
    Kept,
    PerRequest,
}

/// Where the answer goes.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print the run file on stdout in place of the text
    #[arg(short = 'j', long)]
    pub json: bool,
    /// No progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    /// A bound to keep, such as 'throughput>=1000' or 'p99<=20ms' (exit 3 if breached); may be given again
    #[arg(long = "gate", value_name = "GATE")]
    pub gates: Vec<Gate>,
}

#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub target: Target,
    /// Users: a range to search, or a list to run as it is
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", default_value = "1..1024", value_parser = values::users_range)]
    pub users: UsersRange,
    /// Longest time to spend on one number of users
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", default_value = "6s", value_parser = values::duration)]
    pub duration: Duration,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    #[command(flatten)]
    pub show: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub target: Target,
    /// Users; in an open loop, connections at most [default there: 256]
    #[arg(short = 'c', long, value_name = "N", default_value = "1", default_value_if("rate", clap::builder::ArgPredicate::IsPresent, "256"), value_parser = values::users)]
    pub users: u32,
    /// Stop after this time [default: 10s unless -n or --total]
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// Stop when every user has made this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with_all = ["duration", "total"])]
    pub requests: Option<u64>,
    /// Stop after this many requests in all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "duration")]
    pub total: Option<u64>,
    /// Open loop: requests per second in all, whether or not earlier ones have come back
    #[arg(short = 'R', long, value_name = "PER_SECOND", value_parser = values::rate)]
    #[arg(conflicts_with_all = ["requests", "think"])]
    pub rate: Option<f64>,
    /// Drive a built-in null server instead, and say what the generator can do on this host
    #[arg(long, conflicts_with_all = ["target", "users", "requests", "total", "rate", "output", "json", "gates"])]
    pub ceiling: bool,
    /// Run file to write [default: none]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub show: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// An experiment: a name from --list, or a file (.toml)
    #[arg(default_value = lab::experiment::DEFAULT)]
    pub experiment: String,
    /// List the experiments that come with nstar
    #[arg(long)]
    pub list: bool,
    /// Users, in place of the experiment's own
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", value_parser = values::users_range)]
    pub users: Option<UsersRange>,
    /// Longest time to spend on one number of users, in place of the experiment's own
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// Concurrency model of the systems, where the experiment does not vary it [default: epoll]
    #[arg(long, value_name = "MODEL")]
    pub engine: Option<engine::Model>,
    /// Let generator and systems share all processors
    #[arg(long)]
    pub share_cores: bool,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    #[command(flatten)]
    pub show: Output,
}

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

/// How a server runs.
#[derive(Debug, Args)]
pub(crate) struct Server {
    #[command(flatten)]
    pub concurrency: Concurrency,
    #[command(flatten)]
    pub encryption: Encryption,
    /// Connections served at one time; more wait in the listen queue
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,
    /// Processors for the server, such as 1 or 0-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = processors)]
    pub cpus: Option<Processors>,
    /// How long requests in flight may still take after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub drain: Duration,
    /// Stop when stdin closes, so that a server never outlives the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
    /// Log every request on stderr
    #[arg(long)]
    pub access_log: bool,
}

/// TLS, where it is asked for.
#[derive(Debug, Args)]
pub(crate) struct Encryption {
    /// Serve over TLS with the certificate in this file (PEM), followed there by those that lead to its authority
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// File of the certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
}

/// The concurrency model, and what some of them are told.
#[derive(Debug, Args)]
pub(crate) struct Concurrency {
    /// Concurrency model, or several: the first that can run here
    #[arg(long, value_name = "MODEL[,MODEL]", default_value = "epoll", value_delimiter = ',')]
    pub engine: Vec<engine::Model>,
    /// Event loops, for the models that have them [default: one per processor it may use]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub loops: Option<u16>,
    /// Threads of pool, or processes of prefork [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub workers: Option<u16>,
    /// Connections that may wait for a worker of pool [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub queue: Option<u32>,
    /// What becomes of connections when the queue is full: backlog (they wait in the kernel), 503, or reset
    /// [default: backlog]
    #[arg(long, value_name = "POLICY")]
    pub overload: Option<engine::Overload>,
    /// Drop connections that have waited longer for a worker, or whose client has gone [default: none]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub queue_deadline: Option<Duration>,
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
    /// How long verified credentials are remembered; 0 asks every time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::duration_or_zero)]
    pub auth_cache: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
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
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = values::duration)]
    pub upload_life: Duration,
    /// What a user may keep in users/NAME whose account does not say [default: what the disk holds]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub quota: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Accounts {
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", default_value = "accounts.db")]
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
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

/// What a database server wants to know.
#[derive(Debug, Args)]
pub(crate) struct DatabaseLogin {
    /// File of the database's password: in --database others on this machine can see it. Without this flag the
    /// environment may have it, in NSTAR_DATABASE_PASSWORD
    #[arg(long, value_name = "FILE")]
    pub database_password_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Booking {
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", default_value = "booking.db")]
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
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Index {
    /// The database: an SQLite file, made if it is not there, or mysql://USER:PASSWORD@HOST/DATABASE, or postgres://..
    #[arg(long, value_name = "PATH|URL", default_value = "index.db")]
    pub database: store::Database,
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// How long what a peer registered stays, unless the peer renews it
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::life)]
    pub life: Duration,
    /// File of the group's secret, made if it is not there: only peers that present it are answered
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8084")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Args)]
pub(crate) struct Peer {
    /// Folder whose files are shared, and where those go that are obtained
    #[arg(long, value_name = "DIR")]
    pub share: PathBuf,
    /// The index server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8084")]
    pub index: String,
    /// Folder for what the peer remembers, on the same file system [default: .nstar in the shared folder]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// File of the group's secret, made if it is not there: only members who present it are answered
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Where other peers can reach this one [default: where it listens]
    #[arg(long, value_name = "ADDR")]
    pub advertise: Option<SocketAddr>,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8085")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

/// What a person asks of a peer.
#[derive(Debug, Subcommand)]
pub(crate) enum Share {
    /// Find files by name, or by words of it
    Search(ShareSearch),
    /// Obtain a file, by name or by hash
    Get(ShareGet),
    /// List what the peer shares
    List(ShareList),
    /// Take a file out of sharing; it stays where it is
    Remove(ShareRemove),
}

/// Which peer is asked.
#[derive(Debug, Args)]
pub(crate) struct AskPeer {
    /// The peer to ask
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8085")]
    pub peer: String,
    /// File of the group's secret, where the group is closed
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShareSearch {
    /// A name, or up to 4 words of one
    #[arg(value_name = "NAME", required = true)]
    pub words: Vec<String>,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareGet {
    /// The name of a file, or the BLAKE3 hash of what is in it
    #[arg(value_name = "NAME|HASH")]
    pub what: String,
    /// File to write, which must not be there yet [default: only into the peer's shared folder]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareList {
    #[command(flatten)]
    pub peer: AskPeer,
}

#[derive(Debug, Args)]
pub(crate) struct ShareRemove {
    /// The name of the file
    pub name: String,
    /// Which, where several files have the name
    #[arg(long, value_name = "HASH")]
    pub hash: Option<share::Content>,
    #[command(flatten)]
    pub peer: AskPeer,
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
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::duration_or_zero)]
    pub delay: Duration,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8082")]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub server: Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    Blake3,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A run file, or that of a comparison
    pub run: PathBuf,
    /// How to show it
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// File to write [default: stdout]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Html,
    Csv,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        super::Flags::command().debug_assert();
    }
}
