//! Parts of the grammar that several headers share (RFC 9110 section 5.6).

/// The bytes that a token may contain (RFC 9110 section 5.6.2).
static TOKEN: [bool; 256] = alphanumeric_and(b"!#$%&'*+-.^_`|~");

/// The bytes that a host and port may contain (RFC 3986 sections 3.2.2 and 3.2.3), approximately.
static HOST: [bool; 256] = alphanumeric_and(b"-._~!$&'()*+,;=:[]%");

const fn alphanumeric_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}

/// Whether a token may contain `byte`. Methods, header names and transfer codings are tokens.
pub fn is_token_byte(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

/// Whether a `Host` header may contain `byte`.
pub(crate) fn is_host_byte(byte: u8) -> bool {
    HOST[usize::from(byte)]
}

/// Whether `text` is a token.
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// Whether a header value may contain `byte`: visible characters, space, tab, and bytes outside ASCII.
pub fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Returns `text` without spaces and tabs at its ends.
pub fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(first) = text.iter().position(|byte| !blank(byte)) else { return &[] };
    let last = text.iter().rposition(|byte| !blank(byte)).unwrap_or(first);
    &text[first..=last]
}

/// Returns the trimmed, non-empty elements of a comma-separated list. Not for lists with quoted strings.
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|element| !element.is_empty())
}

/// Parses a number in plain decimal digits: no sign, no blanks, at most 64 bits.
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_decimal_and_fit() {
        assert_eq!(decimal(b"0"), Some(0));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in ["", "+1", "-1", " 1", "1 ", "0x1", "1,1", "18446744073709551616", "1e3"] {
            assert_eq!(decimal(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn lists_drop_blanks_and_empty_elements() {
        let elements: Vec<_> = list(b" a ,, b,\tc ").collect();
        assert_eq!(elements, [b"a", b"b", b"c"]);
        assert_eq!(trim(b" \t "), b"");
    }
}
