//! The content that is sent and served: bytes that differ from place to place.

use std::sync::LazyLock;

/// More than the buffers of both ends hold, so that its transfer waits for the client to read.
pub(crate) const LARGE: usize = 24 << 20;

const BLOCK: usize = 4096;

static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let block: Vec<u8> = (0..BLOCK).map(|at| (at % 251) as u8 ^ (at >> 8) as u8).collect();
    let mut content = Vec::with_capacity(LARGE);
    for number in 0..(LARGE / BLOCK) as u32 {
        content.extend_from_slice(&number.to_be_bytes());
        content.extend_from_slice(&block[4..]);
    }
    content
});

/// The first `length` bytes of it.
pub(crate) fn content(length: usize) -> &'static [u8] {
    &CONTENT[..length]
}

/// The response of the sink to an upload that it hashed.
pub(crate) fn receipt(body: &[u8]) -> String {
    format!(r#"{{"bytes":{},"blake3":"{}"}}"#, body.len(), blake3::hash(body))
}
