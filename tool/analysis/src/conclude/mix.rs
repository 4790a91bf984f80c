//! A load of several kinds of request: what was asked of each, and what ran.

use crate::run::{Cause, Replaced, RequestShare, Step, StepRequest, Warning};
use crate::ticks::KINDS_APART;

/// A share that is further than this from the one asked for makes it another load.
const FAR: f64 = 0.02;

/// One kind of request, as the generator counted it over the whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestCount {
    /// Its name in the scenario.
    pub name: String,
    /// Its weight as a share of all weights, 0 to 1.
    pub asked_share: f64,
    /// How many completed.
    pub completed: u64,
    /// How often another kind took its turn, because the user had kept nothing for this one.
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
        demands: Vec::new(),
    };
    if counts.len() < 2 { Vec::new() } else { counts.iter().map(share).collect() }
}

/// The steps with the names of the kinds of request. A step that counted any of them has all of them then, in the order of the
/// scenario; none where that has only one.
pub(super) fn named(mut steps: Vec<Step>, counts: &[RequestCount]) -> Vec<Step> {
    let apart = usize::from(KINDS_APART);
    let kinds = if counts.len() < 2 { 0 } else { counts.len().min(apart + 1) };
    let is_alone = |place: usize| place < apart || counts.len() == kinds;
    for step in steps.iter_mut().filter(|step| !step.requests.is_empty()) {
        step.requests.resize_with(kinds, StepRequest::default);
        for (place, (request, count)) in step.requests.iter_mut().zip(counts).enumerate() {
            request.name = if is_alone(place) { count.name.clone() } else { String::new() };
        }
    }
    steps
}

/// A warning where the mix that ran is not the one asked for.
pub(crate) fn not_as_asked(shares: &[RequestShare]) -> Option<Warning> {
    let gap = |share: &RequestShare| (share.share - share.asked_share).abs();
    if shares.iter().all(|share| share.completed == 0) {
        return None;
    }
    let far = shares.iter().filter(|share| gap(share) > FAR);
    let worst = far.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let replaced = shares.iter().filter(|share| share.replaced > 0);
    let cause = Cause::Mix {
        request: worst.name.clone(),
        share: worst.share,
        asked: worst.asked_share,
        replaced: replaced
            .map(|share| Replaced { request: share.name.clone(), times: share.replaced })
            .collect(),
    };
    Some(cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(name: &str, asked_share: f64, completed: u64, replaced: u64) -> RequestCount {
        RequestCount { name: name.to_owned(), asked_share, completed, replaced }
    }

    #[test]
    fn a_mix_as_asked_needs_no_warning() {
        let shares = mix(&[counted("book", 0.7, 710, 0), counted("cancel", 0.3, 290, 10)]);
        assert_eq!((shares[0].share, shares[1].share), (0.71, 0.29));
        assert_eq!(not_as_asked(&shares), None);
    }

    #[test]
    fn a_mix_that_could_not_be_made_is_warned_of() {
        let shares = mix(&[counted("book", 0.3, 500, 0), counted("cancel", 0.7, 500, 400)]);
        let warning = not_as_asked(&shares).expect("a warning");
        let Cause::Mix { share, replaced, .. } = warning.cause else { panic!("{warning:?}") };
        assert_eq!(share, 0.5);
        assert_eq!(replaced, [Replaced { request: "cancel".to_owned(), times: 400 }]);
    }

    fn step(kinds: usize) -> Step {
        Step { requests: vec![StepRequest::default(); kinds], ..Step::default() }
    }

    fn names(steps: &[Step], kinds: u32) -> Vec<Vec<String>> {
        let counts: Vec<_> = (0..kinds).map(|kind| counted(&kind.to_string(), 0.1, 1, 0)).collect();
        let names = |step: Step| step.requests.into_iter().map(|request| request.name).collect::<Vec<_>>();
        named(steps.to_vec(), &counts).into_iter().map(names).collect()
    }

    #[test]
    fn every_step_has_all_kinds_by_name() {
        let steps = [step(1), step(0), step(3)];
        let three = ["0", "1", "2"].map(str::to_owned).to_vec();
        assert_eq!(names(&steps, 3), [three.clone(), Vec::new(), three]);
        assert!(names(&steps, 1).iter().all(Vec::is_empty), "one kind is not told apart");
    }

    #[test]
    fn kinds_beyond_the_limit_have_no_name_but_where_there_is_one_of_them() {
        let last = |kinds| names(&[step(33)], kinds)[0].last().cloned();
        assert_eq!([32, 33, 34, 900].map(last), ["31", "32", "", ""].map(|name| Some(name.to_owned())));
        assert_eq!(names(&[step(33)], 900)[0].len(), 33);
    }

    #[test]
    fn nothing_to_say_of_one_kind_or_of_none_that_completed() {
        assert_eq!(mix(&[counted("GET /", 1.0, 5, 0)]), []);
        assert_eq!(not_as_asked(&mix(&[counted("a", 0.7, 0, 0), counted("b", 0.3, 0, 0)])), None);
    }
}
