//! Doubts, warnings and limits to come, one of each kind.

use analysis::counters::{Role, ServerAddress};
use analysis::run::*;
use analysis::ticks::ErrorCounts;

use super::evidence::{address, database, failures, nginx, shares};

/// Every kind of doubt.
pub(super) fn doubts() -> Vec<Doubt> {
    use Doubt::*;
    vec![
        NothingCompleted,
        NeverBounded { users: 64, asked: None },
        NeverBounded { users: 16, asked: Some(64) },
        OnlyStep { users: 8 },
        TooUneven { users: 64 },
        GeneratorLimit,
        EndedEarly { generator: "web".into() },
        GeneratorTookMore,
        OthersTookMost { cores: 1.4, available: 2.0 },
        Interference { victim: Victim::Server, cores: 0.4, available: 1.0 },
        Interference { victim: Victim::Generator, cores: 0.4, available: 2.0 },
        LocksHeldForLonger { database: database(), because: LockDoubt::NotWatched },
        LocksHeldForLonger { database: address(), because: LockDoubt::SomethingBusy },
        LocksAsWell { database: database() },
        LocksMayBePart { database: database(), waiting: 2.0, at_work: 6.0 },
        RequestsFailed { share: 0.3, users: 8, errors: failures() },
        ManyFailed { share: 0.4 },
        OthersUsedProcessors { cores: 0.7, available: 4.0 },
        Warned { warning: Cause::NotSteady { users: vec![8] } },
        StoppedAnsweringBeyond { users: 32, errors: failures() },
        StoppedAnsweringBeyond { users: 32, errors: ErrorCounts::new() },
        Stalled { users: 8 },
        NotSteady { users: 8 },
        Jump { from_users: 2, to_users: 4, factor: 1.7, held_back: None },
        Jump { from_users: 16, to_users: 24, factor: 3.9, held_back: Some([0.93, 0.1]) },
        dip(None),
        dip(Some([0.93, 0.1])),
        MaximumUnknown { half_width: 0.8 },
        Changed { users: 8, before_per_s: 29_200.0, after_per_s: 9_600.0, course: Vec::new() },
        Changed { users: 8, before_per_s: 29_200.0, after_per_s: 9_600.0, course: course() },
        Little { users: 8, gap: 0.12 },
        IdleUsers { users: 8, share: 0.2 },
        NotConfirmed(nginx().into()),
        Undecided {
            best: explanation(ResourceKind::Lock, Some(1), 0.46),
            next: Some(explanation(ResourceKind::WorkerPool, Some(2), 0.31)),
            tell_apart: TellApart::PairTest,
        },
        Undecided {
            best: explanation(ResourceKind::Cpu, None, 0.52),
            next: Some(Explanation {
                identity: Some(Identity::Disk { name: "vda".into(), on: None }),
                ..explanation(ResourceKind::Disk, None, 0.45)
            }),
            tell_apart: TellApart::MoreOfOne,
        },
        Undecided {
            best: explanation(ResourceKind::GarbageCollection, None, 0.55),
            next: None,
            tell_apart: TellApart::Confirm,
        },
        Told { text: "An older version doubted it.".into() },
    ]
}

fn dip(held_back: Option<[f64; 2]>) -> Doubt {
    Doubt::Dip { users: 8, per_s: 85.0, around_users: [4, 16], around_per_s: [197.0, 200.0], held_back }
}

fn explanation(kind: ResourceKind, at_a_time: Option<u32>, share: f64) -> Explanation {
    let probability = Probability::new(share);
    let identity = Some(Identity::Processes(nginx()));
    Explanation { kind, identity, at_a_time, probability, ..Explanation::default() }
}

