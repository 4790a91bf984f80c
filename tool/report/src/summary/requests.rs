//! The kinds of request, where there are several: what was measured of each at the step that the verdict is about.

use analysis::run::{Identity, Percentile, RequestDemand, Run, Step, StepRequest};

use crate::words;

/// Names all kinds that were not told apart.
const OTHERS: &str = "all others";

/// One of several kinds of request.
pub(crate) struct OfKind<'a> {
    pub(crate) measured: &'a StepRequest,
    /// Its weight as a share of all weights; `None` of all others together.
    pub(crate) asked_share: Option<f64>,
    /// What one of them costs, over the whole run.
    demands: &'a [RequestDemand],
}

/// The kinds in the order of the scenario, and the step. `None` where there is one kind, where nothing came back, and of files
/// from before response times of each were kept.
pub(crate) fn requests(run: &Run) -> Option<(&Step, Vec<OfKind<'_>>)> {
    let step = run.verdict_step().filter(|step| !step.requests.is_empty())?;
    let kinds = step.requests.iter().enumerate().map(|(place, measured)| {
        let asked = run.requests.get(place).filter(|asked| asked.name == measured.name);
        OfKind {
            measured,
            asked_share: asked.map(|asked| asked.asked_share),
            demands: asked.map(|asked| asked.demands.as_slice()).unwrap_or_default(),
        }
    });
    Some((step, kinds.collect()))
}

/// The tiers of which it is known what some kind of request costs their processors, in the order of the run file.
pub(crate) fn tiers<'a>(kinds: &[OfKind<'a>]) -> Vec<&'a Identity> {
    let all = kinds.iter().flat_map(|kind| kind.demands).filter_map(|demand| demand.identity.as_ref());
    let mut tiers: Vec<&Identity> = Vec::new();
    for identity in all.filter(|identity| matches!(identity, Identity::Processes(_))) {
        if !tiers.contains(&identity) {
            tiers.push(identity);
        }
    }
    tiers
}

/// What tells this step from others: ` at 8 users`, or nothing where there is only one.
pub(crate) fn at(run: &Run, step: &Step) -> String {
    if run.steps.len() > 1 { format!(" at {}", words::users(step.users)) } else { String::new() }
}

impl OfKind<'_> {
    pub(crate) fn name(&self) -> &str {
        Some(self.measured.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(OTHERS)
    }

    /// What one of them costs of the processors of a tier; `None` where that is not known.
    pub(crate) fn cpu(&self, tier: &Identity) -> Option<&RequestDemand> {
        self.demands.iter().find(|demand| demand.identity.as_ref() == Some(tier))
    }

    /// `None` where none completed.
    pub(crate) fn mean_us(&self) -> Option<f64> {
        (self.measured.completed > 0).then_some(self.measured.response_time_us.mean)
    }

    /// `None` where there are too few for it.
    pub(crate) fn percentile_us(&self, percentile: &Percentile) -> Option<f64> {
        let time = &self.measured.response_time_us;
        percentile.read(time).filter(|_| time.samples > 0)
    }

    /// `None` where there was none.
    pub(crate) fn longest_us(&self) -> Option<f64> {
        let time = &self.measured.response_time_us;
        (time.samples > 0).then_some(time.max)
    }
}
