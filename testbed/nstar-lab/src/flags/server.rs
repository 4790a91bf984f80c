//! Flags that all servers share.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use nstar::{flags::Processors, values};

/// How a server runs.
#[derive(Debug, Args)]
pub(crate) struct Server {
    #[command(flatten)]
    pub concurrency: Concurrency,
    #[command(flatten)]
    pub encryption: Encryption,
    /// Connections served at once; more wait in the listen queue
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: u32,
    /// Processors for the server, such as 1 or 0-3 [default: any]
    #[arg(long, value_name = "LIST", value_parser = Processors::parse)]
    pub cpus: Option<Processors>,
    /// How long requests in flight may take after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub drain: Duration,
    /// Stop when stdin closes, so that a server never outlives the program that started it
    #[arg(long)]
    pub until_stdin_closes: bool,
    /// Log every request on stderr
    #[arg(long)]
    pub access_log: bool,
}

/// Proxies in front of a server that uses the addresses of its clients.
#[derive(Debug, Args)]
pub(crate) struct Behind {
    /// A proxy whose Forwarded or X-Forwarded-For header names the client; may be repeated
    #[arg(long = "trusted-proxy", value_name = "ADDR[/BITS]")]
    pub proxies: Vec<http_io::server::Network>,
}

/// TLS, if asked for.
#[derive(Debug, Args)]
pub(crate) struct Encryption {
    /// Serve over TLS with the certificate in this file (PEM), followed by its chain
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// File with the certificate's private key (PEM)
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
}

/// The concurrency model and its settings.
#[derive(Debug, Args)]
pub(crate) struct Concurrency {
    /// Concurrency model, or several of which the first that can run here is used
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
    /// What to do with connections when the queue is full: backlog (they wait in the kernel), 503, or reset
    /// [default: backlog]
    #[arg(long, value_name = "POLICY")]
    pub overload: Option<engine::Overload>,
    /// Drop connections that have waited longer for a worker, or whose client has gone [default: none]
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub queue_deadline: Option<Duration>,
}
