//! The same profile as the run file has it, and whether what was told can be one.

use analysis::profile::{HostProfile, Tier};
use analysis::run::{
    CutShort, Function, HotFunction, OffCpu, OffCpuTrouble, Processes, ProfileTrouble, Stack, TierOffCpu,
    TierProfile, Wait,
};

use super::{Called, Cut, Hottest, Missing, OnCpu, Profiled, Sleepers, Slept, Waited};

/// The kernel gives 127 calls of itself and as many of the program at most.
const CALLS_MAX: usize = 512;

/// Nobody samples more often.
const HERTZ_MAX: u32 = 10_000;

impl Profiled {
    /// What was sampled, as it is sent.
    pub(crate) fn new(number: u64, of: HostProfile) -> Self {
        Self {
            number,
            elapsed_s: of.elapsed_s,
            hertz: of.hertz,
            by_thread: of.by_thread,
            tiers: of.tiers.into_iter().map(OnCpu::from).collect(),
            troubles: of.troubles.into_iter().filter_map(Missing::of).collect(),
            off_cpu: of.off_cpu.map(Sleepers::from),
        }
        .bounded()
    }

    /// An answer without a profile.
    pub(crate) fn without(number: u64, missing: Missing) -> Self {
        Self { number, troubles: vec![missing], ..Self::default() }
    }

    /// What was sampled of these tiers; `None` where it cannot be.
    pub(crate) fn into_host(self, tiers: &[Tier]) -> Option<HostProfile> {
        if !self.is_sound(tiers.len()) {
            return None;
        }
        let processes = || tiers.iter().map(|tier| tier.processes.clone());
        Some(HostProfile {
            elapsed_s: self.elapsed_s,
            hertz: self.hertz,
            by_thread: self.by_thread,
            tiers: processes().zip(self.tiers).map(|(of, tier)| tier.of(of)).collect(),
            troubles: self.troubles.into_iter().map(ProfileTrouble::from).collect(),
            off_cpu: self.off_cpu.map(|seen| OffCpu {
                elapsed_s: seen.elapsed_s,
                looks: seen.looks,
                troubles: seen.troubles(),
                tiers: processes().zip(seen.tiers).map(|(of, tier)| tier.of(of)).collect(),
            }),
        })
    }

    /// Whether it is of so many tiers, and every number in it can be.
    fn is_sound(&self, tiers: usize) -> bool {
        let is_of_all = |told: usize| told == 0 || told == tiers;
        let seen = self.off_cpu.as_ref();
        is_of_all(self.tiers.len())
            && seen.is_none_or(|seen| is_of_all(seen.tiers.len()) && is_amount(seen.elapsed_s))
            && is_amount(self.elapsed_s)
            && self.hertz <= HERTZ_MAX
            && self.tiers.iter().all(OnCpu::is_sound)
            && seen.is_none_or(|seen| seen.tiers.iter().all(Slept::is_sound))
    }
}

fn is_amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

fn is_share(number: &f64) -> bool {
    (0.0..=1.0).contains(number)
}

/// Whether there are no more samples than these, and calls are of functions that are there.
fn are_sound(stacks: &[Stack], functions: &[Called], samples: Option<u64>) -> bool {
    let is_sound = |stack: &Stack| {
        let is_there = |call: &u32| (*call as usize) < functions.len();
        stack.calls.len() <= CALLS_MAX && stack.calls.iter().all(is_there)
    };
    let all = stacks.iter().try_fold(0u64, |all, stack| all.checked_add(stack.samples));
    stacks.iter().all(is_sound) && all.is_some_and(|all| samples.is_none_or(|samples| all <= samples))
}

impl OnCpu {
    fn is_sound(&self) -> bool {
        let hottest = self.hottest.iter().flat_map(|hottest| hottest.share_ci.iter().chain([&hottest.share]));
        let cut_short = self.cut_short.iter().map(|cut| &cut.share);
        is_amount(self.cores)
            && hottest.chain(cut_short).chain(&self.kernel_share).all(is_share)
            && are_sound(&self.stacks, &self.functions, Some(self.samples))
    }

