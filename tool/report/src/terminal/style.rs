//! Characters, colours and line breaks that the terminal can show.

use crate::number::GROUP;
use crate::words::is_hidden;

/// Stands for a space that does not break a line, until the text is complete.
pub(super) const NO_BREAK: char = '\u{a0}';

/// The characters and colours that may be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    unicode: bool,
}

impl Style {
    pub(crate) fn new(colour: bool, unicode: bool) -> Self {
        Self { colour, unicode }
    }

    /// Makes text safe for the terminal: replaces control characters, which names may contain, and non-ASCII ones if needed.
    pub(crate) fn text(self, text: &str) -> String {
        text.chars().fold(String::new(), |mut out, c| {
            match c {
                GROUP | NO_BREAK | '\u{2009}' => out.push(NO_BREAK),
                c if is_hidden(c) => out.push(self.pick('\u{fffd}', '?')),
                c if self.unicode || c.is_ascii() => out.push(c),
                c => out += ascii(c),
            }
            out
        })
    }

    /// The first of two characters if the terminal can show it, otherwise the second.
    pub(crate) fn pick(self, unicode: char, ascii: char) -> char {
        if self.unicode { unicode } else { ascii }
    }

    pub(crate) fn is_unicode(self) -> bool {
        self.unicode
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn accent(self, text: &str) -> String {
        self.paint(text, "36")
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint(text, "33")
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(text, "2")
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn ascii(c: char) -> &'static str {
    match c {
        '–' | '−' | '·' => "-",
        '±' => "+-",
        'µ' | 'μ' => "u",
        '’' => "'",
        '…' => "...",
        '×' => "x",
        '“' | '”' => "\"",
        _ => "?",
    }
}

/// A complete text: no longer broken into lines, so its spaces may be any.
pub(crate) fn breakable(text: &str) -> String {
    text.replace(NO_BREAK, " ")
}

/// Breaks text into lines of at most `width` characters, indents continued lines, and paints each.
pub(crate) fn wrap(text: &str, width: usize, paint: impl Fn(&str) -> String) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > INDENT.len() && line + 1 + word.chars().count() > width {
            lines.push(INDENT.to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.iter().map(|line| paint(line)).collect()
}
