//! Reports as small as they can be had cheaply: each is compressed against the one before of its kind.

use super::frame::framed;
use super::message::{Report, read, written};
use super::{FRAME_BYTES_MAX, ProtocolError};

/// Kinds of reports that resemble each other.
const KINDS: usize = 4;

/// Bytes in front of a compressed report: its kind, and how long it is unpacked.
const HEADER: usize = 5;

/// A report that is no longer than this is not worth compressing.
const SHORT: usize = 64;

/// The last report of each kind, unpacked.
type Last = [Vec<u8>; KINDS];

fn kind(report: &Report) -> u8 {
    match report {
        Report::Sample(_) => 0,
        Report::Look(_) => 1,
        Report::Tick(..) => 2,
        _ => 3,
    }
}

/// Packs reports in the order in which they are sent.
#[derive(Debug, Default)]
pub struct Packer {
    last: Last,
}

impl Packer {
    /// The frame of a report; `None` if it is too long to be sent.
    pub fn pack(&mut self, report: &Report) -> Option<Vec<u8>> {
        let bytes = written(report);
        if bytes.len() > FRAME_BYTES_MAX - HEADER {
            return None;
        }
        let kind = kind(report);
        let last = self.last.get_mut(usize::from(kind))?;
        let packed = match bytes.len() {
            ..=SHORT => bytes.clone(),
            _ => lz4_flex::block::compress_with_dict(&bytes, last),
        };
        let length = u32::try_from(bytes.len()).ok()?;
        let packed = if packed.len() < bytes.len() { packed } else { bytes.clone() };
        *last = bytes;
        Some(framed(&[&[kind][..], &length.to_le_bytes(), &packed].concat()))
    }
}

/// Unpacks reports in the order in which they came.
#[derive(Debug, Default)]
pub struct Unpacker {
    last: Last,
}

impl Unpacker {
    /// The report in a frame, and how many bytes it takes unpacked.
    ///
    /// # Errors
    /// If there is none in it, or one of more than [`FRAME_BYTES_MAX`] bytes.
    pub fn unpack(&mut self, frame: &[u8]) -> Result<(Report, usize), ProtocolError> {
        let malformed = ProtocolError::Malformed { length: frame.len() };
        let (header, packed) = frame.split_first_chunk::<HEADER>().ok_or(malformed.clone())?;
        let [kind, length @ ..] = *header;
        let length = u32::from_le_bytes(length) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(ProtocolError::TooLong { length });
        }
        let last = self.last.get_mut(usize::from(kind)).ok_or(malformed.clone())?;
        let bytes = if packed.len() == length {
            packed.to_vec()
        } else {
            lz4_flex::block::decompress_with_dict(packed, length, last).map_err(|_| malformed)?
        };
        let report = read(&bytes)?;
        *last = bytes;
        Ok((report, length))
    }
}
