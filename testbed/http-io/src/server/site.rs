//! Requests that another site made a browser send.

use super::RequestHead;
use crate::Problem;

/// Refuses a request that another site made a browser send.
///
/// # Errors
/// 403.
pub(crate) fn check(head: RequestHead<'_>) -> Result<(), Problem> {
    let own = match (head.header("sec-fetch-site"), head.header("origin")) {
        (Some(site), _) => matches!(site, b"same-origin" | b"none"),
        (None, Some(origin)) => {
            let host = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
            host.is_some() && host == head.header("host")
        }
        (None, None) => true,
    };
    if own { Ok(()) } else { Err(Problem::new(403, "another site may not send this request")) }
}
