//! Each fault alone is found, and a host without faults has none; what several observers see is found once.

use super::*;
use crate::counters::{Cpu, Role};

fn server(name: &str, pid: u32, role: Role) -> Subject {
    Subject::Server { name: name.into(), pid, role }
}

/// Two looks, a second apart, at a host without faults: the server on processor 0, the generator on processor 1.
fn healthy() -> [Facts; 2] {
    let cpu = |number| Cpu { number, user_us: 500_000, idle_us: 500_000, ..Cpu::default() };
    let processor = |number| Processor {
        number,
        governor: Some("performance".into()),
        wake_us: Some(2),
        siblings: vec![number],
        node: Some(0),
    };
    let subject = |allowed| SubjectFacts {
        open_files: Some(65_536),
        allowed: vec![allowed],
        ..SubjectFacts::default()
    };
    let server = server("app", 7, Role::Server);
    let process = |pid: u32, name: &str, is_ours| HostProcess { pid, name: name.into(), cpu_us: 0, is_ours };
    let first = Facts {
        at_us: 0,
        cpus: vec![cpu(0), cpu(1)],
        processors: vec![processor(0), processor(1)],
        clock: Some("tsc".into()),
        clocks: vec!["tsc".into(), "hpet".into()],
        huge_pages: Some("madvise".into()),
        processes: vec![process(7, "app", true), process(9, "backup", false)],
        subjects: vec![(Subject::Generator, subject(1)), (server, subject(0))],
        sockets: Sockets {
            network: "net:[1]".into(),
            listen_queue: Some(4_096),
            syn_queue: Some(512),
            packet_queue: Some(1_000),
            packets_dropped: 5,
            packets_handled: 1_000_000,
            ports: Some(28_232),
            time_wait: 100,
            reuse: Some(2),
            tracked: Some(Tracked { connections: 100, most: 65_536, refused: 0 }),
        },
        listeners: vec![ListenQueue { name: "app".into(), pid: 7, port: 80, most: 511 }],
        links: vec![("eth0".into(), 1e10, true)],
        offloads: vec![LinkOffloads { link: "eth0".into(), segmentation: Some(true), receive: Some(true) }],
        ..Facts::default()
    };
    let mut second = first.clone();
    second.at_us = 1_000_000;
    second.processes[0].cpu_us = 900_000;
    second.processes[1].cpu_us = 10_000;
    [first, second]
}

#[test]
fn a_healthy_host_has_no_fault() {
    let [first, second] = healthy();
    assert_eq!(faults(&first, &second), []);
    assert_eq!(faults(&Facts::default(), &Facts::default()), [], "what is not known is no fault");
}

