//! What is rendered once and sent often: response heads, and the `Date` header of the current second.

use std::{
    cell::RefCell,
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};
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

/// `Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n`
const LINE_LEN: usize = "Date: ".len() + 29 + "\r\n".len();

struct DateLine {
    second: u64,
    line: [u8; LINE_LEN],
}

thread_local! {
    static NOW: RefCell<DateLine> = const { RefCell::new(DateLine { second: u64::MAX, line: [0; LINE_LEN] }) };
}

/// Appends the `Date` header line of the current time.
pub(crate) fn append_date(out: &mut Vec<u8>) {
    // The time of the kernel's last tick is exact enough for seconds, and a quarter as expensive as the exact time.
    let now = clock_gettime(ClockId::RealtimeCoarse);
    append_date_at(out, u64::try_from(now.tv_sec).unwrap_or(0));
}

fn append_date_at(out: &mut Vec<u8>, second: u64) {
    NOW.with_borrow_mut(|rendered| {
        if rendered.second != second {
            rendered.render(second);
        }
        out.extend_from_slice(&rendered.line);
    });
}

impl DateLine {
    fn render(&mut self, second: u64) {
        let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(second));
        // A date beyond the year 9999 would not fit. The line then stays as it was.
        if write!(&mut self.line[..], "Date: {date}\r\n").is_ok() {
            self.second = second;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_date_of_rfc_9110_and_follows_the_clock() {
        let mut out = Vec::new();
        append_date_at(&mut out, 784_111_777);
        append_date_at(&mut out, 784_111_777);
        append_date_at(&mut out, 784_111_778);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"
        );
    }
}
