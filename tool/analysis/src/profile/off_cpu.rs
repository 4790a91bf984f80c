//! Where threads sleep: from what was seen of each of them to shares of their time.

use std::collections::BTreeMap;

use super::{Tier, interned};
use crate::run::{Function, OffCpu, OffCpuTrouble, RunState, Stack, TierOffCpu, Wait};

/// Most rows that are kept of a tier.
const WAITS_MAX: usize = 24;

/// What a thread was doing when it was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadSeen {
    /// Whether it slept.
    pub state: RunState,
    /// The system call that it slept in.
    pub call: Option<String>,
    /// The function of the kernel that it slept in.
    pub wchan: Option<String>,
    /// The kernel's stack, the innermost function first.
    pub stack: Vec<Function>,
}

/// What was seen of one tier.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TierSeen {
    /// Its threads at every look, added up.
    pub threads: u64,
    /// How often a thread was seen doing this. Each thread has the same chance to be looked at.
    pub seen: BTreeMap<ThreadSeen, u64>,
}

/// What was seen of some tiers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadsSeen {
    /// How long, seconds.
    pub elapsed_s: f64,
    /// How often it was looked.
    pub looks: u64,
    /// One for each tier, in their order.
    pub tiers: Vec<TierSeen>,
    /// What is missing.
    pub troubles: Vec<OffCpuTrouble>,
}

/// What the threads of these tiers were doing, in shares of their time: of each tier, those of which no thread was seen too.
pub(super) fn off_cpu(seen: &ThreadsSeen, tiers: &[Tier]) -> OffCpu {
    let of_tier = |(tier, seen_of_it): (&Tier, &TierSeen)| tier_off_cpu(tier, seen_of_it, seen.looks);
    let told = tiers.iter().zip(&seen.tiers).map(of_tier);
    OffCpu {
        elapsed_s: seen.elapsed_s,
        looks: seen.looks,
        tiers: told.collect(),
        troubles: seen.troubles.clone(),
    }
}

/// What was seen on several hosts, taken together, without the tiers of which no thread was seen.
pub(super) fn joined(hosts: Vec<OffCpu>) -> Option<OffCpu> {
    let joined = |before: OffCpu, next: OffCpu| OffCpu {
        elapsed_s: before.elapsed_s.max(next.elapsed_s),
        looks: before.looks.max(next.looks),
        tiers: before.tiers.into_iter().chain(next.tiers).collect(),
        troubles: before.troubles.into_iter().chain(next.troubles).collect(),
    };
    let mut all = hosts.into_iter().reduce(joined)?;
    all.tiers.retain(|tier| tier.samples > 0);
    Some(all)
}

fn tier_off_cpu(tier: &Tier, seen: &TierSeen, looks: u64) -> TierOffCpu {
    let samples: u64 = seen.seen.values().sum();
    let of_all = |some: u64| if samples == 0 { 0.0 } else { some as f64 / samples as f64 };
    let awake = seen.seen.iter().filter(|(thread, _)| thread.state == RunState::Running);
    let awake: u64 = awake.map(|(_, samples)| samples).sum();
    let mut waits = waits(seen, of_all);
    let rare = waits.split_off(waits.len().min(WAITS_MAX));
    let (functions, stacks, stacks_left_out) = stacks(seen);
    TierOffCpu {
        processes: tier.processes.clone(),
        threads: if looks == 0 { 0.0 } else { seen.threads as f64 / looks as f64 },
        samples,
        asleep_share: of_all(samples - awake),
        waits,
        left_out: rare.iter().map(|wait| wait.samples).sum(),
        functions,
        stacks,
        stacks_left_out,
    }
}

/// What threads were doing, whatever their stacks, most first.
fn waits(seen: &TierSeen, of_all: impl Fn(u64) -> f64) -> Vec<Wait> {
    let mut places = BTreeMap::<_, u64>::new();
    for (thread, samples) in &seen.seen {
        *places.entry((thread.state, &thread.call, &thread.wchan)).or_default() += samples;
    }
    let wait = |((state, call, wchan), samples): ((RunState, &Option<String>, &Option<String>), u64)| Wait {
        state,
        call: call.clone(),
        wchan: wchan.clone(),
        samples,
        share: of_all(samples),
    };
    let mut waits: Vec<_> = places.into_iter().map(wait).collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.samples));
    waits
}