/// The name of a fault, and how to plant it in the second look.
type Plant = (&'static str, fn(&mut Facts));

#[test]
fn each_fault_is_found_alone() {
    let plant: [Plant; 28] = [
        ("OpenFiles", |facts| facts.subjects[1].1.open_files = Some(1_024)),
        ("Quota", |facts| facts.subjects[1].1.quota_cores = Some(0.5)),
        ("Memory", |facts| {
            facts.subjects[1].1.memory = Some(LimitedMemory { most_bytes: 100, used_bytes: 80 })
        }),
        ("Link", |facts| facts.links[0].1 = 1e8),
        ("Offloads", |facts| facts.offloads[0].receive = Some(false)),
        ("FewPorts", |facts| facts.sockets.ports = Some(1_000)),
        ("TimeWait", |facts| facts.sockets.time_wait = 20_000),
        ("ListenQueue", |facts| facts.sockets.listen_queue = Some(128)),
        ("Backlog", |facts| facts.listeners[0].most = 1),
        ("Within", |facts| {
            let sockets = Sockets { listen_queue: Some(64), ..Sockets::default() };
            facts.server_network = Some(ServerNetwork { name: "app".into(), pid: 7, sockets });
        }),
        ("SynQueue", |facts| facts.sockets.syn_queue = Some(128)),
        ("PacketsDropped", |facts| facts.sockets.packets_dropped = 9),
        ("Tracking", |facts| {
            facts.sockets.tracked = Some(Tracked { connections: 60, most: 100, refused: 0 })
        }),
        ("Governor", |facts| facts.processors[1].governor = Some("powersave".into())),
        ("IdleStates", |facts| facts.processors[1].wake_us = Some(200)),
        ("HugePages", |facts| facts.huge_pages = Some("always".into())),
        ("SharedProcessors", |facts| facts.subjects[0].1.allowed = vec![0, 1]),
        ("SharedCores", |facts| facts.processors[1].siblings = vec![0, 1]),
        ("Nodes", |facts| {
            let third = Processor { number: 2, node: Some(1), ..Processor::default() };
            facts.processors.push(third);
            facts.subjects[1].1.allowed = vec![0, 2];
        }),
        ("SharedNode", |facts| {
            facts.processors.push(Processor { number: 2, node: Some(1), ..Processor::default() })
        }),
        ("NodesApart", |facts| facts.processors[1].node = Some(1)),
        ("Clock", |facts| facts.clock = Some("hpet".into())),
        ("DebugBuild", |facts| facts.debug_build = true),
        ("DebugServer", |facts| facts.subjects[1].1.debug_build = true),
        ("Steal", |facts| facts.cpus[0].steal_us = 50_000),
        ("Swapping", |facts| facts.swapped_in_pages = 3),
        ("Neighbour", |facts| facts.processes[1].cpu_us = 400_000),
        ("ShortLived", |facts| facts.cpus[0].user_us = 2_500_000),
    ];
    for (name, fault) in plant {
        let [first, mut second] = healthy();
        fault(&mut second);
        let found = faults(&first, &second);
        let [one] = found.as_slice() else { panic!("{name}: {found:?}") };
        assert_eq!(debug_name(one), name);
    }
}

#[test]
fn packets_dropped_since_the_host_started_are_told_where_they_are_a_share_of_all() {
    let found = |dropped, handled| {
        let [mut first, mut second] = healthy();
        for facts in [&mut first, &mut second] {
            facts.sockets.packets_dropped = dropped;
            facts.sockets.packets_handled = handled;
        }
        faults(&first, &second)
    };
    let dropped = Fault::DroppedSinceStart { packets: 5_000, limit: Some(1_000) };
    assert_eq!(found(5_000, 10_000_000), [dropped]);
    assert_eq!(found(900, 10_000_000), [], "of a moment, in a long time");
    assert_eq!(found(99, 1_000), [], "a handful");
    assert_eq!(found(5_000, 0), [], "of nobody knows how many");
}

/// Setting it again would mend nothing, or make it shorter.
#[test]
fn packets_dropped_before_the_queue_was_made_longer_are_no_fault() {
    let found = |limit| {
        let [mut first, mut second] = healthy();
        for facts in [&mut first, &mut second] {
            facts.sockets.packets_dropped = 5_000;
            facts.sockets.packet_queue = limit;
        }
        faults(&first, &second).len()
    };
    assert_eq!([None, Some(1_000), Some(9_999), Some(10_000), Some(20_000)].map(found), [1, 1, 1, 0, 0]);
}

#[test]
fn who_is_not_asked_of_the_machine_tells_no_counts_of_its_packets() {
    let [facts, _] = healthy();
    let known = Known { machine: true, ..Known::default() };
    let Sockets { packet_queue, packets_dropped, packets_handled, .. } = facts.beyond(&known).sockets;
    assert_eq!((packet_queue, packets_dropped, packets_handled), (Some(1_000), 0, 0));
}

#[test]
fn processes_that_end_before_the_next_look_are_told_by_the_time_that_no_other_took() {
    let with_user_us = |us| {
        let [first, mut second] = healthy();
        second.cpus[1].user_us += us;
        [first, second]
    };
    let [first, second] = with_user_us(900_000);
    assert_eq!(faults(&first, &second), [], "the server took it");
    let [first, mut second] = with_user_us(1_900_000);
    let short_lived = Fault::ShortLived { cores: 0.99 };
    assert_eq!(short_lived.certainty(), Certainty::Possible, "they may be the server's own");
    assert_eq!(faults(&first, &second), std::slice::from_ref(&short_lived));
    second.processes.push(HostProcess { pid: 70, name: "cc1".into(), cpu_us: 990_000, is_ours: true });
    assert_eq!(faults(&first, &second), [], "one of the server's that began meanwhile took it");
    second.processes[2].is_ours = false;
    assert_eq!(faults(&first, &second), [short_lived], "a stranger that did so is told nowhere else");
    second.cpus.push(Cpu { number: 2, user_us: 9_000_000, ..Cpu::default() });
    assert_eq!(faults(&first, &second), [], "times of one more processor cannot be compared");
}

#[test]
fn ports_that_the_kernel_gives_again_are_not_held() {
    let found = |reuse| {
        let [first, mut second] = healthy();
        (second.sockets.time_wait, second.sockets.reuse) = (20_000, Some(reuse));
        Examined::by(None, &first, second)
    };
    let sureness = |of: Examined| of.faults.iter().map(Fault::certainty).collect::<Vec<_>>();
    assert_eq!(sureness(found(0)), [Certainty::Depends]);
    assert_eq!(sureness(found(1)), [Certainty::Possible], "after a second");
    assert_eq!(sureness(found(2)), [Certainty::Depends], "on loopback alone");
    assert_eq!(sureness(found(2).over_loopback()), []);
    assert_eq!(sureness(found(0).over_loopback()), [Certainty::Depends]);
}

#[test]
fn a_limit_of_many_processes_is_told_once_for_each_tier_with_the_lowest() {
    let [_, mut facts] = healthy();
    let few = |limit| SubjectFacts { open_files: Some(limit), ..SubjectFacts::default() };
    let of = |pid, limit| (server("postgres", pid, Role::Downstream), few(limit));
    facts.subjects.extend((100..250).map(|pid| of(pid, 1_024)));
    facts.subjects.extend([of(250, 256), of(251, 65_536)]);
    facts.subjects.push((server("postgres", 252, Role::Server), few(512)));
    facts.subjects[0].1.open_files = Some(64);
    assert_eq!(
        faults(&facts, &facts),
        [
            Fault::OpenFiles { of: Subject::Generator, processes: 1, limit: 64 },
            Fault::OpenFiles { of: server("postgres", 250, Role::Downstream), processes: 151, limit: 256 },
            Fault::OpenFiles { of: server("postgres", 252, Role::Server), processes: 1, limit: 512 },
        ]
    );
}

#[test]
fn quotas_and_debug_builds_of_many_processes_are_told_once() {
    let [_, mut facts] = healthy();
    let worker = |pid, quota_cores| {
        let limits = SubjectFacts { quota_cores, debug_build: true, ..SubjectFacts::default() };
        (server("worker", pid, Role::Server), limits)
    };
    facts.subjects.extend([worker(20, Some(2.0)), worker(21, Some(0.5)), worker(22, None)]);
    assert_eq!(
        faults(&facts, &facts),
        [
            Fault::Quota { of: server("worker", 21, Role::Server), processes: 2, cores: 0.5 },
            Fault::DebugServer { name: "worker".into(), pid: 20, processes: 3 },
        ]
    );
}

#[test]
fn of_cgroups_with_little_memory_left_the_one_with_the_smallest_share_is_told() {
    let [_, mut facts] = healthy();
    let worker = |pid, most_bytes, used_bytes| {
        let memory = Some(LimitedMemory { most_bytes, used_bytes });
        (server("worker", pid, Role::Server), SubjectFacts { memory, ..SubjectFacts::default() })
    };
    facts.subjects.extend([worker(20, 1_000, 850), worker(21, 5_000, 4_500), worker(22, 100, 79)]);
    facts.subjects.extend([worker(23, 0, 0)]);
    assert_eq!(
        faults(&facts, &facts),
        [Fault::Memory {
            of: server("worker", 21, Role::Server),
            processes: 2,
            memory: LimitedMemory { most_bytes: 5_000, used_bytes: 4_500 },
        }]
    );
}

#[test]
fn of_what_generator_and_server_have_in_common_the_closest_is_told() {
    let [_, mut facts] = healthy();
    let far = Processor { number: 2, node: Some(1), ..Processor::default() };
    facts.processors.push(far);
    assert_eq!(faults(&facts, &facts), [Fault::SharedNode { node: 0, nodes: 2 }]);
    facts.processors[1].siblings = vec![0, 1];
    assert_eq!(faults(&facts, &facts), [Fault::SharedCores { pair: [1, 0] }]);
    facts.subjects[0].1.allowed = vec![0, 1];
    assert_eq!(faults(&facts, &facts), [Fault::SharedProcessors { shared: 1, servers: 1 }]);
    facts.subjects[0].1.allowed = vec![2];
    assert_eq!(faults(&facts, &facts), [Fault::NodesApart { generator: 1, server: 0 }]);
}

#[test]
fn what_the_kernel_does_not_tell_of_a_link_is_no_fault() {
    let [_, mut facts] = healthy();
    let link = "eth0".to_owned();
    facts.offloads[0] = LinkOffloads { link: link.clone(), segmentation: None, receive: None };
    assert_eq!(faults(&facts, &facts), []);
    facts.offloads[0].segmentation = Some(false);
    assert_eq!(faults(&facts, &facts), [Fault::Offloads { link, segmentation: true, receive: false }]);
}

/// The name of the variant.
fn debug_name(fault: &Fault) -> String {
    let text = format!("{fault:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

#[test]
fn the_surest_come_first_and_strangers_by_what_they_use() {
    let [first, mut second] = healthy();
    second.huge_pages = Some("always".into());
    second.sockets.listen_queue = Some(128);
    second.processes[1].cpu_us = 400_000;
    let found: Vec<Certainty> = faults(&first, &second).iter().map(Fault::certainty).collect();
    assert_eq!(found, [Certainty::Sure, Certainty::Depends, Certainty::Possible]);
}

#[test]
fn before_a_sweep_two_faults_are_worth_a_word() {
    let [_, mut facts] = healthy();
    facts.debug_build = true;
    facts.huge_pages = Some("always".into());
    assert_eq!(worth_a_word(&faults(&facts, &facts)).count(), 0);
    facts.sockets.listen_queue = Some(128);
    facts.sockets.syn_queue = Some(128);
    facts.sockets.ports = Some(1_000);
    assert_eq!(worth_a_word(&faults(&facts, &facts)).count(), 2);
}

#[test]
fn a_queue_that_the_limit_on_all_of_them_makes_short_is_one_fault() {
    let [first, mut second] = healthy();
    second.sockets.listen_queue = Some(64);
    second.listeners[0].most = 64;
    assert_eq!(faults(&first, &second), [Fault::ListenQueue { limit: 64 }]);
}

#[test]
fn a_server_in_a_network_of_its_own_is_limited_by_that_one() {
    let [_, mut facts] = healthy();
    let own = std::mem::take(&mut facts.sockets);
    facts.sockets = Sockets { listen_queue: Some(64), ..own.clone() };
    facts.server_network = Some(ServerNetwork { name: "app".into(), pid: 7, sockets: own });
    assert_eq!(faults(&facts, &facts), [], "nobody listens in the other");
}

#[test]
fn a_server_without_a_generator_beside_it_may_run_on_several_nodes() {
    let [_, mut facts] = healthy();
    facts.subjects.remove(0);
    facts.subjects[0].1.allowed = vec![0, 1];
    facts.processors[1].node = Some(1);
    assert_eq!(faults(&facts, &facts), [Fault::Nodes { nodes: 2 }]);
}

#[test]
fn counts_without_end_break_no_rule() {
    let [mut first, mut second] = healthy();
    second.at_us = u64::MAX;
    second.cpus.iter_mut().for_each(|cpu| cpu.steal_us = u64::MAX);
    second.processes[1].cpu_us = u64::MAX;
    second.sockets.time_wait = u64::MAX;
    second.sockets.tracked = Some(Tracked { connections: u64::MAX, most: u64::MAX, refused: 0 });
    assert!(!faults(&first, &second).is_empty());
    std::mem::swap(&mut first, &mut second);
    let _ = faults(&first, &second);
}

/// A host with faults of its machine, of its network and of its server, and checks of each that could not be made.
fn ill() -> Facts {
    let [_, mut facts] = healthy();
    facts.subjects.remove(0);
    facts.huge_pages = Some("always".into());
    facts.sockets.listen_queue = Some(64);
    facts.subjects[0].1.open_files = Some(512);
    facts.unmade = [Check::Clock, Check::SynQueue, Check::Backlog]
        .map(|check| Unmade { check, os_error: Some(1) })
        .into();
    facts
}

#[test]
fn what_another_observer_tells_is_not_found_twice() {
    let told = |known: &Known| {
        let facts = ill().beyond(known);
        let names = faults(&facts, &facts).iter().map(debug_name).collect::<Vec<_>>();
        (names.join(" "), facts.unmade.iter().map(|unmade| unmade.check).collect::<Vec<_>>())
    };
    let network = std::collections::BTreeSet::from(["net:[1]".to_owned()]);
    let all = Known { machine: true, servers: true, networks: network.clone() };
    assert_eq!(
        told(&Known::default()),
        ("OpenFiles ListenQueue HugePages".to_owned(), vec![Check::Clock, Check::SynQueue, Check::Backlog])
    );
    assert_eq!(
        told(&Known { machine: true, ..Known::default() }),
        ("OpenFiles ListenQueue".to_owned(), vec![Check::SynQueue, Check::Backlog])
    );
    assert_eq!(
        told(&Known { servers: true, ..Known::default() }),
        ("ListenQueue HugePages".to_owned(), vec![Check::Clock, Check::SynQueue])
    );
    assert_eq!(
        told(&Known { networks: network, ..Known::default() }),
        ("OpenFiles HugePages".to_owned(), vec![Check::Clock, Check::Backlog])
    );
    assert_eq!(told(&all), (String::new(), Vec::new()));
}

#[test]
fn a_network_without_a_name_may_be_any() {
    let [_, mut facts] = healthy();
    assert_eq!(facts.networks().collect::<Vec<_>>(), ["net:[1]"]);
    facts.sockets.network.clear();
    assert_eq!(facts.networks().count(), 0);
}

#[test]
fn processors_are_shared_with_a_server_that_only_an_agent_sees() {
    let [_, mut here] = healthy();
    let mut there = here.clone();
    here.subjects.truncate(1);
    there.subjects.remove(0);
    there.subjects[0].1.allowed = vec![0, 1];
    assert_eq!(faults(&there, &there), []);
    let there = there.beside(&here);
    assert_eq!(faults(&there, &there), [Fault::SharedProcessors { shared: 1, servers: 2 }]);
}

#[test]
fn who_observes_is_no_stranger() {
    let [first, mut second] = healthy();
    second.processes[1].cpu_us = 400_000;
    assert_eq!(faults(&first, &second).len(), 1);
    assert_eq!(faults(&first, &second.with_ours(&[9])), []);
}
