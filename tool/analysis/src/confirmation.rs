//! A verdict tested by experiment: whether slowing a tier slows the server.
//!
//! Where requests queue, time lost is lost for good; where there is slack, it is made up. So each tier in turn is stopped for
//! about a tenth of the time, in slices so short that the queues around it last, while more users than N* keep the load up.
//! The elasticity of throughput to the tier's speed,
//!
//! ```text
//! e = ln(X slowed / X full) / ln(1 - share of the time stopped)
//! ```
//!
//! is 1 where that tier alone is the bottleneck and 0 where it is none. This is causal profiling (Curtsinger and Berger, Coz,
//! SOSP 2015) turned round, for programs that cannot be changed: they speed a line of code up by slowing all others down.
//!
//! What goes on while processes are stopped shows in no tier: a device, a timer, a quota, another host, or shared processors
//! whose time the other tiers use up.

use crate::run::{
    Bottleneck, Confirmation, ConfirmationAnswer, Doubt, Explanation, Identity, LeftAlone, Probability,
    Processes, SlowedTier, Verdict,
};
use crate::statistics::mean::{half_width, mean};

/// Throughput follows a tier if its elasticity is certainly above this, and does not if it is certainly below.
const FOLLOWS: f64 = 0.5;
/// The holder of the bottleneck is followed, and every other tier has slack, this many times as often as chance would have it:
/// each interval errs in one of twenty trials.
const LIKELIER: f64 = 20.0;
/// With fewer blocks their scatter says nothing.
const BLOCKS_MIN: usize = 3;

/// One stretch of full speed and one of slowed, close together, so that drift does not tell them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Block {
    /// With everything at full speed.
    pub full: Stretch,
    /// With the tier slowed.
    pub slowed: Stretch,
    /// Share of the latter for which the tier was stopped, 0 to 1.
    pub stopped_share: f64,
}

/// Requests completed in some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Stretch {
    /// Requests.
    pub completed: u64,
    /// Time, microseconds.
    pub length_us: u64,
}

impl Stretch {
    /// The logarithm of requests per microsecond. Half a request more keeps it finite; among the hundreds that an answer
    /// takes, it makes no difference.
    fn ln_rate(self) -> f64 {
        ((self.completed as f64 + 0.5) / (self.length_us as f64).max(1.0)).ln()
    }
}

/// What was measured with each tier slowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trial {
    /// Users meanwhile.
    pub users: u32,
    /// The tiers that were slowed.
    pub tiers: Vec<(Processes, Vec<Block>)>,
    /// Tiers that were left alone.
    pub left_alone: Vec<LeftAlone>,
}

/// The elasticity of throughput to the tier's speed from its blocks. `None` with fewer than three.
pub fn slowed_tier(processes: &Processes, blocks: &[Block]) -> Option<SlowedTier> {
    let slowed: Vec<&Block> =
        blocks.iter().filter(|block| (0.001..0.999).contains(&block.stopped_share)).collect();
    if slowed.len() < BLOCKS_MIN {
        return None;
    }
    let elasticity =
        |block: &&Block| (block.slowed.ln_rate() - block.full.ln_rate()) / (1.0 - block.stopped_share).ln();
    let each: Vec<f64> = slowed.iter().map(elasticity).collect();
    let (elasticity, half) = (mean(&each), half_width(&each, 0.95));
    let shares: Vec<f64> = slowed.iter().map(|block| block.stopped_share).collect();
    Some(SlowedTier {
        processes: processes.clone(),
        stopped_share: mean(&shares),
        elasticity,
        elasticity_ci: [elasticity - half, elasticity + half],
    })
}

/// Tests the verdict: what the trial says of it, which makes it surer or doubtful.
pub fn confirm(verdict: &mut Verdict, trial: &Trial) -> Confirmation {
    let mut tiers: Vec<SlowedTier> =
        trial.tiers.iter().filter_map(|(processes, blocks)| slowed_tier(processes, blocks)).collect();
    tiers.sort_by(|a, b| b.elasticity.total_cmp(&a.elasticity));
    let holder = verdict.bottleneck.identity.as_ref().and_then(|identity| identity.processes());
    let answer = answer(holder, &tiers, trial);
    match &answer {
        ConfirmationAnswer::Confirmed => weigh(&mut verdict.bottleneck, &tiers),
        ConfirmationAnswer::Elsewhere { processes } => {
            weigh(&mut verdict.bottleneck, &tiers);
            verdict.doubts.push(Doubt::NotConfirmed { processes: processes.clone() });
        }
        ConfirmationAnswer::Found { processes } => {
            verdict.bottleneck.identity = Some(Identity::Processes(processes.clone()));
        }
        ConfirmationAnswer::Shared | ConfirmationAnswer::Nothing | ConfirmationAnswer::Open => {}
    }
    Confirmation { users: trial.users, tiers, left_alone: trial.left_alone.clone(), answer }
}