/// Every kind of warning.
pub(super) fn causes() -> Vec<Cause> {
    use Cause::*;
    let mut all = vec![
        Interrupted,
        DebugBuild,
        Stalled { users: 8, completed: 12_345, stalled_s: 4.2 },
        ServerReplaced { before: nginx(), after: restarted(), users: Some(8), times: 1 },
        ServerReplaced { before: nginx(), after: restarted(), users: None, times: 3 },
        ServerReplaced { before: far(nginx()), after: far(restarted()), users: Some(8), times: 1 },
        ServerReplaced { before: behind(nginx()), after: behind(restarted()), users: Some(8), times: 1 },
        AddressesLeftOut { on: None, users: 64, addresses: 16, of: 80 },
        AddressesLeftOut { on: Some("far".into()), users: 64, addresses: 1, of: 65 },
        RequestsFailed { first_users: Some(8), errors: failures(), statuses: vec![(500, 12), (404, 3)] },
        RequestsFailed { first_users: None, errors: failures(), statuses: Vec::new() },
        TooUneven { users: 64 },
        StillGrew { users: 64, asked: None },
        StillGrew { users: 16, asked: Some(64) },
        DatabaseIdle { database: "mysql://ann@db/rooms".into() },
        GeneratorBusy { users: 8, busy: 0.9 },
        OneGeneratorBusy { generator: "web".into(), users: 8, busy: 0.9 },
        OneGeneratorNearCeiling { generator: "web".into(), users: 8, share: 0.9, ceiling_per_s: 90_000.0 },
        NearCeiling { users: 8, share: 0.85, ceiling_per_s: 160_000.0 },
        SharedCores { users: Some(4), server: nginx(), shares: shares(), alone_per_s: Some(52_000.0) },
        SharedCores { users: None, server: nginx(), shares: shares(), alone_per_s: None },
        Cause::NotSteady { users: vec![8, 16] },
        Cause::IdleUsers { users: 8, share: 0.2 },
        Redirected { status: 301 },
        HeldBack { users: 1, share: 0.99, pause_us: 41_100.0, response_us: 52_100.0 },
        Cause::Changed { users: 1, course: course() },
        NoInterval { users: vec![1] },
        FewResponses { users: 4, samples: 60, share: 0.99, needed: 299 },
        WideInterval { users: 4, half_width: 0.08 },
        Little { users: 8, gap: 0.12 },
        Steal { users: 8, share: 0.05 },
        LimitReached {
            limit: KernelEvidence::KilledForMemory { cgroup: "/web".into(), processes: 1, users: 64 },
        },
        ListenQueue { users: 64, overflows_per_s: 35.0, not_full: None },
        ListenQueue { users: 64, overflows_per_s: 35.0, not_full: Some(queue()) },
        FewerUsers(analysis::run::FewerUsers {
            asked: 500,
            files_needed: 566,
            files_limit: 256,
            allowed: 190,
        }),
        Mix {
            request: "book".into(),
            share: 0.3,
            asked: 0.5,
            replaced: vec![Replaced { request: "cancel".into(), times: 812 }],
        },
        NotCold { users: 8, share: Some(0.41) },
        NotCold { users: 8, share: None },
        MemoryNotLimited { program: "files".into(), limit_bytes: 128_000_000, os_error: Some(13) },
        DiskNotLimited { program: "files".into(), os_error: Some(15) },
        Told { text: "An older version warned of it.".into() },
    ];
    all.extend(server_unwatched().into_iter().map(|reason| NotWatched { reason }));
    all.extend(sockets_unread());
    all.extend(meanwhile().into_iter().map(|meanwhile| {
        Cause::Stalls(analysis::run::Stalls { users: 8, share: 0.12, longest_s: 0.085, times: 14, meanwhile })
    }));
    all.extend(tiers_not_watched());
    let of_agent = |trouble| Cause::AgentTrouble { host: "web".into(), trouble };
    all.extend(agent_troubles().into_iter().map(of_agent));
    let of_generator = |trouble| Cause::GeneratorTrouble { generator: "web-2".into(), trouble };
    all.extend(generator_troubles().into_iter().map(of_generator));
    let gone = || GeneratorLoss::Disconnected { reason: "the connection to the bus broke".into() };
    all.extend([1, 2].map(|times| MeasuredAgain { times, generator: "web-2".into(), loss: gone() }));
    all.push(NotProven { generator: "web-2".into(), loss: gone() });
    let database = || "mysql://ann@db/rooms".to_owned();
    all.extend(
        database_troubles().into_iter().map(|reason| DatabaseTrouble { database: database(), reason }),
    );
    all
}

