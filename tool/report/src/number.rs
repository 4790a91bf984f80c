//! Numbers as people read them: grouped digits, no more of them than the interval supports.
//!
//! Digits are grouped by [`GROUP`], a narrow space that does not break a line.

/// Between groups of three digits.
pub(crate) const GROUP: char = '\u{202f}';
/// Stands where there is no number.
pub(crate) const MISSING: &str = "–";
/// Significant digits where no interval says how many are known.
const DIGITS: i32 = 3;
/// The smallest number that is written; below it, "less than this".
const SMALLEST: f64 = 1e-4;
/// Significant digits beyond which nobody reads.
const DIGITS_MAX: i32 = 5;

/// A whole number, grouped: `34 120`.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

/// A count or a rate in a sentence: whole and grouped, or with at most two decimals below one hundred.
pub(crate) fn quantity(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".into();
    }
    if value.abs() < 99.5 { trim_zeros(&at_place(value, -2)).to_owned() } else { at_place(value, 0) }
}

/// A mean of small counts, with at most one decimal: `3.2`, `16`.
pub(crate) fn tenths(value: f64) -> String {
    trim_zeros(&at_place(value, -1)).to_owned()
}

/// A prediction, to two significant digits: no more are meant.
pub(crate) fn about(value: f64) -> String {
    if !value.is_finite() || value <= 0.0 {
        return quantity(value);
    }
    quantity(round_to(value, place_for_digits(value, 2)))
}

/// Cores in use or allowed: `1.20`, whole ones without decimals.
pub(crate) fn cores(value: f64) -> String {
    let whole = (value - value.round()).abs() < 0.005;
    at_place(value, if whole { 0 } else { -2 })
}

/// A number whose precision nothing states, to three significant digits.
pub(crate) fn plain(value: f64) -> String {
    if value > 0.0 && value < SMALLEST {
        return format!("<{SMALLEST}");
    }
    at_place(value, place_for_digits(value, DIGITS))
}

/// A round number on an axis or a limit: no zeros after the point.
pub(crate) fn tick(value: f64) -> String {
    if value > 0.0 && value < SMALLEST {
        return format!("{value:e}");
    }
    trim_zeros(&plain(value)).to_owned()
}

/// A round number on an axis, short enough for its margin: `40 000`, `1.2 M`.
pub(crate) fn axis_label(value: f64) -> String {
    if value < 1e6 {
        return tick(value);
    }
    let (scale, prefix) = prefix(value);
    format!("{}{GROUP}{prefix}", tick(value / scale))
}

/// An estimate, to the digits its interval supports.
pub(crate) fn estimate(value: f64, ci: Option<[f64; 2]>) -> String {
    at_place(value, place(value, ci))
}

/// The two ends of an interval, to the digits of the estimate it belongs to: `33 800–34 440`.
pub(crate) fn interval(value: f64, ci: [f64; 2]) -> String {
    let place = place(value, Some(ci));
    format!("{}–{}", at_place(ci[0], place), at_place(ci[1], place))
}

/// A throughput with its interval: `34 120 req/s (33 800–34 440)`.
pub(crate) fn rate(value_per_s: f64, ci: Option<[f64; 2]>) -> String {
    let value = format!("{} req/s", estimate(value_per_s, ci));
    ci.map_or(value.clone(), |ci| format!("{value} ({})", interval(value_per_s, ci)))
}

/// Half the width of an interval as a share of the estimate, for a narrow column: `±1 %`.
pub(crate) fn spread(value: f64, ci: Option<[f64; 2]>) -> String {
    match ci {
        Some([lo, hi]) if value > 0.0 && hi >= lo => format!("±{}", percent((hi - lo) / 2.0 / value)),
        _ => String::new(),
    }
}

/// A share of one as a percentage: `99 %`, `0.4 %`.
pub(crate) fn percent(share: f64) -> String {
    if share.is_finite() { format!("{}{GROUP}%", per_cent(share)) } else { MISSING.into() }
}

