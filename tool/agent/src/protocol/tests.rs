use std::path::Path;
use std::time::Duration;

use analysis::counters::{
    ConnectionLimits, Container, Counters, Cpu, CpuQuota, Disk, Hop, Interface, IoLimit, Listener,
    MemoryLimit, PortsHeld, Process, ProcessLook, Role, ServerAddress, Thread, ThreadLook, Tracked,
};
use analysis::doctor::{
    Check, Facts, HostProcess, LimitedMemory, LinkOffloads, ListenQueue, Processor, ServerNetwork, Sockets,
    Subject, SubjectFacts, Unmade,
};
use analysis::run::Host;
use analysis::ticks::{Counts, ErrorKind, GeneratorTick, KindTick, Tick};
use load::fleet::Member;
use load::{Pacing, Plan, ProbeReport, RequestTemplate, RequestTotal, Scenario, Stop, Think};
use proptest::prelude::*;

use super::*;

/// A sample with something of every kind in it.
fn sample(at_us: u64) -> Counters {
    let address = ([10, 0, 0, 7], 5432).into();
    let hop = |address| Hop {
        address,
        server: Some(812),
        callers: vec![813],
        clients: vec![([10, 0, 0, 8], 40_001).into()],
        connections: 4,
        opened: 1,
        unaccepted: 0,
        unread: 1,
        held: 2,
        unclear: 0,
        translation_unread: true,
    };
    let thread = |tid| Thread { tid, name: format!("worker-{tid}"), cpu_us: at_us / 7, ..Thread::default() };
    Counters {
        at_us,
        cpus: vec![Cpu { number: 1, user_us: at_us / 2, ..Cpu::default() }],
        processes: vec![Process {
            pid: 812,
            name: "nginx".into(),
            role: Role::Downstream,
            threads: (812..900).map(thread).collect(),
            open_files: Some(7),
            cpu_quota: Some(CpuQuota { cgroup: "/web".into(), cores: 1.5, ..CpuQuota::default() }),
            io_limits: vec![IoLimit { device: "vda".into(), ..IoLimit::default() }],
            container: Some(Container { name: Some("web".into()), ..Container::default() }),
            unit: Some("web.service".into()),
            ..Process::default()
        }],
        disks: vec![Disk { name: "vda".into(), ..Disk::default() }],
        interfaces: vec![Interface {
            name: "eth0".into(),
            shaped_bits_per_s: Some(8),
            ..Interface::default()
        }],
        listeners: vec![Listener { port: 80, ..Listener::default() }],
        hops: Some(vec![
            hop(ServerAddress::Tcp { address }),
            hop(ServerAddress::Unix { path: "@php".into() }),
        ]),
        hops_left_out: 3,
        memory_limits: Some(vec![MemoryLimit {
            pids: vec![812],
            stalled_us: Some(3),
            ..MemoryLimit::default()
        }]),
        connection_limits: Some(vec![ConnectionLimits {
            tracked: Some(Tracked::default()),
            most_ports: Some(PortsHeld { address, is_target: true, ports: 9 }),
            ..ConnectionLimits::default()
        }]),
        ..Counters::default()
    }
}

fn look(at_us: u64) -> ThreadLook {
    let look =
        ProcessLook { name: "nginx".into(), threads: 9, futexes: vec![16; 90], ..ProcessLook::default() };
    ThreadLook { at_us, processes: vec![look] }
}

fn every_report() -> Vec<Report> {
    let address = ([10, 0, 0, 7], 80).into();
    let listens = Listens { at: address, by_port: true };
    let about = About {
        host: "web".into(),
        boot_id: "b".into(),
        process_namespace: "pid:[4]".into(),
        is_root: true,
        pid: 900,
        machine: Host { cores: 8, memory_bytes: 1 << 34, kernel: "6.12".into(), processor: "fast".into() },
    };
    vec![
        Report::About(about),
        Report::Watching(7, vec![Ok(listens), Err(NotFound::NotLocal(address))]),
        Report::Watching(8, vec![Err(NotFound::Unreadable("/proc".into(), Some(13)))]),
        Report::Unseen(unseen()),
        Report::Sample(Box::new(sample(1_000_000))),
        Report::Look(look(1_040_000)),
        Report::Sample(Box::new(sample(1_250_000))),
        Report::Look(look(1_290_000)),
        Report::Pong(3, 1_300_000),
        Report::LeftOut(2),
        Report::Prepared(Prepared { threads: 2, ceiling_per_s: Some(91_000.5), users_max: 900 }),
        Report::Started(Started { addresses: vec![address], probes: vec![probe()] }),
        Report::Begun(1, 1_400_000),
        Report::Tick(1, Box::new(tick(1_400_000))),
        Report::Tick(1, Box::new(tick(1_420_000))),
        Report::Finished(1, 1_430_000),
        Report::Totals(vec![RequestTotal {
            name: "GET /".into(),
            begun: 9,
            completed: 8,
            ..RequestTotal::default()
        }]),
        Report::OwnUse(OwnUse {
            link: Some(OwnLink { name: "eth0".into(), used_bits_per_s: 9e8, limit_bits_per_s: 1e9 }),
            quota: Some(OwnQuota { cores: 2.0, stopped: 0.4 }),
        }),
        Report::Failed("cannot start a generator thread".into()),
        Report::Facts(3, Box::new(facts())),
        Report::Profiled(Profiled::new(2, profile::tests::host())),
    ]
}