/// The kernel's stacks of the threads that slept, the outermost function first, and how many samples are in those that are too
/// many.
fn stacks(seen: &TierSeen) -> (Vec<Function>, Vec<Stack>, u64) {
    let mut folded = BTreeMap::<Vec<Function>, u64>::new();
    for (thread, samples) in seen.seen.iter().filter(|(thread, _)| !thread.stack.is_empty()) {
        *folded.entry(thread.stack.iter().rev().cloned().collect()).or_default() += samples;
    }
    interned(&folded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Processes;

    fn asleep(call: &str, wchan: &str, stack: &[&str]) -> ThreadSeen {
        let function = |name: &&str| Function { name: (*name).into(), kernel: true, ..Function::default() };
        ThreadSeen {
            state: RunState::Sleeping,
            call: Some(call.into()),
            wchan: Some(wchan.into()),
            stack: stack.iter().map(function).collect(),
        }
    }

    #[test]
    fn time_is_shared_out_by_where_threads_sleep() {
        let running = ThreadSeen { state: RunState::Running, ..ThreadSeen::default() };
        let seen = [
            (asleep("futex", "futex_wait_queue", &["schedule", "futex_wait"]), 50),
            (asleep("futex", "futex_wait_queue", &["futex_wait"]), 10),
            (asleep("epoll_wait", "ep_poll", &["ep_poll"]), 25),
            (running, 15),
        ];
        let tier = |name: &str| Tier {
            processes: Processes { name: name.into(), ..Processes::default() },
            ..Tier::default()
        };
        let seen = TierSeen { threads: 250, seen: seen.into() };
        let seen = ThreadsSeen {
            looks: 50,
            elapsed_s: 2.0,
            tiers: vec![TierSeen::default(), seen],
            ..ThreadsSeen::default()
        };
        let told = off_cpu(&seen, &[tier("gone"), tier("server")]);
        let told = joined(vec![told]).expect("there was one host");
        let [server] = &told.tiers[..] else { panic!("one tier: {told:?}") };
        assert_eq!((&*server.processes.name, server.threads, server.samples), ("server", 5.0, 100));
        assert!((server.asleep_share - 0.85).abs() < 1e-9);
        let waits: Vec<_> = server.waits.iter().map(|wait| (wait.call.as_deref(), wait.samples)).collect();
        assert_eq!(waits, [(Some("futex"), 60), (Some("epoll_wait"), 25), (None, 15)]);
        let outermost = &server.functions[server.stacks[0].calls[0] as usize];
        assert_eq!((&*outermost.name, server.stacks[0].samples), ("futex_wait", 50));
    }

    #[test]
    fn who_waits_for_a_disk_is_not_idle() {
        let wait = |state, call: &str| Wait { state, call: Some(call.into()), ..Wait::default() };
        assert!(wait(RunState::Sleeping, "epoll_wait").may_be_idle());
        assert!(!wait(RunState::Sleeping, "connect").may_be_idle());
        assert!(!wait(RunState::Uninterruptible, "read").may_be_idle());
        assert!(!wait(RunState::Running, "read").may_be_idle());
    }

    #[test]
    fn stacks_that_are_too_many_are_counted() {
        let seen_twice = |number: u32| (asleep("futex", "", &[number.to_string().as_str()]), 2);
        let seen = (0..2_500).map(seen_twice).collect();
        let tiers = vec![TierSeen { threads: 5_000, seen }];
        let told = off_cpu(&ThreadsSeen { looks: 10, tiers, ..ThreadsSeen::default() }, &[Tier::default()]);
        let [tier] = &told.tiers[..] else { panic!("one tier: {told:?}") };
        let kept: u64 = tier.stacks.iter().map(|stack| stack.samples).sum();
        assert_eq!((tier.stacks.len(), tier.stacks_left_out), (super::super::STACKS_MAX, 1_000));
        assert_eq!(kept + tier.stacks_left_out, tier.samples, "none is forgotten");
    }

    #[test]
    fn rare_places_are_counted_and_left_out() {
        let seen = (0..100).map(|number| (asleep(&number.to_string(), "", &[]), 1)).collect();
        let seen = ThreadsSeen {
            looks: 100,
            tiers: vec![TierSeen { threads: 100, seen }],
            ..ThreadsSeen::default()
        };
        let told = off_cpu(&seen, &[Tier::default()]);
        assert_eq!(
            (told.tiers[0].waits.len() as u64 + told.tiers[0].left_out, told.tiers[0].samples),
            (100, 100)
        );
    }
}
