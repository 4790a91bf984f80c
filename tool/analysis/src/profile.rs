//! Where processor time goes: from sampled stacks of addresses to the function that most of it is spent in.

mod host;
mod off_cpu;
mod tree;
mod unwound;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    host::{HostProfile, profile},
    off_cpu::{ThreadSeen, ThreadsSeen, TierSeen},
    tree::{Node, tree},
    unwound::{Registers, Snapshot, StackEnd, Unwinder, Unwound},
};
use crate::run::{Function, HotFunction, Processes, ProfileTrouble, Stack, TierProfile};
use crate::statistics::proportion_ci;

/// A tier is worth a profile from this share of one processor on; the busiest is in any case.
pub const CORES_MIN: f64 = 0.05;

/// Most stacks that are kept of a tier.
const STACKS_MAX: usize = 2_000;

/// Where an address is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// The kernel.
    Kernel,
    /// A process.
    Process(u32),
}

/// A stack as the kernel sampled it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledStack {
    /// The process.
    pub pid: u32,
    /// Addresses in the kernel, the innermost call first.
    pub kernel: Vec<u64>,
    /// Addresses in the program, the innermost call first.
    pub user: Vec<u64>,
    /// How the program's part ends; `None` where only frame pointers were followed, or the program has no part in it.
    pub end: Option<StackEnd>,
}

/// Everything that was sampled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Samples per second of processor time.
    pub hertz: u32,
    /// How long, seconds.
    pub elapsed_s: f64,
    /// Whether the kernel was sampled too.
    pub with_kernel: bool,
    /// Whether each thread was sampled by itself: those that live for less than the time between two samples are not seen.
    pub by_thread: bool,
    /// How often each stack was seen.
    pub stacks: BTreeMap<SampledStack, u64>,
    /// The parents of processes that began meanwhile.
    pub parents: BTreeMap<u32, u32>,
    /// Processes that began to run another program meanwhile.
    pub replaced: BTreeSet<u32>,
    /// What is missing.
    pub troubles: Vec<ProfileTrouble>,
}

impl Sampled {
    /// The process itself, or the one among `known` that it descends from.
    pub fn ancestor(&self, pid: u32, known: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = pid;
        // A chain of parents is no longer than there are parents; numbers that are used again could close a circle.
        for _ in 0..=self.parents.len() {
            if known(at) {
                return Some(at);
            }
            at = *self.parents.get(&at)?;
        }
        None
    }

    /// The same with processes that have ended taken for those that they were copied from, whose code is at the same
    /// addresses.
    #[must_use]
    pub fn as_living(mut self, lives: impl Fn(u32) -> bool) -> Self {
        let mut ended = BTreeSet::new();
        let stacks = std::mem::take(&mut self.stacks);
        for (mut stack, samples) in stacks {
            let copied = !self.replaced.contains(&stack.pid);
            match self.ancestor(stack.pid, &lives) {
                Some(living) if living == stack.pid || copied => stack.pid = living,
                _ => drop(ended.insert(stack.pid)),
            }
            *self.stacks.entry(stack).or_default() += samples;
        }
        if !ended.is_empty() {
            let processes = u32::try_from(ended.len()).unwrap_or(u32::MAX);
            self.troubles.push(ProfileTrouble::Ended { processes });
        }
        self
    }

    /// Every address that was seen, by where it is valid.
    pub fn addresses(&self) -> BTreeMap<Space, BTreeSet<u64>> {
        let mut all = BTreeMap::<Space, BTreeSet<u64>>::new();
        for SampledStack { pid, kernel, user, .. } in self.stacks.keys() {
            for (space, seen) in [(Space::Kernel, kernel), (Space::Process(*pid), user)] {
                if !seen.is_empty() {
                    all.entry(space).or_default().extend(seen);
                }
            }
        }
        all
    }
}

/// The functions that addresses lie in.
pub type Names = BTreeMap<(Space, u64), Function>;

/// A tier to profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tier {
    /// What it is called.
    pub processes: Processes,
    /// The numbers of its processes.
    pub pids: BTreeSet<u32>,
}

