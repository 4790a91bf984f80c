//! Evidence, one of each kind.

use analysis::counters::{IoRate, Role, ServerAddress};
use analysis::run::*;
use analysis::ticks::{ErrorCounts, ErrorKind};

pub(super) fn nginx() -> Processes {
    Processes { role: Role::Server, name: "nginx".into(), pid: Some(812), processes: 1, on: None }
}

pub(super) fn workers() -> Processes {
    Processes { role: Role::Downstream, name: "worker".into(), pid: None, processes: 4, on: None }
}

pub(super) fn database() -> Database {
    Database::Processes(Processes {
        role: Role::Downstream,
        name: "mariadbd".into(),
        pid: Some(912),
        processes: 1,
        on: None,
    })
}

pub(super) fn address() -> Database {
    Database::Address { name: "mysql://ann@db/rooms".into() }
}

pub(super) fn failures() -> ErrorCounts {
    ErrorCounts::from([(ErrorKind::TimedOut, 1_234), (ErrorKind::Reset, 12)])
}

pub(super) fn shares() -> Shares {
    Shares { tiers: 1.2, generator: 0.7, others: 0.1, available: 2.0 }
}

fn limit(rate: IoRate) -> DiskLimit {
    DiskLimit { of: nginx(), rate, device: "vda".into() }
}

/// Every kind of evidence.
pub(super) fn all() -> Vec<Evidence> {
    let mut all = Vec::new();
    all.extend(processors().into_iter().map(Evidence::from));
    all.extend(cpu_time().into_iter().map(Evidence::from));
    all.extend(shared().into_iter().map(Evidence::from));
    all.extend(devices().into_iter().map(Evidence::from));
    all.extend(kernel().into_iter().map(Evidence::from));
    all.extend(connections().into_iter().map(Evidence::from));
    all.extend(waiting().into_iter().map(Evidence::from));
    all.extend(hops().into_iter().map(Evidence::from));
    all.extend(locks().into_iter().map(Evidence::from));
    all.extend(generator().into_iter().map(Evidence::from));
    all.extend(outcome().into_iter().map(Evidence::from));
    all
}

/// Every way to be busy.
pub(super) fn busy() -> [Busy; 5] {
    [
        Busy::Cores { share: 0.97, cores: 4 },
        Busy::EachThread { share: 0.98, threads: 3 },
        Busy::OneThread { share: 0.99 },
        Busy::OneThreadAndInterrupts { share: 0.91 },
        Busy::OneAtATime { cores: 1.02 },
    ]
}

fn processors() -> Vec<ProcessorEvidence> {
    use ProcessorEvidence::*;
    let cpu_busy = |busy| CpuBusy { of: nginx(), busy, users: 4, demand_us: 29.1 };
    let mut all: Vec<_> = busy().map(cpu_busy).into();
    all.extend([
        TooFewThreads { cores: 8, threads: 2 },
        ThreadFull { cores: 4, thread: "writer".into(), tid: 815, others_cores: 0.4 },
        NeverAsleep { runnable: 0.97, samples: 120 },
        GlobalLock { program: "python3.11".to_owned(), cores: 4 },
        OneThreadAtATime { threads: 16, cores: 4, runnable: 0.99, samples: 120 },
        OneThreadAtATime { threads: 16, cores: 4, runnable: 0.0, samples: 0 },
    ]);
    all
}

fn cpu_time() -> Vec<CpuTimeEvidence> {
    use CpuTimeEvidence::*;
    vec![
        GrewWithLoad { users: 1, cores: 0.29 },
        GrewWithLoad { users: 0, cores: 0.01 },
        KernelTime { share: 0.62 },
        RunQueue { threads: 3.2 },
        ShortLivedChildren { share: 0.4 },
        ThreadsOfOneName {
            of: workers(),
            name: "pool-*".into(),
            threads: Some(16),
            share: 0.8,
            demand_us: 115.0,
        },
        ThreadsLeftOut { share: 0.7, threads: 5_000 },
        ShortLivedThreads { share: 0.9 },
        CollectorThreads { of: workers(), name: "GC Thread#*".into(), cores: 0.6 },
        WorkedInPauses { of: nginx(), cores: 0.84 },
        CpuByTier {
            tiers: vec![
                TierDemand { of: nginx(), demand_us: 29.1 },
                TierDemand { of: workers(), demand_us: 8.4 },
            ],
        },
    ]
}