/// Facts with something of every kind in them.
fn facts() -> Facts {
    let sockets = Sockets {
        network: "net:[4]".into(),
        listen_queue: Some(4_096),
        syn_queue: Some(512),
        packet_queue: Some(1_000),
        packets_dropped: 3,
        packets_handled: 40_000,
        ports: Some(28_232),
        time_wait: 9,
        reuse: Some(2),
        tracked: Some(Tracked { connections: 5, most: 600, refused: 1 }),
    };
    let limits = SubjectFacts {
        open_files: Some(1_024),
        allowed: vec![0, 1],
        quota_cores: Some(1.5),
        memory: Some(LimitedMemory { most_bytes: 100_000_000, used_bytes: 93_000_000 }),
        debug_build: true,
    };
    Facts {
        at_us: 1_000_000,
        debug_build: false,
        cpus: vec![Cpu { number: 1, steal_us: 300, ..Cpu::default() }],
        processors: vec![Processor {
            number: 1,
            governor: Some("powersave".into()),
            wake_us: Some(200),
            siblings: vec![1, 3],
            node: Some(0),
        }],
        clock: Some("tsc".into()),
        clocks: vec!["tsc".into(), "hpet".into()],
        huge_pages: Some("always".into()),
        swapped_in_pages: 7,
        processes: vec![HostProcess { pid: 9, name: "backup".into(), cpu_us: 40_000, is_ours: true }],
        subjects: vec![
            (Subject::Generator, SubjectFacts::default()),
            (Subject::Server { name: "web".into(), pid: 812, role: Role::Server }, limits),
        ],
        sockets: Sockets::default(),
        server_network: Some(ServerNetwork { name: "web".into(), pid: 812, sockets }),
        listeners: vec![ListenQueue { name: "web".into(), pid: 812, port: 8_080, most: 511 }],
        links: vec![("eth0".into(), 1e9, true)],
        offloads: vec![LinkOffloads { link: "eth0".into(), segmentation: Some(true), receive: Some(false) }],
        unmade: vec![
            Unmade { check: Check::OpenFiles, os_error: None },
            Unmade { check: Check::Clock, os_error: Some(13) },
        ],
    }
}

fn unseen() -> Unseen {
    let closed = Unread { of: Some(("web".into(), 812)), os_error: Some(1), tables: true };
    let own = Unread { of: None, os_error: None, tables: false };
    let tiers = vec![Callee::Tcp(([10, 0, 0, 7], 5432).into()), Callee::Unix("@php".into())];
    Unseen { namespaces: vec![closed, own], tiers }
}

#[test]
fn what_an_agent_may_not_see_is_bounded_and_fit_to_be_shown() {
    let (sockets, tiers) = unseen().into_parts();
    assert_eq!(Unseen::new(sockets, tiers), unseen());
    let odd = Unread { of: Some(("a\n\x1b[31m".repeat(99), 1)), os_error: None, tables: true };
    let tiers = vec![Callee::Unix("/x\u{7}".repeat(999)); 999];
    let (sockets, tiers) = Unseen { namespaces: vec![odd; 999], tiers }.into_parts();
    assert!(sockets.len() <= 64 && tiers.len() <= 64);
    let shown = format!("{:?} {:?}", sockets.first(), tiers.first());
    assert!(shown.len() < 500 && !shown.contains("\\n") && !shown.contains("\\u{"), "{shown}");
}

