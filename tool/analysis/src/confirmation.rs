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
//! whose time the other tiers use up. Two of these have a limit that can be lowered by a tenth instead: a CPU quota and the rate
//! of a link ([`SlowedBy`]). It is the limit that is lowered and never what is used: by the utilisation law (X = U / D)
//! throughput follows whatever is held below what a tier uses, the bottleneck or not. So the share is that of the limit, and a
//! limit with more slack than it lost has elasticity 0.

use std::mem::swap;

use crate::run::{
    Bottleneck, Confirmation, ConfirmationAnswer, Doubt, Explanation, Identity, LeftAlone, Probability,
    Processes, ResourceKind, Slowable, SlowedBy, SlowedTier, TellApart, Verdict,
};
use crate::statistics::mean::{half_width, mean};
use crate::verdict::{SUREST, Tried, undecided};

/// Throughput follows a tier if its elasticity is certainly above this, and does not if it is certainly below.
const FOLLOWS: f64 = 0.5;
/// The holder of the bottleneck is followed, and every other tier has slack, this many times as often as chance would have it:
/// each interval errs in one of twenty trials.
const LIKELIER: f64 = 20.0;
/// Where a tier is as sure as this to hold the bottleneck, slowing it would change little.
const SURE: f64 = 0.9;
/// With fewer blocks their scatter says nothing.
const BLOCKS_MIN: usize = 3;

/// One stretch of full speed and one of slowed, close together, so that drift does not tell them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Block {
    /// With everything at full speed.
    pub full: Stretch,
    /// With the tier slowed.
    pub slowed: Stretch,
    /// Share of the latter for which the tier was stopped, or by which its limit was lower, 0 to 1.
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
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// The tiers that were slowed.
    pub tiers: Vec<Slowed>,
    /// Tiers that were left alone.
    pub left_alone: Vec<LeftAlone>,
}

/// What was measured with one tier slowed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slowed {
    /// The tier.
    pub tier: Slowable,
    /// By what means it was slowed.
    pub by: SlowedBy,
    /// The measurements.
    pub blocks: Vec<Block>,
}

/// The elasticity of throughput to the tier's speed from its blocks. `None` with fewer than three.
pub fn slowed_tier(of: &Slowed) -> Option<SlowedTier> {
    let slowed: Vec<&Block> =
        of.blocks.iter().filter(|block| (0.001..0.999).contains(&block.stopped_share)).collect();
    if slowed.len() < BLOCKS_MIN {
        return None;
    }
    let elasticity =
        |block: &&Block| (block.slowed.ln_rate() - block.full.ln_rate()) / (1.0 - block.stopped_share).ln();
    let each: Vec<f64> = slowed.iter().map(elasticity).collect();
    let (elasticity, half) = (mean(&each), half_width(&each, 0.95));
    let shares: Vec<f64> = slowed.iter().map(|block| block.stopped_share).collect();
    Some(SlowedTier {
        tier: of.tier.clone(),
        by: of.by,
        stopped_share: mean(&shares),
        elasticity,
        elasticity_ci: [elasticity - half, elasticity + half],
    })
}

/// Tests the verdict: what the trial says of it, which makes it surer or doubtful.
pub fn confirm(verdict: &mut Verdict, trial: &Trial) -> Confirmation {
    let mut tiers: Vec<SlowedTier> = trial.tiers.iter().filter_map(slowed_tier).collect();
    tiers.sort_by(|a, b| b.elasticity.total_cmp(&a.elasticity));
    let Trial { users, elapsed_s, ref left_alone, .. } = *trial;
    let answer = answer(&verdict.bottleneck, &tiers, left_alone);
    match &answer {
        ConfirmationAnswer::Confirmed => weigh(&mut verdict.bottleneck, &tiers),
        ConfirmationAnswer::Elsewhere(tier) => {
            weigh(&mut verdict.bottleneck, &tiers);
            verdict.doubts.push(Doubt::NotConfirmed(tier.clone()));
        }
        ConfirmationAnswer::Found(tier) => found(&mut verdict.bottleneck, tier),
        // It says nothing of what goes on while processes are stopped, but it does of a limit that was lowered.
        ConfirmationAnswer::Nothing => refuted(&mut verdict.bottleneck, &with_lower_limit(&tiers)),
        ConfirmationAnswer::Shared | ConfirmationAnswer::Open => {}
    }
    Confirmation { users, elapsed_s, tiers, left_alone: left_alone.clone(), answer }
}