fn tier_profile(sampled: &Sampled, tier: &Tier, names: &Names) -> TierProfile {
    let mut folded = BTreeMap::<Vec<Function>, u64>::new();
    let is_of_tier =
        |stack: &SampledStack| sampled.ancestor(stack.pid, |pid| tier.pids.contains(&pid)).is_some();
    let of_tier = || sampled.stacks.iter().filter(|(stack, _)| is_of_tier(stack));
    for (stack, samples) in of_tier() {
        *folded.entry(calls(stack, names)).or_default() += samples;
    }
    let samples: u64 = folded.values().sum();
    let in_kernel = |calls: &&Vec<Function>| calls.last().is_some_and(|innermost| innermost.kernel);
    let kernel: u64 = folded.iter().filter(|(calls, _)| in_kernel(calls)).map(|(_, samples)| samples).sum();
    let seconds = sampled.elapsed_s * f64::from(sampled.hertz);
    let (functions, stacks, left_out) = interned(&folded);
    TierProfile {
        processes: tier.processes.clone(),
        samples,
        cores: if seconds > 0.0 { samples as f64 / seconds } else { 0.0 },
        kernel_share: (sampled.with_kernel && samples > 0).then(|| kernel as f64 / samples as f64),
        hottest: hottest(&folded, samples),
        functions,
        stacks,
        left_out,
        cut_short: unwound::cut_short(of_tier().filter_map(|(stack, samples)| Some((stack.end?, *samples)))),
    }
}

/// The calls of a stack, the outermost first.
fn calls(stack: &SampledStack, names: &Names) -> Vec<Function> {
    let named = |space, kernel| {
        move |address: &u64| {
            let unknown = || Function { kernel, ..Function::default() };
            names.get(&(space, *address)).cloned().unwrap_or_else(unknown)
        }
    };
    let user = stack.user.iter().rev().map(named(Space::Process(stack.pid), false));
    user.chain(stack.kernel.iter().rev().map(named(Space::Kernel, true))).collect()
}

/// Stacks as the run file has them, the most frequent first, and how many samples are in those that are too many.
fn interned(folded: &BTreeMap<Vec<Function>, u64>) -> (Vec<Function>, Vec<Stack>, u64) {
    let mut frequent: Vec<_> = folded.iter().collect();
    frequent.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
    let rare = frequent.split_off(frequent.len().min(STACKS_MAX));
    let mut numbers = BTreeMap::<&Function, u32>::new();
    let mut functions = Vec::new();
    let mut number = |function| {
        *numbers.entry(function).or_insert_with(|| {
            functions.push(Function::clone(function));
            u32::try_from(functions.len() - 1).unwrap_or(u32::MAX)
        })
    };
    let mut stacks = Vec::new();
    for (calls, samples) in frequent {
        stacks.push(Stack { calls: calls.iter().map(&mut number).collect(), samples: *samples });
    }
    (functions, stacks, rare.into_iter().map(|(_, samples)| samples).sum())
}

/// Whether a function stands for all of a kernel that hides where its functions are.
fn is_kernel_unnamed(of: &Function) -> bool {
    of.kernel && !of.module.is_empty() && of.name.is_empty() && of.offset.is_none()
}

/// The function with the most samples of its own. A kernel whose functions have no names counts only where nothing else does:
/// as one function it would hide those of the program.
fn hottest(folded: &BTreeMap<Vec<Function>, u64>, all: u64) -> Option<HotFunction> {
    let mut own = BTreeMap::<&Function, u64>::new();
    for (calls, samples) in folded {
        if let Some(innermost) = calls.last().filter(|function| !function.module.is_empty()) {
            *own.entry(innermost).or_default() += samples;
        }
    }
    if own.keys().any(|function| !is_kernel_unnamed(function)) {
        own.retain(|function, _| !is_kernel_unnamed(function));
    }
    let (function, samples) = most(own)?;
    let mut callers = BTreeMap::<&Function, u64>::new();
    for (calls, samples) in folded.iter().filter(|(calls, _)| calls.last() == Some(function)) {
        if let Some(caller) = caller(calls) {
            *callers.entry(caller).or_default() += samples;
        }
    }
    Some(HotFunction {
        function: function.clone(),
        share: samples as f64 / all as f64,
        share_ci: proportion_ci(samples, all),
        caller: most(callers).map(|(caller, _)| caller.clone()),
    })
}

