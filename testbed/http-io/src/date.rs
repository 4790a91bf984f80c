//! The `Date` header, rendered once per second and thread.

use std::{
    cell::RefCell,
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

/// `Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n`
const LINE_LEN: usize = "Date: ".len() + 29 + "\r\n".len();

struct Rendered {
    second: u64,
    line: [u8; LINE_LEN],
}

thread_local! {
    static NOW: RefCell<Rendered> = const { RefCell::new(Rendered { second: u64::MAX, line: [0; LINE_LEN] }) };
}

/// Appends the `Date` header line of the current time.
pub(crate) fn append(out: &mut Vec<u8>) {
    // The time of the kernel's last tick is exact enough for seconds, and a quarter as expensive as the exact time.
    let now = clock_gettime(ClockId::RealtimeCoarse);
    append_at(out, u64::try_from(now.tv_sec).unwrap_or(0));
}

fn append_at(out: &mut Vec<u8>, second: u64) {
    NOW.with_borrow_mut(|rendered| {
        if rendered.second != second {
            rendered.render(second);
        }
        out.extend_from_slice(&rendered.line);
    });
}

impl Rendered {
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
        append_at(&mut out, 784_111_777);
        append_at(&mut out, 784_111_777);
        append_at(&mut out, 784_111_778);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"
        );
    }
}