/// Weighs what the bottleneck may be by what the tier that holds it did. Explanations within one tier stay as probable
/// against each other as they were.
fn weigh(bottleneck: &mut Bottleneck, tiers: &[SlowedTier]) {
    let ratio = |identity: Option<&Identity>| {
        let of = identity.and_then(Identity::processes);
        let tier = of.and_then(|of| tiers.iter().find(|tier| same(of, &tier.processes)));
        match tier {
            Some(tier) if follows(tier) => LIKELIER,
            Some(tier) if has_slack(tier) => 1.0 / LIKELIER,
            _ => 1.0,
        }
    };
    let said = bottleneck.confidence.share() * ratio(bottleneck.identity.as_ref());
    let weighed = |other: &Explanation| other.probability.share() * ratio(other.identity.as_ref());
    let others: Vec<f64> = bottleneck.alternatives.iter().map(weighed).collect();
    let told: f64 = bottleneck.alternatives.iter().map(|other| other.probability.share()).sum();
    let untold = (1.0 - bottleneck.confidence.share() - told).max(0.0);
    let all = said + others.iter().sum::<f64>() + untold;
    if all > 0.0 {
        bottleneck.confidence = Probability::new(said / all);
        for (other, weight) in bottleneck.alternatives.iter_mut().zip(others) {
            other.probability = Probability::new(weight / all);
        }
    }
}

fn follows(tier: &SlowedTier) -> bool {
    tier.elasticity_ci[0] > FOLLOWS
}

fn has_slack(tier: &SlowedTier) -> bool {
    tier.elasticity_ci[1] < FOLLOWS
}

/// Whether two describe the same tier; the numbers of its processes may have changed.
fn same(a: &Processes, b: &Processes) -> bool {
    (a.role, &a.name) == (b.role, &b.name)
}

fn answer(holder: Option<&Processes>, tiers: &[SlowedTier], trial: &Trial) -> ConfirmationAnswer {
    let followed: Vec<&SlowedTier> = tiers.iter().filter(|tier| follows(tier)).collect();
    let is_holder = |tier: &SlowedTier| holder.is_some_and(|holder| same(holder, &tier.processes));
    let holder_has_slack = tiers.iter().any(|tier| is_holder(tier) && has_slack(tier));
    match followed.as_slice() {
        [] if tiers.is_empty() || !trial.left_alone.is_empty() => ConfirmationAnswer::Open,
        [] if tiers.iter().all(has_slack) => ConfirmationAnswer::Nothing,
        [one] if is_holder(one) && tiers.iter().all(|tier| is_holder(tier) || apart(one, tier)) => {
            ConfirmationAnswer::Confirmed
        }
        [one] if holder.is_none() && tiers.iter().all(|tier| tier == *one || apart(one, tier)) => {
            ConfirmationAnswer::Found { processes: one.processes.clone() }
        }
        [one, ..] if holder_has_slack => ConfirmationAnswer::Elsewhere { processes: one.processes.clone() },
        [_, _, ..] if followed.iter().any(|tier| is_holder(tier)) => ConfirmationAnswer::Shared,
        _ => ConfirmationAnswer::Open,
    }
}

