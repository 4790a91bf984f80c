//! One request before the load, to report in words what is wrong with the target.

use std::io::{ErrorKind as Io, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use serde::{Deserialize, Serialize};
use wire::Limits;

use crate::error::{LoadError, ProbeError};
use crate::plan::{Connections, Plan};
use crate::requests::response::Response;
use crate::requests::{Program, Rendered, Scratch};
use crate::transport::address::{first_that_accepts, resolve};
use crate::transport::tls::Tls;
use crate::url::Url;

/// Separates the random stream of the probe from those of the users, so that what the probe creates does not collide with
/// what they create.
const SEED: u64 = 0x0070_726F_6265;

/// Number of body bytes to read.
const BODY_BYTES: usize = 1 << 20;

/// The outcome of the probe of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// The address that answered.
    pub address: SocketAddr,
    /// Status of the response.
    pub status: u16,
    /// Whether the scenario expects it.
    pub status_expected: bool,
    /// Index of the request in the scenario: the first that takes no captured value.
    pub request: usize,
    /// Whether the response was as expected but lacks the value that the scenario captures.
    pub nothing_to_keep: bool,
    /// Time from connecting to the response, TLS handshake included.
    pub elapsed: Duration,
    /// The TLS version, such as `TLSv1_3`.
    pub tls: Option<String>,
}

/// Sends one request to each server of the plan, in order, and reports the outcomes.
///
/// # Errors
/// [`LoadError::Probe`] if a server sends no response, and the errors of [`crate::Generator::start`].
pub fn probe(plan: &Plan) -> Result<Vec<ProbeReport>, LoadError> {
    let bases = plan.scenario.bases();
    if bases.is_empty() {
        return Err(LoadError::NoBase { scenario: plan.scenario.name().into() });
    }
    let user = |server| plan.member.first_user_of(server, bases.len());
    bases.iter().zip(0..).map(|(base, server)| probe_one(plan, base, user(server))).collect()
}

fn probe_one(plan: &Plan, base: &Url, user: u32) -> Result<ProbeReport, LoadError> {
    let address = first_that_accepts(&resolve(base)?).ok_or(LoadError::Plan("the target has no address"))?;
    let tls = Tls::for_url(base, plan.insecure)?;
    let attempt = Attempt { plan, base, user, address, began: Instant::now() };
    Ok(attempt.run(tls.as_ref())?)
}

/// A probe that is under way.
struct Attempt<'a> {
    plan: &'a Plan,
    base: &'a Url,
    /// The user whose values it gets: the first that the load sends to this server. Values may be meant for one server alone,
    /// and servers may share their data.
    user: u32,
    address: SocketAddr,
    began: Instant,
}

impl Attempt<'_> {
    fn run(&self, tls: Option<&Tls>) -> Result<ProbeReport, ProbeError> {
        let mut socket = self.connect()?;
        let Some(mut session) = tls.and_then(Tls::connection) else {
            return self.exchange(&mut socket, None);
        };
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|error| self.tls_failed(&error))?;
        }
        let version = session.protocol_version().map(|version| format!("{version:?}"));
        let mut stream = rustls::Stream::<ClientConnection, TcpStream>::new(&mut session, &mut socket);
        self.exchange(&mut stream, version)
    }

    fn connect(&self) -> Result<TcpStream, ProbeError> {
        let socket = TcpStream::connect_timeout(&self.address, self.plan.timeout).map_err(|error| {
            let (target, address) = (self.target(), self.address);
            match error.kind() {
                Io::ConnectionRefused => ProbeError::Refused { target, address },
                _ => ProbeError::Unreachable { target, address, reason: error.to_string() },
            }
        })?;
        // These fail only for a time-out of zero, with which connecting fails.
        let timeout = Some(self.plan.timeout);
        let _ = socket.set_read_timeout(timeout).and(socket.set_write_timeout(timeout));
        Ok(socket)
    }

    fn exchange(
        &self,
        stream: &mut (impl Read + Write),
        tls: Option<String>,
    ) -> Result<ProbeReport, ProbeError> {
        let close = self.plan.connections == Connections::PerRequest;
        let program = Program::new(&self.plan.scenario, self.base, close).of_member(&self.plan.member);
        let mut values = program.stream(self.plan.seed ^ SEED, self.user);
        let mut scratch = Scratch::default();
        let rendered = program.render(program.first(), &mut values, &mut scratch);
        let sent = send_whole(stream, &rendered, &program);
        let (status, nothing_to_keep) = match (self.read_response(stream, &program), sent) {
            // A server that answers early may have stopped reading the request.
            (Ok(answer), _) => answer,
            (Err(_), Err(error)) => return Err(self.io_failed(&error)),
            (Err(error), Ok(())) => return Err(error),
        };
        Ok(ProbeReport {
            address: self.address,
            status,
            status_expected: program
                .requests
                .get(program.first())
                .is_some_and(|asked| asked.expect.contains(status)),
            request: program.first(),
            nothing_to_keep,
            elapsed: self.began.elapsed(),
            tls,
        })
    }

    /// Reads the response. Returns its status, and whether it lacks a value to capture.
    fn read_response(&self, stream: &mut impl Read, program: &Program) -> Result<(u16, bool), ProbeError> {
        let not_http = || ProbeError::NotHttp { target: self.target() };
        let asked = program.requests.get(program.first()).ok_or_else(not_http)?;
        let mut response = Response::default();
        let mut buffer = vec![0; 64 * 1024];
        let mut inspected = 0;
        loop {
            let count = stream.read(&mut buffer).map_err(|error| self.io_failed(&error))?;
            let received = buffer.get(..count).unwrap_or_default();
            if inspected == 0 && is_tls_record(received) {
                return Err(ProbeError::NeedsTls { target: self.target() });
            }
            if count == 0 {
                let ended = response.end(asked).map_err(|_| ProbeError::Closed { target: self.target() })?;
                return Ok((ended.status, response.lacks_value(asked)));
            }
            match response.feed(received, asked, &Limits::default()).map_err(|_| not_http())? {
                Some(completed) => return Ok((completed.status, response.lacks_value(asked))),
                None => inspected += count,
            }
            // The head of a long response says enough.
            if let Some(status) = response.status().filter(|_| inspected >= BODY_BYTES) {
                return Ok((status, asked.capture.is_some()));
            }
        }
    }

    fn io_failed(&self, error: &std::io::Error) -> ProbeError {
        let target = self.target();
        match error.kind() {
            Io::WouldBlock | Io::TimedOut => ProbeError::NoAnswer { target, after: self.plan.timeout },
            Io::InvalidData => ProbeError::Tls { target, reason: error.to_string() },
            _ => ProbeError::Closed { target },
        }
    }

    fn tls_failed(&self, error: &std::io::Error) -> ProbeError {
        let target = self.target();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(rustls::Error::InvalidMessage(_)) => ProbeError::NotTls { target },
            Some(reason) => ProbeError::Tls { target, reason: reason.to_string() },
            None => self.io_failed(error),
        }
    }

    fn target(&self) -> String {
        self.base.to_string()
    }
}

fn send_whole(stream: &mut impl Write, rendered: &Rendered<'_>, program: &Program) -> std::io::Result<()> {
    stream.write_all(rendered.bytes)?;
    let mut sent = rendered.bytes.len() as u64;
    while sent < rendered.whole {
        let piece = program.fill(sent - rendered.head, rendered.whole - sent);
        stream.write_all(piece)?;
        sent += piece.len() as u64;
    }
    Ok(())
}

/// Whether bytes start with a TLS record: an alert or a handshake, major version 3 (RFC 8446 section 5.1).
fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}
