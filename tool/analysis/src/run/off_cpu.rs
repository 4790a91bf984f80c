//! Where the threads of each tier sleep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Function, Processes, Stack};

/// What threads were doing when they were looked at, many times a second, while processor time was sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OffCpu {
    /// How long they were looked at, seconds; of several hosts, where it was longest.
    pub elapsed_s: f64,
    /// How often; of several hosts, where it was most.
    pub looks: u64,
    /// The tiers whose threads were seen, in the order of requests, those of other hosts last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierOffCpu>,
    /// What is missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<OffCpuTrouble>,
}

impl OffCpu {
    /// The same without stacks, which take most of its room.
    #[must_use]
    pub fn without_stacks(&self) -> Self {
        let tier = |tier: &TierOffCpu| TierOffCpu {
            processes: tier.processes.clone(),
            waits: tier.waits.clone(),
            functions: Vec::new(),
            stacks: Vec::new(),
            ..*tier
        };
        Self { tiers: self.tiers.iter().map(tier).collect(), troubles: self.troubles.clone(), ..*self }
    }
}

/// What the threads of one tier were doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierOffCpu {
    /// Its processes.
    pub processes: Processes,
    /// How many threads it had, on average.
    pub threads: f64,
    /// How many times one of them was looked at.
    pub samples: u64,
    /// The share of their time in which they slept, 0 to 1: neither on a processor nor ready for one.
    pub asleep_share: f64,
    /// What they were doing, most first.
    pub waits: Vec<Wait>,
    /// Times of looking at a thread that did something too rare to be kept.
    #[serde(default, skip_serializing_if = "super::profile::is_zero")]
    pub left_out: u64,
    /// The functions that `stacks` refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// The kernel's stacks of threads that slept, most frequent first; none where they may not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Times of looking at a thread whose stack was too rare to be kept.
    #[serde(default, skip_serializing_if = "super::profile::is_zero")]
    pub stacks_left_out: u64,
}

/// Shares below this are not worth a word in a sentence.
const MAIN_SHARE_MIN: f64 = 0.05;

/// Most places that a sentence names.
const MAIN_MAX: usize = 3;

impl TierOffCpu {
    /// Where its threads slept for most of their time: one for each state and system call, most first. The function of the
    /// kernel is told only where the call is not known.
    pub fn main_waits(&self) -> Vec<Wait> {
        let mut main: Vec<Wait> = Vec::new();
        for wait in self.waits.iter().filter(|wait| wait.state != RunState::Running) {
            let wchan = wait.wchan.clone().filter(|_| wait.call.is_none());
            let same = |of: &&mut Wait| of.state == wait.state && of.call == wait.call && of.wchan == wchan;
            match main.iter_mut().find(same) {
                Some(of) => {
                    (of.samples, of.share) = (of.samples.saturating_add(wait.samples), of.share + wait.share)
                }
                None => main.push(Wait { wchan, ..wait.clone() }),
            }
        }
        main.retain(|wait| wait.share >= MAIN_SHARE_MIN);
        main.sort_by(|a, b| b.share.total_cmp(&a.share));
        main.truncate(MAIN_MAX);
        main
    }
}

/// Something that threads of a tier were doing, and for how much of their time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// Whether they slept.
    pub state: RunState,
    /// The system call that they slept in: its name, or its number where it is a rare one. Absent where they slept in none,
    /// as for memory that is read back, or where that may not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The function of the kernel that they slept in (wchan), where the kernel tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wchan: Option<String>,
    /// How many times a thread was seen there.
    pub samples: u64,
    /// The share of the time of all of the tier's threads, 0 to 1.
    pub share: f64,
}

/// System calls in which a thread sleeps too that has nothing to do.
const IDLE_CALLS: [&str; 27] = [
    "accept",
    "accept4",
    "clock_nanosleep",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "futex",
    "futex_wait",
    "futex_waitv",
    "io_getevents",
    "io_uring_enter",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "read",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "restart_syscall",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "select",
    "semop",
    "semtimedop",
    "wait4",
];

impl Wait {
    /// Whether threads that have nothing to do are seen like this too.
    pub fn may_be_idle(&self) -> bool {
        let idles = |call: &str| IDLE_CALLS.contains(&call);
        self.state == RunState::Sleeping && self.call.as_deref().is_none_or(idles)
    }
}

/// Whether a thread runs or sleeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// On a processor, or ready for one (R).
    Running,
    /// Asleep until something happens or a signal comes (S).
    Sleeping,
    /// Asleep, and no signal wakes it (D): mostly for a disk.
    Uninterruptible,
    /// Stopped, by a signal or a debugger (T).
    Stopped,
    /// Any other.
    #[default]
    #[serde(other)]
    Other,
}

/// A reason why it is not known where threads sleep, or not wholly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum OffCpuTrouble {
    /// The kernel does not let this user read which system calls threads are in.
    CallsRefused {
        /// `kernel.yama.ptrace_scope`, where there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ptrace_scope: Option<i32>,
    },
    /// The kernel does not let this user read its stacks.
    StacksRefused,
    /// A trouble on another host.
    OnHost {
        /// Its name.
        host: String,
        /// What is missing there.
        trouble: Box<OffCpuTrouble>,
    },
    /// A trouble that a newer version knows.
    #[serde(other)]
    Unknown,
}