/// Everything that may go on while nothing is answered.
fn meanwhile() -> Vec<Meanwhile> {
    use Meanwhile::*;
    let (of, on) = (nginx(), Some("web".to_owned()));
    vec![
        Throttled { of: of.clone(), cgroup: "/web".into(), share: 0.97 },
        Collected { of: of.clone(), threads: "GC Thread#*".into(), cores: 1.84 },
        MemoryAwaited { on: None, share: 0.9 },
        MemoryAwaited { on: on.clone(), share: 0.9 },
        DiskAwaited { on: None, device: Some("vda".into()), share: 0.9 },
        DiskAwaited { on: on.clone(), device: Some("vda".into()), share: 0.9 },
        DiskAwaited { on, device: None, share: 0.6 },
        WorkedOn { of, share: 1.0 },
        NothingSeen,
        NotWatched,
    ]
}

/// Every reason to know less of the sockets of a namespace.
fn sockets_unread() -> Vec<Cause> {
    let closed =
        |tables| SocketsUnread::NamespaceClosed { name: "web".into(), pid: 812, os_error: Some(1), tables };
    let not_answered = SocketsUnread::NotAnswered { os_error: Some(93), tables: true };
    let with = |reason, others| Cause::SocketsUnread { on: None, reason, others };
    let far = |reason| Cause::SocketsUnread { on: Some("far".into()), reason, others: 0 };
    vec![
        with(closed(true), 0),
        with(closed(false), 1),
        with(closed(true), 1_200),
        with(not_answered.clone(), 0),
        far(closed(true)),
        far(not_answered),
    ]
}

fn far(processes: Processes) -> Processes {
    Processes { on: Some("far".into()), ..processes }
}

fn behind(processes: Processes) -> Processes {
    Processes { role: Role::Downstream, ..processes }
}

fn restarted() -> Processes {
    Processes { pid: Some(950), ..nginx() }
}

fn queue() -> ListenQueue {
    ListenQueue { port: 8080, waiting: 7, backlog: 128 }
}

/// Every reason not to watch a server.
pub(super) fn server_unwatched() -> Vec<ServerUnwatched> {
    use ServerUnwatched::*;
    let address = ([10, 0, 0, 1], 80).into();
    vec![
        NotLocal { address },
        NotListening { address },
        TranslationUnread { address },
        PermissionDenied { address },
        NoOwner { address },
        OwnProcess { address },
        Unreadable { path: "/proc".into(), os_error: Some(2) },
        NoProcess,
    ]
}

/// Tiers that may not be watched, few and many.
fn tiers_not_watched() -> [Cause; 3] {
    let tcp = |port| ServerAddress::Tcp { address: ([127, 0, 0, 1], port).into() };
    let socket = ServerAddress::Unix { path: "/run/php.sock".into() };
    let many = (1..=6).map(|number| tcp(8000 + number)).collect();
    let there = |on: Option<&str>, addresses| Cause::TiersNotWatched { on: on.map(Into::into), addresses };
    [there(None, vec![tcp(3306), socket]), there(None, many), there(Some("far"), vec![tcp(3306)])]
}

