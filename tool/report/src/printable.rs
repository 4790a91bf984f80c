//! The filter for everything that is written to a terminal: whoever is measured, asked or downloaded from chooses part of what
//! errors and logs say, and a terminal obeys escape sequences.

use std::{borrow::Cow, fmt::Write};

use crate::words::is_hidden;

/// What painting puts between the escape character and what it paints.
const PAINT: [&str; 5] = ["[0m", "[1m", "[2m", "[33m", "[36m"];

/// Makes text safe to write to a terminal. Characters that steer it, hide others or reorder them are written as `\u{1b}`;
/// line breaks and tabs stay.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// As [`printable`], for text that this crate has painted: its colours stay.
#[must_use]
pub fn printable_painted(text: &str) -> Cow<'_, str> {
    escaped(text, |rest| {
        rest.strip_prefix('\u{1b}').is_some_and(|rest| PAINT.iter().any(|paint| rest.starts_with(paint)))
    })
}

/// Escapes hidden characters, unless `stays` accepts the text from there on.
fn escaped(text: &str, stays: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let steers = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if steers(c) && !text.get(at..).is_some_and(&stays) {
            // Writing to a string does not fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_rest_stays() {
        for plain in ["", "a\tb\nc", "\u{202f}\u{e9}\u{1f642} 100 %"] {
            assert!(matches!(printable(plain), Cow::Borrowed(text) if text == plain), "{plain:?}");
        }
        assert_eq!(printable("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("\u{9b}2J\r\u{7}\x7f"), "\\u{9b}2J\\u{d}\\u{7}\\u{7f}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn colours_stay_where_this_crate_paints_and_nothing_else_does() {
        let painted = "\x1b[1mN*\x1b[0m = 4";
        assert_eq!(printable_painted(painted), painted);
        assert_eq!(
            printable_painted("\x1b[8mhidden\x1b]0;title\x07"),
            "\\u{1b}[8mhidden\\u{1b}]0;title\\u{7}"
        );
        assert_eq!(printable(painted), "\\u{1b}[1mN*\\u{1b}[0m = 4");
    }
}