/// The two ends of an interval of shares: `52–60 %`.
pub(crate) fn percent_interval([lo, hi]: [f64; 2]) -> String {
    format!("{}–{}", per_cent(lo), percent(hi))
}

/// A ratio as a change in per cent, to the digits its interval supports: `−3.1 %`, `+12 %`.
pub(crate) fn change(ratio: f64, ci: Option<[f64; 2]>) -> String {
    let place = change_place(ratio, ci);
    format!("{}{GROUP}%", signed(ratio, place))
}

/// The ends of the interval of a ratio as changes: `−4.0 to −2.2 %`.
pub(crate) fn change_interval(ratio: f64, [lo, hi]: [f64; 2]) -> String {
    let place = change_place(ratio, Some([lo, hi]));
    format!("{} to {}{GROUP}%", signed(lo, place), signed(hi, place))
}

/// Per cent are known to tenths at best.
fn change_place(ratio: f64, ci: Option<[f64; 2]>) -> i32 {
    let wide = match ci {
        Some([lo, hi]) => (hi - lo) / 2.0,
        None => (ratio - 1.0).abs() / 10.0,
    };
    if wide < 0.1 { -1 } else { 0 }
}

fn signed(ratio: f64, place: i32) -> String {
    let text = at_place((ratio - 1.0) * 100.0, place);
    if text.starts_with('−') || text == "0" || text == MISSING { text } else { format!("+{text}") }
}

/// A share of one in per cent, without the sign: `99`, `0.4`.
fn per_cent(share: f64) -> String {
    let value = share * 100.0;
    let digits = match value.abs() {
        0.0 => 0,
        v if v < 0.05 => return if value < 0.0 { "−<0.1" } else { "<0.1" }.into(),
        v if v < 9.95 => 1,
        _ => 0,
    };
    trim_zeros(&at_place(value, -digits)).to_owned()
}

/// A time with the unit that suits it: `117 µs`.
pub(crate) fn time(value_us: f64) -> String {
    let unit = TimeUnit::for_one(value_us);
    format!("{}{GROUP}{}", plain(unit.of(value_us)), unit.name())
}

/// A time with its interval, in one unit: `117 µs (115–119)`.
pub(crate) fn time_with_interval(value_us: f64, ci_us: Option<[f64; 2]>) -> String {
    let unit = TimeUnit::for_one(value_us);
    let Some(ci) = ci_us.map(|ci| ci.map(|end| unit.of(end))) else { return time(value_us) };
    let value = unit.of(value_us);
    format!("{}{GROUP}{} ({})", estimate(value, Some(ci)), unit.name(), interval(value, ci))
}

/// A length of time of everyday size: `41 s`, `2 min 5 s`.
pub(crate) fn elapsed(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return MISSING.into();
    }
    if seconds < 10.0 {
        return format!("{}{GROUP}s", plain(seconds));
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole % 3600 / 60, whole % 60) {
        (0, 0, s) => format!("{s}{GROUP}s"),
        (0, m, s) => format!("{m}{GROUP}min {s}{GROUP}s"),
        (h, m, _) => format!("{}{GROUP}h {m}{GROUP}min", count(h)),
    }
}

/// A quantity with a decimal prefix: `35.1 MB/s`.
pub(crate) fn prefixed(value: f64, unit: &str) -> String {
    let (scale, prefix) = prefix(value);
    format!("{}{GROUP}{prefix}{unit}", plain(value / scale))
}

fn prefix(value: f64) -> (f64, &'static str) {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    STEPS.into_iter().find(|(scale, _)| value.abs() >= *scale).unwrap_or((1.0, ""))
}

/// The unit of a column of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Micro,
    Milli,
    Second,
}

