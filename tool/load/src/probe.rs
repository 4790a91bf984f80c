//! One request before the load, to say in words what is wrong with the target if something is.

use std::io::{ErrorKind as Io, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustls::ClientConnection;
use wire::Limits;

use crate::error::LoadError;
use crate::plan::{Connections, Plan};
use crate::render::{Program, Rendered, Scratch};
use crate::resolve::{first_that_accepts, resolve};
use crate::response::Response;
use crate::transport::tls::Tls;
use crate::url::Url;

/// Set apart from the run's own streams, so that what the probe creates does not stand in the run's way.
const SEED: u64 = 0x0070_726F_6265;

/// How much of a body is looked at.
const BODY_BYTES: usize = 1 << 20;

/// What one request met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// The address that answered.
    pub address: SocketAddr,
    /// Status of the response.
    pub status: u16,
    /// Whether the scenario expects it.
    pub status_expected: bool,
    /// Which of the scenario's requests it was: the first that takes no kept value.
    pub request: usize,
    /// Whether it was as expected, but holds nothing of what the scenario keeps of it.
    pub nothing_to_keep: bool,
    /// Time from connecting to the response, TLS handshake included.
    pub elapsed: Duration,
    /// The TLS version spoken, such as `TLSv1_3`.
    pub tls: Option<String>,
}

/// Why a target gave no response to one request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// Nobody listens.
    #[error("{target}: connection refused: no server listens on {address}; start it, or check the port")]
    Refused {
        /// The URL.
        target: String,
        /// Where the connection went.
        address: SocketAddr,
    },
    /// No way to the host.
    #[error("{target}: {address} cannot be reached ({reason}): check the address and the network")]
    Unreachable {
        /// The URL.
        target: String,
        /// Where the connection should have gone.
        address: SocketAddr,
        /// What the operating system said.
        reason: String,
    },
    /// The TLS handshake failed because the peer does not speak TLS.
    #[error("{target}: the server does not speak TLS on this port: try http:// instead of https://")]
    NotTls {
        /// The URL.
        target: String,
    },
    /// The peer answered plain HTTP with a TLS record.
    #[error("{target}: the server speaks TLS on this port: try https:// instead of http://")]
    NeedsTls {
        /// The URL.
        target: String,
    },
    /// The TLS handshake failed for another reason, mostly a certificate that is not trusted.
    #[error("{target}: TLS failed: {reason}; to accept any certificate, use -k")]
    Tls {
        /// The URL.
        target: String,
        /// What the TLS library said.
        reason: String,
    },
    /// The peer sent something that is not HTTP.
    #[error("{target}: the server answered, but not in HTTP/1.1: is this the right port?")]
    NotHttp {
        /// The URL.
        target: String,
    },
    /// The peer closed without a response.
    #[error("{target}: the server closed the connection before its response was complete")]
    Closed {
        /// The URL.
        target: String,
    },
    /// The peer accepted and said nothing.
    #[error("{target}: no response within {} s: the server accepts connections but does not answer", after.as_secs_f64())]
    NoAnswer {
        /// The URL.
        target: String,
        /// How long it was waited for.
        after: Duration,
    },
}

/// Sends one request of the plan to each of its servers, in order, and tells what came back.
///
/// # Errors
/// [`LoadError::Probe`] where no response came; otherwise as [`crate::Generator::start`].
pub fn probe(plan: &Plan) -> Result<Vec<ProbeReport>, LoadError> {
    let bases = plan.scenario.bases();
    if bases.is_empty() {
        return Err(LoadError::NoBase { scenario: plan.scenario.name().into() });
    }
    bases.iter().zip(0..).map(|(base, number)| probe_one(plan, base, number)).collect()
}

fn probe_one(plan: &Plan, base: &Url, number: u64) -> Result<ProbeReport, LoadError> {
    let address = first_that_accepts(&resolve(base)?).ok_or(LoadError::Plan("the target has no address"))?;
    let tls = Tls::for_url(base, plan.insecure)?;
    let attempt = Attempt { plan, base, number, address, began: Instant::now() };
    Ok(attempt.run(tls.as_ref())?)
}

/// One probe under way.
struct Attempt<'a> {
    plan: &'a Plan,
    base: &'a Url,
    /// Of the server. What is made up for one may not be what another was sent, as they may share what they keep.
    number: u64,
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
        // They fail on a time-out of zero only, which no connect survives.
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
        let program = Program::new(&self.plan.scenario, self.base, close);
        let mut values = program.stream((self.plan.seed ^ SEED).wrapping_add(self.number), 0);
        let mut scratch = Scratch::default();
        let rendered = program.render(program.first(), &mut values, &mut scratch);
        let sent = send_whole(stream, &rendered, &program);
        let (status, nothing_to_keep) = match (self.read_response(stream, &program), sent) {
            // Whoever answers before the request is whole may have stopped reading it.
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

    /// Its status, and whether it lacks what a user would keep of it.
    fn read_response(&self, stream: &mut impl Read, program: &Program) -> Result<(u16, bool), ProbeError> {
        let not_http = || ProbeError::NotHttp { target: self.target() };
        let asked = program.requests.get(program.first()).ok_or_else(not_http)?;
        let mut response = Response::default();
        let mut buffer = vec![0; 64 * 1024];
        let mut looked_at = 0;
        loop {
            let count = stream.read(&mut buffer).map_err(|error| self.io_failed(&error))?;
            let received = buffer.get(..count).unwrap_or_default();
            if looked_at == 0 && is_tls_record(received) {
                return Err(ProbeError::NeedsTls { target: self.target() });
            }
            if count == 0 {
                let ended = response.end(asked).map_err(|_| ProbeError::Closed { target: self.target() })?;
                return Ok((ended.status, response.lacks_value(asked)));
            }
            match response.feed(received, asked, &Limits::default()).map_err(|_| not_http())? {
                Some(completed) => return Ok((completed.status, response.lacks_value(asked))),
                None => looked_at += count,
            }
            // The head of a long body has told what there is to know.
            if let Some(status) = response.status().filter(|_| looked_at >= BODY_BYTES) {
                return Ok((status, asked.keep.is_some()));
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

/// Whether bytes begin with a TLS record: alert or handshake, major version 3 (RFC 8446 section 5.1).
fn is_tls_record(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15 | 0x16, 0x03, ..])
}