#[test]
fn where_an_agent_runs_is_made_fit_to_be_shown() {
    let odd = || "a\n\x1b[31m".repeat(99);
    let machine = Host { kernel: odd(), processor: odd(), ..Host::default() };
    let about = About { host: odd(), machine, ..About::default() }.fit_to_be_shown();
    for shown in [&about.host, &about.machine.kernel, &about.machine.processor] {
        assert!(shown.chars().count() <= 64 && !shown.contains(char::is_control), "{shown:?}");
    }
}

fn probe() -> ProbeReport {
    ProbeReport {
        address: ([10, 0, 0, 7], 80).into(),
        status: 200,
        status_expected: true,
        request: 0,
        nothing_to_keep: false,
        elapsed: Duration::from_micros(1_500),
        tls: Some("TLSv1_3".into()),
    }
}

/// A slice with something of every kind in it.
fn tick(start_us: u64) -> Tick {
    let response_times = (0..200).map(|place| (start_us / 1_000 + place, 3 + place)).collect();
    let kind = |kind| KindTick {
        kind,
        response_time_ns_sum: 44_000_000,
        response_times: Counts { values_us: vec![(70, 600)], beyond: 0 },
        timed_out: Counts { values_us: vec![(1_000_000, 2)], beyond: 0 },
    };
    Tick {
        start_us,
        length_us: 20_000,
        completed: 1_200,
        response_time_ns_sum: 88_000_000,
        response_times: Counts { values_us: response_times, beyond: 1 },
        by_kind: vec![kind(0), kind(1)],
        errors: [(ErrorKind::Refused, 3), (ErrorKind::LocalLimit, 1)].into(),
        unexpected_statuses: [(503, 2)].into(),
        generator: GeneratorTick {
            busy_us: 9_000,
            threads: 2,
            in_flight: Some(7),
            ..GeneratorTick::default()
        },
        ..Tick::default()
    }
}

/// A load with every kind of value, body, check and capture in it.
fn load() -> Plan {
    let scenario = r#"
        name = "shop"
        base = "http://ann:secret@10.0.0.7:8080"
        [values]
        file = { kind = "counter", step = 2, per_user = 100, wrap = 50 }
        me = { kind = "user", start = 5, width = 4, check = "verhoeff" }
        turn = { kind = "sequence", start = 3 }
        luck = { kind = "random", min = 1, max = 6, each = "user" }
        word = { kind = "random-string", length = 9, alphabet = "hex" }
        size = { kind = "choice", items = ["s", "m"] }
        next = { kind = "cycle", items = ["a", "b"], step = 2 }
        [[request]]
        name = "buy"
        method = "POST"
        path = "/buy/${file}?${luck}"
        headers = { X-Turn = "${turn}" }
        body = '{"who":"${me}","${word}":"${size}${next}"}'
        basic_auth = { name = "ann", password = "secret ${me}" }
        expect = [201, "4xx"]
        keep = { name = "orders", from = "json:order.id" }
        [[request]]
        name = "look"
        weight = 3
        path = "/orders/${taken:orders}"
        verify = 12
        [[request]]
        name = "send"
        method = "PUT"
        path = "/f"
        body = { sizes = ["1 KB", "1 MB"] }
    "#;
    let plan = Plan::new(Scenario::from_toml(Path::new("shop.toml"), scenario).expect("a scenario"));
    let pacing = Pacing::Closed { think: Think::Exponential(Duration::from_millis(5)) };
    Plan { pacing, cpus: Some(vec![0, 1]), insecure: true, seed: 77, ..plan }
}

fn every_command() -> Vec<Command> {
    let addresses = vec![([10, 0, 0, 7], 80).into(), (std::net::Ipv6Addr::LOCALHOST, 81).into()];
    let begin = Begin {
        number: 3,
        at_us: 9_000_000,
        users: 40,
        think: Some(Think::None),
        rate_per_s: Some(1_000.5),
        stop: Some(Stop::Total(70)),
    };
    vec![
        Command::Watch { number: 7, addresses: addresses.clone(), behind: addresses },
        Command::Sample,
        Command::LookClosely(true),
        Command::Ping(u64::MAX),
        Command::Prepare(Box::new(Prepare { plan: load(), threads: Some(4), watch: true })),
        Command::Start(Member::new(vec![70_000, 91_000], 1).expect("a member")),
        Command::Begin(begin),
        Command::Finish,
        Command::Facts(3),
        Command::Profile(ProfileOrder {
            number: 2,
            most_ms: 10_000,
            tiers: vec![[812, 813].into(), [900].into()],
        }),
        Command::EndProfile,
    ]
}

