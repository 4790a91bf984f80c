//! How files are shown: a shell reads their names back unchanged.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use share::entry::SearchResult;

/// Files as a table: content, size, how many peers have it, name.
pub(super) fn table(found: &[SearchResult]) -> String {
    let mut shown = String::new();
    for SearchResult { entry, peers } in found {
        let peers = if peers.len() == 1 { "1 peer ".to_owned() } else { format!("{} peers", peers.len()) };
        let name = quoted(entry.name.as_str());
        // Writing to a string does not fail.
        let _ = writeln!(shown, "{}  {:>12}  {peers:>8}  {name}", entry.content, entry.size);
    }
    shown
}

/// A name or a path as a shell reads it: unchanged if that is safe, in quotes if it has a space or a character that is
/// special to the shell, and with invisible characters escaped, as in `$'a\U0000202eb'`. Others have chosen the name,
/// and it must not look like another.
pub(super) fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+,:=@%".contains(c);
    // Besides quotes and backslashes, `escape_debug` escapes what cannot be seen.
    let is_hidden = |c: char| !matches!(c, '\'' | '"' | '\\') && c.escape_debug().len() > 1;
    if name.contains(is_hidden) {
        return escaped(name, is_hidden).map_or(Cow::Borrowed(name), Cow::Owned);
    }
    let option = name.starts_with('-');
    if !name.is_empty() && !option && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("'{}'", name.replace('\'', "'\\''")))
}

fn escaped(name: &str, is_hidden: impl Fn(char) -> bool) -> Result<String, fmt::Error> {
    let mut shown = String::from("$'");
    for c in name.chars() {
        match c {
            '\'' | '\\' => write!(shown, "\\{c}")?,
            c if is_hidden(c) => write!(shown, "\\U{:08x}", u32::from(c))?,
            c => shown.push(c),
        }
    }
    shown.push('\'');
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_a_shell_takes_them() {
        for (name, shown) in [
            ("report-2026.pdf", "report-2026.pdf"),
            ("sub/r\u{e9}sum\u{e9}.txt", "sub/r\u{e9}sum\u{e9}.txt"),
            ("Annual Report.pdf", "'Annual Report.pdf'"),
            ("it's $HOME", "'it'\\''s $HOME'"),
            ("a\"b", "'a\"b'"),
            ("a\\b", "'a\\b'"),
            ("-rf", "'-rf'"),
            ("exe.\u{202e}fdp", "$'exe.\\U0000202efdp'"),
            ("it's\u{200b}\\", "$'it\\'s\\U0000200b\\\\'"),
        ] {
            assert_eq!(quoted(name), shown, "{name:?}");
        }
    }

    #[test]
    fn a_shell_reads_back_what_is_shown() {
        for name in ["a b", "it's", "exe.\u{202e}fdp", "`id` $(id) \\ ! * ?", "\u{200b}'\\"] {
            let command = format!("printf %s {}", quoted(name));
            let read = std::process::Command::new("bash").args(["-c", &command]).output().expect("bash");
            assert_eq!(String::from_utf8_lossy(&read.stdout), name);
        }
    }
}
