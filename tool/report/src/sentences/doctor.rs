//! Words for what on a host would spoil a measurement: what it is, what it does to the figures, what mends it.

use std::collections::BTreeMap;

use analysis::doctor::{Certainty, Check, Fault, LimitedMemory, PACKET_QUEUE, Subject, Unmade};
use analysis::run::{AgentTrouble, HostName};

use super::unwatched;
use crate::number;

/// A fault in words.
pub(crate) struct Told {
    /// What it is, with numbers.
    pub(crate) is: String,
    /// What it does to the figures.
    pub(crate) does: &'static str,
    /// A command that mends it; or, where none does, what to do.
    pub(crate) mend: String,
}

/// How sure it is, as a label.
pub(crate) fn certainty(of: Certainty) -> &'static str {
    match of {
        Certainty::Sure => "spoils",
        Certainty::Depends => "depends",
        Certainty::Possible => "may",
    }
}

fn told(is: impl Into<String>, does: &'static str, mend: impl Into<String>) -> Told {
    Told { is: is.into(), does, mend: mend.into() }
}

fn subject(of: &Subject) -> String {
    match of {
        Subject::Generator => "the generator".to_owned(),
        Subject::Server { name, pid, .. } => format!("{name} (pid {pid})"),
    }
}

/// Several processes of a tier: `150 processes of postgres`.
fn several(processes: u32, name: &str) -> String {
    format!("{} processes of {name}", count(processes.into()))
}

fn count(number: u64) -> String {
    number::count(number)
}

/// A fault in words.
pub(crate) fn fault(of: &Fault) -> Told {
    if let Fault::Within { name, pid, fault } = of {
        return within((name, *pid), fault);
    }
    let told =
        of_process(of).or_else(|| of_sockets(of)).or_else(|| of_traffic(of)).or_else(|| of_placement(of));
    told.or_else(|| of_memory_nodes(of)).unwrap_or_else(|| of_processors(of))
}

/// A fault of the network namespace of a process: its settings are set inside it.
fn within((name, pid): (&str, u32), of: &Fault) -> Told {
    let Told { is, does, mend } = fault(of);
    let mend = match of {
        // All namespaces have one limit.
        Fault::Tracking { .. } => mend,
        _ => mend.replace("sysctl", &format!("nsenter -t {pid} -n sysctl")),
    };
    told(format!("{is} That is in the network of {name} (pid {pid})."), does, mend)
}

fn of_process(of: &Fault) -> Option<Told> {
    Some(match of {
        Fault::OpenFiles { of, processes, limit } => files(of, *processes, &count(*limit)),
        Fault::Quota { of, processes, cores } => told(
            quota(of, *processes, &number::cores(*cores)),
            "The answer is that of the quota: as meant in production, but not what the machine can do.",
            "raise cpu.max of the cgroup, or leave it if production has the same",
        ),
        Fault::Memory { of, processes, memory } => told(
            memory_used(of, *processes, *memory),
            "Where load makes it need more, it waits while the kernel takes memory back, or is killed.",
            "raise memory.max or memory.high of the cgroup (MemoryMax=, MemoryHigh= of a unit; --memory of a \
             container), or have it keep less",
        ),
        Fault::DebugServer { name, pid, processes } => {
            let whose = match processes {
                2.. => format!("{}, such as pid {pid}, run", several(*processes, name)),
                _ => format!("{name} (pid {pid}) runs"),
            };
            told(
                format!("{whose} from a folder of debug builds (target/debug)."),
                "If it was built without optimisation, it may be many times slower than what is shipped.",
                "cargo build --release, then start that",
            )
        }
        _ => return None,
    })
}

fn files(of: &Subject, processes: u32, limit: &str) -> Told {
    let Subject::Server { name, pid, .. } = of else {
        return told(
            format!("{} may open {limit} files.", subject(of)),
            "A user is a connection, and a connection is a file: a sweep cannot go beyond that many users.",
            "ulimit -Hn 65536",
        );
    };
    let (is, others) = match processes {
        2.. => (
            format!("{} may open few files, at worst {limit} (pid {pid}).", several(processes, name)),
            ", and the same for each of the others",
        ),
        _ => (format!("{} may open {limit} files.", subject(of)), ""),
    };
    told(
        is,
        "Beyond that many connections it refuses users or makes them wait, and N* is that of the limit.",
        format!(
            "prlimit --pid {pid} --nofile=65536{others}; for good, ulimit -n or LimitNOFILE= where it is \
             started"
        ),
    )
}