    fn of(self, processes: Processes) -> TierProfile {
        TierProfile {
            processes,
            samples: self.samples,
            cores: self.cores,
            kernel_share: self.kernel_share,
            hottest: self.hottest.map(|Hottest { function, share, share_ci, caller }| HotFunction {
                function: function.into(),
                share,
                share_ci,
                caller: caller.map(Function::from),
            }),
            functions: self.functions.into_iter().map(Function::from).collect(),
            stacks: self.stacks,
            left_out: self.left_out,
            cut_short: self.cut_short.map(|Cut { share, untold, too_deep, not_in_time }| CutShort {
                share,
                untold,
                too_deep,
                not_in_time,
            }),
        }
    }
}

impl From<TierProfile> for OnCpu {
    fn from(of: TierProfile) -> Self {
        Self {
            samples: of.samples,
            cores: of.cores,
            kernel_share: of.kernel_share,
            hottest: of.hottest.map(|HotFunction { function, share, share_ci, caller }| Hottest {
                function: function.into(),
                share,
                share_ci,
                caller: caller.map(Called::from),
            }),
            functions: of.functions.into_iter().map(Called::from).collect(),
            stacks: of.stacks,
            left_out: of.left_out,
            cut_short: of.cut_short.map(|CutShort { share, untold, too_deep, not_in_time }| Cut {
                share,
                untold,
                too_deep,
                not_in_time,
            }),
        }
    }
}

impl From<Function> for Called {
    fn from(Function { name, module, offset, kernel }: Function) -> Self {
        Self { name, module, offset, kernel }
    }
}

impl From<Called> for Function {
    fn from(Called { name, module, offset, kernel }: Called) -> Self {
        Self { name, module, offset, kernel }
    }
}

impl Sleepers {
    fn troubles(&self) -> Vec<OffCpuTrouble> {
        let calls = self.calls_refused.map(|ptrace_scope| OffCpuTrouble::CallsRefused { ptrace_scope });
        let stacks = self.stacks_refused.then_some(OffCpuTrouble::StacksRefused);
        calls.into_iter().chain(stacks).collect()
    }
}

impl From<OffCpu> for Sleepers {
    fn from(of: OffCpu) -> Self {
        let calls_refused = of.troubles.iter().find_map(|trouble| match trouble {
            OffCpuTrouble::CallsRefused { ptrace_scope } => Some(*ptrace_scope),
            _ => None,
        });
        Self {
            elapsed_s: of.elapsed_s,
            looks: of.looks,
            calls_refused,
            stacks_refused: of.troubles.contains(&OffCpuTrouble::StacksRefused),
            tiers: of.tiers.into_iter().map(Slept::from).collect(),
        }
    }
}

impl Slept {
    fn is_sound(&self) -> bool {
        is_amount(self.threads)
            && is_share(&self.asleep_share)
            && self.waits.iter().all(|wait| is_share(&wait.share))
            && are_sound(&self.stacks, &self.functions, None)
    }

    fn of(self, processes: Processes) -> TierOffCpu {
        TierOffCpu {
            processes,
            threads: self.threads,
            samples: self.samples,
            asleep_share: self.asleep_share,
            waits: self.waits.into_iter().map(Wait::from).collect(),
            left_out: self.left_out,
            functions: self.functions.into_iter().map(Function::from).collect(),
            stacks: self.stacks,
        }
    }
}

impl From<TierOffCpu> for Slept {
    fn from(of: TierOffCpu) -> Self {
        Self {
            threads: of.threads,
            samples: of.samples,
            asleep_share: of.asleep_share,
            waits: of.waits.into_iter().map(Waited::from).collect(),
            left_out: of.left_out,
            functions: of.functions.into_iter().map(Called::from).collect(),
            stacks: of.stacks,
        }
    }
}

impl From<Wait> for Waited {
    fn from(Wait { state, call, wchan, samples, share }: Wait) -> Self {
        Self { state, call, wchan, samples, share }
    }
}