fn packed(reports: &[Report]) -> Vec<u8> {
    let mut packer = Packer::default();
    reports.iter().flat_map(|report| packer.pack(report).expect("it is short")).collect()
}

/// The reports in bytes that come in pieces of so many.
fn unpacked(bytes: &[u8], piece: usize) -> Result<Vec<Report>, ProtocolError> {
    let (mut reports, mut found) = (Reports::default(), Vec::new());
    for piece in bytes.chunks(piece.max(1)) {
        reports.push(piece);
        while let Some((report, _)) = reports.next_report()? {
            found.push(report);
        }
    }
    Ok(found)
}

#[test]
fn reports_and_commands_come_out_as_they_went_in() {
    for piece in [1, 7, 1_000, usize::MAX] {
        assert_eq!(unpacked(&packed(&every_report()), piece), Ok(every_report()));
    }
    let mut commands = Commands::default();
    every_command().iter().for_each(|one| commands.push(&command(one).expect("it is short")));
    let found = std::iter::from_fn(|| commands.next_command().expect("commands")).collect::<Vec<_>>();
    assert_eq!(found, every_command());
}

/// Two nstar that say they speak the same protocol must mean the same by every byte.
#[test]
fn what_passes_over_the_stream_changes_only_with_the_protocol() {
    let sum = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    let unpacked = every_report().iter().flat_map(message::written).collect::<Vec<u8>>();
    let commands =
        every_command().iter().flat_map(|one| command(one).expect("it is short")).collect::<Vec<u8>>();
    assert_eq!(
        (PROTOCOL, sum(&unpacked), sum(&commands)),
        (12, 11_712_023_415_755_993_476, 7_640_379_280_288_527_998),
        "a message has changed: raise PROTOCOL, and put the new sums here"
    );
}

#[test]
fn a_sample_like_the_one_before_takes_a_fraction_of_it() {
    let mut packer = Packer::default();
    let mut idle = sample(1_000_000);
    let first = packer.pack(&Report::Sample(Box::new(idle.clone()))).expect("short").len();
    idle.at_us += 250_000;
    let second = packer.pack(&Report::Sample(Box::new(idle))).expect("short").len();
    assert!(second * 8 < first, "{first} bytes, then {second}");
}

/// A sample of a server of 64 threads that all did something since the one before, on a host of 8 processors.
fn of_a_busy_server(number: u64) -> Counters {
    let mut all = sample(number * 250_000);
    // By what looks like chance.
    let grown = |of: u32| number * 80_000 + (number * 2_654_435_761 + u64::from(of) * 40_503) % 90_000;
    let thread = |tid| Thread {
        tid,
        name: "nginx".into(),
        cpu_us: grown(tid),
        run_queue_wait_us: grown(tid + 1) / 7,
        futex: Some(0x7f00_0000_0000 + grown(tid) % 16 * 64),
        ..Thread::default()
    };
    let cpu = |number| Cpu {
        number,
        user_us: grown(number),
        system_us: grown(number + 100),
        idle_us: grown(number + 200),
        softirq_us: grown(number + 300),
        ..Cpu::default()
    };
    all.cpus = (0..8).map(cpu).collect();
    all.processes[0].threads = (900..964).map(thread).collect();
    all
}

/// As in a sweep: four samples a second, and 25 looks while threads are looked at closely.
#[test]
fn what_is_said_of_a_server_of_64_threads_takes_less_than_200_kbit_a_second() {
    let (mut packer, mut bytes, seconds) = (Packer::default(), 0, 60);
    for number in 0..4 * seconds {
        let mut say = |report| bytes += packer.pack(&report).expect("it is short").len() as u64;
        say(Report::Sample(Box::new(of_a_busy_server(number))));
        for turn in 0..7 {
            let futex = |thread| 0x7f00_0000_0000 + thread * (number + turn) % 16 * 64;
            let futexes = (0..64).map(futex).collect();
            let server = ProcessLook { name: "nginx".into(), threads: 64, futexes, ..ProcessLook::default() };
            let at_us = number * 250_000 + turn * 40_000;
            say(Report::Look(ThreadLook { at_us, processes: vec![server] }));
        }
    }
    let kbit_per_s = bytes * 8 / seconds / 1_000;
    assert!(kbit_per_s < 200, "{kbit_per_s} kbit/s");
}