fn quota(of: &Subject, processes: u32, cores: &str) -> String {
    match of {
        Subject::Server { name, pid, .. } if processes > 1 => {
            let all = several(processes, name);
            format!("Cgroups limit the processors of {all}, at worst to {cores} (pid {pid}).")
        }
        _ => format!("A cgroup lets {} use {cores} processors.", subject(of)),
    }
}

fn memory_used(of: &Subject, processes: u32, memory: LimitedMemory) -> String {
    let [most, used] = [memory.most_bytes, memory.used_bytes].map(|of| number::prefixed(of as f64, "B"));
    match of {
        Subject::Server { name, pid, .. } if processes > 1 => {
            let all = several(processes, name);
            format!(
                "Cgroups limit the memory of {all}, at worst to {most}, of which {used} are in use (pid {pid})."
            )
        }
        _ => format!("A cgroup lets {} use {most} of memory, of which {used} are in use.", subject(of)),
    }
}

fn of_sockets(of: &Fault) -> Option<Told> {
    Some(match of {
        Fault::FewPorts { ports } => told(
            format!("There are {} local ports.", count(*ports)),
            "A generator, or a server that calls others, with a connection for each request soon uses them up, and requests fail for want of a port.",
            "sysctl -w net.ipv4.ip_local_port_range='1024 65000'",
        ),
        Fault::TimeWait { held, ports, reuse } => time_wait((*held, *ports), *reuse),
        Fault::ListenQueue { limit } => told(
            format!("Listen queues hold {} connections at most (somaxconn).", count(*limit)),
            "When many users connect at once, some are turned away and try again a second later.",
            "sysctl -w net.core.somaxconn=4096, then start the server anew",
        ),
        Fault::Backlog { name, pid, port, most } => told(
            format!(
                "{name} (pid {pid}) listens on port {port} with room for {} waiting {}.",
                count(*most),
                if *most == 1 { "connection" } else { "connections" }
            ),
            "When many users connect at once, some are turned away and try again a second later.",
            "have the server ask for a longer queue (the backlog of listen, often a setting), then start it anew",
        ),
        Fault::SynQueue { limit } => told(
            format!("The queue of handshakes holds {} (tcp_max_syn_backlog).", count(*limit)),
            "When many users connect at once, some handshakes are answered late.",
            "sysctl -w net.ipv4.tcp_max_syn_backlog=4096",
        ),
        _ => return None,
    })
}

fn time_wait((held, ports): (u64, u64), reuse: Option<u64>) -> Told {
    let is = format!(
        "{} of {} local ports are held by connections that have ended (TIME_WAIT); tcp_tw_reuse is {}.",
        count(held),
        count(ports),
        reuse.map_or_else(|| "not known".to_owned(), |reuse| reuse.to_string())
    );
    if reuse == Some(1) {
        let does = "The kernel reuses them after a second; if more connections are opened each second than ports are left, requests \
                    fail.";
        return told(is, does, "wait a minute");
    }
    told(
        is,
        "With a connection for each request there may soon be no port left, and requests fail for that.",
        "wait a minute, or sysctl -w net.ipv4.tcp_tw_reuse=1",
    )
}

fn of_traffic(of: &Fault) -> Option<Told> {
    Some(match of {
        Fault::PacketsDropped { per_s, limit } => told(
            format!(
                "{} packets a second are dropped from a full queue ({}).",
                number::quantity(*per_s),
                packet_queue(*limit)
            ),
            "Each costs a request 0.2 s or more: the longest response times are the kernel's.",
            fewer_dropped(*limit),
        ),
        Fault::DroppedSinceStart { packets, limit } => told(
            format!(
                "{} packets were dropped from a full queue since the host started ({}), though none just now.",
                count(*packets),
                packet_queue(*limit)
            ),
            "Under load it may be so again, and each costs a request 0.2 s or more.",
            fewer_dropped(*limit),
        ),
        Fault::Tracking { table } => told(
            format!("{} of {} tracked connections are in use.", count(table.connections), count(table.most)),
            "When the table is full, new connections are dropped without a word.",
            format!("sysctl -w net.netfilter.nf_conntrack_max={}", table.most.saturating_mul(4)),
        ),
        Fault::Link { name, bits_per_s, full_duplex } => told(
            format!(
                "The link {name} makes {}{}.",
                number::prefixed(*bits_per_s, "b/s"),
                if *full_duplex { "" } else { ", one direction at a time" }
            ),
            "Where load passes over it, it may be full before the server is.",
            "another cable, port or host",
        ),
        Fault::Offloads { link, segmentation, receive } => offloads(link, *segmentation, *receive),
        _ => return None,
    })
}

