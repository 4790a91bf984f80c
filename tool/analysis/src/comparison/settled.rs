//! Whether a load was long enough.

use crate::run::Run;
use crate::statistics::mean::{mean, standard_error};

/// All users begin at once, and those with short requests end their first ones early. A load shorter than so many times what
/// all but a tenth of the responses take is still about its beginning, however steady it looks: requests are counted when they
/// end, so that the long ones count by whole rounds of all users.
const SLOW_RESPONSES: f64 = 3.0;

/// Whether what was measured had settled, and yields an interval.
pub fn has_settled(run: &Run) -> bool {
    run.steps.iter().all(|step| {
        let slow_s = SLOW_RESPONSES * step.response_time_us.p90 / 1e6;
        step.steady && step.throughput_ci_per_s.is_some() && step.warmup_s + step.elapsed_s >= slow_s
    })
}

/// Loads of two lengths show the same if their throughputs differ by no more than this beyond chance.
const SAME: f64 = 0.1;

/// Whether longer loads show the throughput of shorter ones, from the logarithms of the ratios of all variants that had both:
/// their mean is within [`SAME`] and its standard error. `false` if there are none.
pub fn show_the_same(ratios: &[f64]) -> bool {
    let error = if ratios.len() > 1 { standard_error(ratios) } else { 0.0 };
    !ratios.is_empty() && mean(ratios).abs() <= SAME + error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclude::{Context, Provenance, conclude};
    use crate::run::Step;

    /// A mix of short and long bodies: half a second shows the short bodies alone, and looks steady.
    #[test]
    fn a_load_must_be_longer_than_its_slow_responses() {
        let throughput_ci_per_s = Some([90.0, 110.0]);
        let step =
            Step { elapsed_s: 0.9, warmup_s: 0.1, steady: true, throughput_ci_per_s, ..Step::default() };
        let mut run = conclude(vec![step], &Context::default()).into_run(Provenance::default());
        assert!(has_settled(&run));
        run.steps[0].response_time_us.p90 = 0.6e6;
        assert!(!has_settled(&run));
        run.steps[0].elapsed_s = 1.8;
        assert!(has_settled(&run));
        run.steps[0].steady = false;
        assert!(!has_settled(&run));
    }
}
