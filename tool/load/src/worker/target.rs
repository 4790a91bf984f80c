//! The servers that users send to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use analysis::ticks::ErrorKind;

use crate::error::LoadError;
use crate::plan::{Connections, Plan};
use crate::requests::Program;
use crate::ticks::totals::{RequestTotal, totals};
use crate::transport::address::{LookedUp, first_that_accepts, look_up};
use crate::transport::socket::{Socket, error_kind};
use crate::transport::stream::Stream;
use crate::transport::tls::Tls;
use crate::url::Url;

/// Longest request, bytes, that leaves in one segment, so that the kernel never holds back its end.
const ONE_SEGMENT: u64 = 1_200;

/// The servers of a load and how users talk to them; shared by all threads.
pub(crate) struct Targets {
    /// User u sends to number u modulo their count.
    pub(crate) targets: Vec<Arc<Target>>,
    /// The totals that each thread starts from: zero for every kind of request.
    pub(crate) totals: Vec<RequestTotal>,
    pub(crate) connections: Connections,
    pub(crate) timeout_ns: u64,
}

impl Targets {
    /// Resolves the servers of a plan and prepares the scenario for each.
    pub(crate) fn new(plan: &Plan) -> Result<Self, LoadError> {
        let bases = plan.scenario.bases();
        if bases.is_empty() {
            return Err(LoadError::NoBase { scenario: plan.scenario.name().into() });
        }
        let target = |base| Target::new(plan, base).map(Arc::new);
        Ok(Targets {
            targets: bases.iter().map(target).collect::<Result<_, _>>()?,
            totals: totals(&plan.scenario),
            connections: plan.connections,
            timeout_ns: nanoseconds(plan.timeout),
        })
    }
}

/// One server, and the scenario prepared for it.
pub(crate) struct Target {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    /// How long it took to look up its name; `None` where the URL has an address.
    pub(crate) name_lookup: Option<Duration>,
    tls: Option<Tls>,
}

impl Target {
    fn new(plan: &Plan, base: &Url) -> Result<Self, LoadError> {
        let LookedUp { addresses, took: name_lookup } = look_up(base)?;
        let address = first_that_accepts(&addresses).ok_or(LoadError::Plan("the target has no address"))?;
        let close = plan.connections == Connections::PerRequest;
        let program = Program::new(&plan.scenario, base, close).of_member(&plan.member);
        Ok(Target { program, address, name_lookup, tls: Tls::for_url(base, plan.insecure)? })
    }

    /// Starts to connect.
    pub(super) fn connect(&self, connections: Connections) -> Result<Stream, ErrorKind> {
        let socket = Socket::connect(&self.address).map_err(error_kind)?;
        let tls = match &self.tls {
            Some(tls) => Some(tls.connection().ok_or(ErrorKind::Tls)?),
            None => None,
        };
        // A request is one write, so TCP_NODELAY matters only if a request is longer than a segment: its end would wait
        // for an acknowledgement. Setting it takes a system call, which is wasted on a connection for one short
        // request. A TLS handshake ends with several writes that the server does not answer.
        let one_write = tls.is_none() && self.program.longest() <= ONE_SEGMENT;
        if connections == Connections::Kept || !one_write {
            socket.set_nodelay().map_err(error_kind)?;
        }
        Ok(Stream::new(socket, tls))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