impl From<Waited> for Wait {
    fn from(Waited { state, call, wchan, samples, share }: Waited) -> Self {
        Self { state, call, wchan, samples, share }
    }
}

impl Missing {
    /// The same trouble, if an agent can have it: the others are of whoever asks.
    fn of(trouble: ProfileTrouble) -> Option<Self> {
        Some(match trouble {
            ProfileTrouble::NotBuilt => Self::NotBuilt,
            ProfileTrouble::Refused { paranoid } => Self::Refused(paranoid),
            ProfileTrouble::WithoutKernel { paranoid } => Self::WithoutKernel(paranoid),
            ProfileTrouble::Unavailable { os_error } => Self::Unavailable(os_error),
            ProfileTrouble::TooManyThreads { left_out } => Self::TooManyThreads(left_out),
            ProfileTrouble::Lost { samples } => Self::Lost(samples),
            ProfileTrouble::FramePointersAlone => Self::FramePointersAlone,
            ProfileTrouble::Ended { processes } => Self::Ended(processes),
            ProfileTrouble::NotHere => Self::NotHere,
            ProfileTrouble::Elsewhere { .. }
            | ProfileTrouble::OnHost { .. }
            | ProfileTrouble::NotAnswered { .. }
            | ProfileTrouble::Malformed
            | ProfileTrouble::Idle
            | ProfileTrouble::ShortLived
            | ProfileTrouble::Unknown => return None,
        })
    }
}

impl From<Missing> for ProfileTrouble {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotBuilt => Self::NotBuilt,
            Missing::Refused(paranoid) => Self::Refused { paranoid },
            Missing::WithoutKernel(paranoid) => Self::WithoutKernel { paranoid },
            Missing::Unavailable(os_error) => Self::Unavailable { os_error },
            Missing::TooManyThreads(left_out) => Self::TooManyThreads { left_out },
            Missing::Lost(samples) => Self::Lost { samples },
            Missing::FramePointersAlone => Self::FramePointersAlone,
            Missing::Ended(processes) => Self::Ended { processes },
            Missing::NotHere => Self::NotHere,
        }
    }
}

#[cfg(test)]
mod tests {
    use analysis::run::RunState;

    use super::*;

    /// A profile with something of every kind in it.
    fn host() -> HostProfile {
        let function = |name: &str, offset, kernel| Function {
            name: name.into(),
            module: "libz.so.1".into(),
            offset,
            kernel,
        };
        let functions = vec![function("deflate", None, false), function("", Some(0x5000), true)];
        let hottest = HotFunction {
            function: functions[1].clone(),
            share: 0.7,
            share_ci: [0.6, 0.8],
            caller: Some(functions[0].clone()),
        };
        let stack = |calls: &[u32], samples| Stack { calls: calls.into(), samples };
        let wait = Wait {
            state: RunState::Uninterruptible,
            call: Some("fsync".into()),
            wchan: Some("io_schedule".into()),
            samples: 8,
            share: 0.4,
        };
        HostProfile {
            elapsed_s: 5.01,
            hertz: 99,
            by_thread: true,
            tiers: vec![TierProfile {
                samples: 10,
                cores: 0.9,
                kernel_share: Some(0.5),
                hottest: Some(hottest),
                functions: functions.clone(),
                stacks: vec![stack(&[0, 1], 7), stack(&[0], 2)],
                left_out: 1,
                cut_short: Some(CutShort { share: 0.3, untold: 1, too_deep: 2, not_in_time: 3 }),
                ..TierProfile::default()
            }],
            troubles: every_trouble(),
            off_cpu: Some(OffCpu {
                elapsed_s: 4.9,
                looks: 400,
                tiers: vec![TierOffCpu {
                    threads: 8.5,
                    samples: 20,
                    asleep_share: 0.6,
                    waits: vec![wait],
                    left_out: 12,
                    functions: functions[1..].to_vec(),
                    stacks: vec![stack(&[0], 8)],
                    ..TierOffCpu::default()
                }],
                troubles: vec![
                    OffCpuTrouble::CallsRefused { ptrace_scope: Some(1) },
                    OffCpuTrouble::StacksRefused,
                ],
            }),
        }
    }