/// Whether slowing tiers may change what is said: the bottleneck is one that processes may hold, and it is not sure which of
/// them do. What may be the matter within one tier is no reason, as slowing it does not tell.
pub fn is_called_for(bottleneck: &Bottleneck) -> bool {
    let held = !matches!(bottleneck.kind, ResourceKind::None | ResourceKind::Generator);
    let open = match bottleneck.identity.as_ref().map(Identity::processes) {
        None => true,
        Some(None) => false,
        Some(Some(holder)) => share_of(bottleneck, holder) < SURE,
    };
    held && open
}

/// Holds the verdict of another measurement of the same server against what slowing its tiers showed: this makes the most
/// probable explanation the verdict.
pub fn carry(verdict: &mut Verdict, shown: &Confirmation) {
    let bottleneck = &mut verdict.bottleneck;
    let told = matches!(
        shown.answer,
        ConfirmationAnswer::Confirmed | ConfirmationAnswer::Elsewhere(_) | ConfirmationAnswer::Found(_)
    );
    // No tier that is followed speaks against a device: while its processes are stopped, nobody asks anything of it.
    if !told || (bottleneck.identity.is_some() && holder(bottleneck, &shown.tiers).is_none()) {
        return;
    }
    if bottleneck.kind != ResourceKind::Unknown {
        weigh(bottleneck, &shown.tiers);
        most_probable_first(bottleneck);
    }
    match answer(bottleneck, &shown.tiers, &shown.left_alone) {
        ConfirmationAnswer::Elsewhere(tier) => verdict.doubts.push(Doubt::NotConfirmed(tier)),
        ConfirmationAnswer::Found(tier) => found(bottleneck, &tier),
        _ => {}
    }
    let pair = !verdict
        .doubts
        .iter()
        .any(|doubt| matches!(doubt, Doubt::Undecided { tell_apart: TellApart::PairTest, .. }));
    verdict.doubts.retain(|doubt| !doubt.is_about_the_cause());
    verdict.doubts.extend(undecided(&verdict.bottleneck, Tried { pair, slowed: true }));
}

/// What holds the bottleneck, where it is processes or was slowed itself.
fn holder<'a>(bottleneck: &'a Bottleneck, tiers: &[SlowedTier]) -> Option<&'a Identity> {
    let was_slowed = |of: &Identity| tiers.iter().any(|slowed| slowed.tier.is(of));
    bottleneck.identity.as_ref().filter(|of| of.processes().is_some() || was_slowed(of))
}

/// Those of which a limit was lowered.
fn with_lower_limit(tiers: &[SlowedTier]) -> Vec<SlowedTier> {
    tiers.iter().filter(|slowed| slowed.by != SlowedBy::Stopping).cloned().collect()
}

/// Whether slowing by these means tells anything of a limit of this kind. Processes that are stopped for a part of the time
/// use up their quota all the same, and a limit that is lower tells of itself alone.
fn tells(by: SlowedBy, kind: ResourceKind) -> bool {
    match by {
        SlowedBy::Stopping => kind != ResourceKind::CpuQuota,
        SlowedBy::Quota => kind == ResourceKind::CpuQuota,
        SlowedBy::Rate => kind == ResourceKind::Network,
    }
}

/// How probable it is that these processes hold the bottleneck, whatever is the matter with them.
fn share_of(bottleneck: &Bottleneck, processes: &Processes) -> f64 {
    let said = (bottleneck.identity.as_ref(), bottleneck.confidence);
    let others = bottleneck.alternatives.iter().map(|other| (other.identity.as_ref(), other.probability));
    let is_theirs = |identity: Option<&Identity>| {
        identity.and_then(Identity::processes).is_some_and(|of| of.are(processes))
    };
    let theirs = std::iter::once(said).chain(others).filter(|(identity, _)| is_theirs(*identity));
    theirs.map(|(_, probability)| probability.share()).sum()
}

