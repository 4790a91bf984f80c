//! Profiles of processes where an agent runs: what is asked for, and what is told of it, cut to what may be sent and believed.
//!
//! The run file has the same in a form that leaves out what is absent, which a message cannot.

mod told;

use std::collections::BTreeSet;

use analysis::run::{RunState, Stack};
use serde::{Deserialize, Serialize};

use super::in_one_line;
use super::message::written;

/// The longest answer. Where it would be longer, the rarest stacks are left out.
pub const PROFILE_BYTES_MAX: usize = 1 << 20;

/// Tiers of one host: programs that serve, or are called.
pub(crate) const TIERS_MAX: usize = 64;

/// Stacks of a tier, as in the profile of a run.
const STACKS_MAX: usize = 2_000;

/// Places where threads of a tier sleep, with room to spare.
const WAITS_MAX: usize = 32;

/// The longest name of a system call, or of a function of the kernel that somebody waits in.
const WAIT_CHARS_MAX: usize = 64;

/// Troubles of a host: one of each kind at most.
const TROUBLES_MAX: usize = 16;

/// The longest name of a function or a module that is sent. Those of C++ and Rust hold whole types.
const NAME_CHARS_MAX: usize = 256;

/// Tiers to profile. It replaces what was asked for before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileOrder {
    /// Its number, which the answer repeats.
    pub number: u64,
    /// For how long at most, milliseconds.
    pub most_ms: u32,
    /// The numbers of each tier's processes. Those that are not watched are left out.
    pub tiers: Vec<BTreeSet<u32>>,
}

/// What was sampled of some tiers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    /// The number of what was asked for.
    pub number: u64,
    /// How long it was sampled, seconds.
    pub elapsed_s: f64,
    /// Samples per second of processor time.
    pub hertz: u32,
    /// Whether each thread was sampled by itself.
    pub by_thread: bool,
    /// One for each tier, in the order in which they were asked for; none where nothing could be sampled.
    pub tiers: Vec<OnCpu>,
    /// What is missing.
    pub troubles: Vec<Missing>,
    /// Where threads slept, if that was looked at.
    pub off_cpu: Option<Sleepers>,
}

/// Where the processor time of a tier went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OnCpu {
    /// Samples.
    pub samples: u64,
    /// Processor time, in processors.
    pub cores: f64,
    /// The share of samples in the kernel, if that was sampled.
    pub kernel_share: Option<f64>,
    /// The function that most of the time was spent in.
    pub hottest: Option<Hottest>,
    /// The functions that stacks refer to.
    pub functions: Vec<Called>,
    /// Stacks, the most frequent first.
    pub stacks: Vec<Stack>,
    /// Samples whose stacks are not among these.
    pub left_out: u64,
    /// Stacks that end too early, if that is known.
    pub cut_short: Option<Cut>,
}

/// The function that most of a tier's time was spent in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Hottest {
    /// The function.
    pub function: Called,
    /// Its share of the samples, 0 to 1.
    pub share: f64,
    /// The 95 % interval of that.
    pub share_ci: [f64; 2],
    /// Who called it most often.
    pub caller: Option<Called>,
}

/// A function, or as much as is known of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Its name; empty where that is unknown.
    pub name: String,
    /// Its program, library or module.
    pub module: String,
    /// Without a name: where in the module.
    pub offset: Option<u64>,
    /// Whether it is in the kernel.
    pub kernel: bool,
}

/// Samples whose stacks end too early.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// Their share, 0 to 1.
    pub share: f64,
    /// In code whose callers nothing tells.
    pub untold: u64,
    /// Beyond what is copied of a stack.
    pub too_deep: u64,
    /// For want of time.
    pub not_in_time: u64,
}

/// Where the threads of some tiers slept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sleepers {
    /// How long they were looked at, seconds.
    pub elapsed_s: f64,
    /// How often.
    pub looks: u64,
    /// One for each tier, in the order in which they were asked for.
    pub tiers: Vec<Slept>,
    /// Whether system calls may not be read, with `kernel.yama.ptrace_scope` if there is one.
    pub calls_refused: Option<Option<i32>>,
    /// Whether the kernel's stacks may not be read.
    pub stacks_refused: bool,
}