/// Everything that an agent may not tell, and why.
fn agent_troubles() -> Vec<AgentTrouble> {
    use AgentTrouble::*;
    let reason = ServerUnwatched::PermissionDenied { address: ([10, 0, 0, 1], 80).into() };
    vec![
        Ended { code: Some(255), stderr: "Connection to web closed by remote host.".into() },
        Ended { code: None, stderr: String::new() },
        Disconnected { reason: "the bus lost messages: number 9 came where 7 was due".into() },
        Malformed,
        Flooded,
        Silent { longest_s: 4.2 },
        LeftOut { count: 12 },
        Clock { error_us: 2_400.0 },
        ServerNotFound { reason },
        NothingCalled { addresses: vec![([10, 96, 0, 10], 80).into()] },
        ServerNotFound { reason: ServerUnwatched::NotLocal { address: ([10, 0, 0, 1], 80).into() } },
        ServerNotFound { reason: ServerUnwatched::NotListening { address: ([10, 0, 0, 1], 80).into() } },
        Redundant,
        ByPort { address: ([192, 0, 2, 7], 80).into(), at: ([0, 0, 0, 0], 80).into() },
        ByPort { address: ([127, 0, 0, 1], 80).into(), at: ([0, 0, 0, 0], 80).into() },
    ]
}

/// Everything that may go wrong with one of several generators.
fn generator_troubles() -> Vec<GeneratorTrouble> {
    use GeneratorLoss::*;
    let losses = [
        Ended { code: Some(255), stderr: "Connection to web closed by remote host.".into() },
        Ended { code: None, stderr: String::new() },
        Disconnected { reason: "the connection to the bus broke".into() },
        Malformed,
        Flooded,
        Silent { silent_s: 5.2 },
        Failed { reason: "cannot start a generator thread".into() },
    ];
    let mut all = vec![
        GeneratorTrouble::Clock { error_us: 2_400.0 },
        GeneratorTrouble::StartedLate { late_us: 31_000 },
    ];
    all.extend(losses.map(|loss| GeneratorTrouble::Lost { users: 12, loss, ended_run: false }));
    all.push(GeneratorTrouble::Lost { users: 12, loss: GeneratorLoss::Malformed, ended_run: true });
    all.push(GeneratorTrouble::TooFewFiles { users: 500, allowed: 186 });
    all.push(GeneratorTrouble::FewerUsers { asked: 500, allowed: 372, of_this: 186 });
    let (used_bits_per_s, limit_bits_per_s) = (970_000_000.0, 1e9);
    all.push(GeneratorTrouble::LinkFull { link: "eth0".into(), used_bits_per_s, limit_bits_per_s });
    all.push(GeneratorTrouble::Throttled { cores: 1.5, periods: 0.42 });
    all
}

/// Everything that a database may not tell, and why.
pub(super) fn database_troubles() -> Vec<DatabaseTrouble> {
    use DatabaseTrouble::*;
    vec![
        NotInstalled { client: DatabaseClient::Psql },
        NotInstalled { client: DatabaseClient::Mariadb },
        NotStarted { client: DatabaseClient::Mysql, os_error: Some(13) },
        Ended { client: DatabaseClient::Psql, stderr: "Connection refused".into() },
        Ended { client: DatabaseClient::Psql, stderr: String::new() },
        TimedOut { limit_s: 2 },
        Unparsable { client: DatabaseClient::Mariadb },
        Hidden { what: HiddenFromUser::Transactions },
        Hidden { what: HiddenFromUser::Sessions },
        NoThread { os_error: None },
    ]
}

/// Every kind of limit to come.
pub(super) fn next_limits() -> Vec<NextLimit> {
    vec![
        NextLimit::Limit { resource: Identity::Thread(nginx()), throughput_per_s: 52_000.0 },
        NextLimit::Told { text: "the disk vda, at about 11 800 req/s.".into() },
    ]
}

/// A server that slowed down.
fn course() -> Vec<Replicate> {
    let measured = [(8.0, 29_200.0), (31.5, 18_400.0), (44.0, 9_600.0)];
    let replicate = |(at_s, throughput_per_s)| Replicate { at_s, throughput_per_s, ..Replicate::default() };
    measured.map(replicate).into()
}