/// Names the tier that throughput follows where nothing was named.
fn found(bottleneck: &mut Bottleneck, tier: &Slowable) {
    bottleneck.identity.get_or_insert_with(|| tier.identity());
}

/// Makes limits that may be lower without harm as improbable as that shows, and what is most probable then the verdict.
fn refuted(bottleneck: &mut Bottleneck, limits: &[SlowedTier]) {
    if !limits.is_empty() && bottleneck.kind != ResourceKind::Unknown {
        weigh(bottleneck, limits);
        most_probable_first(bottleneck);
    }
}

/// Says what is most probable now, and as an alternative what was said before.
fn most_probable_first(bottleneck: &mut Bottleneck) {
    bottleneck.alternatives.sort_by(|a, b| b.probability.share().total_cmp(&a.probability.share()));
    let first = bottleneck.alternatives.first_mut();
    if let Some(first) = first.filter(|first| first.probability > bottleneck.confidence) {
        swap(&mut first.kind, &mut bottleneck.kind);
        swap(&mut first.identity, &mut bottleneck.identity);
        swap(&mut first.at_a_time, &mut bottleneck.at_a_time);
        swap(&mut first.probability, &mut bottleneck.confidence);
        // What was evidence of the one is none of the other.
        (bottleneck.utilization, bottleneck.demand_us, bottleneck.threads) = (None, None, None);
        bottleneck.findings.clear();
    }
}

/// Weighs what the bottleneck may be by what the tier that holds it did. Explanations within one tier of which that tells
/// stay as probable against each other as they were, and none gets surer than any may be.
fn weigh(bottleneck: &mut Bottleneck, tiers: &[SlowedTier]) {
    let ratio = |kind: ResourceKind, identity: Option<&Identity>| {
        let slowed = identity.and_then(|of| tiers.iter().find(|slowed| slowed.tier.is(of)));
        match slowed.filter(|slowed| tells(slowed.by, kind)) {
            Some(tier) if follows(tier) => LIKELIER,
            Some(tier) if has_slack(tier) => 1.0 / LIKELIER,
            _ => 1.0,
        }
    };
    let said = bottleneck.confidence.share() * ratio(bottleneck.kind, bottleneck.identity.as_ref());
    let weighed =
        |other: &Explanation| other.probability.share() * ratio(other.kind, other.identity.as_ref());
    let others: Vec<f64> = bottleneck.alternatives.iter().map(weighed).collect();
    let told: f64 = bottleneck.alternatives.iter().map(|other| other.probability.share()).sum();
    let untold = (1.0 - bottleneck.confidence.share() - told).max(0.0);
    let all = said + others.iter().sum::<f64>() + untold;
    if all > 0.0 {
        let share = |weight: f64| Probability::new((weight / all).min(SUREST));
        bottleneck.confidence = share(said);
        for (other, weight) in bottleneck.alternatives.iter_mut().zip(others) {
            other.probability = share(weight);
        }
    }
}

fn follows(tier: &SlowedTier) -> bool {
    tier.elasticity_ci[0] > FOLLOWS
}

fn has_slack(tier: &SlowedTier) -> bool {
    tier.elasticity_ci[1] < FOLLOWS
}

