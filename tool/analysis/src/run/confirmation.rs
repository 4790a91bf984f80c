//! What slowing each tier a little did to the throughput of all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostName, Identity, Processes};
use crate::counters::Role;

/// A test of the verdict: the load stayed well beyond N* while one tier after the other was slowed a little.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    /// Users meanwhile.
    pub users: u32,
    /// How long it took, seconds; 0 in files from before it was kept.
    #[serde(default)]
    pub elapsed_s: f64,
    /// The tiers that were slowed, most decisive first.
    pub tiers: Vec<SlowedTier>,
    /// Tiers that were left alone, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
    /// What this says of the verdict.
    pub answer: ConfirmationAnswer,
}

/// What may be slowed: the processes of a tier, or a network link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slowable {
    /// The processes. Where it is a link there are none: 0 of them, without a name, and with the role of the generator, which
    /// nothing that is slowed has. So readers that know of processes alone take it for no tier.
    pub processes: Processes,
    /// The link, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// A network link, by the interface that sends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The kernel's name of the interface, such as `eth0`.
    pub name: String,
    /// Its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: HostName,
}

impl Slowable {
    /// The one that an identity names, or whose processes hold it; `None` where it names something else.
    pub fn of(identity: &Identity) -> Option<Self> {
        if let Identity::Link { name, on } = identity {
            let link = Link { name: name.clone(), on: on.clone() };
            let none = Processes { role: Role::Generator, ..Processes::default() };
            return Some(Self { processes: none, link: Some(link) });
        }
        identity.processes().cloned().map(Self::from)
    }

    /// Whether an identity names it, or its processes hold that; the numbers of processes may have changed.
    pub fn is(&self, identity: &Identity) -> bool {
        match (&self.link, identity) {
            (Some(link), Identity::Link { name, on }) => (&link.name, &link.on) == (name, on),
            (Some(_), _) => false,
            (None, _) => identity.processes().is_some_and(|of| of.are(&self.processes)),
        }
    }

    /// Itself as a resource.
    pub fn identity(&self) -> Identity {
        match &self.link {
            Some(Link { name, on }) => Identity::Link { name: name.clone(), on: on.clone() },
            None => Identity::Processes(self.processes.clone()),
        }
    }
}

impl From<Processes> for Slowable {
    fn from(processes: Processes) -> Self {
        Self { processes, link: None }
    }
}

/// By what means something was slowed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowedBy {
    /// Its processes were stopped for short slices of the time.
    #[default]
    Stopping,
    /// Its CPU quota was lower.
    Quota,
    /// The rate at which the link sends was lower.
    Rate,
}

/// A tier that was slowed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlowedTier {
    /// The tier.
    #[serde(flatten)]
    pub tier: Slowable,
    /// By what means; in files from before there were several, by stopping its processes.
    #[serde(default)]
    pub by: SlowedBy,
    /// The share of the time for which its processes were stopped, or by which its limit was lower, 0 to 1.
    pub stopped_share: f64,
    /// Relative change of throughput for a small relative change of the tier's speed: near 1 where the tier is the
    /// bottleneck, near 0 where it has slack.
    pub elasticity: f64,
    /// 95 % interval of it, [lo, hi].
    pub elasticity_ci: [f64; 2],
}

/// A tier that was not slowed, or whose CPU quota was not lowered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeftAlone {
    /// The tier.
    #[serde(flatten)]
    pub tier: Slowable,
    /// The reason.
    pub reason: LeftAloneReason,
}

/// Reasons not to slow a tier, not even for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftAloneReason {
    /// It belongs to another user.
    OtherUser,
    /// A debugger holds it.
    Debugged,
    /// Somebody has stopped it already.
    Stopped,
    /// It runs in the foreground of a terminal, whose shell would take it for suspended.
    Foreground,
    /// It was not started by nstar, which asks nobody before it stops what is its own.
    NotStarted,
    /// It is nstar itself, or what nstar runs under.
    Ours,
    /// It runs on another host, or in a container of its own.
    Elsewhere,
    /// It has ended.
    Ended,
    /// It started processes meanwhile, so that not all of it was slowed.
    ProcessesChanged,
    /// The system did not allow it.
    NotAllowed,
    /// Somebody else changed its limit meanwhile, or another run of nstar is lowering it.
    ChangedByOthers,
    /// Its CPU quota may be lowered by root alone.
    QuotaNeedsRoot,
    /// It has no cgroup of its own, so that a lower CPU quota would slow others too.
    QuotaShared,
    /// The rate of a link may be lowered by root alone.
    RateNeedsRoot,
    /// A program is missing that lowers the rate of a link, or that undoes in time what slows a tier.
    ToolsMissing,
    /// The link has a queueing discipline that could not be put back as it was.
    ShapedOtherwise,
    /// The link is full on the way in, where another host sends.
    FullOnTheWayIn,
    /// The link is not so full that a rate a tenth lower would tell.
    NotFull,
    /// There was no time left, or the test was interrupted.
    NoTime,
}

/// What the test says of the verdict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ConfirmationAnswer {
    /// Throughput follows the speed of the bottleneck's holder, and of no other tier as much.
    Confirmed,
    /// It follows another tier, and not the holder.
    Elsewhere(Slowable),
    /// It follows this tier, and the verdict named none.
    Found(Slowable),
    /// It follows several tiers, the holder among them.
    Shared,
    /// It follows none that was slowed: requests wait for something else, which goes on while processes are stopped.
    Nothing,
    /// The intervals are too wide, or the holder was left alone.
    #[default]
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_no_server_to_readers_that_know_of_processes_alone() {
        let link = Slowable::of(&Identity::Link { name: "eth0".into(), on: None }).unwrap();
        let Processes { role, name, processes, .. } = &link.processes;
        assert_eq!((*role, name.as_str(), *processes), (Role::Generator, "", 0));
    }
}
