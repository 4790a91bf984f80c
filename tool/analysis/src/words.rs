//! Numbers as evidence sentences write them.

/// A share of one: `99 %`, below one per cent `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A count or rate, thousands apart: `34 120`, below one hundred `7.25`.
pub(crate) fn count(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value.abs() < 99.5 {
        let text = format!("{value:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(percent(0.991), "99 %");
        assert_eq!(percent(0.004), "0.4 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(count(34_120.4), "34 120");
        assert_eq!(count(1_234_567.0), "1 234 567");
        assert_eq!(count(7.25), "7.25");
        assert_eq!(count(4.0), "4");
    }
}