fn shared() -> Vec<ShareEvidence> {
    use ShareEvidence::*;
    vec![
        QuotaSpent {
            of: nginx(),
            cgroup: "/web".into(),
            cores: 0.5,
            spent: 0.99,
            stopped_periods: 0.93,
            users: 4,
            demand_us: 29.1,
        },
        QuotaHeldBack { cores: 1.5 },
        FullWithTiers { of: nginx(), other_tiers: true, shares: shares(), demand_us: 37.5 },
        FullWithGenerator { shares: shares() },
        FullWithOthers { shares: Shares { available: 1.0, ..shares() } },
        WithoutGenerator { throughput_per_s: 52_000.0 },
        UnseenWork,
    ]
}

fn devices() -> Vec<DeviceEvidence> {
    use DeviceEvidence::*;
    vec![
        DiskBusy { disk: "vda".into(), busy: 0.98, in_flight: 3.5, users: 4, demand_us: 820.0 },
        DiskWork { reads_per_s: 12.0, writes_per_s: 1_180.0, flushes_per_s: 590.0, flush: 0.7 },
        DiskLatency { read_us: Some(1_240.0), write_us: Some(310.0), flush_us: Some(2_900.0) },
        DiskLatency { read_us: None, write_us: Some(310.0), flush_us: Some(2_900.0) },
        DiskLatency { read_us: Some(95.0), write_us: None, flush_us: None },
        DiskLatency { read_us: None, write_us: None, flush_us: None },
        DiskServesSeveral { users: 1, light_us: 95.0, full_us: 112.0 },
        DiskShare { share: Some(0.96) },
        DiskShare { share: None },
        DiskAwaited { pressure: 0.8, thread: 0.9 },
        CacheTooSmall { refaults_per_s: 21_000.0 },
        SharedWrites,
        IoLimitUsed {
            limit: limit(IoRate::Writes),
            cgroup: "/web".into(),
            used_per_s: 99.0,
            limit_per_s: 100.0,
            share: 0.99,
            users: 4,
            per_request: 1.0,
        },
        DiskNotBusy { disk: "vda".into(), busy: 0.03 },
        IoLimitAwaited { of: nginx(), threads: 0.9, pressure: 0.85 },
        LinkBusy {
            link: "eth0".into(),
            used_bits_per_s: 9.7e8,
            limit_bits_per_s: 1e9,
            busy: 0.97,
            users: 8,
            demand_us: 820.0,
        },
        LinkQueue { delayed_per_s: 40.0, dropped_per_s: 3.0, backlogged: 0.5 },
    ]
}

fn kernel() -> Vec<KernelEvidence> {
    use KernelEvidence::*;
    vec![
        SoftirqsFull { processor: 3, busy: 0.99, softirq: 0.93, users: 16, demand_us: 41.2 },
        PacketsLeft { dropped_per_s: 12.0, squeezes_per_s: 3_400.0 },
        TiersHadRoom { of: nginx(), busy: 0.41 },
        SpreadSoftirqs { processors: 1 },
        SpreadSoftirqs { processors: 6 },
        MemoryLimitFull {
            of: nginx(),
            cgroup: "/web".into(),
            limit_bytes: 134_217_728.0,
            fill: 0.998,
            reached_per_s: 4_100.0,
            users: 4,
        },
        ReadAgain { bytes_per_s: 2.1e8, bytes_per_request: 52_400.0, share: Some(0.97) },
        ReadAgain { bytes_per_s: 2.1e8, bytes_per_request: 52_400.0, share: None },
        MemoryAwaited { threads: 3.4, found: 0.96, stalled: Some(0.71) },
        MemoryAwaited { threads: 3.4, found: 0.96, stalled: None },
        HostMemoryLeft { share: 0.61 },
        TrackingTableFull { connections: 65_536, most: 65_536, refused_per_s: 812.0, users: 64 },
        PortsUsedUp {
            address: ([10, 0, 0, 7], 5432).into(),
            is_target: false,
            used: 28_230,
            ports: 28_232,
            users: 64,
        },
        PortsUsedUp {
            address: ([127, 0, 0, 1], 8080).into(),
            is_target: true,
            used: 28_230,
            ports: 28_232,
            users: 64,
        },
        KilledForMemory { cgroup: "/web".into(), processes: 2, users: 64 },
    ]
}

