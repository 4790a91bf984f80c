//! A load of several kinds of request: what was asked of each, and what ran.

use crate::run::{RequestShare, Warning, WarningKind};
use crate::words::{count, percent};

/// A share further from the one asked for than this is another load than was asked for.
const FAR: f64 = 0.02;

/// One kind of request, as the generator counted it over the whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestCount {
    /// What the scenario calls it.
    pub name: String,
    /// Its weight as a share of all weights, 0 to 1.
    pub asked_share: f64,
    /// How many completed.
    pub completed: u64,
    /// How often another was made in its turn, for the user had kept nothing that it could take.
    pub replaced: u64,
}

/// The shares that ran. Empty where there is only one kind of request.
pub fn mix(counts: &[RequestCount]) -> Vec<RequestShare> {
    let all = counts.iter().fold(0u64, |sum, count| sum.saturating_add(count.completed));
    let share = |count: &RequestCount| RequestShare {
        name: count.name.clone(),
        asked_share: count.asked_share,
        share: count.completed as f64 / all.max(1) as f64,
        completed: count.completed,
        replaced: count.replaced,
    };
    if counts.len() < 2 { Vec::new() } else { counts.iter().map(share).collect() }
}

/// Says so where the mix that ran is not the one asked for.
pub(crate) fn not_as_asked(shares: &[RequestShare]) -> Option<Warning> {
    let far = |share: &&RequestShare| (share.share - share.asked_share).abs() > FAR;
    if shares.iter().all(|share| share.completed == 0) {
        return None;
    }
    let worst = shares.iter().filter(far).max_by(|a, b| {
        let gap = |share: &RequestShare| (share.share - share.asked_share).abs();
        gap(a).total_cmp(&gap(b))
    })?;
    let replaced = shares.iter().filter(|share| share.replaced > 0).map(|share| {
        let times = count(share.replaced as f64);
        format!(" {times} times a user had nothing to take for {}, and made another request.", share.name)
    });
    let text = format!(
        "{} was to be {} of the requests, and was {} of those that completed.{}",
        worst.name,
        percent(worst.asked_share),
        percent(worst.share),
        replaced.collect::<String>()
    );
    Some(Warning { kind: WarningKind::Mix, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(name: &str, asked_share: f64, completed: u64, replaced: u64) -> RequestCount {
        RequestCount { name: name.to_owned(), asked_share, completed, replaced }
    }

    #[test]
    fn a_mix_as_asked_needs_no_word() {
        let shares = mix(&[counted("book", 0.7, 710, 0), counted("cancel", 0.3, 290, 10)]);
        assert_eq!((shares[0].share, shares[1].share), (0.71, 0.29));
        assert_eq!(not_as_asked(&shares), None);
    }

    #[test]
    fn a_mix_that_could_not_be_is_told() {
        let shares = mix(&[counted("book", 0.3, 500, 0), counted("cancel", 0.7, 500, 400)]);
        let text = not_as_asked(&shares).expect("a warning").text;
        assert!(text.contains("50 % of those that completed"), "{text}");
        assert!(text.contains("400 times a user had nothing to take for cancel"), "{text}");
    }

    #[test]
    fn nothing_to_say_of_one_kind_or_of_none_that_completed() {
        assert_eq!(mix(&[counted("GET /", 1.0, 5, 0)]), []);
        assert_eq!(not_as_asked(&mix(&[counted("a", 0.7, 0, 0), counted("b", 0.3, 0, 0)])), None);
    }
}
