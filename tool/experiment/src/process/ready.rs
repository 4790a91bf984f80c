//! How a program is known to be ready.

use std::{
    fs,
    net::{IpAddr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use analysis::comparison::ReadySign;
use load::{Plan, RequestTemplate, Scenario, Url, probe};

/// How long one attempt to reach it may take.
const ATTEMPT: Duration = Duration::from_millis(500);

/// A sign, with every name filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sign {
    Started,
    Line(String),
    Port(IpAddr, u16),
    Http(String),
}

impl Sign {
    /// Whether the sign is there now; `log` holds what the program has printed.
    pub(super) fn is_there(&self, log: &Path) -> bool {
        match self {
            Sign::Started => true,
            Sign::Line(line) => {
                fs::read(log).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(line.as_str()))
            }
            Sign::Port(address, port) => {
                TcpStream::connect_timeout(&SocketAddr::new(*address, *port), ATTEMPT).is_ok()
            }
            Sign::Http(url) => url.parse().is_ok_and(|url| answers(&url)),
        }
    }

    /// Whether another program could give it.
    pub(super) fn is_of_the_network(&self) -> bool {
        matches!(self, Sign::Port(..) | Sign::Http(_))
    }

    /// The sign as a report has it.
    pub(super) fn fact(&self) -> ReadySign {
        match self {
            Sign::Started => ReadySign::Running,
            Sign::Line(line) => ReadySign::Line(line.clone()),
            Sign::Port(address, port) => ReadySign::Connections(SocketAddr::new(*address, *port)),
            Sign::Http(url) => ReadySign::Answers(url.clone()),
        }
    }
}

fn answers(url: &Url) -> bool {
    let request = RequestTemplate { method: "GET".into(), ..RequestTemplate::default() };
    let Ok(scenario) = Scenario::single(url, request) else { return false };
    let plan = Plan { timeout: ATTEMPT, insecure: true, ..Plan::new(scenario) };
    probe(&plan).is_ok_and(|reports| reports.iter().all(|report| report.status_expected))
}
