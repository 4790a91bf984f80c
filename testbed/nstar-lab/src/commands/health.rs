//! `nstar-lab health`: asks a server whether it is up, for whoever restarts servers that are not.

use std::time::Duration;

use clap::Args;
use http_io::{
    Method,
    client::{BlockingClient, ClientError, ClientOptions, Request, Scheme, ServerUrl},
};
use nstar::{
    exit::{Exit, Failure},
    output,
    values::duration,
};

/// The port of a server whose URL has none.
const PORT: u16 = 80;

/// A server that is asked.
#[derive(Debug, Args)]
pub(crate) struct Health {
    /// The server
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// How long it may take to answer
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub timeout: Duration,
}

/// Prints what the server says of itself.
///
/// # Errors
/// When it does not answer, or is not well.
pub(crate) fn run(flags: &Health) -> Result<Exit, Failure> {
    // Without the URL itself, which may hold a password.
    let url = ServerUrl::parse(&flags.server)
        .map_err(|error| Failure::usage(format!("URL: {error}; try http://127.0.0.1:8080")))?;
    if url.scheme == Some(Scheme::Https) {
        return Err(Failure::usage(
            "URL: a server that speaks TLS alone is asked over http too, and says so",
        ));
    }
    let address = url.address(url.port.unwrap_or(PORT)).map_err(Failure::failed)?;
    let options =
        ClientOptions { connect_timeout: flags.timeout, timeout: flags.timeout, ..Default::default() };
    let answer = BlockingClient::new(address, options).send(&Request::new(Method::Get, "/healthz"));
    let answer = answer.map_err(|error| match error {
        ClientError::Connect { .. } => Failure::failed(error),
        _ => Failure::failed(format!("{address}: {error}")),
    })?;
    match answer.status() {
        200 => output::print(&String::from_utf8_lossy(answer.body()))?,
        // Nobody can prove who it is on a loopback address; that it answers is enough.
        _ if answer.wants_tls() => output::print("ok, over TLS\n")?,
        status => {
            return Err(Failure::failed(format!("{address} is up but not well: /healthz gave {status}")));
        }
    }
    Ok(Exit::Done)
}
