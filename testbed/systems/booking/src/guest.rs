//! The name a booking is made in.

/// Longest name, characters.
pub(crate) const NAME_CHARS_MAX: usize = 200;

/// A person's name in any script, without blanks around it. Personal: `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Checks a name. The error says what it must be.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if !text.chars().any(char::is_alphabetic) {
            return Err("must hold at least one letter");
        }
        if text.chars().nth(NAME_CHARS_MAX).is_some() {
            return Err("must be no longer than 200 characters");
        }
        if text.chars().any(misleads) {
            return Err("must not hold control characters, nor ones that change the direction of writing");
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Name(hidden)")
    }
}

/// Characters that make a list read as something else. Joiners are no such: many scripts need them.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_script_are_taken_as_they_are() {
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
            assert_eq!(Name::read(&format!("  {name} ")).unwrap().as_str(), name);
        }
        assert!(Name::read(&"ü".repeat(200)).is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_it_must_be() {
        for (name, word) in [
            ("", "at least one letter"),
            (" \t", "at least one letter"),
            ("123", "at least one letter"),
            ("a\0b", "control"),
            ("a\u{202e}b", "direction"),
            (&"a".repeat(201), "200"),
            (&"ü".repeat(10_000), "200"),
        ] {
            assert!(Name::read(name).unwrap_err().contains(word), "{word}");
        }
    }
}