/// Who called the innermost function of a stack; of one in the kernel, the nearest of the program, if there is one. A
/// function that calls itself is not its caller.
fn caller(calls: &[Function]) -> Option<&Function> {
    let (innermost, outer) = calls.split_last()?;
    let known = |caller: &&Function| *caller != innermost && !caller.module.is_empty();
    let of_program = || outer.iter().rev().filter(known).find(|caller| !caller.kernel);
    let nearest = || outer.iter().rev().find(known);
    if innermost.kernel { of_program().or_else(nearest) } else { nearest() }
}

fn most(counts: BTreeMap<&Function, u64>) -> Option<(&Function, u64)> {
    counts.into_iter().max_by_key(|(_, samples)| *samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Bottleneck, Identity, Profile};

    fn function(name: &str, kernel: bool) -> Function {
        let module = if kernel { "kernel" } else { "server" };
        Function { name: name.into(), module: module.into(), offset: None, kernel }
    }

    /// Addresses 1 to 4 of process 7: main, work, hot, send; address 1 of the kernel: copy.
    fn names() -> Names {
        let user = ["main", "work", "hot", "send"].into_iter().zip(1..);
        let user = user.map(|(name, at)| ((Space::Process(7), at), function(name, false)));
        user.chain([((Space::Kernel, 1), function("copy", true))]).collect()
    }

    fn stack(pid: u32, kernel: &[u64], user: &[u64]) -> SampledStack {
        SampledStack { pid, kernel: kernel.into(), user: user.into(), end: None }
    }

    fn sampled(stacks: &[(SampledStack, u64)]) -> Sampled {
        let stacks = stacks.iter().cloned().collect();
        Sampled { hertz: 99, elapsed_s: 2.0, with_kernel: true, stacks, ..Sampled::default() }
    }

    fn tier(pid: u32) -> Tier {
        Tier { pids: [pid].into(), ..Tier::default() }
    }

    fn made(seen: &Sampled) -> Profile {
        made_of(seen, &[tier(7)], &Bottleneck::default())
    }

    fn made_of(seen: &Sampled, tiers: &[Tier], bottleneck: &Bottleneck) -> Profile {
        profile(1, vec![HostProfile::new(seen, tiers, &names(), None)], bottleneck)
    }

    #[test]
    fn the_function_with_the_most_time_of_its_own_is_named_with_its_caller() {
        let seen = [
            (stack(7, &[], &[3, 2, 1]), 60),
            (stack(7, &[], &[3, 1]), 10),
            (stack(7, &[], &[1]), 30),
            (stack(7, &[1], &[4, 2, 1]), 50),
            (stack(8, &[], &[1]), 500),
        ];
        let profile = made(&sampled(&seen));
        let [tier] = &profile.tiers[..] else { panic!("one tier: {profile:?}") };
        assert_eq!((tier.samples, tier.kernel_share), (150, Some(1.0 / 3.0)));
        assert!((tier.cores - 150.0 / 198.0).abs() < 1e-9);
        let hot = tier.hottest.as_ref().expect("a function");
        assert_eq!(
            (&hot.function, hot.caller.as_ref()),
            (&function("hot", false), Some(&function("work", false)))
        );
        assert!(
            (hot.share - 70.0 / 150.0).abs() < 1e-9
                && hot.share_ci[0] < hot.share
                && hot.share < hot.share_ci[1]
        );
        let first = &tier.stacks[0];
        let calls: Vec<_> = first.calls.iter().map(|call| &*tier.functions[*call as usize].name).collect();
        assert_eq!((calls, first.samples), (vec!["main", "work", "hot"], 60));
    }

    #[test]
    fn a_function_of_the_kernel_is_called_from_the_program() {
        let profile = made(&sampled(&[(stack(7, &[1], &[4, 2]), 99)]));
        let hot = profile.tiers[0].hottest.as_ref().expect("a function");
        assert_eq!((&*hot.function.name, hot.caller.as_ref()), ("copy", Some(&function("send", false))));
    }

    /// The same with this name for the address in the kernel.
    fn made_with(kernel: &str, seen: &Sampled) -> Profile {
        let mut names = names();
        names.insert((Space::Kernel, 1), function(kernel, true));
        profile(1, vec![HostProfile::new(seen, &[tier(7)], &names, None)], &Bottleneck::default())
    }

    #[test]
    fn a_kernel_without_names_hides_no_function_of_the_program_and_is_told() {
        let seen = sampled(&[(stack(7, &[1], &[4, 2]), 62), (stack(7, &[], &[3, 2]), 38)]);
        let hidden = made_with("", &seen);
        let hot = hidden.tiers[0].hottest.as_ref().expect("a function");
        assert_eq!((&*hot.function.name, hot.share), ("hot", 0.38));
        assert_eq!(hidden.tiers[0].kernel_share, Some(0.62), "it is not forgotten");
        assert_eq!(hidden.troubles, [ProfileTrouble::KernelUnnamed]);
        let named = made(&seen);
        let hot = named.tiers[0].hottest.as_ref().expect("a function");
        assert_eq!((&*hot.function.name, named.troubles.len()), ("copy", 0));
        let kernel_alone = made_with("", &sampled(&[(stack(7, &[1], &[4]), 9)]));
        let hot = kernel_alone.tiers[0].hottest.as_ref().expect("there is nothing else");
        assert!(hot.function.kernel && hot.share == 1.0, "{hot:?}");
    }

    #[test]
    fn stacks_that_end_too_early_are_counted() {
        let ending = |end, user: &[u64]| SampledStack { end, ..stack(7, &[], user) };
        let seen = [
            (ending(Some(StackEnd::Start), &[3, 2, 1]), 30),
            (ending(Some(StackEnd::Untold), &[3, 2]), 10),
            (ending(None, &[]), 5),
        ];
        let cut = made(&sampled(&seen)).tiers[0].cut_short.expect("it is known");
        assert_eq!((cut.share, cut.untold, cut.too_deep), (0.25, 10, 0));
        assert_eq!(made(&sampled(&[(stack(7, &[], &[3]), 9)])).tiers[0].cut_short, None);
    }

    #[test]
    fn a_process_that_began_meanwhile_belongs_to_its_parents_tier() {
        let mut seen = sampled(&[(stack(9, &[1], &[]), 99)]);
        seen.parents = [(9, 8), (8, 7), (5, 6), (6, 5)].into();
        assert_eq!(made(&seen).tiers[0].samples, 99);
        assert_eq!(seen.ancestor(5, |pid| pid == 7), None, "a circle ends");
    }

    #[test]
    fn of_tiers_that_hardly_run_the_busiest_and_the_holder_are_shown() {
        let named = |name: &str, pid| {
            let processes = Processes { name: name.into(), ..Processes::default() };
            Tier { processes, ..tier(pid) }
        };
        let tiers = [named("server", 7), named("database", 8), named("cache", 9)];
        let seen = sampled(&[(stack(7, &[], &[1]), 5), (stack(8, &[], &[1]), 3), (stack(9, &[], &[1]), 2)]);
        let identity = Some(Identity::Thread(tiers[2].processes.clone()));
        let holder = Bottleneck { identity, ..Bottleneck::default() };
        let made = made_of(&seen, &tiers, &holder);
        let shown: Vec<_> = made.tiers.iter().map(|tier| &*tier.processes.name).collect();
        assert_eq!(shown, ["server", "cache"]);
        let idle = made_of(&sampled(&[]), &tiers, &holder);
        assert_eq!((idle.tiers.len(), &idle.troubles[..]), (0, &[ProfileTrouble::Idle][..]));
        let by_thread = made_of(&Sampled { by_thread: true, ..sampled(&[]) }, &tiers, &holder);
        assert_eq!(by_thread.troubles, [ProfileTrouble::ShortLived]);
    }

    #[test]
    fn a_copy_that_has_ended_is_named_as_what_it_was_copied_from() {
        let mut seen =
            sampled(&[(stack(8, &[], &[3]), 60), (stack(9, &[], &[3]), 40), (stack(7, &[], &[3]), 1)]);
        seen.parents = [(8, 7), (9, 7)].into();
        seen.replaced = [9].into();
        let living = seen.as_living(|pid| pid == 7);
        assert_eq!(living.stacks, [(stack(7, &[], &[3]), 61), (stack(9, &[], &[3]), 40)].into());
        assert_eq!(living.troubles, [ProfileTrouble::Ended { processes: 1 }]);
    }
}