fn connections() -> Vec<ConnectionEvidence> {
    use ConnectionEvidence::*;
    vec![
        DescriptorsFull { of: nginx(), open: 1_024, limit: 1_024, users: 512 },
        TurnedAway { requests: 4_096, queued: true },
        RaiseDescriptorLimit,
        ListenQueueFull { overflows_per_s: 35.0, drops_per_s: 12.0, users: 64 },
        HandshakesRetried { per_s: 8.0, users: 16 },
        NotAdmitted { users: 64, outside: 31.8 },
        ListenQueueSeen { port: 8080, waiting: 129, backlog: 128, full: 0.9 },
        AcceptsSlowly { at_a_time: 4.0 },
        WaitingToBeAccepted { port: 8080, connections: 7 },
        ConnectingTook { share: 0.62, mean_us: 1_240.0, users: 16 },
        ToldToComeBack { requests: 900 },
    ]
}

/// So many users with pauses against one, who waited this much longer.
fn compared(users: u32, longer_us: f64, log_odds: f64) -> TimesCompared {
    TimesCompared {
        users,
        think_us: 22_500.0,
        alone_us: 45_000.0,
        longer_us,
        longer_ci_us: [longer_us - 700.0, longer_us + 700.0],
        expected_us: [2_700.0, 6_200.0],
        log_odds,
    }
}

fn waiting() -> Vec<WaitingEvidence> {
    use WaitingEvidence::*;
    vec![
        MemoryShort { pressure: 0.6, swapped_in_per_s: 4_000.0, users: 8 },
        OneServed,
        OneServedBeside { at_a_time: 2.25 },
        SeveralServed { at_a_time: 4.0 },
        ServedByLittle { throughput_per_s: 800.0, alone_us: 5_000.0, at_a_time: 4.0 },
        WaitingEvidence::HeldBack { held_back: 11.8, at_a_time: 3.33 },
        Contention { compared: compared(2, 2_100.0, 4.6), workers: None },
        Contention { compared: compared(2, 30.0, -4.6), workers: None },
        Contention { compared: compared(2, 900.0, 0.3), workers: None },
        Contention { compared: compared(3, 1_200.0, 2.9), workers: Some(2) },
        Contention { compared: compared(3, 600.0, 0.3), workers: Some(2) },
        Pausing(compared(1, -19_000.0, 4.6)),
        Pausing(compared(1, 30.0, -4.6)),
        Pausing(compared(1, -4_000.0, 0.3)),
        NumberServed { at_a_time: 3.9 },
        NumberServed { at_a_time: 1.1 },
        AloneAtTheDisk { of: nginx(), waiting: 0.9 },
        BusiestHadRoom { resource: Identity::Processes(nginx()), busy: 0.2 },
        HostBusyForOthers,
        NothingAnswered { share: 0.4, longest_us: 180_000.0, users: 8 },
        RequestsRejected { requests: 4_812, too_many: 4_800, throughput_per_s: 100.0, users: 2 },
        RequestsRejected { requests: 12, too_many: 0, throughput_per_s: 100.0, users: 2 },
        InService { requests: 0.13 },
        FellWithUsers { from_users: 2, from_per_s: 180.0, to_users: 64, to_per_s: 31.5 },
        ThreadsAtOneFutex {
            from_users: 2,
            from_threads: 0.9,
            from_ci: Some([0.78, 1.02]),
            to_users: 4,
            to_threads: 2.9,
            to_ci: Some([2.84, 2.97]),
            alone_threads: Some(0.0),
        },
        ThreadsAtOneFutex {
            from_users: 1,
            from_threads: 0.0,
            from_ci: None,
            to_users: 64,
            to_threads: 62.4,
            to_ci: None,
            alone_threads: None,
        },
        MoreThreadsWait { from_users: 2, from_threads: 1.0, to_users: 64, to_threads: 62.7 },
        MoreThreadsSleep {
            from_users: 5,
            from_threads: 4.9,
            from_ci: Some([4.84, 4.97]),
            to_users: 10,
            to_threads: 9.9,
            to_ci: None,
        },
    ]
}

fn upstream() -> Identity {
    Identity::Upstream { address: ServerAddress::Tcp { address: ([10, 0, 0, 7], 5432).into() }, of: nginx() }
}

