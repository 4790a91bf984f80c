//! Answers a request with a file, a part of it, or the reason why not.

use engine::service::Connection;
use http_io::{
    ByteRange, Method, Problem,
    server::{Error, Exchange},
};

use crate::{
    media_type,
    representation::{Content, INERT, Representation},
    selection::{Conditions, Selection, select},
};

/// Sends what the request asks for of the file: all of it, a range, or 304 when nothing has changed.
///
/// # Errors
/// When the connection fails, and 412 or 416 when the file does not meet the request's conditions.
pub async fn send<C: Connection, P>(
    exchange: &mut Exchange<'_, C>,
    file: &Representation<P>,
) -> Result<(), Error> {
    match select(&conditions(exchange), file.validators()) {
        Selection::Whole => whole(exchange, file).await,
        Selection::Part(range) => part(exchange, file, range).await,
        Selection::NotModified => file.name_state(exchange.respond(304)).empty(),
        Selection::PreconditionFailed => {
            Err(Problem::new(412, "the file is in another state than the request asks for").into())
        }
        Selection::Unsatisfiable => Err(unsatisfiable(file.state.size()).into()),
    }
}

/// Whether the file still has the cached state. Ask before sending a large file, whose bytes are not cached.
pub fn is_current<P>(file: &Representation<P>) -> bool {
    match &file.content {
        Content::Bytes(_) => true,
        Content::File(open) => open.metadata().is_ok_and(|now| file.state.is_of(&now)),
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

async fn whole<C: Connection, P>(
    exchange: &mut Exchange<'_, C>,
    file: &Representation<P>,
) -> Result<(), Error> {
    match &file.content {
        Content::Bytes(bytes) => exchange.send_prepared(&file.whole, bytes).await,
        Content::File(open) => exchange.send_prepared_file(&file.whole, open, 0, file.state.size()).await,
    }
}

async fn part<C: Connection, P>(
    exchange: &mut Exchange<'_, C>,
    file: &Representation<P>,
    range: ByteRange,
) -> Result<(), Error> {
    let mut content_range = Vec::with_capacity(48);
    range.content_range(&mut content_range, file.state.size());
    let reply = file.name_state(exchange.respond(206)).header("Content-Range", content_range);
    let reply = reply.header("X-Content-Type-Options", "nosniff");
    let mut reply = reply.header("Cross-Origin-Resource-Policy", "same-origin");
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
