//! What passes over the stream: a greeting each way, then commands one way and reports the other, in frames.
//!
//! The greeting is a line of text, so that whatever else comes first (a shell's complaint, a banner) can be shown. It names
//! the version of the program and of the protocol; both ends go on only if both are their own. Every message after it is
//! `postcard` in a frame with its length in front. Reports are compressed against the one before of their kind, which they
//! resemble: a thread that did nothing since is a few bytes.

mod counters;
mod facts;
mod frame;
mod greeting;
mod message;
mod own_use;
mod packing;
mod profile;

pub(crate) use counters::{look_bytes, sample_bytes};
pub(crate) use facts::bounded;
pub use frame::{FRAME_BYTES_MAX, Frames};
pub(crate) use greeting::in_one_line;
pub use greeting::{GREETING_BYTES_MAX, Greeting, GreetingError, greeting};
pub use message::{
    About, Begin, Callee, Command, Listens, NotFound, Prepare, Prepared, Report, Started, Unread, Unseen,
};
pub use own_use::{OwnLink, OwnQuota, OwnUse};
pub use packing::{Packer, Unpacker};
pub(crate) use profile::TIERS_MAX;
pub use profile::{PROFILE_BYTES_MAX, ProfileOrder, Profiled};

/// The version of what passes over the stream. It changes with any message, and with any type of
/// [`analysis::counters`], [`analysis::ticks`], [`analysis::doctor::Facts`], [`analysis::profile::HostProfile`],
/// [`analysis::run::Host`] or [`load::Plan`]: a test holds the bytes of an example.
pub const PROTOCOL: u32 = 12;

/// Reasons why what came over the stream cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// It did not begin with a greeting.
    #[error(transparent)]
    Greeting(#[from] GreetingError),
    /// A frame says that it is longer than any may be.
    #[error("a message of {length} bytes was announced, and {FRAME_BYTES_MAX} are allowed")]
    TooLong {
        /// The length it says it has.
        length: usize,
    },
    /// A frame holds no message.
    #[error("a message of {length} bytes could not be read")]
    Malformed {
        /// Its length.
        length: usize,
    },
}

/// Takes bytes as they come, and gives the reports in them.
#[derive(Debug, Default)]
pub struct Reports {
    frames: Frames,
    unpacker: Unpacker,
}

impl Reports {
    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// The next report, and how many bytes it takes unpacked; `None` until more bytes have come. After an error nothing more
    /// can be read.
    ///
    /// # Errors
    /// If the bytes are not those of an agent of this version.
    pub fn next_report(&mut self) -> Result<Option<(Report, usize)>, ProtocolError> {
        let Some(frame) = self.frames.next_frame()? else { return Ok(None) };
        self.unpacker.unpack(&frame).map(Some)
    }
}

/// Takes bytes as they come, and gives the commands in them.
#[derive(Debug, Default)]
pub struct Commands {
    frames: Frames,
}

impl Commands {
    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
    }

    /// The next command; `None` until more bytes have come. After an error nothing more can be read.
    ///
    /// # Errors
    /// If the bytes are not those of an nstar of this version.
    pub fn next_command(&mut self) -> Result<Option<Command>, ProtocolError> {
        let Some(frame) = self.frames.next_frame()? else { return Ok(None) };
        message::read(&frame).map(Some)
    }
}

/// A command as it is sent; as an error its length where that is more than [`FRAME_BYTES_MAX`].
///
/// # Errors
/// If it is too long: a load whose requests hold large bodies.
pub fn command(command: &Command) -> Result<Vec<u8>, usize> {
    let bytes = message::written(command);
    if bytes.len() <= FRAME_BYTES_MAX { Ok(frame::framed(&bytes)) } else { Err(bytes.len()) }
}

#[cfg(test)]
mod tests;
