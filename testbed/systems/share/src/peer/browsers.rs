//! Decides which requests of browsers a peer answers: those of its own page.

use engine::service::Connection;
use http_io::{Problem, server::Exchange};

/// Rejects requests that the page of another site makes a browser send, and requests of any page for content: a file that
/// came from another peer must not be shown as a page of this one. Browsers mark both (Fetch Metadata Request Headers,
/// W3C).
///
/// # Errors
/// 403 if it is rejected.
pub(super) fn check<C: Connection>(exchange: &Exchange<'_, C>) -> Result<(), Problem> {
    let from_page = exchange.header("origin").is_some() || exchange.header("sec-fetch-mode").is_some();
    match exchange.path() {
        // A link from elsewhere is harmless: the page shows nothing by itself.
        "/" => Ok(()),
        path if path.starts_with("/content/") && from_page => {
            Err(Problem::new(403, "content is not shown in browsers").hint("use `nstar share get`"))
        }
        _ => exchange.check_site(),
    }
}
