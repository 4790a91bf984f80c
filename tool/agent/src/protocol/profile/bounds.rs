//! A profile cut to what may be sent, kept and shown.

use analysis::profile::HostProfile;
use analysis::run::{
    Function, HotFunction, OffCpuTrouble, ProfileTrouble, Stack, TierOffCpu, TierProfile, Wait,
};

use super::{PROFILE_BYTES_MAX, TIERS_MAX};
use crate::protocol::in_one_line;

/// Stacks of a tier, as in the profile of a run.
pub(super) const STACKS_MAX: usize = 2_000;

/// Places where threads of a tier sleep, with room to spare.
pub(super) const WAITS_MAX: usize = 32;

/// The longest name of a system call, or of a function of the kernel that somebody waits in.
pub(super) const WAIT_CHARS_MAX: usize = 64;

/// Troubles of a host: one of each kind at most.
pub(super) const TROUBLES_MAX: usize = 16;

/// The longest name of a function or a module. Those of C++ and Rust hold whole types.
pub(super) const NAME_CHARS_MAX: usize = 256;

/// The profile in JSON, without the rarest stacks where it would be longer than [`PROFILE_BYTES_MAX`].
pub(super) fn fitting(of: HostProfile) -> String {
    let mut of = cut(of);
    loop {
        // Nothing in it can fail to be written to memory.
        let json = serde_json::to_string(&of).unwrap_or_default();
        if json.len() <= PROFILE_BYTES_MAX || !leave_out_half(&mut of) {
            return json;
        }
    }
}

/// The profile without what is too much of anything, and without troubles that no agent has.
pub(super) fn cut(mut of: HostProfile) -> HostProfile {
    of.troubles.retain(is_an_agents);
    of.troubles.truncate(TROUBLES_MAX);
    of.tiers.truncate(TIERS_MAX);
    of.tiers.iter_mut().for_each(cut_tier);
    if let Some(seen) = &mut of.off_cpu {
        let is_an_agents = |trouble: &OffCpuTrouble| {
            matches!(trouble, OffCpuTrouble::CallsRefused { .. } | OffCpuTrouble::StacksRefused)
        };
        seen.troubles.retain(is_an_agents);
        seen.troubles.truncate(TROUBLES_MAX);
        seen.tiers.truncate(TIERS_MAX);
        seen.tiers.iter_mut().for_each(cut_sleepers);
    }
    of
}

/// Whether an agent can have this trouble: the others are of whoever asks.
fn is_an_agents(trouble: &ProfileTrouble) -> bool {
    match trouble {
        ProfileTrouble::NotBuilt
        | ProfileTrouble::Refused { .. }
        | ProfileTrouble::WithoutKernel { .. }
        | ProfileTrouble::KernelUnnamed
        | ProfileTrouble::Unavailable { .. }
        | ProfileTrouble::TooManyThreads { .. }
        | ProfileTrouble::NoRoom { .. }
        | ProfileTrouble::Lost { .. }
        | ProfileTrouble::FramePointersAlone
        | ProfileTrouble::Ended { .. }
        | ProfileTrouble::NotHere => true,
        ProfileTrouble::Elsewhere { .. }
        | ProfileTrouble::OnHost { .. }
        | ProfileTrouble::NotAnswered { .. }
        | ProfileTrouble::Malformed
        | ProfileTrouble::Idle
        | ProfileTrouble::ShortLived
        | ProfileTrouble::Unknown => false,
    }
}

fn cut_tier(tier: &mut TierProfile) {
    keep_stacks(STACKS_MAX, tier);
    tier.functions.iter_mut().for_each(cut_function);
    if let Some(HotFunction { function, caller, .. }) = &mut tier.hottest {
        cut_function(function);
        caller.iter_mut().for_each(cut_function);
    }
}

fn cut_sleepers(tier: &mut TierOffCpu) {
    keep_sleepers(STACKS_MAX, tier);
    tier.functions.iter_mut().for_each(cut_function);
    tier.waits.truncate(WAITS_MAX);
    for Wait { call, wchan, .. } in &mut tier.waits {
        call.iter_mut().chain(wchan).for_each(|name| *name = in_one_line(name, WAIT_CHARS_MAX));
    }
}

fn cut_function(function: &mut Function) {
    for name in [&mut function.name, &mut function.module] {
        *name = in_one_line(name, NAME_CHARS_MAX);
    }
}

/// Leaves out the rarer half of the stacks of every tier. Returns whether there were any left.
fn leave_out_half(of: &mut HostProfile) -> bool {
    let mut were_any = false;
    for tier in &mut of.tiers {
        were_any |= !tier.stacks.is_empty();
        keep_stacks(tier.stacks.len() / 2, tier);
    }
    for tier in of.off_cpu.iter_mut().flat_map(|seen| &mut seen.tiers) {
        were_any |= !tier.stacks.is_empty();
        keep_sleepers(tier.stacks.len() / 2, tier);
    }
    were_any
}

fn keep_stacks(most: usize, tier: &mut TierProfile) {
    let rare = keep(most, &mut tier.functions, &mut tier.stacks);
    tier.left_out = tier.left_out.saturating_add(rare);
}

fn keep_sleepers(most: usize, tier: &mut TierOffCpu) {
    let rare = keep(most, &mut tier.functions, &mut tier.stacks);
    tier.stacks_left_out = tier.stacks_left_out.saturating_add(rare);
}

/// Keeps so many of the first stacks, and the functions up to the last that they refer to: functions are numbered in the order
/// of the stacks. Returns the samples of the others.
fn keep(most: usize, functions: &mut Vec<Function>, stacks: &mut Vec<Stack>) -> u64 {
    let rare = stacks.split_off(stacks.len().min(most));
    let last = stacks.iter().flat_map(|stack| &stack.calls).max();
    functions.truncate(last.map_or(0, |last| (*last as usize).saturating_add(1)));
    rare.iter().fold(0, |samples: u64, stack| samples.saturating_add(stack.samples))
}