/// What to do about packets dropped from a queue of this length.
fn fewer_dropped(limit: Option<u64>) -> String {
    if limit.is_some_and(|limit| limit >= PACKET_QUEUE) {
        return "spread packets over more processors (RPS, more queues of the link), or send less".to_owned();
    }
    format!("sysctl -w net.core.netdev_max_backlog={PACKET_QUEUE}")
}

/// The limit on packets that wait to be handled, as far as it is known.
fn packet_queue(limit: Option<u64>) -> String {
    let is = limit.map_or_else(String::new, |limit| format!(" is {}", count(limit)));
    format!("netdev_max_backlog{is}")
}

fn offloads(link: &str, segmentation: bool, receive: bool) -> Told {
    let all = [("TSO", "tso on", segmentation), ("GRO", "gro on", receive)];
    let off = || all.iter().filter(|(.., is_off)| *is_off);
    let names: Vec<&str> = off().map(|(name, ..)| *name).collect();
    let words: Vec<&str> = off().map(|(_, words, _)| *words).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    told(
        format!("On the link {link}, {} {are} off.", names.join(" and ")),
        "Where large bodies pass over it, the kernel handles each packet by itself, which takes processor time.",
        format!("ethtool -K {link} {}; a virtual device may not support it", words.join(" ")),
    )
}

fn of_placement(of: &Fault) -> Option<Told> {
    Some(match of {
        Fault::SharedProcessors { shared, servers } => told(
            format!(
                "Generator and server may run on the same processors: {} of the server's {}.",
                count((*shared).into()),
                count((*servers).into())
            ),
            "Each takes time from the other: throughput is too low, and more so with more users.",
            "taskset -c 0 SERVER, and nstar sweep --cpus 1",
        ),
        Fault::SharedCores { pair: [own, other] } => told(
            format!("Processor {own} of the generator and {other} of the server are halves of one core."),
            "When both are busy, each runs at little more than half of its speed.",
            "give them processors of other cores: lscpu -e lists them",
        ),
        Fault::Steal { share } => told(
            format!("The hypervisor takes {} of the processors' time.", number::percent(*share)),
            "Throughput is lower by as much, and differs from minute to minute.",
            "a quieter or dedicated host; repeats, and nstar compare",
        ),
        Fault::Neighbour { name, pid, cores } => told(
            format!("{name} (pid {pid}) uses {} processors.", number::cores(*cores)),
            "What it uses, the server or the generator lacks.",
            format!(
                "measure when it is not at work, or give it a processor of its own: taskset -a -cp LIST {pid}"
            ),
        ),
        Fault::ShortLived { cores } => told(
            format!(
                "Processes that nstar cannot list use {} processors or more: they began or ended within the second, or belong to \
                 other users or containers.",
                number::cores(*cores)
            ),
            "What they use, the server or the generator lacks.",
            "run nstar doctor as root on the host itself; execsnoop (of bcc or bpftrace) or atop tells what is started there; \
             measure when it is not at work",
        ),
        _ => return None,
    })
}

fn of_memory_nodes(of: &Fault) -> Option<Told> {
    Some(match of {
        Fault::Nodes { nodes } => told(
            format!("The server may run on {} nodes of memory.", count((*nodes).into())),
            "Where it lands differs from start to start, and its speed with that.",
            "numactl --cpunodebind=0 --membind=0 SERVER",
        ),
        Fault::SharedNode { node, nodes } => told(
            format!("Generator and server share node {node} of memory, one of {nodes}."),
            "Where either moves much data, the other waits for memory, and finds less of its own in the cache.",
            "give the generator processors of another node, as lscpu -e lists them: nstar sweep --cpus LIST",
        ),
        Fault::NodesApart { generator, server } => told(
            format!("The generator is on node {generator} of memory, and the server on node {server}."),
            "What they send each other crosses between the nodes: a request costs more processor time than on one.",
            "leave it where clients come from other hosts; else give both processors of one node, as lscpu -e lists them",
        ),
        _ => return None,
    })
}