/// What the threads of a tier were doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Slept {
    /// How many there were, on average.
    pub threads: f64,
    /// How many times one was looked at.
    pub samples: u64,
    /// The share of their time in which they slept.
    pub asleep_share: f64,
    /// What they were doing, most first.
    pub waits: Vec<Waited>,
    /// Times of looking at a thread that did something else.
    pub left_out: u64,
    /// The functions that stacks refer to.
    pub functions: Vec<Called>,
    /// The kernel's stacks of threads that slept, the most frequent first.
    pub stacks: Vec<Stack>,
}

/// Something that threads were doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// Whether they slept.
    pub state: RunState,
    /// In which system call.
    pub call: Option<String>,
    /// In which function of the kernel.
    pub wchan: Option<String>,
    /// How many times a thread was seen there.
    pub samples: u64,
    /// The share of the time of all threads, 0 to 1.
    pub share: f64,
}

/// What an agent may find missing of a profile: as [`analysis::run::ProfileTrouble`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Missing {
    /// This nstar was built without what profiles take.
    NotBuilt,
    /// The kernel lets nothing be sampled, with `kernel.perf_event_paranoid` if that can be read.
    Refused(Option<i32>),
    /// The kernel lets the programs alone be sampled, and not itself.
    WithoutKernel(Option<i32>),
    /// The kernel cannot sample, with the number of its error.
    Unavailable(i32),
    /// So many threads were left out, because the limit on open files was reached.
    TooManyThreads(u64),
    /// So many samples were lost.
    Lost(u64),
    /// Only frame pointers told callers.
    FramePointersAlone,
    /// So many processes ended before their functions were named.
    Ended(u32),
    /// None of the processes was there.
    NotHere,
}

impl Profiled {
    /// The same cut to what may be sent, kept and shown.
    pub(crate) fn bounded(mut self) -> Self {
        self.troubles.truncate(TROUBLES_MAX);
        self.tiers.truncate(TIERS_MAX);
        self.tiers.iter_mut().for_each(OnCpu::bound);
        if let Some(seen) = &mut self.off_cpu {
            seen.tiers.truncate(TIERS_MAX);
            seen.tiers.iter_mut().for_each(Slept::bound);
        }
        while written(&self).len() > PROFILE_BYTES_MAX && self.leave_out_half() {}
        self
    }

    /// Leaves out the rarer half of the stacks of every tier. Returns whether there were any left.
    fn leave_out_half(&mut self) -> bool {
        let mut were_any = false;
        for tier in &mut self.tiers {
            were_any |= !tier.stacks.is_empty();
            tier.keep_stacks(tier.stacks.len() / 2);
        }
        for tier in self.off_cpu.iter_mut().flat_map(|seen| &mut seen.tiers) {
            were_any |= !tier.stacks.is_empty();
            keep(tier.stacks.len() / 2, &mut tier.functions, &mut tier.stacks);
        }
        were_any
    }
}

impl OnCpu {
    fn bound(&mut self) {
        self.keep_stacks(STACKS_MAX);
        self.functions.iter_mut().for_each(Called::bound);
        if let Some(Hottest { function, caller, .. }) = &mut self.hottest {
            function.bound();
            caller.iter_mut().for_each(Called::bound);
        }
    }

    fn keep_stacks(&mut self, most: usize) {
        let rare = keep(most, &mut self.functions, &mut self.stacks);
        self.left_out = self.left_out.saturating_add(rare);
    }
}

impl Slept {
    fn bound(&mut self) {
        keep(STACKS_MAX, &mut self.functions, &mut self.stacks);
        self.functions.iter_mut().for_each(Called::bound);
        self.waits.truncate(WAITS_MAX);
        for wait in &mut self.waits {
            let names = wait.call.iter_mut().chain(&mut wait.wchan);
            names.for_each(|name| *name = in_one_line(name, WAIT_CHARS_MAX));
        }
    }
}

impl Called {
    fn bound(&mut self) {
        for name in [&mut self.name, &mut self.module] {
            *name = in_one_line(name, NAME_CHARS_MAX);
        }
    }
}

