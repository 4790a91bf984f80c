//! Flags of the commands that make load: what to send and where, how, and where the answer goes.

use std::{path::PathBuf, time::Duration};

use analysis::search::UsersRange;
use clap::Args;
use import::Curl;
use load::{Connections, Sizes, Think};
use sweep::database::DatabaseUrl;

use super::{CiFiles, DatabaseLogin, Generate, Live, Observe, Profile, Repeat};
use crate::{
    gate::Gate,
    values::{self, Processors},
};

/// Flags of `nstar sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// What to send and where.
    #[command(flatten)]
    pub target: Target,
    /// Users: a range to search, or a list to run as given
    #[arg(short = 'c', long, value_name = "LO..HI|LIST", default_value = "1..1024", value_parser = values::users_range)]
    pub users: UsersRange,
    /// Longest time per number of users. The search takes 50s at most; more than 6s here lengthens that in proportion
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", default_value = "6s", value_parser = values::duration)]
    pub duration: Duration,
    /// A database behind the server, to ask who waits for its locks: mysql://USER:PASSWORD@HOST/DATABASE, or
    /// postgres://.. Needs its client: psql, mariadb or mysql
    #[arg(long, value_name = "URL", value_parser = values::Unshown::<DatabaseUrl>::default())]
    pub watch_database: Option<DatabaseUrl>,
    /// How to log in to that database.
    #[command(flatten)]
    pub login: DatabaseLogin,
    /// Where load is made.
    #[command(flatten)]
    pub generate: Generate,
    /// Where to observe besides.
    #[command(flatten)]
    pub observe: Observe,
    /// Test the verdict: slow each tier a little (SIGSTOP for 2 ms in 20; as root, a lower CPU quota or rate of a link where
    /// that is what is full) beyond N*, and see whether throughput follows
    #[arg(long)]
    pub confirm: bool,
    /// Whether to find where processor time goes.
    #[command(flatten)]
    pub profile: Profile,
    /// How often to measure.
    #[command(flatten)]
    pub repeat: Repeat,
    /// Where it is shown meanwhile.
    #[command(flatten)]
    pub live: Live,
    /// Run file to write; the report goes beside it as .html
    #[arg(short = 'o', long, value_name = "FILE", default_value = "run.json")]
    pub output: PathBuf,
    /// Where the answer goes.
    #[command(flatten)]
    pub show: Output,
    /// What CI shows.
    #[command(flatten)]
    pub ci: CiFiles,
}

/// Flags of `nstar load`.
#[derive(Debug, Args)]
pub struct Load {
    /// What to send and where.
    #[command(flatten)]
    pub target: Target,
    /// Users; in an open loop, the most connections [default there: 256]
    #[arg(short = 'c', long, value_name = "N", default_value = "1", default_value_if("rate", clap::builder::ArgPredicate::IsPresent, "256"), value_parser = values::users)]
    pub users: u32,
    /// Stop after this time [default: 10s unless -n or --total]
    #[arg(short = 'd', long, short_alias = 'z', value_name = "TIME", value_parser = values::duration)]
    pub duration: Option<Duration>,
    /// Stop when every user has made this many requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with_all = ["duration", "total"])]
    pub requests: Option<u64>,
    /// Stop after this many requests in total
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "duration")]
    pub total: Option<u64>,
    /// Open loop: requests per second in total, whether or not earlier ones were answered
    #[arg(short = 'R', long, value_name = "PER_SECOND", value_parser = values::rate)]
    #[arg(conflicts_with_all = ["requests", "think"])]
    pub rate: Option<f64>,
    /// Drive a built-in null server instead, and print what the generator can do on this host
    #[arg(long, conflicts_with_all = ["target", "users", "requests", "total", "rate", "output", "json", "gates", "markdown", "elsewhere"])]
    pub ceiling: bool,
    /// Whether to find where processor time goes.
    #[command(flatten)]
    pub profile: Profile,
    /// Run file to write [default: none]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where load is made.
    #[command(flatten)]
    pub generate: Generate,
    /// Where to observe besides.
    #[command(flatten)]
    pub observe: Observe,
    /// Where the answer goes.
    #[command(flatten)]
    pub show: Output,
    /// What CI shows.
    #[command(flatten)]
    pub ci: CiFiles,
}

/// What to send and where.
#[derive(Debug, Args)]
pub struct Target {
    /// A URL, or a scenario file (.toml)
    #[arg(value_name = "URL|SCENARIO", required = true)]
    target: Option<String>,
    /// Send what this curl command line sends, in place of URL and flags
    #[arg(long, value_name = "COMMAND", value_parser = values::Unshown::<Curl>::default())]
    #[arg(conflicts_with_all = ["target", "base", "headers", "method", "body", "body_size", "weights"])]
    pub from_curl: Option<Curl>,
    /// Base URL for a scenario, in place of its own
    #[arg(long, value_name = "URL")]
    pub base: Option<String>,
    /// A header to send, `Name: value`; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Request method
    #[arg(short = 'm', long, value_name = "METHOD")]
    pub method: Option<String>,
    /// Request body, or @FILE to read it from a file
    #[arg(short = 'b', long, value_name = "BODY|@FILE")]
    pub body: Option<String>,
    /// Request body of this many bytes that do not compress; of several sizes (`100KB,1MB`) each user sends all equally often
    #[arg(long, value_name = "SIZE[,SIZE..]", conflicts_with = "body", value_parser = values::sizes)]
    pub body_size: Option<Sizes>,
    /// Status that counts as success; may be repeated [default: 200 to 399]
    #[arg(long = "expect", value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub expect: Vec<u16>,
    /// Expected body of every response, or @FILE to read it from a file; any other counts as an error
    #[arg(long, value_name = "BODY|@FILE")]
    pub verify: Option<String>,
    /// A new weight for a request of the scenario, such as book=50; may be repeated
    #[arg(long = "weight", value_name = "REQUEST=WEIGHT", value_parser = values::weight)]
    pub weights: Vec<(String, u32)>,
    /// Do not check the server's certificate
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// How the load is made.
    #[command(flatten)]
    pub drive: Drive,
}

impl Target {
    /// The URL or scenario; empty only where another flag makes it needless.
    pub fn name(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }
}

/// How the load is made.
#[derive(Debug, Args)]
pub struct Drive {
    /// Time a user waits between a response and its next request; `exponential:TIME` draws it with this mean
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::think)]
    pub think: Think,
    /// Whether a user keeps its connection or opens one per request
    #[arg(long, default_value_t = Connections::Kept, value_parser = values::connections())]
    pub connections: Connections,
    /// A request that takes longer counts as timed out
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub timeout: Duration,
    /// Generator threads [default: one per processor it may use]
    #[arg(short = 't', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(load::THREADS_MAX)))]
    pub threads: Option<u16>,
    /// Processors for the generator, such as 1 or 0-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// With too few descriptors for the users asked for, here or at a generator, run with fewer users
    #[arg(long)]
    pub fewer_users: bool,
}

/// Where the answer goes.
#[derive(Debug, Clone, Args)]
pub struct Output {
    /// Print the run file on stdout instead of text
    #[arg(short = 'j', long)]
    pub json: bool,
    /// Show no progress on stderr
    #[arg(long)]
    pub no_progress: bool,
    /// A bound to keep, such as 'throughput>=1000' or 'p99<=20ms' (exit 3 if breached); may be repeated
    #[arg(long = "gate", value_name = "GATE")]
    pub gates: Vec<Gate>,
}
