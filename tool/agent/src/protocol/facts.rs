//! Facts of a host as they may be sent, and as they may be believed: of bounded size, and with names that can be shown.

use std::cmp::Reverse;

use analysis::doctor::{Facts, Processor, Sockets, Subject};

use super::in_one_line;

/// No kernel can be built for more processors that are common.
const PROCESSORS_MAX: usize = 8_192;

/// The most processors that share a core, with room to spare.
const SIBLINGS_MAX: usize = 64;

/// Hosts have a few thousand processes at most. Of more, those are told that have used most time so far.
const PROCESSES_MAX: usize = 16_384;

/// Processes of servers whose limits are told: more than a server usually has that gives each connection a process.
const SUBJECTS_MAX: usize = 1_024;

/// The most processor numbers that are told of all of them together: 256 for each, where there are so many processes.
const ALLOWED_MAX: usize = 32 * PROCESSORS_MAX;

/// The most of anything else of which there are several.
const OTHERS_MAX: usize = 256;

/// The longest name that is shown.
const NAME_CHARS_MAX: usize = 64;

/// The same cut to what may be sent and shown, without what is about a generator: whoever tells is none.
pub(crate) fn bounded(mut facts: Facts) -> Facts {
    facts.debug_build = false;
    facts.cpus.truncate(PROCESSORS_MAX);
    facts.processors.truncate(PROCESSORS_MAX);
    facts.processors.iter_mut().for_each(bound_processor);
    facts.clocks.truncate(OTHERS_MAX);
    let words = facts.clocks.iter_mut().chain(&mut facts.clock).chain(&mut facts.huge_pages);
    words.for_each(bound_name);
    if facts.processes.len() > PROCESSES_MAX {
        facts.processes.sort_by_key(|process| Reverse(process.cpu_us));
        facts.processes.truncate(PROCESSES_MAX);
    }
    facts.processes.iter_mut().for_each(|process| bound_name(&mut process.name));
    bound_subjects(&mut facts);
    bound_sockets(&mut facts.sockets);
    if let Some(network) = &mut facts.server_network {
        bound_name(&mut network.name);
        bound_sockets(&mut network.sockets);
    }
    facts.listeners.truncate(OTHERS_MAX);
    facts.listeners.iter_mut().for_each(|listener| bound_name(&mut listener.name));
    facts.links.retain(|(_, bits_per_s, _)| is_positive(*bits_per_s));
    facts.links.truncate(OTHERS_MAX);
    facts.links.iter_mut().for_each(|(name, ..)| bound_name(name));
    facts.offloads.truncate(OTHERS_MAX);
    facts.offloads.iter_mut().for_each(|of| bound_name(&mut of.link));
    facts.unmade.truncate(OTHERS_MAX);
    facts
}

fn bound_name(name: &mut String) {
    *name = in_one_line(name, NAME_CHARS_MAX);
}

fn bound_processor(processor: &mut Processor) {
    processor.governor.iter_mut().for_each(bound_name);
    processor.siblings.truncate(SIBLINGS_MAX);
}

fn bound_subjects(facts: &mut Facts) {
    facts.subjects.retain(|(subject, _)| *subject != Subject::Generator);
    facts.subjects.truncate(SUBJECTS_MAX);
    let mut left = ALLOWED_MAX;
    for (subject, limits) in &mut facts.subjects {
        if let Subject::Server { name, .. } = subject {
            bound_name(name);
        }
        limits.allowed.truncate(left.min(PROCESSORS_MAX));
        left -= limits.allowed.len();
        limits.quota_cores = limits.quota_cores.filter(|cores| is_positive(*cores));
    }
}

