//! Aadhaar numbers: 12 digits, the last a Verhoeff check digit. They identify a person, so nothing here shows one.

use std::fmt;

/// Digits of a number.
const LEN: usize = 12;

/// A number that could be somebody's. `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Aadhaar([u8; LEN]);

/// Which numbers are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Those that are issued: they begin with 2 to 9.
    Issued,
    /// Also those that begin with 0 or 1, which nobody has: for tests and loads.
    TestsToo,
}

impl Accepted {
    /// For a `--allow-test-ids` that is given or not.
    pub fn with_tests(allowed: bool) -> Self {
        if allowed { Self::TestsToo } else { Self::Issued }
    }
}

impl Aadhaar {
    /// Reads a number, as it is or in groups of four with blanks between. The error says what it must be, never what it is.
    pub(crate) fn read(text: &str, accepted: Accepted) -> Result<Self, &'static str> {
        let digits = without_blanks(text).ok_or("must be 12 digits, such as 2341 2341 2346")?;
        if accepted == Accepted::Issued && digits[0] < 2 {
            return Err("must begin with 2 to 9: a number that begins with 0 or 1 is for tests, \
                        which this server does not allow (--allow-test-ids)");
        }
        if checksum(&digits) != 0 {
            return Err("has a wrong check digit: look for a mistyped or swapped digit");
        }
        Ok(Self(digits))
    }

    /// The digits, to be hashed.
    pub(crate) fn digits(&self) -> &[u8] {
        &self.0
    }

    /// The last four digits: what a person is shown to recognise the number by.
    pub(crate) fn last_four(&self) -> String {
        self.0[LEN - 4..].iter().map(|digit| char::from(b'0' + digit)).collect()
    }
}

impl fmt::Debug for Aadhaar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aadhaar(hidden)")
    }
}

fn without_blanks(text: &str) -> Option<[u8; LEN]> {
    let groups: Vec<&str> = text.trim().split(' ').collect();
    if groups.len() > 1 && groups.iter().any(|group| group.len() != 4) {
        return None;
    }
    let digits: Option<Vec<u8>> =
        groups.concat().bytes().map(|byte| byte.is_ascii_digit().then(|| byte - b'0')).collect();
    digits?.try_into().ok()
}

/// 0 when the last digit is the right check digit of those before it (J. Verhoeff, "Error Detecting Decimal Codes",
/// Mathematical Centre Tracts 29, 1969): finds every single wrong digit and every swap of neighbours.
fn checksum(digits: &[u8]) -> u8 {
    let places = digits.iter().rev().zip(0_u8..);
    places.fold(0, |sum, (&digit, place)| product(sum, permuted(digit, place)))
}

/// The product in the dihedral group D5: 0 to 4 are rotations, 5 to 9 reflections.
fn product(left: u8, right: u8) -> u8 {
    match (left < 5, right < 5) {
        (true, true) => (left + right) % 5,
        (true, false) => 5 + (left + right - 5) % 5,
        (false, true) => 5 + (left - right) % 5,
        (false, false) => (left + 5 - right) % 5,
    }
}

/// Verhoeff's permutation, applied once for each place from the right.
fn permuted(digit: u8, place: u8) -> u8 {
    const ONCE: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    (0..place % 8).fold(digit, |digit, _| ONCE[usize::from(digit % 10)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The number of eleven digits with its check digit.
    fn complete(eleven: &[u8]) -> Vec<u8> {
        let last = (0..10).find(|last| checksum(&[eleven, &[*last]].concat()) == 0).unwrap();
        [eleven, &[last]].concat()
    }

    fn text(digits: &[u8]) -> String {
        digits.iter().map(|digit| char::from(b'0' + digit)).collect()
    }

    #[test]
    fn published_check_digits_come_out() {
        assert_eq!(checksum(&[2, 3, 6, 3]), 0, "the example of Wikipedia");
        assert_eq!(checksum(&[1, 2, 3, 4, 5, 1]), 0, "the example of Wikibooks");
        assert_eq!(checksum(&[1, 4, 2, 8, 5, 7, 0]), 0, "and its other one");
    }

    #[test]
    fn blanks_may_part_groups_of_four_and_nothing_else() {
        let number = text(&complete(&[2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]));
        let (a, b, c) = (&number[..4], &number[4..8], &number[8..]);
        for good in [number.clone(), format!("{a} {b} {c}"), format!(" {number}\n")] {
            let read = Aadhaar::read(&good, Accepted::Issued).unwrap();
            assert_eq!(read.last_four(), c);
            assert_eq!(format!("{read:?}"), "Aadhaar(hidden)");
        }
        let long = "9".repeat(10_000);
        for bad in
            ["", " ", &number[..11], &format!("{a}-{b}-{c}"), &format!("{a}  {b} {c}"), "२३४१२३४१२३४६", &long]
        {
            let error = Aadhaar::read(bad, Accepted::Issued).unwrap_err();
            assert!(error.starts_with("must be 12 digits"), "{error}");
        }
    }

    #[test]
    fn test_numbers_are_taken_only_where_they_are_allowed() {
        for first in 0..10 {
            let number = text(&complete(&[first, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0]));
            assert!(Aadhaar::read(&number, Accepted::TestsToo).is_ok());
            let issued = Aadhaar::read(&number, Accepted::Issued);
            assert_eq!(issued.is_ok(), first >= 2);
            if let Err(error) = issued {
                assert!(error.contains("--allow-test-ids"), "{error}");
            }
        }
    }

    proptest! {
        #[test]
        fn one_wrong_digit_and_two_swapped_ones_are_found(
            eleven in prop::collection::vec(0_u8..10, 11),
            place in 0_usize..12,
            other in 1_u8..10,
        ) {
            let number = complete(&eleven);
            let mut wrong = number.clone();
            wrong[place] = (wrong[place] + other) % 10;
            prop_assert_ne!(checksum(&wrong), 0);
            let mut swapped = number.clone();
            let neighbour = (place + 1).min(11);
            swapped.swap(place, neighbour);
            prop_assert_eq!(checksum(&swapped) == 0, swapped == number);
        }
    }
}
