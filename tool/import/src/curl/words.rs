//! A command line as words, as a POSIX shell splits it, and with the `$'..'` that browsers copy.

use crate::error::CurlError;

/// Splits a command line into words.
pub(super) fn split(text: &str) -> Result<Vec<String>, CurlError> {
    if text.contains("^\"") {
        return Err(CurlError::ForCmd);
    }
    // What a browser copies may end lines as Windows does.
    let text = text.replace("\\\r\n", "\\\n").replace('\0', "");
    shlex::split(&plainly_quoted(&text)?).ok_or(CurlError::Quotes)
}

/// The same command line without `$'..'`.
fn plainly_quoted(text: &str) -> Result<String, CurlError> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, '$') if chars.peek() == Some(&'\'') => {
                chars.next();
                let word = ansi_quoted(&mut chars).ok_or(CurlError::Quotes)?.replace('\0', "");
                out.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
                continue;
            }
            (None | Some('"'), '\\') => {
                // A line goes on in the next; `shlex` makes an empty word of that.
                match chars.next() {
                    Some('\n') => {}
                    next => out.extend(std::iter::once(c).chain(next)),
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        out.push(c);
    }
    Ok(out)
}

/// What `$'..'` stands for, from behind its first quotation mark on.
fn ansi_quoted(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    let mut word = String::new();
    loop {
        match chars.next()? {
            '\'' => return Some(word),
            '\\' => match chars.next()? {
                'n' => word.push('\n'),
                'r' => word.push('\r'),
                't' => word.push('\t'),
                'x' => word.push(hexadecimal(chars, 2)?),
                'u' => word.push(hexadecimal(chars, 4)?),
                'U' => word.push(hexadecimal(chars, 8)?),
                other => word.push(other),
            },
            other => word.push(other),
        }
    }
}

/// The character whose number stands here, in at most so many digits.
fn hexadecimal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, most: usize) -> Option<char> {
    let mut number = 0;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(16)) else {
            break;
        };
        number = number * 16 + digit;
        chars.next();
    }
    Some(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_bash_does() {
        let words = split("curl 'a b' \\\n -H \"x: \\\"$'y'\" $'it\\'s \\u00e9\\n' \\\r\n z$'q'").unwrap();
        assert_eq!(words, ["curl", "a b", "-H", "x: \"$'y'", "it's é\n", "zq"]);
        assert_eq!(split("curl 'a"), Err(CurlError::Quotes));
        assert_eq!(split("curl $'a"), Err(CurlError::Quotes));
        assert_eq!(split("curl ^\"http://h^\""), Err(CurlError::ForCmd));
    }
}
