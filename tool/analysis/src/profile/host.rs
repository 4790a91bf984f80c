//! What was sampled on each host, and how that becomes the profile of a run.

use serde::{Deserialize, Serialize};

use super::{CORES_MIN, Names, Sampled, ThreadsSeen, Tier, is_kernel_unnamed, off_cpu, tier_profile};
use crate::run::{
    Bottleneck, HostName, Identity, OffCpu, OffCpuTrouble, Processes, Profile, ProfileTrouble, TierProfile,
};

/// What was sampled of the tiers of one host, with names, before it is known what the bottleneck is. Agents tell it in JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostProfile {
    /// How long it was sampled, seconds; 0 where nothing could be.
    pub elapsed_s: f64,
    /// Samples per second of processor time.
    pub hertz: u32,
    /// Whether each thread was sampled by itself: those that live for less than the time between two samples are not seen.
    pub by_thread: bool,
    /// The tiers, in the order in which they were to be profiled, those that took no processor time too.
    pub tiers: Vec<TierProfile>,
    /// What is missing.
    pub troubles: Vec<ProfileTrouble>,
    /// Where threads slept, if that was looked at: the tiers in the same order.
    pub off_cpu: Option<OffCpu>,
}

impl HostProfile {
    /// What samples and looks at threads come to.
    pub fn new(sampled: &Sampled, tiers: &[Tier], names: &Names, threads: Option<&ThreadsSeen>) -> Self {
        let told: Vec<TierProfile> = tiers.iter().map(|tier| tier_profile(sampled, tier, names)).collect();
        let unnamed = is_without_kernel_names(&told).then_some(ProfileTrouble::KernelUnnamed);
        Self {
            elapsed_s: sampled.elapsed_s,
            hertz: sampled.hertz,
            by_thread: sampled.by_thread,
            troubles: sampled.troubles.iter().cloned().chain(unnamed).collect(),
            tiers: told,
            off_cpu: threads.map(|seen| off_cpu::off_cpu(seen, tiers)),
        }
    }

    /// A host of which nothing is known for this reason.
    pub fn without(trouble: ProfileTrouble) -> Self {
        Self { troubles: vec![trouble], ..Self::default() }
    }

    /// The same as seen by an observer in this place, whose troubles are told with this name of its host.
    #[must_use]
    pub fn seen_from(mut self, place: &HostName, host: &str) -> Self {
        let off_cpu = self.off_cpu.iter_mut().flat_map(|seen| &mut seen.tiers);
        let processes = self.tiers.iter_mut().map(|tier| &mut tier.processes);
        for of in processes.chain(off_cpu.map(|tier| &mut tier.processes)) {
            of.on.clone_from(place);
        }
        let on_host = |trouble| ProfileTrouble::OnHost { host: host.to_owned(), trouble: Box::new(trouble) };
        self.troubles = self.troubles.into_iter().map(on_host).collect();
        if let Some(seen) = &mut self.off_cpu {
            let all = std::mem::take(&mut seen.troubles).into_iter();
            let on_host =
                |trouble| OffCpuTrouble::OnHost { host: host.to_owned(), trouble: Box::new(trouble) };
            seen.troubles = all.map(on_host).collect();
        }
        self
    }
}

/// Whether the kernel was seen, and no name of it is known.
fn is_without_kernel_names(tiers: &[TierProfile]) -> bool {
    let in_kernel = || tiers.iter().flat_map(|tier| &tier.functions).filter(|function| function.kernel);
    in_kernel().next().is_some() && in_kernel().all(is_kernel_unnamed)
}

