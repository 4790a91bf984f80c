//! How much the other side may make us hold or look at.

/// The most header lines a head may have, whatever [`Limits::headers`] says: the size of the fixed table they are parsed into.
pub const MAX_HEADERS: usize = 100;

/// The longest head, whatever [`Limits::head_bytes`] says: positions within a head are kept in 16 bits.
pub const MAX_HEAD_BYTES: usize = u16::MAX as usize;

/// Every size that the other side chooses, and how far it may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, its final empty line included. Default 16 KiB; at most [`MAX_HEAD_BYTES`].
    /// A larger value lets one peer hold that much memory per connection.
    pub head_bytes: usize,
    /// Bytes of the request line. Default 8 000, what RFC 9112 section 3 asks every server to accept.
    pub request_line_bytes: usize,
    /// Number of header lines. Default and at most [`MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of one header's name and value together. Default 8 KiB.
    pub header_bytes: usize,
    /// Bytes of a body, after the chunked coding has been taken off. Default 2^40.
    /// Bodies are never held here, so this bounds time and disk, not memory.
    pub body_bytes: u64,
    /// Bytes of chunk extensions (and blanks before them) in one body, all chunks together. Default 4 KiB.
    /// They carry nothing anyone reads; without a limit they are free traffic.
    pub chunk_extension_bytes: usize,
    /// Bytes of the trailer section after the last chunk. Default 8 KiB. It is checked, then dropped.
    pub trailer_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * 1024,
            request_line_bytes: 8_000,
            headers: MAX_HEADERS,
            header_bytes: 8 * 1024,
            body_bytes: 1 << 40,
            chunk_extension_bytes: 4 * 1024,
            trailer_bytes: 8 * 1024,
        }
    }
}

impl Limits {
    /// The part of `bytes` a head may be looked for in: one byte more than the limit, so that "too long" shows.
    pub(crate) fn head_window<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..bytes.len().min(self.head_limit() + 1)]
    }

    /// The limit on a head that is really enforced.
    pub(crate) fn head_limit(&self) -> usize {
        self.head_bytes.min(MAX_HEAD_BYTES)
    }

    /// The limit on the number of headers that is really enforced.
    pub(crate) fn header_limit(&self) -> usize {
        self.headers.min(MAX_HEADERS)
    }
}
