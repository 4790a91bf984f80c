//! HTTP/1.1 as bytes: a sans-I/O codec for both ends.
//!
//! The caller owns the buffers and does the reading and writing. Parsing does not allocate, and every size that the other
//! side chooses has a named limit in [`Limits`].
//!
//! - A server calls [`request::parse`] on the received bytes until it returns `Some`, then drives a [`body::Decoder`] made
//!   from the head's [`Framing`], and renders its response with [`mod@write`].
//! - A client renders its request with [`mod@write`], calls [`response::parse`], and drives the same decoder.
//!
//! ```
//! use wire::{Limits, Method, body::{Decoder, Event}, response};
//!
//! let received = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
//! let head = response::parse(received, Method::Get, &Limits::default())?.expect("a whole head");
//! let mut body = Decoder::new(head.framing, &Limits::default())?;
//! let rest = &received[head.len..];
//! assert_eq!(body.next(rest)?, Event::Data(5));
//! body.advance(5);
//! assert_eq!(body.next(b"")?, Event::End);
//! # Ok::<(), wire::ParseError>(())
//! ```
//!
//! Requests are parsed strictly wherever two parsers could disagree about the end of a message (RFC 9112 section 11.2):
//! [`ParseError`] lists what is refused, and with which status.

pub mod body;
pub mod conditional;
mod error;
mod fields;
mod framing;
mod limits;
pub mod range;
pub mod request;
pub mod response;
pub mod status;
pub mod syntax;
pub mod write;

pub use error::ParseError;
pub use fields::Fields;
pub use framing::Framing;
pub use limits::{Limits, MAX_HEAD_BYTES, MAX_HEADERS};
pub use range::ByteRange;
pub use request::Method;
