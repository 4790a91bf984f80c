//! Requests that another site has a browser send.

use engine::service::Connection;

use super::Exchange;
use crate::{Method, Problem};

impl<C: Connection> Exchange<'_, C> {
    /// Refuses a request that may change something and that another site has a browser send; see
    /// [`check_site`](Self::check_site).
    ///
    /// # Errors
    /// 403.
    pub fn check_origin(&self) -> Result<(), Problem> {
        if matches!(self.method(), Method::Get | Method::Head) { Ok(()) } else { self.check_site() }
    }

    /// Refuses any request that another site has a browser send, as told by `Sec-Fetch-Site` (Fetch Metadata), or by
    /// `Origin` where that is not sent. Other clients than browsers send neither, and pass.
    ///
    /// # Errors
    /// 403.
    pub fn check_site(&self) -> Result<(), Problem> {
        let own = match (self.header("sec-fetch-site"), self.header("origin")) {
            (Some(site), _) => matches!(site, b"same-origin" | b"none"),
            (None, Some(origin)) => {
                let host = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
                host.is_some() && host == self.header("host")
            }
            (None, None) => true,
        };
        if own { Ok(()) } else { Err(Problem::new(403, "another site may not ask for this")) }
    }
}
