//! Response heads that are rendered once and sent often.

use wire::{
    status,
    write::{self, WriteError},
};

/// A rendered response head, without `Date` and `Connection`, which change.
#[derive(Clone, Debug)]
pub struct Prepared {
    status: u16,
    bytes: Vec<u8>,
}

impl Prepared {
    /// A head for a body of `length` bytes.
    pub fn new(status: u16, length: u64) -> Self {
        let mut bytes = Vec::with_capacity(256);
        write::status_line(&mut bytes, status);
        if !status::is_bodyless(status) {
            write::content_length(&mut bytes, length);
        }
        Self { status, bytes }
    }

    /// Adds a header field.
    ///
    /// # Errors
    /// When the name is not a token, or the value has control characters.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Result<Self, WriteError> {
        write::header(&mut self.bytes, name, value.as_ref())?;
        Ok(self)
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
