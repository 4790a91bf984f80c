//! The name that a booking is made in.

/// Maximum length of a name, characters.
const NAME_CHARS_MAX: usize = 200;

/// A person's name in any script, without blanks around it. `Debug` hides it, as it is personal.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GuestName(String);

impl GuestName {
    /// Checks a name. The error says what it must be.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if !text.chars().any(char::is_alphabetic) {
            return Err("must contain at least one letter");
        }
        if text.chars().nth(NAME_CHARS_MAX).is_some() {
            return Err("must not be longer than 200 characters");
        }
        if text.chars().any(misleads) {
            return Err(
                "must not contain control characters or characters that change the writing direction",
            );
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for GuestName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GuestName(hidden)")
    }
}

/// Whether a character could make a list read as something else. Joiners are allowed, as many scripts need them.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_script_are_accepted_unchanged() {
        for name in [
            "Ann",
            "Jean-Luc d'Arc",
            "अनन्या शर्मा",
            "க்ஷ\u{200d}",
            "李小龍",
            "Ünal",
            "'; DROP TABLE rooms; --",
            "<b>Bo</b>",
        ] {
            assert_eq!(GuestName::parse(&format!("  {name} ")).unwrap().as_str(), name);
        }
        assert!(GuestName::parse(&"ü".repeat(200)).is_ok());
    }

    #[test]
    fn other_text_is_refused_with_the_reason() {
        for (name, word) in [
            ("", "at least one letter"),
            (" \t", "at least one letter"),
            ("123", "at least one letter"),
            ("a\0b", "control"),
            ("a\u{202e}b", "direction"),
            (&"a".repeat(201), "200"),
            (&"ü".repeat(10_000), "200"),
        ] {
            assert!(GuestName::parse(name).unwrap_err().contains(word), "{word}");
        }
    }
}
