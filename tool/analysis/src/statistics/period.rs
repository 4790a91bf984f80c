//! The period of a series, from its autocorrelation, and how many observations to join so that the period does not show.
//!
//! Means over a length that is not a multiple of the period keep a part of it, and successive ones show it as a slow wave (an
//! alias) that looks like a change of level.

/// Shorter periods average out in any group.
const SHORTEST: usize = 3;

/// Longest period looked for, in observations.
const LONGEST: usize = 50;

/// How many standard errors of no correlation the correlation at the period has to reach: the largest of many lags is
/// looked at.
const EVIDENT: f64 = 4.0;

/// A group that keeps less of the period's amplitude than this is long enough.
const KEPT: f64 = 0.025;

/// The length of a group: at least `shortest` and at most `longest` observations, and as near to whole periods of the series
/// as can be; the shortest where it has no period.
pub(crate) fn group_length(values: &[f64], shortest: usize, longest: usize) -> usize {
    let Some(period) = period(values) else { return shortest };
    let kept = |length: &usize| {
        let turns = std::f64::consts::PI * *length as f64 / period;
        turns.sin().abs() / turns
    };
    let mut lengths = shortest..=longest.max(shortest);
    let enough = lengths.clone().find(|length| kept(length) < KEPT);
    enough.or_else(|| lengths.by_ref().min_by(|a, b| kept(a).total_cmp(&kept(b)))).unwrap_or(shortest)
}

/// The period of a series, in observations; `None` where none stands out.
pub(crate) fn period(values: &[f64]) -> Option<f64> {
    let most = (values.len() / 3).min(LONGEST);
    let correlations = autocorrelations(values, most + 1)?;
    let evident = EVIDENT / (values.len() as f64).sqrt();
    let is_peak = |lag: &usize| {
        let [before, at, after] = [lag - 1, *lag, lag + 1].map(|lag| correlations[lag]);
        at >= before && at >= after && at > evident
    };
    // Between the series and itself one period later lies a trough: noise that fades has none.
    let trough = (1..most).find(|lag| correlations[*lag] < 0.0)?;
    let first = (trough.max(SHORTEST)..most).find(is_peak)?;
    Some(refined(&correlations, first, most))
}

/// The period by the last of its multiples that is still a peak: there, an error of half an observation is shared by all of
/// them.
fn refined(correlations: &[f64], first: usize, most: usize) -> f64 {
    let mut period = first as f64;
    for multiple in 2.. {
        let expected = period * f64::from(multiple);
        // The period is known to half an observation over the multiples so far.
        let (low, high) = (expected.floor() as usize - 1, expected.ceil() as usize + 1);
        if high >= most {
            break;
        }
        let highest = (low..=high).max_by(|a, b| correlations[*a].total_cmp(&correlations[*b]));
        let Some(highest) = highest.filter(|lag| correlations[*lag] > correlations[first] / 2.0) else {
            break;
        };
        period = highest as f64 / f64::from(multiple);
    }
    period
}

/// Correlation of the series with itself at lags 0, 1, .. `most`; `None` for a constant series, or one too short.
fn autocorrelations(values: &[f64], most: usize) -> Option<Vec<f64>> {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let left: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let squares: f64 = left.iter().map(|value| value * value).sum();
    let at = |lag: usize| {
        let product: f64 = left.iter().zip(left.iter().skip(lag)).map(|(a, b)| a * b).sum();
        product / squares * count as f64 / (count - lag) as f64
    };
    (most > SHORTEST && most < count && squares > 1e-9 * mean * mean).then(|| (0..=most).map(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(period: f64, noise: f64, count: u32) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(3);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let at = |index: u32| 10.0 + (std::f64::consts::TAU * f64::from(index) / period).sin();
        (0..count).map(|index| at(index) + noise * normal()).collect()
    }

    #[test]
    fn finds_periods_that_are_no_whole_number_of_observations() {
        for expected in [4.0, 4.9, 5.0, 5.15, 7.3, 12.5, 20.0] {
            let found = period(&wave(expected, 0.3, 150)).expect("a period");
            assert!((found / expected - 1.0).abs() < 0.025, "{found}, not {expected}");
        }
    }

    #[test]
    fn noise_has_no_period() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut found = 0;
        for _ in 0..500 {
            let noise: Vec<f64> = (0..100).map(|_| random.f64()).collect();
            found += usize::from(period(&noise).is_some());
        }
        assert!(found <= 5, "{found} of 500");
        assert_eq!((period(&[]), period(&[1.0; 100]), period(&[1.0, 2.0])), (None, None, None));
    }

    #[test]
    fn groups_are_whole_periods() {
        assert_eq!(group_length(&wave(5.0, 0.1, 150), 5, 25), 5);
        assert_eq!(group_length(&wave(4.0, 0.1, 150), 5, 25), 8);
        assert_eq!(group_length(&wave(5.5, 0.1, 200), 5, 25), 11);
        assert_eq!(group_length(&[1.0; 100], 5, 25), 5);
    }
}
