//! Who books: an Aadhaar number and a name. Both are personal, so nothing here displays them.
//!
//! An Aadhaar number has 12 digits, the last of which is a Verhoeff check digit.

use std::fmt;

use zeroize::Zeroizing;

/// Number of digits.
const LEN: usize = 12;

/// A well-formed number, wiped from memory when dropped. `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Aadhaar(Zeroizing<[u8; LEN]>);

/// Which identity numbers are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdPolicy {
    /// Only numbers that are issued, which begin with 2 to 9.
    IssuedOnly,
    /// Also numbers that begin with 0 or 1, which nobody has: for tests and load.
    AllowTest,
}

impl IdPolicy {
    /// The policy for `--allow-test-ids`, given or not.
    pub fn allow_test(allowed: bool) -> Self {
        if allowed { Self::AllowTest } else { Self::IssuedOnly }
    }
}

impl Aadhaar {
    /// Parses a number, with or without blanks between groups of four. The error says what it must be, and never contains
    /// the number.
    pub(crate) fn parse(text: &str, policy: IdPolicy) -> Result<Self, &'static str> {
        let digits = digits_of(text).ok_or("must be 12 digits, such as 2341 2341 2346")?;
        if policy == IdPolicy::IssuedOnly && digits[0] < 2 {
            return Err("must begin with 2 to 9: numbers that begin with 0 or 1 are for tests, \
                        which this server does not allow (--allow-test-ids)");
        }
        if !verhoeff::validate(&digits[..]) {
            return Err("has a wrong check digit: look for a mistyped or swapped digit");
        }
        Ok(Self(digits))
    }

    /// The digits, for hashing.
    pub(crate) fn digits(&self) -> &[u8] {
        &self.0[..]
    }

    /// The last four digits, by which its owner recognises the number.
    pub(crate) fn last_four(&self) -> String {
        self.0[LEN - 4..].iter().map(|digit| char::from(b'0' + digit)).collect()
    }
}

impl fmt::Debug for Aadhaar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aadhaar(hidden)")
    }
}

fn digits_of(text: &str) -> Option<Zeroizing<[u8; LEN]>> {
    let groups: Vec<&str> = text.trim().split(' ').collect();
    if groups.len() > 1 && groups.iter().any(|group| group.len() != 4) {
        return None;
    }
    let mut letters = groups.iter().flat_map(|group| group.bytes());
    let mut digits = Zeroizing::new([0; LEN]);
    for digit in digits.iter_mut() {
        *digit = letters.next().filter(u8::is_ascii_digit)? - b'0';
    }
    letters.next().is_none().then_some(digits)
}

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
    use proptest::prelude::*;

    use super::*;

    /// Appends the check digit to eleven digits.
    fn complete(eleven: &[u8]) -> Vec<u8> {
        [eleven, &[verhoeff::calculate(eleven)]].concat()
    }

    fn text(digits: &[u8]) -> String {
        digits.iter().map(|digit| char::from(b'0' + digit)).collect()
    }

    #[test]
    fn published_check_digits_are_valid() {
        assert!(verhoeff::validate(&[2, 3, 6, 3][..]), "the example in Wikipedia");
        assert!(verhoeff::validate(&[1, 2, 3, 4, 5, 1][..]), "the example in Wikibooks");
        assert!(verhoeff::validate(&[1, 4, 2, 8, 5, 7, 0][..]), "the other example in Wikibooks");
    }

    #[test]
    fn blanks_may_separate_groups_of_four_only() {
        let number = text(&complete(&[2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]));
        let (a, b, c) = (&number[..4], &number[4..8], &number[8..]);
        for good in [number.clone(), format!("{a} {b} {c}"), format!(" {number}\n")] {
            let read = Aadhaar::parse(&good, IdPolicy::IssuedOnly).unwrap();
            assert_eq!(read.last_four(), c);
            assert_eq!(format!("{read:?}"), "Aadhaar(hidden)");
        }
        let long = "9".repeat(10_000);
        for bad in
            ["", " ", &number[..11], &format!("{a}-{b}-{c}"), &format!("{a}  {b} {c}"), "२३४१२३४१२३४६", &long]
        {
            let error = Aadhaar::parse(bad, IdPolicy::IssuedOnly).unwrap_err();
            assert!(error.starts_with("must be 12 digits"), "{error}");
        }
    }

    #[test]
    fn test_numbers_are_accepted_only_if_allowed() {
        for first in 0..10 {
            let number = text(&complete(&[first, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]));
            assert!(Aadhaar::parse(&number, IdPolicy::AllowTest).is_ok());
            let issued = Aadhaar::parse(&number, IdPolicy::IssuedOnly);
            assert_eq!(issued.is_ok(), first >= 2);
            if let Err(error) = issued {
                assert!(error.contains("--allow-test-ids"), "{error}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_wrong_digit_and_two_swapped_ones_are_detected(
            eleven in prop::collection::vec(0_u8..10, 11),
            place in 0_usize..12,
            other in 1_u8..10,
        ) {
            let number = complete(&eleven);
            let mut wrong = number.clone();
            wrong[place] = (wrong[place] + other) % 10;
            prop_assert!(!verhoeff::validate(&wrong[..]));
            let mut swapped = number.clone();
            let neighbour = (place + 1).min(11);
            swapped.swap(place, neighbour);
            prop_assert_eq!(verhoeff::validate(&swapped[..]), swapped == number);
        }
    }

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