fn answer(bottleneck: &Bottleneck, tiers: &[SlowedTier], left_alone: &[LeftAlone]) -> ConfirmationAnswer {
    let holder = holder(bottleneck, tiers);
    let followed: Vec<&SlowedTier> = tiers.iter().filter(|tier| follows(tier)).collect();
    let is_holder = |slowed: &SlowedTier| holder.is_some_and(|of| slowed.tier.is(of));
    let holder_has_slack = tiers.iter().any(|tier| is_holder(tier) && has_slack(tier));
    let is_shown = |slowed: &SlowedTier| is_holder(slowed) && tells(slowed.by, bottleneck.kind);
    match followed.as_slice() {
        [] if tiers.is_empty() || left_alone.iter().any(|one| is_untested(one, tiers)) => {
            ConfirmationAnswer::Open
        }
        [] if tiers.iter().all(has_slack) => ConfirmationAnswer::Nothing,
        [one] if is_shown(one) && tiers.iter().all(|tier| is_holder(tier) || apart(one, tier)) => {
            ConfirmationAnswer::Confirmed
        }
        [one] if holder.is_none() && tiers.iter().all(|tier| tier == *one || apart(one, tier)) => {
            ConfirmationAnswer::Found(one.tier.clone())
        }
        [one, ..] if holder_has_slack => ConfirmationAnswer::Elsewhere(one.tier.clone()),
        [_, _, ..] if followed.iter().any(|tier| is_holder(tier)) => ConfirmationAnswer::Shared,
        _ => ConfirmationAnswer::Open,
    }
}

