//! Responses with a directory, or with why a file cannot be sent.

use engine::service::Connection;
use folder::{BadTarget, FindError, OpenError};
use http_io::{
    Problem,
    server::{Error, Exchange, ResponseWriter},
};

use crate::reading::listing::Listing;

/// How much of a listing is sent as one chunk, bytes; a shorter one is sent whole.
const GATHERED: usize = 16 * 1024;

/// Responds with the contents of a directory: HTML if the client accepts it, otherwise JSON. A long one is never whole in
/// the connection's buffer.
pub(crate) async fn directory<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    listing: Listing,
) -> Result<(), Error> {
    let html = wants_html(exchange);
    let reply = exchange.respond(200).header("Vary", "Accept").header("X-Content-Type-Options", "nosniff");
    let reply = reply.header("Cross-Origin-Resource-Policy", "same-origin");
    if !html {
        return pieces(reply, "application/json", listing.into_json()).await;
    }
    let reply = reply.header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'");
    pieces(reply, "text/html; charset=utf-8", listing.into_html()).await
}

/// Responds with a body that comes in pieces: whole if it is short, otherwise in chunks.
async fn pieces<C: Connection>(
    reply: ResponseWriter<'_, '_, C>,
    content_type: &str,
    mut pieces: impl Iterator<Item = String>,
) -> Result<(), Error> {
    let mut gather = || {
        let mut gathered = String::new();
        while gathered.len() < GATHERED
            && let Some(piece) = pieces.next()
        {
            gathered += &piece;
        }
        gathered
    };
    let mut gathered = gather();
    if gathered.len() < GATHERED {
        return reply.body(content_type, gathered.as_bytes());
    }
    let mut body = reply.header("Content-Type", content_type).chunked()?;
    while !gathered.is_empty() {
        body.write(gathered.as_bytes()).await?;
        gathered = gather();
    }
    body.finish();
    Ok(())
}

/// Whether the client accepts HTML.
pub(crate) fn wants_html<C: Connection>(exchange: &Exchange<'_, C>) -> bool {
    exchange.header_all("accept").any(takes_html)
}

/// Why a file is not sent. Missing files and files outside the root look the same.
pub(crate) fn problem(error: FindError) -> Problem {
    match error {
        FindError::Path(BadTarget::Malformed(error)) => Problem::new(400, error.to_string()),
        FindError::Path(BadTarget::Nothing) | FindError::Open(OpenError::NotFound) => {
            Problem::new(404, "there is no such file").hint("GET /files/ lists what there is")
        }
        FindError::Open(OpenError::Forbidden) => Problem::new(403, "the server may not read this file"),
        FindError::Open(OpenError::System(error)) => {
            tracing::error!(%error, "a file cannot be opened or read");
            accounts::problem(503, "the file cannot be read now")
        }
    }
}

/// Whether a value of `Accept` names HTML and does not refuse it (`q=0`).
fn takes_html(accept: &[u8]) -> bool {
    accept.split(|&byte| byte == b',').any(|range| {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case(b"text/html"));
        html && !parts.any(|part| matches!(part, b"q=0" | b"q=0.0" | b"q=0.00" | b"q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_must_be_asked_for() {
        for accept in ["text/html", "application/xml, Text/HTML;q=0.9", "text/html ; q=1,*/*"] {
            assert!(takes_html(accept.as_bytes()), "{accept}");
        }
        for accept in ["", "*/*", "application/json", "text/html;q=0", "text/htmlx"] {
            assert!(!takes_html(accept.as_bytes()), "{accept}");
        }
    }
}
