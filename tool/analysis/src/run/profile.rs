//! Where the processor time of each tier went, by function.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OffCpu, Processes};

/// From this share on, stacks that are cut short are worth a sentence.
const CUT_SHORT_NOTABLE: f64 = 0.05;

/// What was running on the processors, sampled many times a second while the load stood still.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Users meanwhile.
    pub users: u32,
    /// How long it was sampled, seconds, of several hosts where it was longest; 0 where nothing could be.
    pub elapsed_s: f64,
    /// Samples per second of processor time.
    pub hertz: u32,
    /// Throughput meanwhile as a share of the step's with as many users, where it was measured apart from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_share: Option<f64>,
    /// The tiers that took enough processor time, busiest first, and the holder of the bottleneck.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierProfile>,
    /// What is missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<ProfileTrouble>,
    /// Where threads slept meanwhile, of every tier that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_cpu: Option<OffCpu>,
}

impl Profile {
    /// The same without stacks, which take most of its room.
    #[must_use]
    pub fn without_stacks(&self) -> Self {
        let tier = |tier: &TierProfile| TierProfile {
            processes: tier.processes.clone(),
            hottest: tier.hottest.clone(),
            functions: Vec::new(),
            stacks: Vec::new(),
            ..*tier
        };
        Self {
            tiers: self.tiers.iter().map(tier).collect(),
            troubles: self.troubles.clone(),
            off_cpu: self.off_cpu.as_ref().map(OffCpu::without_stacks),
            ..*self
        }
    }
}

/// Where the processor time of one tier went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TierProfile {
    /// Its processes.
    pub processes: Processes,
    /// How many samples there are of it.
    pub samples: u64,
    /// Processor time, in processors: 1.5 is one and a half of them.
    pub cores: f64,
    /// The share of its samples in the kernel, 0 to 1; `None` where the kernel could not be sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_share: Option<f64>,
    /// The function that most of the time was spent in, not counting what it called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hottest: Option<HotFunction>,
    /// The functions that `stacks` refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
    /// The stacks that were seen, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<Stack>,
    /// Samples whose stacks were too rare to be kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Samples whose stacks do not reach the place where their threads began; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
}

/// Samples whose outermost callers are missing, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CutShort {
    /// Their share of all samples in which the program has a part, 0 to 1.
    pub share: f64,
    /// Those that end in code whose callers neither unwind tables nor frame pointers tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u64,
    /// Those that are deeper than what is copied and followed of a stack.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_deep: u64,
    /// Those that there was no time to unwind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_in_time: u64,
}

impl CutShort {
    /// Whether it takes from what the stacks say.
    pub fn is_notable(&self) -> bool {
        self.share >= CUT_SHORT_NOTABLE
    }
}

/// The function with the largest share of a tier's processor time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotFunction {
    /// The function.
    pub function: Function,
    /// The share of the tier's samples in it, 0 to 1, not counting what it called.
    pub share: f64,
    /// 95 % interval of it, [lo, hi].
    pub share_ci: [f64; 2],
    /// Who called it most often; of a function of the kernel, the nearest one of the program. `None` where the stacks do not
    /// show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Function>,
}

/// A function, or as much as is known of one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Its name; empty where the file holds none for its address.
    pub name: String,
    /// The program, library or module of the kernel that it is in, without folders; empty where that is unknown.
    pub module: String,
    /// Without a name: where in the module, rounded down to a page of 4 096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Whether it is in the kernel.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
}

/// A stack of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// Indexes into the tier's functions, the outermost call first.
    pub calls: Vec<u32>,
    /// How often it was seen.
    pub samples: u64,
}

/// A reason why a profile is absent or incomplete.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ProfileTrouble {
    /// The kernel lets this user sample nothing of these processes.
    Refused {
        /// `kernel.perf_event_paranoid`, where it can be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paranoid: Option<i32>,
    },
    /// The kernel lets this user sample the programs alone and not itself.
    WithoutKernel {
        /// `kernel.perf_event_paranoid`, where it can be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paranoid: Option<i32>,
    },
    /// The kernel hides from this user where its functions are, so that all of them are one, which has no name.
    KernelUnnamed,
    /// The kernel cannot sample at all.
    Unavailable {
        /// The error number.
        os_error: i32,
    },
    /// Threads that could not be sampled, because the limit on open files was reached.
    TooManyThreads {
        /// How many.
        left_out: u64,
    },
    /// Processors that could not be sampled, because this user may lock no more memory for their samples.
    NoRoom {
        /// How many.
        left_out: u32,
        /// Of how many.
        of: u32,
    },
    /// Samples that the kernel had no room for.
    Lost {
        /// How many.
        samples: u64,
    },
    /// Stacks could only be followed by frame pointers, which most packaged programs have none of.
    FramePointersAlone,
    /// Processes that ended before the names of their functions were looked up.
    Ended {
        /// How many.
        processes: u32,
    },
    /// Nothing of the server runs on this host, or can be seen there.
    NotHere,
    /// Tiers on other hosts, where earlier versions sampled nothing.
    Elsewhere {
        /// The tiers.
        tiers: Vec<Processes>,
    },
    /// A trouble on another host.
    OnHost {
        /// Its name.
        host: String,
        /// What is missing there.
        trouble: Box<ProfileTrouble>,
    },
    /// The nstar that observes there was built without what profiles take.
    NotBuilt,
    /// The agent there did not tell what it sampled.
    NotAnswered {
        /// How long it was waited for, seconds; absent where it had ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_s: Option<u32>,
    },
    /// What the agent there told cannot be.
    Malformed,
    /// No processor time was seen.
    Idle,
    /// No processor time was seen, and threads that live for less than the time between two samples could not be.
    ShortLived,
    /// A trouble that a newer version knows.
    #[serde(other)]
    Unknown,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}