impl TimeUnit {
    /// The unit in which the largest of these times, in microseconds, has at most four digits.
    pub(crate) fn for_largest(times_us: impl IntoIterator<Item = f64>) -> Self {
        let largest = times_us.into_iter().filter(|time| time.is_finite()).fold(0.0, f64::max);
        match largest {
            time if time < 1e4 => Self::Micro,
            time if time < 1e7 => Self::Milli,
            _ => Self::Second,
        }
    }

    /// The unit in which one time, in microseconds, has at most three digits before the point.
    pub(crate) fn for_one(time_us: f64) -> Self {
        match time_us {
            time if time < 1e3 => Self::Micro,
            time if time < 1e6 => Self::Milli,
            _ => Self::Second,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Micro => "µs",
            Self::Milli => "ms",
            Self::Second => "s",
        }
    }

    /// A time in microseconds, in this unit.
    pub(crate) fn of(self, time_us: f64) -> f64 {
        match self {
            Self::Micro => time_us,
            Self::Milli => time_us / 1e3,
            Self::Second => time_us / 1e6,
        }
    }
}

/// The power of ten to round to: the second digit of half the interval's width.
fn place(value: f64, ci: Option<[f64; 2]>) -> i32 {
    let Some([lo, hi]) = ci else { return place_for_digits(value, DIGITS) };
    let half = (hi - lo) / 2.0;
    if !(half.is_finite() && half > 0.0) {
        return place_for_digits(value, DIGITS_MAX);
    }
    let wanted = magnitude(half) - 1;
    if value == 0.0 {
        return wanted;
    }
    // Where rounding overflows, as of the smallest and the largest numbers, the finest place may be above the coarsest.
    wanted.max(place_for_digits(value, DIGITS_MAX)).min(place_for_digits(value, 2))
}

fn place_for_digits(value: f64, digits: i32) -> i32 {
    let place = magnitude(value) - digits + 1;
    // Rounding may add a digit: 999.6 to three digits is 1 000, not 1 000.0.
    let rounded = round_to(value, place);
    magnitude(rounded) - digits + 1
}

/// The power of ten of the leading digit.
fn magnitude(value: f64) -> i32 {
    match value.abs().log10() {
        power if power.is_finite() => power.floor() as i32,
        _ => 0,
    }
}

fn round_to(value: f64, place: i32) -> f64 {
    if place > 0 {
        let unit = 10f64.powi(place);
        (value / unit).round() * unit
    } else {
        let unit = 10f64.powi(-place);
        (value * unit).round() / unit
    }
}

fn at_place(value: f64, place: i32) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let decimals = usize::try_from(-place).unwrap_or(0).min(9);
    let text = format!("{:.decimals$}", round_to(value, place.max(-9)));
    if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        return "0".into();
    }
    group(&text.replace('-', "−"))
}

