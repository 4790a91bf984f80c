//! Answers with a file, a part of it, a directory, or why not.

use engine::service::Connection;
use http_io::{
    ByteRange, Method, Problem,
    server::{Error, Exchange},
};

use crate::{
    reading::{
        listing::Listing,
        media_type,
        open_files::FindError,
        representation::{Content, INERT, Representation},
        selection::{Conditions, Selection, select},
    },
    tree::{root::OpenError, target::BadTarget},
};

/// Answers with what the request wants of the file.
pub(crate) async fn file<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    file: &Representation,
) -> Result<(), Error> {
    match select(&conditions(exchange), file.validators()) {
        Selection::Whole => whole(exchange, file).await,
        Selection::Part(range) => part(exchange, file, range).await,
        Selection::NotModified => file.name_state(exchange.reply(304)).empty(),
        Selection::PreconditionFailed => {
            Err(Problem::new(412, "the file is in another state than the request asks for").into())
        }
        Selection::Unsatisfiable => Err(unsatisfiable(file.identity.size).into()),
    }
}

/// Whether the file is still in the state that was kept. Asked before a large one is sent, for its bytes are not kept.
pub(crate) fn is_current(file: &Representation) -> bool {
    match &file.content {
        Content::Bytes(_) => true,
        Content::File(open) => open.metadata().is_ok_and(|now| file.identity.is_of(&now)),
    }
}

/// Answers with a directory's contents: HTML where the client says that it takes it, else JSON.
pub(crate) fn directory<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    listing: &Listing,
) -> Result<(), Error> {
    let html = wants_html(exchange);
    let reply = exchange.reply(200).header("Vary", "Accept").header("X-Content-Type-Options", "nosniff");
    if !html {
        return reply.json(listing.to_json());
    }
    reply
        .header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        .html(&listing.to_html())
}

/// Whether the client says that it takes HTML.
pub(crate) fn wants_html<C: Connection>(exchange: &Exchange<'_, C>) -> bool {
    exchange.header_all("accept").any(takes_html)
}

/// Why nothing is sent. A file that is not there and one that must not be reached look the same.
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

fn conditions<'e, C: Connection>(exchange: &'e Exchange<'_, C>) -> Conditions<'e> {
    let mut found = Conditions::default();
    for (name, value) in exchange.headers() {
        let place = match name.len() {
            5 if name.eq_ignore_ascii_case("range") && exchange.method() == Method::Get => &mut found.range,
            8 if name.eq_ignore_ascii_case("if-range") => &mut found.if_range,
            8 if name.eq_ignore_ascii_case("if-match") => &mut found.if_match,
            13 if name.eq_ignore_ascii_case("if-none-match") => &mut found.if_none_match,
            17 if name.eq_ignore_ascii_case("if-modified-since") => &mut found.if_modified_since,
            19 if name.eq_ignore_ascii_case("if-unmodified-since") => &mut found.if_unmodified_since,
            _ => continue,
        };
        place.get_or_insert(value);
    }
    found
}

async fn whole<C: Connection>(exchange: &mut Exchange<'_, C>, file: &Representation) -> Result<(), Error> {
    match &file.content {
        Content::Bytes(bytes) => exchange.send_prepared(&file.whole, bytes).await,
        Content::File(open) => exchange.send_prepared_file(&file.whole, open, 0, file.identity.size).await,
    }
}

async fn part<C: Connection>(
    exchange: &mut Exchange<'_, C>,
    file: &Representation,
    range: ByteRange,
) -> Result<(), Error> {
    let mut content_range = Vec::with_capacity(48);
    range.content_range(&mut content_range, file.identity.size);
    let reply = file.name_state(exchange.reply(206)).header("Content-Range", content_range);
    let mut reply = reply.header("X-Content-Type-Options", "nosniff");
    if media_type::is_active(file.media_type) {
        reply = reply.header("Content-Security-Policy", INERT);
    }
    match &file.content {
        Content::Bytes(bytes) => {
            let end = range.offset.saturating_add(range.length);
            let bounds = usize::try_from(range.offset).ok().zip(usize::try_from(end).ok());
            let bytes = bounds.and_then(|(from, to)| bytes.get(from..to)).unwrap_or_default();
            reply.body(file.media_type, bytes)
        }
        Content::File(open) => {
            reply.header("Content-Type", file.media_type).file(open, range.offset, range.length).await
        }
    }
}

fn unsatisfiable(size: u64) -> Problem {
    let problem = Problem::new(416, "the file has no byte of the range that is asked for");
    problem.header("Content-Range", format!("bytes */{size}"))
}

/// Whether a value of `Accept` names HTML, and not to refuse it (`q=0`).
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
    fn html_is_for_those_who_ask_for_it() {
        for accept in ["text/html", "application/xml, Text/HTML;q=0.9", "text/html ; q=1,*/*"] {
            assert!(takes_html(accept.as_bytes()), "{accept}");
        }
        for accept in ["", "*/*", "application/json", "text/html;q=0", "text/htmlx"] {
            assert!(!takes_html(accept.as_bytes()), "{accept}");
        }
    }
}