/// Whether nothing is known of processes that were left alone. A link, or a quota of processes that were stopped, is among what
/// goes on meanwhile.
fn is_untested(left_alone: &LeftAlone, tiers: &[SlowedTier]) -> bool {
    let LeftAlone { tier, .. } = left_alone;
    tier.link.is_none() && !tiers.iter().any(|slowed| slowed.tier.is(&tier.identity()))
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
        Processes { role: Role::Server, name: name.into(), pid: Some(7), processes: 1, on: None }
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

    fn slowed(of: impl Into<Slowable>, by: SlowedBy, share: f64) -> Slowed {
        Slowed { tier: of.into(), by, blocks: blocks(share) }
    }

    fn stopped(name: &str, share: f64) -> Slowed {
        slowed(tier(name), SlowedBy::Stopping, share)
    }

    fn verdict_of(holder: &str) -> Verdict {
        let mut verdict = Verdict::default();
        verdict.bottleneck.kind = ResourceKind::Lock;
        verdict.bottleneck.identity = Some(Identity::Processes(tier(holder)));
        verdict.bottleneck.confidence = Probability::new(0.6);
        verdict
    }

    fn trial(shares: &[(&str, f64)]) -> Trial {
        trial_of(shares.iter().map(|(name, share)| stopped(name, *share)).collect())
    }

    fn trial_of(tiers: Vec<Slowed>) -> Trial {
        Trial { users: 16, tiers, ..Trial::default() }
    }

    #[test]
    fn time_that_is_lost_for_good_has_elasticity_one_and_slack_none() {
        let found = slowed_tier(&stopped("back", 0.1)).unwrap();
        assert!((found.elasticity - 1.0).abs() < 0.02, "{found:?}");
        let [low, high] = found.elasticity_ci;
        assert!(low < 1.0 && 1.0 < high && high - low < 0.2, "{found:?}");
        let mut front = stopped("front", 0.0);
        assert!(slowed_tier(&front).unwrap().elasticity.abs() < 0.02);
        front.blocks.truncate(2);
        assert_eq!(slowed_tier(&front), None, "two blocks do not tell how they scatter");
        front.blocks = vec![Block { stopped_share: 0.0, ..Block::default() }; 5];
        assert_eq!(slowed_tier(&front), None);
    }

    #[test]
    fn a_holder_that_throughput_follows_is_confirmed() {
        let mut verdict = verdict_of("back");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Confirmed);
        assert_eq!(confirmation.tiers[0].tier.processes.name, "back", "the most decisive comes first");
        assert!(
            (verdict.bottleneck.confidence.share() - 12.0 / 12.4).abs() < 1e-9,
            "{:?}",
            verdict.bottleneck
        );
        assert!(verdict.doubts.is_empty());
    }

    /// Tiers of one name on two hosts are two.
    #[test]
    fn a_tier_on_another_host_is_not_confirmed_by_one_of_its_name_here() {
        let mut verdict = verdict_of("back");
        if let Some(Identity::Processes(of)) = &mut verdict.bottleneck.identity {
            of.on = Some("b".into());
        }
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_ne!(confirmation.answer, ConfirmationAnswer::Confirmed);
        assert!(verdict.bottleneck.confidence <= Probability::new(0.6), "{:?}", verdict.bottleneck);
    }

    #[test]
    fn a_holder_with_slack_makes_the_verdict_doubtful() {
        let mut verdict = verdict_of("front");
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Elsewhere(tier("back").into()));
        assert_eq!(verdict.doubts, [Doubt::NotConfirmed(tier("back").into())]);
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

    /// A verdict of 87 % became one of 99 %.
    #[test]
    fn no_test_makes_a_verdict_surer_than_any_may_be() {
        let trial = trial(&[("front", 0.0), ("back", 0.1)]);
        let mut verdict = verdict_of("back");
        verdict.bottleneck.confidence = Probability::new(0.87);
        verdict.bottleneck.alternatives = vec![explanation("front", 0.1)];
        let shown = confirm(&mut verdict, &trial);
        assert_eq!(verdict.bottleneck.confidence, Probability::new(SUREST));
        let mut refuted = verdict_of("front");
        refuted.bottleneck.confidence = Probability::new(0.05);
        refuted.bottleneck.alternatives = vec![explanation("back", 0.9)];
        carry(&mut refuted, &shown);
        let Bottleneck { confidence, alternatives, .. } = &refuted.bottleneck;
        assert_eq!(*confidence, Probability::new(SUREST), "{alternatives:?}");
        let all: f64 = alternatives.iter().map(|other| other.probability.share()).sum();
        assert!(all + confidence.share() <= 1.0, "{alternatives:?}");
    }

    #[test]
    fn a_tier_is_found_where_the_verdict_named_none() {
        let mut verdict = Verdict::default();
        let confirmation = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(confirmation.answer, ConfirmationAnswer::Found(tier("back").into()));
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
        trial.left_alone = vec![LeftAlone { tier: tier("back").into(), reason: LeftAloneReason::OtherUser }];
        assert_eq!(confirm(&mut verdict, &trial).answer, ConfirmationAnswer::Open);
        assert!(verdict.doubts.is_empty());
    }

    fn quota_of(holder: &str) -> Verdict {
        let mut verdict = verdict_of(holder);
        verdict.bottleneck.kind = ResourceKind::CpuQuota;
        verdict.bottleneck.identity = Some(Identity::Quota(tier(holder)));
        verdict.bottleneck.alternatives = vec![explanation(holder, 0.3)];
        verdict
    }

    /// Of a lock of the same processes it says nothing.
    #[test]
    fn a_quota_is_confirmed_by_lowering_it() {
        let mut verdict = quota_of("back");
        let lower = slowed(tier("back"), SlowedBy::Quota, 0.1);
        let shown = confirm(&mut verdict, &trial_of(vec![stopped("front", 0.0), lower]));
        assert_eq!((shown.answer, shown.tiers[0].by), (ConfirmationAnswer::Confirmed, SlowedBy::Quota));
        let Bottleneck { confidence, alternatives, .. } = &verdict.bottleneck;
        let odds = confidence.share() / alternatives[0].probability.share();
        assert!((odds - 40.0).abs() < 1e-9, "{verdict:?}");
    }

    #[test]
    fn a_quota_that_may_be_lower_without_harm_is_not_the_limit() {
        let mut verdict = quota_of("back");
        let lower = slowed(tier("back"), SlowedBy::Quota, 0.0);
        let shown = confirm(&mut verdict, &trial_of(vec![stopped("front", 0.0), lower]));
        assert_eq!(shown.answer, ConfirmationAnswer::Nothing);
        // So it is what else it may be.
        let Bottleneck { kind, identity, confidence, alternatives, .. } = &verdict.bottleneck;
        assert_eq!((*kind, identity), (ResourceKind::WorkerPool, &Some(Identity::Processes(tier("back")))));
        assert!(*confidence > Probability::new(0.6), "{verdict:?}");
        assert_eq!(alternatives[0].kind, ResourceKind::CpuQuota);
        assert!(alternatives[0].probability < Probability::new(0.1), "{verdict:?}");
    }

    /// A full processor of the same processes would show in a lower quota as well, and a lock behind it would not.
    #[test]
    fn a_lower_quota_tells_nothing_of_full_processors() {
        let mut verdict = verdict_of("back");
        verdict.bottleneck.kind = ResourceKind::Cpu;
        let lower = slowed(tier("back"), SlowedBy::Quota, 0.1);
        let shown = confirm(&mut verdict, &trial_of(vec![stopped("front", 0.0), lower]));
        assert_ne!(shown.answer, ConfirmationAnswer::Confirmed);
        assert!((verdict.bottleneck.confidence.share() - 0.6).abs() < 1e-9, "{verdict:?}");
    }

    #[test]
    fn a_link_that_may_be_slower_without_harm_is_no_longer_the_verdict() {
        let identity = Identity::Link { name: "eth0".into(), on: None };
        let mut verdict = verdict_of("front");
        verdict.bottleneck.kind = ResourceKind::Network;
        verdict.bottleneck.identity = Some(identity.clone());
        verdict.bottleneck.alternatives = vec![explanation("front", 0.3)];
        let lower = slowed(Slowable::of(&identity).unwrap(), SlowedBy::Rate, 0.0);
        let shown = confirm(&mut verdict, &trial_of(vec![stopped("front", 0.0), lower]));
        assert_eq!(shown.answer, ConfirmationAnswer::Nothing);
        assert_eq!(verdict.bottleneck.identity, Some(Identity::Processes(tier("front"))));
        assert_eq!(verdict.bottleneck.alternatives[0].identity, Some(identity));
    }

    /// What is stopped for a part of the time spends its quota all the same.
    #[test]
    fn stopping_processes_says_nothing_of_their_quota() {
        let mut verdict = quota_of("back");
        let shown = confirm(&mut verdict, &trial(&[("front", 0.0), ("back", 0.1)]));
        assert_eq!(shown.answer, ConfirmationAnswer::Open);
        let mut verdict = quota_of("back");
        let mut slack = trial(&[("front", 0.0), ("back", 0.0)]);
        // That the quota stayed as it was leaves nothing open that stopping would tell.
        let reason = LeftAloneReason::QuotaNeedsRoot;
        slack.left_alone = vec![LeftAlone { tier: tier("back").into(), reason }];
        assert_eq!(confirm(&mut verdict, &slack).answer, ConfirmationAnswer::Nothing);
        assert!((verdict.bottleneck.confidence.share() - 0.6).abs() < 1e-9, "{verdict:?}");
    }

    #[test]
    fn a_link_is_confirmed_or_refuted_like_a_tier() {
        let identity = Identity::Link { name: "eth0".into(), on: None };
        let link = || Slowable::of(&identity).unwrap();
        let of_link = |share: f64, front: f64| {
            let mut verdict = verdict_of("front");
            verdict.bottleneck.kind = ResourceKind::Network;
            verdict.bottleneck.identity = Some(identity.clone());
            let lower = slowed(link(), SlowedBy::Rate, share);
            let shown = confirm(&mut verdict, &trial_of(vec![stopped("front", front), lower]));
            (shown.answer, verdict.bottleneck.confidence)
        };
        let (answer, sure) = of_link(0.1, 0.0);
        assert_eq!(answer, ConfirmationAnswer::Confirmed);
        assert!(sure > Probability::new(0.9), "{sure:?}");
        let (answer, sure) = of_link(0.0, 0.1);
        assert_eq!(answer, ConfirmationAnswer::Elsewhere(tier("front").into()));
        assert!(sure < Probability::new(0.1), "{sure:?}");
        // It may also be what a verdict on processes overlooked.
        let mut wrong = verdict_of("front");
        let lower = slowed(link(), SlowedBy::Rate, 0.1);
        let shown = confirm(&mut wrong, &trial_of(vec![stopped("front", 0.0), lower]));
        assert_eq!(shown.answer, ConfirmationAnswer::Elsewhere(link()));
        assert_eq!(wrong.doubts, [Doubt::NotConfirmed(link())]);
    }

    /// A link of the same name on another host is another, and so is one that nobody may shape.
    #[test]
    fn only_the_link_that_was_slowed_is_told_of() {
        let mut verdict = verdict_of("front");
        verdict.bottleneck.kind = ResourceKind::Network;
        verdict.bottleneck.identity = Some(Identity::Link { name: "eth0".into(), on: Some("b".into()) });
        let here = Slowable::of(&Identity::Link { name: "eth0".into(), on: None }).unwrap();
        let lower = slowed(here.clone(), SlowedBy::Rate, 0.0);
        let mut trial = trial_of(vec![stopped("front", 0.0), lower]);
        trial.left_alone = vec![LeftAlone { tier: here, reason: LeftAloneReason::RateNeedsRoot }];
        assert_eq!(confirm(&mut verdict, &trial).answer, ConfirmationAnswer::Nothing);
        assert!((verdict.bottleneck.confidence.share() - 0.6).abs() < 1e-9, "{verdict:?}");
    }

    fn explanation(name: &str, probability: f64) -> Explanation {
        Explanation {
            kind: ResourceKind::WorkerPool,
            identity: Some(Identity::Processes(tier(name))),
            probability: Probability::new(probability),
            ..Explanation::default()
        }
    }

    #[test]
    fn a_test_is_called_for_where_it_is_not_sure_which_tier_holds_the_bottleneck() {
        let mut bottleneck = verdict_of("back").bottleneck;
        assert!(is_called_for(&bottleneck));
        // A lock or a pool, but of this tier.
        bottleneck.alternatives = vec![explanation("back", 0.35)];
        assert!(!is_called_for(&bottleneck));
        bottleneck.alternatives = vec![explanation("front", 0.35)];
        assert!(is_called_for(&bottleneck));
        bottleneck.identity = Some(Identity::Host { on: None });
        assert!(!is_called_for(&bottleneck), "no tier holds it");
        assert!(!is_called_for(&Bottleneck { kind: ResourceKind::None, ..Bottleneck::default() }));
        assert!(is_called_for(&Bottleneck { kind: ResourceKind::Unknown, ..Bottleneck::default() }));
    }

    #[test]
    fn what_a_test_showed_holds_for_other_measurements() {
        let shown = confirm(&mut verdict_of("back"), &trial(&[("front", 0.0), ("back", 0.1)]));
        let mut unsure = verdict_of("back");
        unsure.bottleneck.confidence = Probability::new(0.5);
        unsure.bottleneck.alternatives = vec![explanation("front", 0.4)];
        unsure.doubts.extend(undecided(&unsure.bottleneck, Tried::default()));
        assert_eq!(unsure.doubts.len(), 1);
        carry(&mut unsure, &shown);
        assert!(unsure.bottleneck.confidence > Probability::new(0.9), "{:?}", unsure.bottleneck);
        assert!(unsure.doubts.is_empty(), "{:?}", unsure.doubts);

        let mut other = verdict_of("front");
        other.bottleneck.alternatives = vec![explanation("back", 0.3)];
        carry(&mut other, &shown);
        let Bottleneck { kind, identity, alternatives, .. } = &other.bottleneck;
        assert_eq!((*kind, identity), (ResourceKind::WorkerPool, &Some(Identity::Processes(tier("back")))));
        assert_eq!(alternatives[0].kind, ResourceKind::Lock);
        assert!(other.doubts.is_empty(), "{:?}", other.doubts);

        let mut device = verdict_of("front");
        device.bottleneck.identity = Some(Identity::Host { on: None });
        carry(&mut device, &shown);
        assert_eq!(device.bottleneck.identity, Some(Identity::Host { on: None }));
        // Where the other tier is no explanation of the measurement, both stand against each other.
        let mut against = verdict_of("front");
        carry(&mut against, &shown);
        assert!(against.doubts.contains(&Doubt::NotConfirmed(tier("back").into())), "{against:?}");
    }
}