fn of_processors(of: &Fault) -> Told {
    match of {
        Fault::Governor { name, processors } => told(
            format!("The speed of {} processors is governed by '{name}'.", count((*processors).into())),
            "With few users the server is slower than it could be, so that throughput grows for other reasons than users.",
            "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance > $f; done",
        ),
        Fault::IdleStates { wake_us, processors } => told(
            format!(
                "{} processors may sleep so deep that waking takes {}.",
                count((*processors).into()),
                number::time(*wake_us as f64)
            ),
            "Response times of few users include waking.",
            "cpupower idle-set -D 50",
        ),
        Fault::Swapping { pages_per_s } => told(
            format!("{} pages a second are read back from swap.", number::quantity(*pages_per_s)),
            "Response times include reading from a disk.",
            "free memory, then swapoff -a",
        ),
        Fault::HugePages => told(
            "The kernel gives large pages to everybody.",
            "It now and then moves memory to make them, and processes stop for a moment; throughput differs from start to start.",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Fault::Clock { source, better } => told(
            format!("The clock is read from {source}."),
            "Whoever reads the clock for each request, as most servers and nstar do, pays a system call or more for it.",
            match better {
                Some(better) => format!(
                    "echo {better} > /sys/devices/system/clocksource/clocksource0/current_clocksource"
                ),
                None => "another host or hypervisor: there is no faster one here".to_owned(),
            },
        ),
        // All others have their words above.
        _ => told(
            "This nstar was built without optimisation.",
            "The generator is full long before it would be.",
            "cargo build --release",
        ),
    }
}

/// Checks that could not be made on a host, and what to do: a sentence for each reason.
pub(crate) fn unmade(on: &HostName, unmade: &[Unmade]) -> Vec<String> {
    let mut by_reason: BTreeMap<Option<i32>, Vec<&str>> = BTreeMap::new();
    for unmade in unmade {
        by_reason.entry(unmade.os_error).or_default().push(check(unmade.check));
    }
    let (there, flag) = match on {
        Some(host) => (format!(" on {host}"), " (--sudo with ssh://)"),
        None => (String::new(), ""),
    };
    let sentence = |(os_error, checks): (Option<i32>, Vec<&str>)| {
        format!(
            "Not looked at{there}: {} ({}). Run {} as root{flag}.",
            checks.join(", "),
            unwatched::error(os_error),
            unwatched::observer(on)
        )
    };
    by_reason.into_iter().map(sentence).collect()
}

/// What a check is about.
fn check(of: Check) -> &'static str {
    match of {
        Check::OpenFiles => "files that processes may open",
        Check::Quota => "limits of cgroups on processors",
        Check::Memory => "limits of cgroups on memory",
        Check::Placement => "processors that processes may run on",
        Check::DebugServer => "debug builds of the server",
        Check::Backlog => "the server's own listen queue",
        Check::Ports => "local ports",
        Check::TimeWait => "ports held in TIME_WAIT",
        Check::ListenQueue => "the limit on listen queues",
        Check::SynQueue => "the queue of handshakes",
        Check::Tracking => "the table of tracked connections",
        Check::Links => "links",
        Check::PacketsDropped => "dropped packets",
        Check::Governor => "governors of the processors' speed",
        Check::IdleStates => "idle states of processors",
        Check::Cores => "cores and nodes of memory",
        Check::Steal => "stolen time",
        Check::Swapping => "swap",
        Check::HugePages => "transparent huge pages",
        Check::Neighbours => "other processes",
        Check::Clock => "the source of the clock",
    }
}