/// Whether the second is certainly less decisive than the first.
fn apart(one: &SlowedTier, other: &SlowedTier) -> bool {
    other.elasticity_ci[1] < one.elasticity_ci[1].min(1.0) && other.elasticity < one.elasticity_ci[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Role;
    use crate::run::{LeftAloneReason, ResourceKind};

    fn tier(name: &str) -> Processes {
        Processes { role: Role::Server, name: name.into(), pid: Some(7), processes: 1 }
    }

    /// Blocks in which a tenth of the time costs `share` of the requests, with some noise.
    fn blocks(share: f64) -> Vec<Block> {
        let noise = [0.004, -0.003, 0.001, -0.002];
        let block = |noise: &f64| Block {
            full: Stretch { completed: 10_000, length_us: 500_000 },
            slowed: Stretch {
                completed: (10_000.0 * (1.0 - share + noise)).round() as u64,
                length_us: 500_000,
            },
            stopped_share: 0.1,
        };
        noise.iter().map(block).collect()
    }

    fn verdict_of(holder: &str) -> Verdict {
        let mut verdict = Verdict::default();
        verdict.bottleneck.kind = ResourceKind::Lock;
        verdict.bottleneck.identity = Some(Identity::Processes(tier(holder)));
        verdict.bottleneck.confidence = Probability::new(0.6);
        verdict
    }

    fn trial(shares: &[(&str, f64)]) -> Trial {
        let tiers = shares.iter().map(|(name, share)| (tier(name), blocks(*share))).collect();
        Trial { users: 16, tiers, left_alone: Vec::new() }
    }

    #[test]
    fn time_that_is_lost_for_good_has_elasticity_one_and_slack_none() {
        let found = slowed_tier(&tier("back"), &blocks(0.1)).unwrap();
        assert!((found.elasticity - 1.0).abs() < 0.02, "{found:?}");
        let [low, high] = found.elasticity_ci;
        assert!(low < 1.0 && 1.0 < high && high - low < 0.2, "{found:?}");
        assert!(slowed_tier(&tier("front"), &blocks(0.0)).unwrap().elasticity.abs() < 0.02);
        assert_eq!(
            slowed_tier(&tier("front"), &blocks(0.0)[..2]),
            None,
            "two blocks do not tell how they scatter"
        );
        let never = [Block { stopped_share: 0.0, ..Block::default() }; 5];
        assert_eq!(slowed_tier(&tier("front"), &never), None);
    }

    #[test]
    fn a_holder_that_throughput_follows_is_confirmed() {
        let mut verdict = verdict_of("back");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Confirmed);
        assert_eq!(confirmation.tiers[0].processes.name, "back", "the most decisive comes first");
        assert!(
            (verdict.bottleneck.confidence.share() - 12.0 / 12.4).abs() < 1e-9,
            "{:?}",
            verdict.bottleneck
        );
        assert!(verdict.doubts.is_empty());
    }

    #[test]
    fn a_holder_with_slack_makes_the_verdict_doubtful() {
        let mut verdict = verdict_of("front");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        let elsewhere = ConfirmationAnswer::Elsewhere { processes: tier("back") };
        assert_eq!(confirmation.answer, elsewhere);
        assert_eq!(verdict.doubts, [Doubt::NotConfirmed { processes: tier("back") }]);
        assert!(verdict.bottleneck.confidence < Probability::new(0.1), "{:?}", verdict.bottleneck);
    }

    #[test]
    fn explanations_within_one_tier_are_weighed_alike() {
        let mut verdict = verdict_of("back");
        let other = |name: &str, probability: f64| Explanation {
            identity: Some(Identity::Processes(tier(name))),
            probability: Probability::new(probability),
            ..Explanation::default()
        };
        verdict.bottleneck.alternatives = vec![other("back", 0.3), other("front", 0.1)];
        confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        let said = verdict.bottleneck.confidence.share();
        let others: Vec<f64> =
            verdict.bottleneck.alternatives.iter().map(|other| other.probability.share()).collect();
        assert!((said / others[0] - 2.0).abs() < 1e-9 && others[1] < 0.001, "{said} {others:?}");
    }

    #[test]
    fn a_tier_is_found_where_the_verdict_named_none() {
        let mut verdict = Verdict::default();
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Found { processes: tier("back") });
        assert_eq!(verdict.bottleneck.identity, Some(Identity::Processes(tier("back"))));
    }

    #[test]
    fn what_passes_while_processes_are_stopped_is_in_no_tier() {
        let mut verdict = verdict_of("front");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.0)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Nothing);
        assert!(verdict.doubts.is_empty() && verdict.bottleneck.confidence == Probability::new(0.6));
    }

    #[test]
    fn two_tiers_that_throughput_follows_share_it() {
        let mut verdict = verdict_of("front");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.09), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Shared);
    }

    #[test]
    fn a_tier_that_was_left_alone_leaves_it_open() {
        let mut verdict = verdict_of("back");
        let mut trial = trial(&[("front", 0.0)]);
        trial.left_alone = vec![LeftAlone { processes: tier("back"), reason: LeftAloneReason::OtherUser }];
        assert_eq!(confirm(&mut verdict, &trial).answer, ConfirmationAnswer::Open);
        assert!(verdict.doubts.is_empty());
    }
}
