//! What can be wrong with a message, and the status that a server responds with.

/// Why a message cannot be parsed. The connection must be closed after any of these, because the start of the next message is
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The start line is not HTTP.
    #[error("the first line is not an HTTP/1.1 start line")]
    StartLine,
    /// The request target is neither a path, nor a URL, nor an authority (CONNECT), nor `*` (OPTIONS).
    #[error(
        "the request target is malformed: it must be a path, or a full http URL, in ASCII without a fragment"
    )]
    Target,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    #[error("only HTTP/1.0 and HTTP/1.1 are supported")]
    Version,
    /// The request line is longer than allowed.
    #[error("the request line is longer than this server allows")]
    RequestLineTooLong,
    /// The head is longer than allowed.
    #[error("the header section is longer than allowed")]
    HeadTooLong,
    /// More header lines than allowed.
    #[error("the message has more header lines than allowed")]
    TooManyHeaders,
    /// One header is longer than allowed.
    #[error("a header line is longer than allowed")]
    HeaderTooLong,
    /// The name of a header is not a token, its colon follows a blank, or the line is folded.
    #[error(
        "a header name is malformed (a blank before the colon, a folded line, or a character not allowed)"
    )]
    HeaderName,
    /// The value of a header contains a control character.
    #[error("a header value contains a character that is not allowed")]
    HeaderValue,
    /// A line does not end in CR LF.
    #[error("a line does not end in CR LF")]
    LineEnd,
    /// An HTTP/1.1 request has no `Host`, several, or a malformed one.
    #[error("an HTTP/1.1 request needs exactly one well-formed Host header")]
    Host,
    /// `Content-Length` is not a decimal number of at most 64 bits.
    #[error("Content-Length is not a plain decimal number")]
    ContentLength,
    /// `Content-Length` is given more than once.
    #[error("Content-Length is given more than once")]
    SeveralContentLengths,
    /// `Content-Length` and `Transfer-Encoding` are both given, the classic way to smuggle a second request.
    #[error("Content-Length and Transfer-Encoding must not be given together")]
    BothLengths,
    /// `Transfer-Encoding` is malformed, repeated, or sent in HTTP/1.0.
    #[error("Transfer-Encoding is malformed, repeated, or sent in HTTP/1.0")]
    TransferEncoding,
    /// The transfer coding is not `chunked`.
    #[error("the only supported transfer coding is chunked")]
    TransferCoding,
    /// `Expect` is not `100-continue`.
    #[error("the only supported expectation is 100-continue")]
    Expectation,
    /// A chunk size is not a hexadecimal number of at most 64 bits.
    #[error("a chunk size is malformed")]
    ChunkSize,
    /// A chunk is not followed by CR LF, or its extension contains a control character.
    #[error("a chunk is malformed")]
    Chunk,
    /// Chunk extensions are longer than allowed.
    #[error("chunk extensions are longer than allowed")]
    ChunkExtensionTooLong,
    /// A trailer line is malformed.
    #[error("a trailer line is malformed")]
    Trailer,
    /// The trailer section is longer than allowed.
    #[error("the trailer section is longer than allowed")]
    TrailerTooLong,
    /// The body is longer than allowed.
    #[error("the body is longer than allowed")]
    BodyTooLong,
    /// The connection closed before the message was complete.
    #[error("the connection closed before the message was complete")]
    ClosedEarly,
}

impl ParseError {
    /// The status that a server responds with (RFC 9110 section 15).
    pub fn status(self) -> u16 {
        match self {
            Self::RequestLineTooLong => 414,
            Self::HeadTooLong | Self::TooManyHeaders | Self::HeaderTooLong | Self::TrailerTooLong => 431,
            Self::BodyTooLong => 413,
            Self::Expectation => 417,
            Self::TransferCoding => 501,
            Self::Version => 505,
            _ => 400,
        }
    }
}

impl From<httparse::Error> for ParseError {
    fn from(error: httparse::Error) -> Self {
        match error {
            httparse::Error::HeaderName => Self::HeaderName,
            httparse::Error::HeaderValue => Self::HeaderValue,
            httparse::Error::NewLine => Self::LineEnd,
            httparse::Error::TooManyHeaders => Self::TooManyHeaders,
            httparse::Error::Version => Self::Version,
            httparse::Error::Token | httparse::Error::Status => Self::StartLine,
        }
    }
}