fn hops() -> Vec<HopEvidence> {
    use HopEvidence::*;
    let socket = ServerAddress::Unix { path: "/run/php.sock".into() };
    vec![
        RequestsQueue {
            at: Identity::Processes(workers()),
            from_users: 8,
            from_requests: 6.9,
            to_users: 64,
            to_requests: 62.84,
        },
        NotRead { of: workers(), requests: 58.8, users: 64 },
        NotTold { at: Identity::Processes(workers()), connections: 61.5, users: 64 },
        ServedElsewhere { of: workers(), elsewhere: 1.24, at_a_time: 1.02 },
        NotAccepted { of: nginx(), connections: 31.5, held: 0.04, users: 32 },
        TimePerTier {
            tiers: vec![
                TierTime { at: Identity::Processes(nginx()), requests: 0.4, time_us: 510.0 },
                TierTime { at: Identity::Processes(workers()), requests: 62.8, time_us: 80_100.0 },
                TierTime {
                    at: Identity::Upstream { address: socket, of: workers() },
                    requests: 0.8,
                    time_us: 1_020.0,
                },
            ],
            users: 64,
        },
        ConnectionsInUse {
            of: nginx(),
            to: upstream(),
            connections: 8.0,
            outstanding: 7.9,
            from_users: 16,
            to_users: 64,
        },
        NotJoined { to: upstream(), translation_unread: false },
        NotJoined { to: upstream(), translation_unread: true },
    ]
}

fn locks() -> Vec<LockEvidence> {
    use LockEvidence::*;
    vec![
        SessionsWaited {
            database: database(),
            waiting: 14.2,
            at_work: 15.3,
            users: 2,
            contended: 1.0,
            samples: 24,
        },
        ShareOfResponse { waited_us: 9_200.0, users: 16, share: 0.9, inside: Some(8.0) },
        QueueGrew { from_users: 4, from_waiting: 2.1, to_users: 32, to_waiting: 29.4 },
        CountedByDatabase { waiting: 13.8 },
        AllElseHadRoom { busiest: Some((Identity::Disk { name: "vda".into(), on: None }, 0.31)) },
        AllElseHadRoom { busiest: None },
        NotAsked { of: workers() },
        NotTheCause { database: address(), waiting: 0.1, at_work: 3.0 },
        PartOfTheWaiting { database: address(), waiting: 2.0, at_work: 6.0 },
    ]
}

fn generator() -> Vec<GeneratorEvidence> {
    use GeneratorEvidence::*;
    vec![
        GeneratorBusy { busy: 0.99, threads: 2.0 },
        OneGeneratorBusy { generator: "web".into(), busy: 0.99 },
        OneGeneratorLate { generator: "web".into(), lag_us: 900.0, response_us: 1_200.0 },
        GeneratorStarved { share: 0.4 },
        GeneratorLate { lag_us: 4_000.0, response_us: 180.0 },
        GeneratorThrottled { periods: 0.9, cores: 0.1 },
        GeneratorOutOfPorts { users: 40_000 },
        ServerNotWatched,
        ServerBusyToo { busy: 0.95 },
        ServerBusiest { resource: Identity::Quota(nginx()), busy: 0.4, had_room: true },
        ServerBusiest { resource: Identity::IoLimit(limit(IoRate::ReadBytes)), busy: 0.9, had_room: false },
        ServerIdle,
    ]
}

fn outcome() -> Vec<OutcomeEvidence> {
    use OutcomeEvidence::*;
    let busiest = |aside| Busiest { resource: Identity::Host { on: None }, busy: 0.98, aside };
    vec![
        NothingCompleted,
        OnlyStep { users: 1 },
        StillGrew { users: 64 },
        TooUneven { users: 64 },
        NotWatched { users: 4 },
        NothingExplains { users: 4, throughput_per_s: 34_118.7 },
        UnwatchedWork { cores: 0.8 },
        busiest(None),
        busiest(Some(Aside::OthersUsedIt { tier_cores: 0.3 })),
        busiest(Some(Aside::WhateverTheLoad)),
        CloseRival { resource: Identity::Link { name: "eth0".into(), on: None }, busy: 0.93 },
        CloseRival { resource: Identity::Host { on: Some("web".into()) }, busy: 0.93 },
        CloseRival {
            resource: Identity::Processes(Processes { on: Some("web".into()), ..nginx() }),
            busy: 0.93,
        },
        RequestsFailed { share: 0.3, users: 8, errors: failures() },
        Told { text: "An older version said so.".into() },
    ]
}
