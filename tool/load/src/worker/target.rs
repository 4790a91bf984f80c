//! A server that users send to.

use std::net::SocketAddr;

use crate::error::LoadError;
use crate::plan::{Connections, Plan};
use crate::render::Program;
use crate::resolve::{first_that_accepts, resolve};
use crate::transport::tls::Tls;
use crate::url::Url;

/// One server, and the scenario made ready for it.
pub(crate) struct Target {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Tls>,
}

impl Target {
    /// The server at one of a plan's URLs.
    pub(crate) fn new(plan: &Plan, base: &Url) -> Result<Self, LoadError> {
        let address =
            first_that_accepts(&resolve(base)?).ok_or(LoadError::Plan("the target has no address"))?;
        let close = plan.connections == Connections::PerRequest;
        let program = Program::new(&plan.scenario, base, close);
        Ok(Target { program, address, tls: Tls::for_url(base, plan.insecure)? })
    }
}
