//! Limits on everything whose size the other side chooses.

/// Upper bound of [`Limits::headers`]: the size of the table that header lines are parsed into.
pub const MAX_HEADERS: usize = 100;

/// Upper bound of [`Limits::head_bytes`]: positions within a head are stored in 16 bits.
pub const MAX_HEAD_BYTES: usize = u16::MAX as usize;

/// The limits on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, including its final empty line. Default 16 KiB, at most [`MAX_HEAD_BYTES`].
    /// Each connection may occupy this much memory.
    pub head_bytes: usize,
    /// Bytes of the request line. Default 8 000, which RFC 9112 section 3 asks every server to accept.
    pub request_line_bytes: usize,
    /// Number of header lines. Default and upper bound [`MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of the name and value of one header together. Default 8 KiB.
    pub header_bytes: usize,
    /// Bytes of a body without its chunked coding. Default 2^40.
    /// Bodies are not stored here, so this limits time and disk space and not memory.
    pub body_bytes: u64,
    /// Bytes of chunk extensions (and blanks before them) in one body, all chunks together. Default 4 KiB.
    /// Extensions are ignored; without a limit a client could send them forever.
    pub chunk_extension_bytes: usize,
    /// Bytes of the trailer section after the last chunk, which is checked and then ignored. Default 8 KiB.
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
    /// Returns the part of `bytes` to search for a head: one byte more than the limit, so that a longer head is noticed.
    pub(crate) fn head_window<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[..bytes.len().min(self.head_limit() + 1)]
    }

    /// The effective limit on the length of a head.
    pub(crate) fn head_limit(&self) -> usize {
        self.head_bytes.min(MAX_HEAD_BYTES)
    }

    /// The effective limit on the number of headers.
    pub(crate) fn header_limit(&self) -> usize {
        self.headers.min(MAX_HEADERS)
    }
}
