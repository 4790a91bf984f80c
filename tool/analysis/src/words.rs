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

/// A prediction, to two significant digits: no more are meant.
pub(crate) fn about(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return count(value);
    }
    let unit = 10f64.powf(value.log10().floor() - 1.0);
    count((value / unit).round() * unit)
}

/// `4 users`, `1 user`.
pub(crate) fn users(number: u32) -> String {
    format!("{} {}", count(f64::from(number)), if number == 1 { "user" } else { "users" })
}

/// Microseconds in the unit that reads best: `29.1 us`, `5.10 ms`, `2.35 s`.
pub(crate) fn time(us: f64) -> String {
    match us.abs() {
        below if below < 1e3 => format!("{us:.1} us"),
        below if below < 1e6 => format!("{:.2} ms", us / 1e3),
        _ => format!("{:.2} s", us / 1e6),
    }
}

/// Bits per second: `94 Mb/s`.
pub(crate) fn bits(per_s: f64) -> String {
    match per_s.abs() {
        below if below < 1e6 => format!("{:.0} kb/s", per_s / 1e3),
        below if below < 1e9 => format!("{:.1} Mb/s", per_s / 1e6),
        _ => format!("{:.2} Gb/s", per_s / 1e9),
    }
}

/// Cores in use or allowed: `1.20`, whole ones without decimals.
pub(crate) fn cores(cores: f64) -> String {
    if (cores - cores.round()).abs() < 0.005 {
        format!("{:.0}", cores.round())
    } else {
        format!("{cores:.2}")
    }
}

/// `core` or `cores`.
pub(crate) fn core_noun(cores: f64) -> &'static str {
    if cores <= 1.0 { "core" } else { "cores" }
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
        assert_eq!([users(1), users(1_024)], ["1 user", "1 024 users"]);
        assert_eq!(about(52_345.0), "52 000");
        assert_eq!(about(0.1234), "0.12");
        assert_eq!(time(29.14), "29.1 us");
        assert_eq!(time(5_100.0), "5.10 ms");
        assert_eq!(bits(94_200_000.0), "94.2 Mb/s");
        assert_eq!(cores(2.0), "2");
        assert_eq!(cores(1.204), "1.20");
    }
}
