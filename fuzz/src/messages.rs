//! HTTP/1.1 as both ends parse it.

use wire::{
    Framing, Limits, MAX_HEAD_BYTES, Method, ParseError,
    body::{Decoder, Event},
    request, response, write,
};

use crate::streams::{ASKED, Parsed, Reader, cut, tight};

/// Most pieces that a stream comes in: whatever was received before is parsed again with each.
const PIECES_MAX: usize = 256;

pub(crate) fn requests(bytes: &[u8]) {
    same_in_any_pieces(bytes, |pieces, limits| Reader::new(pieces, limits).requests());
    if let Ok(Some(head)) = request::parse(bytes, &Limits::default()) {
        assert!(head.len <= bytes.len(), "a head ends within what was received");
        same_when_written(&head, bytes);
    }
}

pub(crate) fn responses(bytes: &[u8]) {
    same_in_any_pieces(bytes, |pieces, limits| Reader::new(pieces, limits).responses(&ASKED));
    let limits = Limits::default();
    let plain = response::parse(bytes, Method::Get, &limits);
    let indexed = response::parse_indexed(bytes, Method::Get, &limits);
    assert_eq!(plain, indexed.map(|parsed| parsed.map(|(head, _)| head)));
    if let Ok(Some(head)) = plain {
        assert!(head.len <= bytes.len() && (100..1000).contains(&head.status), "{head:?}");
    }
}

/// Parses a stream as a whole and in pieces, and compares.
fn same_in_any_pieces(stream: &[u8], read: impl Fn(&[Vec<u8>], Limits) -> Vec<Parsed>) {
    let step = stream.len() / PIECES_MAX + 1;
    let small: Vec<_> = stream.chunks(step).map(<[u8]>::to_vec).collect();
    for limits in [Limits::default(), tight()] {
        let whole = read(&[stream.to_vec()], limits.clone());
        assert_eq!(whole, read(&cut(stream, &places(stream)), limits.clone()), "in a few pieces");
        assert_eq!(whole, read(&small, limits), "in pieces of {step} bytes");
    }
}

/// Places to cut bytes at, which follow from the bytes alone, so that an input always shows the same.
fn places(bytes: &[u8]) -> [usize; 4] {
    // Fowler-Noll-Vo 1a.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    [0, 16, 32, 48].map(|shift| usize::from((hash >> shift) as u16))
}

/// Writes the request again, and parses what was written. One of HTTP/1.0 would be written as one of HTTP/1.1.
fn same_when_written(head: &request::Head, bytes: &[u8]) {
    let view = head.view(bytes);
    assert!(view.path().len() <= view.target().len().max(1), "{}", view.target());
    if head.minor_version == 0 {
        return;
    }
    let mut written = Vec::new();
    write::request_line(&mut written, view.method(), view.target()).expect("a line that was read");
    for (name, value) in view.headers() {
        write::header(&mut written, name, value).expect("a header that was read");
    }
    write::end(&mut written);
    // What is written has a blank behind each colon, and may be longer.
    let limits = Limits { head_bytes: MAX_HEAD_BYTES, ..Limits::default() };
    let again = request::parse(&written, &limits).expect("what was written can be read").expect("whole");
    let same = again.view(&written);
    assert_eq!((view.method(), view.target()), (same.method(), same.target()));
    assert!(view.headers().eq(same.headers()), "headers differ");
    let decided = |head: &request::Head| (head.framing, head.keep_alive, head.expects_continue);
    assert_eq!(decided(head), decided(&again));
}

/// What became of a body in chunks.
#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    body: Vec<u8>,
    /// How many bytes it took, or `None` if it has not ended.
    end: Result<Option<usize>, ParseError>,
}

pub(crate) fn chunked_body(bytes: &[u8]) {
    for limits in [Limits::default(), tight()] {
        let whole = decoded([bytes], &limits);
        assert_eq!(whole, decoded(bytes.chunks(1), &limits), "in pieces of 1 byte");
        assert!(whole.body.len() as u64 <= limits.body_bytes, "{} bytes", whole.body.len());
        if let Ok(Some(_)) = whole.end {
            let mut written = Vec::new();
            write::chunk(&mut written, &whole.body);
            write::last_chunk(&mut written);
            let again = Decoded { body: whole.body, end: Ok(Some(written.len())) };
            assert_eq!(decoded([&written[..]], &limits), again, "written again");
        }
    }
}

fn decoded<'b>(pieces: impl IntoIterator<Item = &'b [u8]>, limits: &Limits) -> Decoded {
    let mut body = Vec::new();
    let end = decode(pieces, limits, &mut body);
    Decoded { body, end }
}

fn decode<'b>(
    pieces: impl IntoIterator<Item = &'b [u8]>,
    limits: &Limits,
    body: &mut Vec<u8>,
) -> Result<Option<usize>, ParseError> {
    let (mut decoder, mut taken) = (Decoder::new(Framing::Chunked, limits)?, 0);
    for mut rest in pieces {
        loop {
            // Slices fail where more is taken than was given.
            let count = match decoder.next(rest)? {
                Event::End => return Ok(Some(taken)),
                Event::NeedMore => break,
                Event::Framing(count) => count,
                Event::Data(count) => {
                    body.extend_from_slice(&rest[..count]);
                    decoder.advance(count as u64);
                    count
                }
            };
            rest = &rest[count..];
            taken += count;
        }
    }
    Ok(None)
}
