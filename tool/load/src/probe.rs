//! One request before the load, to report in words what is wrong with the target; and each request once, to try a scenario.

mod check;

use std::io::{ErrorKind as Io, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use serde::{Deserialize, Serialize};
use wire::Limits;

use crate::error::{LoadError, ProbeError};
use crate::plan::{Connections, Plan};
use crate::requests::program::PreparedRequest;
use crate::requests::response::{Completed, Response};
use crate::requests::{Program, Rendered, Scratch};
use crate::transport::address::{first_that_accepts, resolve};
use crate::transport::tls::Tls;
use crate::url::Url;
use crate::values::stream::UserStream;

pub use check::check;

/// Separates the random stream of the probe from those of the users, so that what the probe creates does not collide with
/// what they create.
const SEED: u64 = 0x0070_726F_6265;

/// Number of body bytes to read.
const BODY_BYTES: u64 = 1 << 20;

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
    let server = Server::find(plan, base)?;
    let program = server.program();
    let request = program.first();
    // The user whose values it gets is the first that the load sends to this server. Values may be meant for one server
    // alone, and servers may share their data.
    let mut values = program.stream(plan.seed ^ SEED, user);
    let attempt = Attempt { server: &server, program: &program, request, body_bytes: BODY_BYTES };
    let began = Instant::now();
    let (answer, tls) = attempt.run(&mut values)?;
    Ok(ProbeReport {
        address: server.address,
        status: answer.status,
        status_expected: answer.status_expected,
        request,
        nothing_to_keep: answer.nothing_to_keep,
        elapsed: began.elapsed(),
        tls,
    })
}

/// Where requests are sent.
struct Server<'a> {
    plan: &'a Plan,
    base: &'a Url,
    address: SocketAddr,
    tls: Option<Tls>,
}

impl<'a> Server<'a> {
    fn find(plan: &'a Plan, base: &'a Url) -> Result<Self, LoadError> {
        let address =
            first_that_accepts(&resolve(base)?).ok_or(LoadError::Plan("the target has no address"))?;
        Ok(Server { plan, base, address, tls: Tls::for_url(base, plan.insecure)? })
    }

    fn program(&self) -> Program {
        let close = self.plan.connections == Connections::PerRequest;
        Program::new(&self.plan.scenario, self.base, close).of_member(&self.plan.member)
    }
}

/// One request that is under way.
struct Attempt<'a> {
    server: &'a Server<'a>,
    program: &'a Program,
    request: usize,
    /// How much of the body of the response is read.
    body_bytes: u64,
}

/// What came back.
struct Answer {
    status: u16,
    status_expected: bool,
    /// Whether the response was as expected but lacks the value that the scenario captures.
    nothing_to_keep: bool,
    /// Whether the body that was read passes the verification that the scenario asks for.
    as_expected: bool,
    /// Bytes of the body that were read.
    body_bytes: u64,
    /// Whether there was more of it.
    is_cut: bool,
    /// What the scenario captures from the response.
    value: Vec<u8>,
}

impl Attempt<'_> {
    /// Sends the request on a connection of its own. Returns the answer and the TLS version.
    fn run(&self, values: &mut UserStream) -> Result<(Answer, Option<String>), ProbeError> {
        let mut socket = self.connect()?;
        let Some(mut session) = self.server.tls.as_ref().and_then(Tls::connection) else {
            return Ok((self.exchange(&mut socket, values)?, None));
        };
        while session.is_handshaking() {
            session.complete_io(&mut socket).map_err(|error| self.tls_failed(&error))?;
        }
        let version = session.protocol_version().map(|version| format!("{version:?}"));
        let mut stream = rustls::Stream::<ClientConnection, TcpStream>::new(&mut session, &mut socket);
        Ok((self.exchange(&mut stream, values)?, version))
    }

    fn connect(&self) -> Result<TcpStream, ProbeError> {
        let Server { plan, address, .. } = *self.server;
        let socket = TcpStream::connect_timeout(&address, plan.timeout).map_err(|error| {
            let target = self.target();
            match error.kind() {
                Io::ConnectionRefused => ProbeError::Refused { target, address },
                _ => ProbeError::Unreachable { target, address, reason: error.to_string() },
            }
        })?;
        // These fail only for a time-out of zero, with which connecting fails.
        let timeout = Some(plan.timeout);
        let _ = socket.set_read_timeout(timeout).and(socket.set_write_timeout(timeout));
        Ok(socket)
    }

    fn exchange(
        &self,
        stream: &mut (impl Read + Write),
        values: &mut UserStream,
    ) -> Result<Answer, ProbeError> {
        let mut scratch = Scratch::default();
        let rendered = self.program.render(self.request, values, &mut scratch);
        let sent = send_whole(stream, &rendered, self.program);
        match (self.read_response(stream), sent) {
            // A server that answers early may have stopped reading the request.
            (Ok(answer), _) => Ok(answer),
            (Err(_), Err(error)) => Err(self.io_failed(&error)),
            (Err(error), Ok(())) => Err(error),
        }
    }

    fn read_response(&self, stream: &mut impl Read) -> Result<Answer, ProbeError> {
        let not_http = || ProbeError::NotHttp { target: self.target() };
        let asked = self.program.requests.get(self.request).ok_or_else(not_http)?;
        let mut response = Response::default();
        let mut buffer = vec![0; 64 * 1024];
        let mut inspected: u64 = 0;
        loop {
            let count = stream.read(&mut buffer).map_err(|error| self.io_failed(&error))?;
            let received = buffer.get(..count).unwrap_or_default();
            if inspected == 0 && is_tls_record(received) {
                return Err(ProbeError::NeedsTls { target: self.target() });
            }
            if count == 0 {
                let ended = response.end(asked).map_err(|_| ProbeError::Closed { target: self.target() })?;
                return Ok(Answer::whole(&ended, &mut response, asked));
            }
            match response.feed(received, asked, &Limits::default()).map_err(|_| not_http())? {
                Some(completed) => return Ok(Answer::whole(&completed, &mut response, asked)),
                None => inspected += count as u64,
            }
            // The head of a long response says enough.
            if let Some(status) = response.status().filter(|_| inspected >= self.body_bytes) {
                return Ok(Answer::cut(status, &response, asked));
            }
        }
    }

    fn io_failed(&self, error: &std::io::Error) -> ProbeError {
        let target = self.target();
        match error.kind() {
            Io::WouldBlock | Io::TimedOut => ProbeError::NoAnswer { target, after: self.server.plan.timeout },
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
        self.server.base.to_string()
    }
}

impl Answer {
    fn whole(completed: &Completed, response: &mut Response, asked: &PreparedRequest) -> Self {
        Answer {
            status: completed.status,
            status_expected: asked.expect.contains(completed.status),
            nothing_to_keep: response.lacks_value(asked),
            as_expected: completed.as_expected,
            body_bytes: completed.body_bytes,
            is_cut: false,
            value: response.value(asked).to_vec(),
        }
    }

    fn cut(status: u16, response: &Response, asked: &PreparedRequest) -> Self {
        Answer {
            status,
            status_expected: asked.expect.contains(status),
            nothing_to_keep: asked.capture.is_some(),
            as_expected: true,
            body_bytes: response.body_bytes(),
            is_cut: true,
            value: Vec::new(),
        }
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
