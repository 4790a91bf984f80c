//! What a run knows of each kind of request: its share, what it costs, and how long it takes while hardly anybody waits.

use super::parts::ERROR_MIN;
use crate::run::{Identity, RequestDemand, RequestShare, Run, Step, StepRequest};
use crate::statistics::NORMAL_95;
use crate::statistics::random::Random;

/// Microseconds, and their standard error. They may be zero, as where a kind of request does not come by a tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub(super) us: f64,
    pub(super) error_us: f64,
}

/// A kind of request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KindPart {
    pub(super) name: String,
    /// Its share of the requests that completed.
    pub(super) share: f64,
    /// Its mean response time with the fewest users; `None` where that is not known.
    pub(super) alone_us: Option<Cost>,
    /// What it costs of tiers and devices, as far as it is known.
    pub(super) demands: Vec<(Identity, Cost)>,
}

/// A response time with a larger standard error than this share of it is not known.
const ALONE_ERROR_MAX: f64 = 0.3;

/// The kinds of a run, of which `first` is the step with the fewest users; none where there is only one.
pub(super) fn kinds(run: &Run, first: &Step) -> Vec<KindPart> {
    // By place: names may be the same, and beyond those that are told apart there is one entry for all.
    let kind = |(place, request): (usize, &RequestShare)| {
        let alone = first.requests.get(place).filter(|of| of.name == request.name);
        KindPart {
            name: request.name.clone(),
            share: request.share,
            alone_us: alone.and_then(alone_us),
            demands: request.demands.iter().filter_map(demand).collect(),
        }
    };
    run.requests.iter().enumerate().map(kind).collect()
}

/// Where too few completed for an interval, times are taken to vary as much as exponential ones.
fn alone_us(of: &StepRequest) -> Option<Cost> {
    let us = of.response_time_us.mean;
    let error_us = match of.response_time_us.mean_ci {
        Some([_, high]) => (high - us) / NORMAL_95,
        None => us / (of.completed as f64).sqrt(),
    };
    let is_known = us > 0.0 && us.is_finite() && error_us <= ALONE_ERROR_MAX * us;
    is_known.then_some(Cost { us, error_us: error_us.max(ERROR_MIN * us) })
}

fn demand(of: &RequestDemand) -> Option<(Identity, Cost)> {
    let (us, [_, high]) = (of.demand_us, of.demand_ci_us);
    let is_known = us >= 0.0 && us.is_finite() && high.is_finite();
    let error_us = ((high - us) / NORMAL_95).max(ERROR_MIN * us);
    Some((of.identity.clone()?, Cost { us, error_us })).filter(|_| is_known)
}

impl KindPart {
    /// What it costs of one resource; `None` where that is not known.
    pub(super) fn demand_us(&self, is_it: impl Fn(&Identity) -> bool) -> Option<f64> {
        self.demands.iter().find(|(identity, _)| is_it(identity)).map(|(_, cost)| cost.us)
    }

    /// Draws each of its times within its error, by itself.
    pub(super) fn draw(&mut self, random: &mut Random) {
        let costs = self.demands.iter_mut().map(|(_, cost)| cost).chain(&mut self.alone_us);
        costs.for_each(|cost| cost.us = (cost.us + cost.error_us * random.normal()).max(0.0));
    }
}