fn bound_sockets(sockets: &mut Sockets) {
    bound_name(&mut sockets.network);
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use analysis::counters::{Cpu, Role};
    use analysis::doctor::{
        Check, HostProcess, LimitedMemory, LinkOffloads, ListenQueue, ServerNetwork, SubjectFacts, Unmade,
    };

    use super::*;
    use crate::protocol::{FRAME_BYTES_MAX, Packer, Report};

    const ODD: &str = "a\n\x1b[31m";

    /// More of everything than any host has, with names that nobody has.
    fn endless() -> Facts {
        let long = || ODD.repeat(99);
        let subject = Subject::Server { name: long(), pid: u32::MAX, role: Role::Downstream };
        let limits = SubjectFacts {
            open_files: Some(u64::MAX),
            allowed: vec![u32::MAX; 300],
            quota_cores: Some(f64::NAN),
            memory: Some(LimitedMemory { most_bytes: u64::MAX, used_bytes: u64::MAX }),
            debug_build: true,
        };
        let sockets = || Sockets { network: long(), ..Sockets::default() };
        let processor = Processor {
            number: u32::MAX,
            governor: Some(long()),
            siblings: vec![u32::MAX; 200],
            ..Processor::default()
        };
        let process = HostProcess { pid: u32::MAX, name: long(), cpu_us: u64::MAX, is_ours: false };
        let listener = ListenQueue { name: long(), ..ListenQueue::default() };
        let offloads = LinkOffloads { link: long(), ..LinkOffloads::default() };
        Facts {
            debug_build: true,
            cpus: vec![Cpu::default(); 20_000],
            processors: vec![processor; 10_000],
            clock: Some(long()),
            clocks: vec![long(); 999],
            huge_pages: Some(long()),
            processes: vec![process; 20_000],
            subjects: repeat_n([(Subject::Generator, limits.clone()), (subject, limits)], 2_000)
                .flatten()
                .collect(),
            sockets: sockets(),
            server_network: Some(ServerNetwork { name: long(), pid: 1, sockets: sockets() }),
            listeners: vec![listener; 999],
            links: repeat_n([(long(), f64::INFINITY, true), (long(), 1e9, true)], 999).flatten().collect(),
            offloads: vec![offloads; 999],
            unmade: vec![Unmade { check: Check::Clock, os_error: None }; 999],
            ..Facts::default()
        }
    }

    #[test]
    fn facts_without_end_are_cut_to_what_can_be_shown() {
        let facts = bounded(endless());
        let lengths = [facts.cpus.len(), facts.processors.len(), facts.processes.len(), facts.subjects.len()];
        assert_eq!(lengths, [PROCESSORS_MAX, PROCESSORS_MAX, PROCESSES_MAX, SUBJECTS_MAX]);
        let others = [facts.clocks.len(), facts.listeners.len(), facts.links.len(), facts.unmade.len()];
        assert_eq!((others, facts.offloads.len()), ([OTHERS_MAX; 4], OTHERS_MAX));
        let allowed = facts.subjects.iter().map(|(_, limits)| limits.allowed.len());
        assert_eq!(allowed.sum::<usize>(), ALLOWED_MAX, "a few hundred each are too many");
        let (subject, limits) = &facts.subjects[0];
        assert!(limits.quota_cores.is_none() && !facts.debug_build);
        let Subject::Server { name: server, .. } = subject else { unreachable!("it is none of a generator") };
        let names =
            [server, &facts.clocks[0], &facts.processes[0].name, &facts.listeners[0].name, &facts.links[0].0];
        let governor = facts.processors[0].governor.as_ref().expect("a governor");
        let others = [&facts.sockets.network, governor, &facts.offloads[0].link];
        let is_shown =
            |name: &&String| name.chars().count() == NAME_CHARS_MAX && !name.contains(char::is_control);
        assert!(names.iter().chain(&others).all(is_shown), "{names:?} {others:?}");
    }

    #[test]
    fn facts_of_the_largest_host_fit_into_a_message() {
        // Names of processes have 15 characters, or a few more for the kernel's own.
        let name = || "x".repeat(32);
        let mut facts = endless();
        facts.processors.iter_mut().for_each(|one| one.siblings.truncate(8));
        facts.processors.iter_mut().for_each(|one| one.governor = Some(name()));
        facts.processes.iter_mut().for_each(|one| one.name = name());
        let report = Report::Facts(1, Box::new(bounded(facts)));
        let packed = Packer::default().pack(&report).map(|frame| frame.len());
        assert!(packed.is_some_and(|length| length < FRAME_BYTES_MAX), "{packed:?}");
    }

    #[test]
    fn of_too_many_processes_the_busiest_are_told() {
        let process = |pid| HostProcess { pid, cpu_us: u64::from(pid), ..HostProcess::default() };
        let facts = Facts { processes: (0..20_000).map(process).collect(), ..Facts::default() };
        let told = bounded(facts).processes;
        assert_eq!((told.len(), told[0].pid), (PROCESSES_MAX, 19_999));
    }

    #[test]
    fn an_honest_host_is_told_as_it_is() {
        let facts =
            Facts { clock: Some("tsc".into()), links: vec![("eth0".into(), 1e9, true)], ..Facts::default() };
        assert_eq!(bounded(facts.clone()), facts);
    }
}