    fn every_trouble() -> Vec<ProfileTrouble> {
        vec![
            ProfileTrouble::NotBuilt,
            ProfileTrouble::Refused { paranoid: Some(3) },
            ProfileTrouble::WithoutKernel { paranoid: None },
            ProfileTrouble::Unavailable { os_error: 38 },
            ProfileTrouble::TooManyThreads { left_out: 4 },
            ProfileTrouble::Lost { samples: 5 },
            ProfileTrouble::FramePointersAlone,
            ProfileTrouble::Ended { processes: 6 },
            ProfileTrouble::NotHere,
        ]
    }

    fn tier() -> Tier {
        let processes = Processes { name: "nginx".into(), ..Processes::default() };
        Tier { processes, pids: [812].into() }
    }

    #[test]
    fn a_profile_comes_back_as_it_was_with_the_tiers_that_were_asked_for() {
        let mut expected = host();
        expected.tiers[0].processes = tier().processes;
        let seen = expected.off_cpu.as_mut().expect("threads were seen");
        seen.tiers[0].processes = tier().processes;
        assert_eq!(Profiled::new(3, host()).into_host(&[tier()]), Some(expected));
        assert_eq!(Profiled::new(3, host()).number, 3);
    }

    #[test]
    fn troubles_of_whoever_asks_are_not_an_agents() {
        let troubles = vec![ProfileTrouble::Idle, ProfileTrouble::Malformed, ProfileTrouble::NotHere];
        let told = Profiled::new(1, HostProfile { troubles, ..HostProfile::default() });
        assert_eq!(told.troubles, [Missing::NotHere]);
    }

    /// Whether something that is changed like this is believed.
    fn is_believed(change: impl FnOnce(&mut Profiled)) -> bool {
        let mut told = Profiled::new(1, host());
        change(&mut told);
        told.into_host(&[tier()]).is_some()
    }

    fn seen(told: &mut Profiled) -> &mut Slept {
        &mut told.off_cpu.as_mut().expect("threads were seen").tiers[0]
    }

    #[test]
    fn what_cannot_be_is_not_believed() {
        assert!(is_believed(|_| ()) && is_believed(|told| told.tiers.clear()));
        assert!(!is_believed(|told| told.tiers.push(OnCpu::default())), "more tiers than there are");
        assert!(!is_believed(|told| told.tiers[0].stacks[0].calls = vec![9]), "a function that is not there");
        assert!(!is_believed(|told| told.tiers[0].stacks[0].calls = vec![0; 600]), "a call without an end");
        assert!(!is_believed(|told| told.tiers[0].stacks[0].samples = 11), "more samples than there are");
        assert!(!is_believed(|told| told.tiers[0].stacks[0].samples = u64::MAX));
        assert!(!is_believed(|told| told.tiers[0].cores = f64::INFINITY));
        assert!(!is_believed(|told| told.tiers[0].kernel_share = Some(1.5)));
        assert!(!is_believed(|told| told.tiers[0].hottest.as_mut().expect("one").share_ci[1] = f64::NAN));
        assert!(!is_believed(|told| told.tiers[0].cut_short.as_mut().expect("one").share = -0.1));
        assert!(!is_believed(|told| (told.elapsed_s, told.hertz) = (f64::NAN, 99)));
        assert!(!is_believed(|told| told.hertz = u32::MAX));
        assert!(!is_believed(|told| seen(told).stacks[0].calls = vec![1]));
        assert!(!is_believed(|told| seen(told).asleep_share = 7.0));
        assert!(!is_believed(|told| seen(told).waits[0].share = f64::NAN));
        assert!(!is_believed(|told| told.off_cpu.as_mut().expect("it").tiers.push(Slept::default())));
    }
}