/// Keeps so many of the first stacks, and the functions up to the last that they refer to: functions are numbered in the order
/// of the stacks. Returns the samples of the others.
fn keep(most: usize, functions: &mut Vec<Called>, stacks: &mut Vec<Stack>) -> u64 {
    let rare = stacks.split_off(stacks.len().min(most));
    let last = stacks.iter().flat_map(|stack| &stack.calls).max();
    functions.truncate(last.map_or(0, |last| (*last as usize).saturating_add(1)));
    rare.iter().fold(0, |samples: u64, stack| samples.saturating_add(stack.samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tier with so many stacks, each with a function of its own.
    fn tier(count: u32, name: &str) -> OnCpu {
        let function = |number: u32| Called { name: format!("{number}{name}"), ..Called::default() };
        let stack = |number: u32| Stack { calls: vec![0, number], samples: u64::from(count - number) };
        let stacks: Vec<Stack> = (0..count).map(stack).collect();
        let samples = stacks.iter().map(|stack| stack.samples).sum();
        OnCpu { samples, functions: (0..count).map(function).collect(), stacks, ..OnCpu::default() }
    }

    fn told_samples(of: &OnCpu) -> u64 {
        of.stacks.iter().map(|stack| stack.samples).sum::<u64>() + of.left_out
    }

    #[test]
    fn an_answer_that_is_short_enough_is_told_as_it_is() {
        let told = Profiled { tiers: vec![tier(100, "f")], ..Profiled::default() };
        assert_eq!(told.clone().bounded(), told);
    }

    #[test]
    fn the_rarest_stacks_are_left_out_of_an_answer_that_is_too_long() {
        let long = "x".repeat(NAME_CHARS_MAX);
        let told = Profiled { tiers: vec![tier(1_000, &long); 8], ..Profiled::default() }.bounded();
        let bytes = written(&told).len();
        assert!(bytes <= PROFILE_BYTES_MAX && bytes > PROFILE_BYTES_MAX / 4, "{bytes} bytes");
        for tier in &told.tiers {
            assert_eq!(tier.stacks.first().map(|stack| stack.samples), Some(1_000), "the most frequent stay");
            assert_eq!(told_samples(tier), tier.samples, "none is forgotten");
            assert_eq!(tier.functions.len(), tier.stacks.len(), "all that stacks refer to, and no other");
        }
    }

    #[test]
    fn an_answer_of_the_largest_host_fits_without_its_stacks() {
        let waited = Waited { call: Some("c".repeat(99)), wchan: Some("w".repeat(99)), ..Waited::default() };
        let slept = Slept { waits: vec![waited; 99], ..Slept::default() };
        let called = || Called { name: "n".repeat(999), module: "m".repeat(999), ..Called::default() };
        let hottest = Hottest { function: called(), caller: Some(called()), ..Hottest::default() };
        let told = Profiled {
            tiers: vec![OnCpu { hottest: Some(hottest), ..OnCpu::default() }; 99],
            troubles: vec![Missing::NotHere; 99],
            off_cpu: Some(Sleepers { tiers: vec![slept; 99], ..Sleepers::default() }),
            ..Profiled::default()
        };
        let told = told.bounded();
        let seen = told.off_cpu.as_ref().expect("threads were seen");
        assert_eq!((told.tiers.len(), seen.tiers.len(), told.troubles.len()), (64, 64, TROUBLES_MAX));
        assert_eq!(seen.tiers[0].waits.len(), WAITS_MAX);
        assert!(written(&told).len() < PROFILE_BYTES_MAX, "{} bytes", written(&told).len());
    }

    #[test]
    fn more_stacks_than_a_run_keeps_are_cut_and_names_made_fit_to_be_shown() {
        let odd = "\x1b[31m".repeat(99);
        let hottest = Hottest { function: tier(1, &odd).functions.remove(0), ..Hottest::default() };
        let many = OnCpu { hottest: Some(hottest), ..tier(2_500, "f") };
        let told = Profiled { tiers: vec![many, tier(1, &odd)], ..Profiled::default() }.bounded();
        assert_eq!((told.tiers[0].stacks.len(), told.tiers[0].functions.len()), (STACKS_MAX, STACKS_MAX));
        assert_eq!(told_samples(&told.tiers[0]), told.tiers[0].samples);
        let hottest = told.tiers[0].hottest.as_ref().expect("a function");
        for name in [&hottest.function.name, &told.tiers[1].functions[0].name] {
            assert!(name.chars().count() == NAME_CHARS_MAX && !name.contains(char::is_control), "{name:?}");
        }
    }
}
