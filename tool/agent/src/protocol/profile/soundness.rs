//! Whether what was told can be a profile.

use analysis::profile::HostProfile;
use analysis::run::{Function, OffCpu, Stack, TierOffCpu, TierProfile};

/// The kernel gives 127 calls of itself and as many of the program at most.
const CALLS_MAX: usize = 512;

/// Nobody samples more often.
const HERTZ_MAX: u32 = 10_000;

/// Whether it is of so many tiers, or of none, and every number in it can be.
pub(super) fn is_sound(told: &HostProfile, tiers: usize) -> bool {
    let is_of_all = |told: usize| told == 0 || told == tiers;
    let are_seen = |seen: &OffCpu| {
        is_of_all(seen.tiers.len()) && is_amount(seen.elapsed_s) && seen.tiers.iter().all(are_sleepers)
    };
    is_of_all(told.tiers.len())
        && is_amount(told.elapsed_s)
        && told.hertz <= HERTZ_MAX
        && told.tiers.iter().all(is_tier)
        && told.off_cpu.as_ref().is_none_or(are_seen)
}

fn is_tier(tier: &TierProfile) -> bool {
    let hottest = tier.hottest.iter().flat_map(|hottest| hottest.share_ci.iter().chain([&hottest.share]));
    let cut_short = tier.cut_short.iter().map(|cut| &cut.share);
    is_amount(tier.cores)
        && hottest.chain(cut_short).chain(&tier.kernel_share).all(is_share)
        && are_stacks(&tier.stacks, &tier.functions, Some(tier.samples))
}

fn are_sleepers(tier: &TierOffCpu) -> bool {
    is_amount(tier.threads)
        && is_share(&tier.asleep_share)
        && tier.waits.iter().all(|wait| is_share(&wait.share))
        && are_stacks(&tier.stacks, &tier.functions, None)
}

fn is_amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn is_share(number: &f64) -> bool {
    (0.0..=1.0).contains(number)
}

/// Whether there are no more samples than these, and calls are of functions that are there.
fn are_stacks(stacks: &[Stack], functions: &[Function], samples: Option<u64>) -> bool {
    let is_stack = |stack: &Stack| {
        let is_there = |call: &u32| (*call as usize) < functions.len();
        stack.calls.len() <= CALLS_MAX && stack.calls.iter().all(is_there)
    };
    let all = stacks.iter().try_fold(0u64, |all, stack| all.checked_add(stack.samples));
    stacks.iter().all(is_stack) && all.is_some_and(|all| samples.is_none_or(|samples| all <= samples))
}
