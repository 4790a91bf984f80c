//! Profiles of the tiers that observers elsewhere see, sampled and named where they run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::{PROFILE_PATIENCE, Patience, ProfileAsked};
use analysis::counters::Process;
use analysis::profile::{HostProfile, Tier};

use super::{Agent, Elsewhere};
use crate::profiling::tier;
use crate::target::by_tier;

/// How long profiles are waited for where an interrupt has ended the load, as is usual for a load without an end: they are on
/// their way then.
const AFTER_INTERRUPT: Duration = Duration::from_secs(3);

/// A profile that was asked for, of the tiers that one agent sees.
#[derive(Debug)]
pub(crate) struct AskedProfile {
    /// Which of the agents.
    agent: usize,
    asked: ProfileAsked,
}

impl Elsewhere {
    /// Has every agent sample the tiers that it sees now, for at most this long, and waits for none.
    pub(crate) fn profile(&self, most: Duration) -> Vec<AskedProfile> {
        let ask = |(number, agent): (usize, &Agent)| {
            let tiers = agent.tiers_to_profile();
            let asked = (!tiers.is_empty()).then(|| agent.observer.profile(tiers, most))?;
            Some(AskedProfile { agent: number, asked })
        };
        self.agents.iter().enumerate().filter_map(ask).collect()
    }

    /// Has them tell what they sampled by now, and waits for none.
    pub(crate) fn end_profiles(&self, asked: &[AskedProfile]) {
        let agents = asked.iter().filter_map(|asked| self.agents.get(asked.agent));
        agents.for_each(|agent| agent.observer.end_profile());
    }

    /// What they sampled. All are waited for, until the same time or an interrupt: who has told nothing by then is left out, and
    /// that is told. Where an interrupt ended the load itself, they still get a moment.
    pub(crate) fn profiles(&self, asked: Vec<AskedProfile>, interrupt: &AtomicBool) -> Vec<HostProfile> {
        let never = AtomicBool::new(false);
        let patience = match interrupt.load(Ordering::Relaxed) {
            true => Patience::begin(AFTER_INTERRUPT, &never),
            false => Patience::begin(PROFILE_PATIENCE, interrupt),
        };
        let of = |AskedProfile { agent, asked }: AskedProfile| {
            let agent = self.agents.get(agent)?;
            let told = agent.observer.profiled(&asked, &patience).unwrap_or_else(HostProfile::without);
            Some(told.seen_from(&agent.stand.place, &agent.name))
        };
        asked.into_iter().filter_map(of).collect()
    }
}

impl Agent {
    /// The tiers that it saw last, as it numbers their processes; none where another observer sees the same.
    fn tiers_to_profile(&self) -> Vec<Tier> {
        if self.is_redundant() {
            return Vec::new();
        }
        // What is on its way is not waited for: load begins now.
        self.observer.read(|samples| samples.last().map_or_else(Vec::new, |last| to_profile(&last.processes)))
    }
}

/// Processes that serve, taken together by role and name.
fn to_profile(processes: &[Process]) -> Vec<Tier> {
    by_tier(processes).into_iter().map(tier).collect()
}

#[cfg(test)]
mod tests {
    use analysis::counters::Role;

    use super::*;

    #[test]
    fn processes_of_one_program_are_profiled_together_and_generators_are_not() {
        let process = |pid, name: &str, role| Process { pid, name: name.into(), role, ..Process::default() };
        let seen = [
            process(9, "nginx", Role::Server),
            process(7, "nginx", Role::Server),
            process(5, "postgres", Role::Downstream),
            process(3, "nstar", Role::Generator),
        ];
        let mut tiers = to_profile(&seen);
        tiers.sort_by(|a, b| a.processes.name.cmp(&b.processes.name));
        let pids = |tier: &Tier| tier.pids.iter().copied().collect::<Vec<_>>();
        let told = tiers.iter().map(|tier| (tier.processes.name.as_str(), tier.processes.pid, pids(tier)));
        let expected = [("nginx", None, vec![7, 9]), ("postgres", Some(5), vec![5])];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
