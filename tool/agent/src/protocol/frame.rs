//! Frames: a length of four bytes, the lowest first, then as many bytes.

use super::ProtocolError;

/// The longest frame. A sample of a hundred processes with all threads that samples cover takes about a megabyte.
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// Bytes in front of a frame.
const HEADER: usize = 4;

/// Cuts a stream of bytes into frames. It holds no more than one frame and what was pushed since the last one was taken.
#[derive(Debug, Default)]
pub struct Frames {
    buffer: Vec<u8>,
    /// How much of the buffer has been taken.
    taken: usize,
}

impl Frames {
    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame without its length; `None` until it is complete.
    ///
    /// # Errors
    /// If it says that it is longer than [`FRAME_BYTES_MAX`].
    pub fn next_frame(&mut self) -> Result<Option<Vec<u8>>, ProtocolError> {
        let left = self.buffer.get(self.taken..).unwrap_or_default();
        let Some((header, rest)) = left.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_le_bytes(*header) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(ProtocolError::TooLong { length });
        }
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let frame = frame.to_vec();
        self.taken += HEADER + length;
        Ok(Some(frame))
    }
}

/// The bytes with their length in front. Nobody makes a message that is too long: [`super::Packer`] sees to that.
pub(super) fn framed(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_le_bytes(), bytes].concat()
}