#[test]
fn nothing_longer_than_a_frame_is_sent_or_read() {
    let endless = sample(0).processes.into_iter().cycle().take(4_000).collect();
    let too_long = Report::Sample(Box::new(Counters { processes: endless, ..Counters::default() }));
    assert_eq!(Packer::default().pack(&too_long), None);
    let length = FRAME_BYTES_MAX + 1;
    let announced = u32::try_from(length).expect("a length").to_le_bytes();
    assert_eq!(unpacked(&announced, 4), Err(ProtocolError::TooLong { length }));
    // A small frame that says it is a large report.
    let large = RequestTemplate { body: vec![0; FRAME_BYTES_MAX], ..RequestTemplate::default() };
    let url = "http://10.0.0.7/".parse().expect("a URL");
    let plan = Plan::new(Scenario::single(&url, large).expect("a load"));
    let too_long = command(&Command::Prepare(Box::new(Prepare { plan, threads: None, watch: false })));
    assert!(too_long.is_err_and(|bytes| bytes > FRAME_BYTES_MAX));
    let bomb = [&9u32.to_le_bytes()[..], &[0], &u32::MAX.to_le_bytes(), &[1, 2, 3, 4]].concat();
    assert!(matches!(unpacked(&bomb, 99), Err(ProtocolError::TooLong { .. })));
}

#[test]
fn greetings_of_the_same_version_pass_and_what_follows_is_kept() {
    for split in 0..greeting().len() {
        let mut hello = Greeting::default();
        let bytes = [greeting().as_bytes(), b"rest"].concat();
        let (first, second) = bytes.split_at(split);
        assert_eq!(hello.push(first), Ok(None));
        assert_eq!(hello.push(second), Ok(Some(b"rest".to_vec())));
    }
}

#[test]
fn another_version_is_refused_and_both_are_named() {
    let refused =
        Greeting::default().push(b"nstar-agent 9.9.9 protocol 77 and more\n").expect_err("another version");
    let said = refused.to_string();
    assert!(said.contains("9.9.9 (protocol 77)") && said.contains(env!("CARGO_PKG_VERSION")), "{said}");
}

#[test]
fn what_is_no_greeting_is_shown() {
    let refused = |bytes: &[u8]| Greeting::default().push(bytes).expect_err("no greeting").to_string();
    assert!(refused(b"sh: nstar: not found\n").contains("sh: nstar: not found"));
    assert!(refused(b"\x1b[2J\x07").contains("came:"), "no line is waited for once it cannot be a greeting");
    assert!(!refused(b"\x1b[2J\x07").contains('\x1b'));
    assert!(refused(&[b'n'; GREETING_BYTES_MAX]).contains("nnn"));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_waited_on(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..50) {
        let _ = unpacked(&bytes, piece);
        let mut commands = Commands::default();
        commands.push(&bytes);
        while let Ok(Some(_)) = commands.next_command() {}
        let _ = Greeting::default().push(&bytes);
    }

    #[test]
    fn a_changed_load_does_no_harm(at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let prepare = Prepare { plan: load(), threads: None, watch: true };
        let mut bytes = command(&Command::Prepare(Box::new(prepare))).expect("short");
        let at = 4 + at.index(bytes.len() - 4);
        bytes[at] = with;
        let mut commands = Commands::default();
        commands.push(&bytes);
        if let Ok(Some(Command::Prepare(prepare))) = commands.next_command() {
            let _ = prepare.plan.is_sound();
        }
    }

    /// Frames whose length is right and whose content is anything.
    #[test]
    fn arbitrary_frames_are_refused_or_read(
        frames in prop::collection::vec((0u8..5, 0u32..2_000, prop::collection::vec(any::<u8>(), 0..200)), 1..5),
    ) {
        let framed = frames.iter().flat_map(|(kind, length, bytes)| {
            frame::framed(&[&[*kind][..], &length.to_le_bytes(), bytes].concat())
        });
        let _ = unpacked(&framed.collect::<Vec<u8>>(), 64);
    }

    #[test]
    fn a_stream_cut_short_gives_what_was_complete(cut in 0usize..6_000, piece in 1usize..300) {
        let bytes = packed(&every_report());
        let found = unpacked(&bytes[..cut.min(bytes.len())], piece).expect("reports");
        prop_assert_eq!(&found[..], &every_report()[..found.len()]);
        prop_assert!(cut < bytes.len() || found.len() == every_report().len());
    }

    #[test]
    fn a_changed_byte_does_no_harm(at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let mut bytes = packed(&every_report());
        let at = at.index(bytes.len());
        bytes[at] = with;
        let _ = unpacked(&bytes, 512);
    }
}