/// The profile that several hosts make: of each tier that takes enough processor time, of the busiest, and of the holder of
/// the bottleneck.
pub fn profile(users: u32, hosts: Vec<HostProfile>, bottleneck: &Bottleneck) -> Profile {
    let holder = bottleneck.identity.as_ref().and_then(Identity::processes);
    let is_holder = |of: &Processes| holder.is_some_and(|holder| holder.are(of));
    let elapsed_s = hosts.iter().map(|host| host.elapsed_s).fold(0.0, f64::max);
    let hertz = hosts.iter().map(|host| host.hertz).max().unwrap_or(0);
    let by_thread = hosts.iter().any(|host| host.by_thread);
    let (mut tiers, mut troubles, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for host in hosts {
        tiers.extend(host.tiers);
        troubles.extend(host.troubles);
        seen.extend(host.off_cpu);
    }
    tiers.sort_by(|a: &TierProfile, b| b.cores.total_cmp(&a.cores).then(b.samples.cmp(&a.samples)));
    let cores_min = tiers.first().map_or(CORES_MIN, |busiest| busiest.cores.min(CORES_MIN));
    let is_shown = |tier: &TierProfile| tier.cores >= cores_min || is_holder(&tier.processes);
    tiers.retain(|tier| tier.samples > 0 && is_shown(tier));
    if tiers.is_empty() && troubles.is_empty() {
        troubles.push(if by_thread { ProfileTrouble::ShortLived } else { ProfileTrouble::Idle });
    }
    Profile {
        users,
        elapsed_s,
        hertz,
        throughput_share: None,
        tiers,
        troubles,
        off_cpu: off_cpu::joined(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::TierOffCpu;

    fn processes(name: &str) -> Processes {
        Processes { name: name.into(), ..Processes::default() }
    }

    fn tier(name: &str, cores: f64) -> TierProfile {
        let samples = (cores * 990.0) as u64;
        TierProfile { processes: processes(name), samples, cores, ..TierProfile::default() }
    }

    fn host(elapsed_s: f64, tiers: &[TierProfile]) -> HostProfile {
        HostProfile { elapsed_s, hertz: 99, tiers: tiers.into(), ..HostProfile::default() }
    }

    fn asleep(name: &str, samples: u64) -> TierOffCpu {
        TierOffCpu { processes: processes(name), samples, ..TierOffCpu::default() }
    }

    fn names(of: &Profile) -> Vec<(&str, Option<&str>)> {
        of.tiers.iter().map(|tier| (&*tier.processes.name, tier.processes.on.as_deref())).collect()
    }

    #[test]
    fn tiers_of_other_hosts_carry_their_names_and_are_shown_busiest_first() {
        let far = Some("db".to_owned());
        let there = host(9.0, &[tier("mariadb", 1.5), tier("backup", 0.01)]).seen_from(&far, "db");
        let here = host(10.0, &[tier("nginx", 0.5)]);
        let profile = profile(4, vec![here, there], &Bottleneck::default());
        assert_eq!(names(&profile), [("mariadb", Some("db")), ("nginx", None)]);
        assert_eq!((profile.users, profile.hertz, profile.elapsed_s), (4, 99, 10.0));
        assert_eq!(profile.troubles, []);
    }

    #[test]
    fn the_holder_is_shown_on_its_own_host_alone() {
        let holder = Processes { on: Some("b".into()), ..processes("idle") };
        let bottleneck = Bottleneck { identity: Some(Identity::Processes(holder)), ..Bottleneck::default() };
        let on = |name: &str| host(9.0, &[tier("idle", 0.01)]).seen_from(&Some(name.to_owned()), name);
        let profile = profile(1, vec![host(9.0, &[tier("busy", 1.0)]), on("a"), on("b")], &bottleneck);
        assert_eq!(names(&profile), [("busy", None), ("idle", Some("b"))]);
    }

    #[test]
    fn what_is_missing_there_is_told_with_the_host() {
        let refused = ProfileTrouble::Refused { paranoid: Some(3) };
        let seen = OffCpu {
            looks: 9,
            tiers: vec![asleep("mariadb", 5), asleep("gone", 0)],
            troubles: vec![OffCpuTrouble::StacksRefused],
            ..OffCpu::default()
        };
        let there = HostProfile { off_cpu: Some(seen), ..HostProfile::without(refused.clone()) };
        let there = there.seen_from(&Some("db".to_owned()), "db");
        let here = OffCpu { looks: 10, tiers: vec![asleep("nginx", 7)], ..OffCpu::default() };
        let here = HostProfile { off_cpu: Some(here), ..HostProfile::default() };
        let profile = profile(1, vec![here, there], &Bottleneck::default());
        let on_db = ProfileTrouble::OnHost { host: "db".into(), trouble: Box::new(refused) };
        assert_eq!(profile.troubles, [on_db], "and not that nothing ran");
        let seen = profile.off_cpu.expect("threads were seen");
        let tiers: Vec<_> =
            seen.tiers.iter().map(|tier| (&*tier.processes.name, tier.processes.on.as_deref())).collect();
        assert_eq!((seen.looks, &tiers[..]), (10, &[("nginx", None), ("mariadb", Some("db"))][..]));
        let stacks =
            OffCpuTrouble::OnHost { host: "db".into(), trouble: Box::new(OffCpuTrouble::StacksRefused) };
        assert_eq!(seen.troubles, [stacks]);
    }
}
