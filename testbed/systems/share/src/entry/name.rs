//! The name of a file as peers exchange it: a single part of a path.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// Longest name, bytes; the limit of Linux file systems.
pub const NAME_LEN_MAX: usize = 255;
/// Most words of a name that searches can find.
pub const NAME_WORDS_MAX: usize = 16;
/// Longest word, characters; longer ones are cut.
const WORD_CHARS_MAX: usize = 48;

/// The name of a shared file: the last part of its path. It may come from an untrusted peer, but joined to a folder it
/// always stays inside that folder.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Name(String);

/// Why a text is not a name. Does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is empty, or longer than file systems allow.
    #[error("must be 1 to 255 bytes long")]
    Length,
    /// It leads to another folder.
    #[error("must be one part of a path, without a slash")]
    Slash,
    /// Hidden files are not shared, and `.` and `..` are not files.
    #[error("must not begin with a dot")]
    Hidden,
    /// A terminal would not show it as it is.
    #[error("must hold no control characters, and none that turn the direction of text")]
    Unprintable,
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The words that searches find it by: runs of letters and digits, in lower case, each once.
    pub fn words(&self) -> BTreeSet<String> {
        words(&self.0).take(NAME_WORDS_MAX).collect()
    }
}

/// The words of a text, split as names are.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|character: char| !character.is_alphanumeric());
    parts
        .filter(|part| !part.is_empty())
        .map(|part| part.to_lowercase().chars().take(WORD_CHARS_MAX).collect())
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match text {
            _ if text.is_empty() || text.len() > NAME_LEN_MAX => Err(InvalidName::Length),
            _ if text.contains('/') => Err(InvalidName::Slash),
            _ if text.starts_with('.') => Err(InvalidName::Hidden),
            _ if text.chars().any(misleads) => Err(InvalidName::Unprintable),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Whether a character would make a terminal show something else: control characters move the cursor, and characters that
/// override the text direction show `exe.txt` for `txt.exe` (Unicode Standard Annex 9, section 2).
fn misleads(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ordinary_names_are_taken_and_others_told_why_not() {
        for name in ["a", "a b.txt", "naïve – résumé.pdf", "名前", "a..b", "-rf", "*", "a\\b", "CON"] {
            assert_eq!(name.parse::<Name>().map(|name| name.to_string()), Ok(name.to_owned()));
        }
        let long = "x".repeat(256);
        let wrong = [
            ("", InvalidName::Length),
            (&long, InvalidName::Length),
            ("a/b", InvalidName::Slash),
            ("../etc/passwd", InvalidName::Slash),
            ("..", InvalidName::Hidden),
            (".ssh", InvalidName::Hidden),
            ("a\nb", InvalidName::Unprintable),
            ("a\0b", InvalidName::Unprintable),
            ("\u{1b}[2J", InvalidName::Unprintable),
            ("a\u{202e}txt.exe", InvalidName::Unprintable),
        ];
        for (name, why) in wrong {
            assert_eq!(name.parse::<Name>(), Err(why), "{name:?}");
        }
    }

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        let words = |name: &str| name.parse::<Name>().unwrap().words().into_iter().collect::<Vec<_>>();
        assert_eq!(words("Annual_Report-2026 (final).PDF"), ["2026", "annual", "final", "pdf", "report"]);
        assert_eq!(words("Über.Größe"), ["größe", "über"]);
        assert!(words("---").is_empty());
        assert_eq!(words(&"x".repeat(200))[0].len(), WORD_CHARS_MAX);
        let many: String = ('a'..='z').flat_map(|letter| [letter, ' ']).collect();
        assert_eq!(words(&many).len(), NAME_WORDS_MAX);
    }

    proptest! {
        #[test]
        fn a_name_is_one_step_into_a_folder(text in "\\PC{0,30}|[./a]{0,8}|(?s).{0,30}") {
            if let Ok(name) = text.parse::<Name>() {
                let parts: Vec<_> = Path::new(name.as_str()).components().collect();
                prop_assert!(matches!(parts[..], [Component::Normal(part)] if part == name.as_str()));
            }
        }
    }
}