fn group(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('−').map_or(("", whole), |digits| ("−", digits));
    let mut grouped = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(GROUP);
        }
        grouped.push(digit);
    }
    match rest {
        Some(rest) => grouped + "." + rest,
        None => grouped,
    }
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spaced(text: String) -> String {
        text.replace(GROUP, " ")
    }

    #[test]
    fn digits_follow_the_interval() {
        assert_eq!(spaced(rate(34118.7, Some([33797.0, 34440.4]))), "34 120 req/s (33 800–34 440)");
        assert_eq!(spaced(rate(34118.7, None)), "34 100 req/s");
        assert_eq!(spaced(estimate(34118.7, Some([34118.69, 34118.71]))), "34 119");
        assert_eq!(spaced(estimate(0.123456, Some([0.1, 0.2]))), "0.123");
        assert_eq!(spaced(estimate(5.0, Some([-100.0, 110.0]))), "5.0");
        assert_eq!(spaced(estimate(1e9, Some([0.9e9, 1.1e9]))), "1 000 000 000");
    }

    #[test]
    fn numbers_in_sentences_are_as_people_write_them() {
        assert_eq!(spaced(quantity(34_120.4)), "34 120");
        assert_eq!(spaced(quantity(1_234_567.0)), "1 234 567");
        assert_eq!([quantity(7.25), quantity(4.0), quantity(0.0)], ["7.25", "4", "0"]);
        assert_eq!(spaced(about(52_345.0)), "52 000");
        assert_eq!(about(0.1234), "0.12");
        assert_eq!([cores(2.0), cores(1.204)], ["2", "1.20"]);
        assert_eq!(spaced(prefixed(94_200_000.0, "b/s")), "94.2 Mb/s");
    }

    #[test]
    fn rounding_up_adds_no_digit() {
        assert_eq!(spaced(plain(999.6)), "1 000");
        assert_eq!(spaced(plain(9.996)), "10.0");
        assert_eq!(spaced(plain(0.0)), "0");
        assert_eq!(spaced(plain(-1234.0)), "−1 230");
        assert_eq!(spaced(plain(1e-12)), "<0.0001");
        assert_eq!(plain(f64::NAN), MISSING);
        assert_eq!(plain(f64::INFINITY), MISSING);
    }

    #[test]
    fn the_smallest_and_the_largest_numbers_are_written_with_their_intervals() {
        for value in [5e-324, 1e-305, 1e-303, 1.76e308, 1.796e308, f64::MAX] {
            let ci = [value * 0.9, value];
            let written = rate(value, Some(ci)) + &spread(value, Some(ci)) + &change_interval(value, ci);
            assert!(!written.is_empty(), "{value:e}");
        }
    }

    #[test]
    fn counts_are_exact_and_grouped() {
        assert_eq!(spaced(count(0)), "0");
        assert_eq!(spaced(count(999)), "999");
        assert_eq!(spaced(count(u64::MAX)), "18 446 744 073 709 551 615");
    }

    #[test]
    fn shares_become_percentages() {
        assert_eq!(spaced(percent(0.994)), "99 %");
        assert_eq!(spaced(percent(0.01)), "1 %");
        assert_eq!(spaced(percent(0.0042)), "0.4 %");
        assert_eq!(spaced(percent(0.0)), "0 %");
        assert_eq!(spaced(percent(1e-9)), "<0.1 %");
        assert_eq!(spaced(spread(100.0, Some([99.0, 101.0]))), "±1 %");
        assert_eq!(spread(0.0, Some([0.0, 1.0])), "");
    }

    #[test]
    fn ratios_become_changes() {
        assert_eq!(spaced(change(0.969, Some([0.96, 0.978]))), "−3.1 %");
        assert_eq!(spaced(change_interval(0.969, [0.96, 0.978])), "−4.0 to −2.2 %");
        assert_eq!(spaced(change(1.5, Some([1.1, 2.2]))), "+50 %");
        assert_eq!(spaced(change(1.0, Some([0.99, 1.01]))), "0 %");
        assert_eq!(spaced(change(2.341, None)), "+134 %");
        assert_eq!(change(f64::NAN, None), format!("{MISSING}{GROUP}%"));
    }

    #[test]
    fn times_take_the_unit_that_suits_them() {
        assert_eq!(spaced(time(117.2)), "117 µs");
        assert_eq!(spaced(time(6_400.0)), "6.40 ms");
        assert_eq!(spaced(time(12_345.0)), "12.3 ms");
        assert_eq!(spaced(time(3.6e9)), "3 600 s");
        assert_eq!(spaced(time_with_interval(117.2, Some([115.0, 119.4]))), "117.2 µs (115.0–119.4)");
        assert_eq!(spaced(elapsed(125.0)), "2 min 5 s");
        assert_eq!(spaced(elapsed(41.3)), "41 s");
        assert_eq!(spaced(axis_label(40_000.0)), "40 000");
        assert_eq!(spaced(axis_label(1.4e9)), "1.4 G");
        assert_eq!(spaced(prefixed(35_100_000.0, "B/s")), "35.1 MB/s");
    }
}
