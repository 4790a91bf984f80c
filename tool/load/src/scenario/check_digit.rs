//! Check digits, so that made-up numbers pass where real ones must.

/// The dihedral group of order 10, as a table of products (Verhoeff 1969).
const PRODUCT: [[u8; 10]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
    [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
    [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
    [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
    [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
    [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
    [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
    [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
];

/// The permutation that is applied once more for each place.
const PERMUTED: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];

/// The inverse of each element.
const INVERSE: [u8; 10] = [0, 4, 3, 2, 1, 5, 6, 7, 8, 9];

/// The digit that makes `digits` pass Verhoeff's check when it is put behind them, as Aadhaar numbers do.
pub(super) fn verhoeff(digits: &[u8]) -> u8 {
    let digit = |byte: &u8| byte.wrapping_sub(b'0') % 10;
    let places = digits.iter().rev().map(digit).zip(1..);
    let check = places.fold(0, |check, (digit, place)| product(check, permuted(digit, place)));
    b'0' + INVERSE.get(usize::from(check)).copied().unwrap_or_default()
}

fn product(a: u8, b: u8) -> u8 {
    PRODUCT.get(usize::from(a)).and_then(|row| row.get(usize::from(b))).copied().unwrap_or_default()
}

fn permuted(digit: u8, place: u32) -> u8 {
    (0..place % 8).fold(digit, |digit, _| PERMUTED.get(usize::from(digit)).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn published_examples() {
        // Wikipedia's, and the number printed on the specimen Aadhaar card.
        assert_eq!(verhoeff(b"236"), b'3');
        assert_eq!(verhoeff(b"23412341234"), b'6');
        assert_eq!(verhoeff(b"10098765431"), b'5');
    }

    proptest! {
        /// What the check is for: every wrong digit and every two neighbours swapped are noticed.
        #[test]
        fn slips_are_noticed(digits in "[0-9]{11}", at in 0usize..10, other in b'0'..=b'9') {
            let digits = digits.into_bytes();
            let mut wrong = digits.clone();
            wrong[at] = other;
            prop_assert_eq!(verhoeff(&wrong) == verhoeff(&digits), wrong == digits);
            let mut swapped = digits.clone();
            swapped.swap(at, at + 1);
            prop_assert_eq!(verhoeff(&swapped) == verhoeff(&digits), swapped == digits);
        }
    }
}