/// Why an agent found less than it was asked for, or told nothing: a part of a sentence.
pub(crate) fn agent(host: &str, trouble: &AgentTrouble) -> String {
    let nothing = "nothing is known of that host";
    match trouble {
        AgentTrouble::ServerNotFound { reason } => format!(
            "the agent on {host} did not find the server ({}): only its host was looked at",
            unwatched::server_there(reason)
        ),
        AgentTrouble::NothingCalled { .. } => format!(
            "the agent on {host} found neither the server nor what the server calls: only its host was looked at"
        ),
        AgentTrouble::Redundant => format!(
            "the agent on {host} sees the same processes of the server as another observer: they were looked at once"
        ),
        AgentTrouble::ByPort { address, at } => format!("on {host}, {}", unwatched::by_port(*address, *at)),
        AgentTrouble::Ended { code, stderr } => {
            let code = code.map_or_else(String::new, |code| format!(" with exit code {code}"));
            let said = if stderr.is_empty() { String::new() } else { format!(" (it said: {stderr})") };
            format!("the agent on {host} ended{code}{said}: {nothing}")
        }
        AgentTrouble::Disconnected { reason } => {
            format!("the stream from the agent on {host} broke ({reason}): {nothing}")
        }
        AgentTrouble::Malformed => format!(
            "the agent on {host} sent what no agent sends: another program wrote to its output, or it is not to be trusted; \
             {nothing}"
        ),
        AgentTrouble::Flooded => {
            format!("the agent on {host} sent more than an agent may: it is not to be trusted; {nothing}")
        }
        AgentTrouble::Silent { .. } | AgentTrouble::LeftOut { .. } | AgentTrouble::Clock { .. } => {
            format!("the agent on {host} did not answer: {nothing}")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use analysis::counters::{Role, Tracked};

    use super::*;

    /// A fault of the network namespace of process 7.
    fn within(fault: Fault) -> Fault {
        Fault::Within { name: "app".into(), pid: 7, fault: Box::new(fault) }
    }

    #[test]
    fn what_is_set_in_another_network_namespace_is_set_inside_it() {
        let mend = |of: Fault| fault(&within(of)).mend;
        let queue = mend(Fault::ListenQueue { limit: 128 });
        assert_eq!(queue, "nsenter -t 7 -n sysctl -w net.core.somaxconn=4096, then start the server anew");
        let table = Tracked { connections: 9, most: 10, refused: 0 };
        assert!(mend(Fault::Tracking { table }).starts_with("sysctl"), "all namespaces have one limit");
        assert!(fault(&within(Fault::SynQueue { limit: 9 })).is.ends_with("in the network of app (pid 7)."));
    }

    #[test]
    fn an_agent_that_tells_nothing_is_told_with_its_host_and_the_reason() {
        let troubles = [
            (AgentTrouble::Malformed, "what no agent sends"),
            (AgentTrouble::Flooded, "more than an agent may"),
            (
                AgentTrouble::Ended { code: Some(3), stderr: "no lights".into() },
                "exit code 3 (it said: no lights)",
            ),
            (AgentTrouble::Disconnected { reason: "reset".into() }, "broke (reset)"),
            (AgentTrouble::Silent { longest_s: 20.0 }, "did not answer"),
        ];
        for (trouble, words) in troubles {
            let said = agent("web", &trouble);
            assert!(said.contains("on web") && said.contains(words), "{said}");
            assert!(said.contains("nothing is known of that host"), "{said}");
        }
    }

    #[test]
    fn ports_that_the_kernel_gives_again_are_only_waited_for() {
        let held = |reuse| fault(&Fault::TimeWait { held: 90, ports: 100, reuse });
        let again = held(Some(1));
        assert!(again.mend == "wait a minute" && again.does.contains("after a second"), "{}", again.does);
        for reuse in [Some(0), Some(2), None] {
            assert_eq!(held(reuse).mend, "wait a minute, or sysctl -w net.ipv4.tcp_tw_reuse=1");
        }
    }

    fn server() -> Subject {
        Subject::Server { name: "app".into(), pid: 7, role: Role::Server }
    }

    #[test]
    fn what_many_processes_share_is_told_with_their_number_and_the_worst() {
        let files = |processes| fault(&Fault::OpenFiles { of: server(), processes, limit: 64 });
        assert_eq!(files(1).is, "app (pid 7) may open 64 files.");
        assert_eq!(files(150).is, "150 processes of app may open few files, at worst 64 (pid 7).");
        assert!(files(1).mend.starts_with("prlimit --pid 7 --nofile=65536; for good"), "{}", files(1).mend);
        assert!(files(150).mend.contains("each of the others; for good"), "{}", files(150).mend);
        let quota = |processes| fault(&Fault::Quota { of: server(), processes, cores: 0.5 }).is;
        assert_eq!(quota(1), "A cgroup lets app (pid 7) use 0.50 processors.");
        assert_eq!(quota(3), "Cgroups limit the processors of 3 processes of app, at worst to 0.50 (pid 7).");
        let memory = |processes| {
            let memory = LimitedMemory { most_bytes: 100_000_000, used_bytes: 93_000_000 };
            fault(&Fault::Memory { of: server(), processes, memory }).is
        };
        let said = [1, 3].map(|processes| memory(processes).replace(number::GROUP, " "));
        assert_eq!(said[0], "A cgroup lets app (pid 7) use 100 MB of memory, of which 93.0 MB are in use.");
        let many = "Cgroups limit the memory of 3 processes of app, at worst to 100 MB, of which 93.0 MB are";
        assert!(said[1].starts_with(many) && said[1].ends_with("in use (pid 7)."), "{}", said[1]);
        let debug = |processes| fault(&Fault::DebugServer { name: "app".into(), pid: 7, processes }).is;
        assert!(debug(1).starts_with("app (pid 7) runs from"), "{}", debug(1));
        assert!(debug(3).starts_with("3 processes of app, such as pid 7, run from"), "{}", debug(3));
    }

    #[test]
    fn what_a_link_leaves_to_the_processors_is_named_and_only_that_is_turned_on() {
        let off = |segmentation, receive| {
            let told = fault(&Fault::Offloads { link: "eth0".into(), segmentation, receive });
            (told.is, told.mend)
        };
        let (is, mend) = off(true, true);
        assert_eq!(is, "On the link eth0, TSO and GRO are off.");
        assert!(mend.starts_with("ethtool -K eth0 tso on gro on;"), "{mend}");
        let (is, mend) = off(false, true);
        assert_eq!(is, "On the link eth0, GRO is off.");
        assert!(mend.starts_with("ethtool -K eth0 gro on;"), "{mend}");
    }

    /// One of each kind, and of those that are told in several ways, of each way.
    pub(crate) fn every_fault() -> Vec<Fault> {
        let table = Tracked { connections: 9, most: 10, refused: 0 };
        let memory = LimitedMemory { most_bytes: 100, used_bytes: 90 };
        let off = |segmentation, receive| Fault::Offloads { link: "eth0".into(), segmentation, receive };
        vec![
            Fault::OpenFiles { of: Subject::Generator, processes: 1, limit: 64 },
            Fault::OpenFiles { of: server(), processes: 1, limit: 64 },
            Fault::OpenFiles { of: server(), processes: 2, limit: 64 },
            Fault::Quota { of: server(), processes: 1, cores: 0.5 },
            Fault::Quota { of: server(), processes: 2, cores: 0.5 },
            Fault::Memory { of: Subject::Generator, processes: 1, memory },
            Fault::Memory { of: server(), processes: 1, memory },
            Fault::Memory { of: server(), processes: 2, memory },
            Fault::FewPorts { ports: 100 },
            Fault::TimeWait { held: 90, ports: 100, reuse: Some(0) },
            Fault::TimeWait { held: 90, ports: 100, reuse: Some(1) },
            Fault::ListenQueue { limit: 128 },
            Fault::Backlog { name: "app".into(), pid: 7, port: 80, most: 1 },
            within(Fault::ListenQueue { limit: 128 }),
            Fault::SynQueue { limit: 128 },
            Fault::PacketsDropped { per_s: 4.0, limit: Some(1_000) },
            Fault::DroppedSinceStart { packets: 4, limit: Some(1_000) },
            Fault::Tracking { table },
            Fault::Link { name: "eth0".into(), bits_per_s: 1e8, full_duplex: false },
            off(true, false),
            off(false, true),
            off(true, true),
            Fault::Governor { name: "powersave".into(), processors: 2 },
            Fault::IdleStates { wake_us: 200, processors: 2 },
            Fault::SharedProcessors { shared: 1, servers: 2 },
            Fault::SharedCores { pair: [0, 1] },
            Fault::Nodes { nodes: 2 },
            Fault::SharedNode { node: 0, nodes: 2 },
            Fault::NodesApart { generator: 1, server: 0 },
            Fault::Steal { share: 0.1 },
            Fault::Swapping { pages_per_s: 3.0 },
            Fault::HugePages,
            Fault::Neighbour { name: "backup".into(), pid: 9, cores: 0.5 },
            Fault::ShortLived { cores: 3.2 },
            Fault::Clock { source: "hpet".into(), better: None },
            Fault::DebugBuild,
            Fault::DebugServer { name: "app".into(), pid: 7, processes: 1 },
            Fault::DebugServer { name: "app".into(), pid: 7, processes: 2 },
        ]
    }

    #[test]
    fn every_fault_has_words_of_its_own() {
        let all = every_fault();
        let told: BTreeSet<String> = all.iter().map(|of| fault(of).is).collect();
        assert_eq!(told.len(), all.len(), "{told:?}");
        assert!(all.iter().map(fault).all(|told| !told.does.is_empty() && !told.mend.is_empty()));
    }

    #[test]
    fn a_queue_of_packets_that_is_long_already_is_not_to_be_made_shorter() {
        let mend = |limit| fault(&Fault::PacketsDropped { per_s: 4.0, limit: Some(limit) }).mend;
        assert_eq!(mend(1_000), "sysctl -w net.core.netdev_max_backlog=10000");
        assert!(
            [10_000, 20_000].map(mend).iter().all(|told| told.contains("RPS") && !told.contains("sysctl"))
        );
    }
}
