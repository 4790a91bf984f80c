//! Runs made by hand, one per kind of outcome a report must show.
#![allow(dead_code, missing_docs, unreachable_pub)]

use analysis::counters::{Container, Role, ServerAddress};
use analysis::run::*;
use analysis::ticks::{ErrorCounts, ErrorKind, ErrorRates};

pub mod profiles;
pub mod sides;

const NGINX: &str = "nginx worker (pid 812)";

/// Every sample with its name.
pub fn all() -> Vec<(&'static str, Run)> {
    vec![
        ("cpu", cpu()),
        ("generator", generator()),
        ("unbounded", unbounded()),
        ("errors", errors()),
        ("all_failed", all_failed()),
        ("load", load()),
        ("unobserved", unobserved()),
        ("extreme", extreme()),
        ("empty", empty()),
        ("hostile", hostile()),
        ("long", long()),
        ("mix", mix()),
        ("profile", profiles::profiled()),
    ]
}

/// Conclusive: nginx on one core.
pub fn cpu() -> Run {
    let rows = [
        (1, 9870.4, 101.3, 180.0, 0.29),
        (2, 19612.8, 102.0, 184.0, 0.57),
        (3, 28101.5, 106.8, 193.0, 0.82),
        (4, 34118.7, 117.2, 210.0, 0.991),
        (5, 34190.2, 146.2, 262.0, 0.993),
        (6, 34144.0, 175.7, 318.0, 0.993),
        (8, 34094.1, 234.6, 420.0, 0.992),
        (16, 34021.9, 470.3, 851.0, 0.993),
        (32, 33890.6, 944.2, 1740.0, 0.993),
    ];
    let steps = rows.into_iter().map(|(users, rate, mean, p99, busy)| {
        let mut step = step(users, rate, mean, p99);
        step.resources = vec![
            resource(ResourceKind::Cpu, NGINX, busy, 1.0, "cores"),
            resource(ResourceKind::Network, "lo", busy * 0.31, 1e10, "bits/s"),
            resource(ResourceKind::Disk, "vda", 0.004 + f64::from(users) * 0.0004, 1.0, "devices"),
        ];
        step.resources.push(resource(ResourceKind::Generator, "nstar", busy * 0.38, 1.0, "cores"));
        step
    });
    let mut run = base(steps.collect());
    run.laws.demands =
        vec![demand(ResourceKind::Cpu, NGINX, 29.1), demand(ResourceKind::Generator, "nstar", 11.2)];
    run.models = Models {
        bounds: Some(Bounds {
            response_time_alone_us: 101.3,
            throughput_max_per_s: 34364.0,
            knee_users: 3.48,
        }),
        mva: Some(run.steps.iter().map(predicted).collect()),
        usl: Some(Usl {
            lambda_per_s: 10120.0,
            sigma: 0.021,
            kappa: 0.00042,
            r_squared: 0.987,
            ..Usl::default()
        }),
    };
    run
}

fn predicted(step: &Step) -> Predicted {
    let users = f64::from(step.users);
    let rate = (users * 9870.0).min(34364.0) * (1.0 - 0.09 * (-((users - 3.5) / 2.0).powi(2)).exp());
    Predicted { users: step.users, throughput_per_s: rate, response_time_us: users / rate * 1e6 }
}

/// Inconclusive: the generator was full first.
pub fn generator() -> Run {
    let mut run = cpu();
    for step in &mut run.steps {
        let [server, _, _, client] = &mut step.resources[..] else { unreachable!() };
        (server.utilization, client.utilization) = (client.utilization, server.utilization);
        step.resources.swap(0, 3);
        step.generator.useful_work = step.resources[0].utilization;
    }
    run.verdict.bottleneck.kind = ResourceKind::Generator;
    run.verdict.bottleneck.identity = named("nstar");
    run.verdict.bottleneck.findings = told(&[
        "nstar's own threads were busy 99 % at 4 users, and its cgroup kept them stopped 41 % of the time.",
        "The server was busy 38 %.",
    ]);
    run.verdict.bottleneck.runner_up = run.steps[3].resources.get(3).cloned();
    run.verdict.doubts =
        doubts(&["The load generator was full before the server was: the server can do more."]);
    run.verdict.next_limit = None;
    run.warnings = vec![
        warn(
            WarningKind::GeneratorBusy,
            "The generator was busy 99 % of its time: give it more cores (--threads 2).",
        ),
        warn(
            WarningKind::SharedCores,
            "Generator and server shared cores 0-1: figures are lower than on separate ones.",
        ),
    ];
    run
}

/// Never saturated.
pub fn unbounded() -> Run {
    let mut run = cpu();
    run.steps.truncate(3);
    run.verdict.users_at_saturation = None;
    run.verdict.users_at_saturation_ci = None;
    run.verdict.bounded = false;
    run.verdict.throughput_max_per_s = 28101.5;
    run.verdict.throughput_max_ci_per_s = [27900.1, 28302.9];
    run.verdict.response_time_at_saturation_us = run.steps[2].response_time_us;
    run.verdict.doubts = doubts(&["Throughput was still growing at 3 users, the most that were tried."]);
    run.verdict.bottleneck = Bottleneck {
        kind: ResourceKind::None,
        holder: Words::default(),
        identity: None,
        utilization: None,
        demand_us: None,
        evidence: Vec::new(),
        findings: told(&["The busiest resource, the CPU of nginx, was busy 82 %."]),
        threads: None,
        runner_up: None,
        at_a_time: None,
        alternatives: Vec::new(),
        confidence: Probability::new(0.5),
    };
    run.verdict.next_limit = None;
    run.models = Models::default();
    run.warnings =
        vec![warn(WarningKind::NotBounded, "Throughput still grew at 3 users: try --users 1..64.")];
    run
}

/// Saturated with many errors of several kinds.
pub fn errors() -> Run {
    let mut run = cpu();
    for (index, step) in run.steps.iter_mut().enumerate().skip(3) {
        step.errors = ErrorCounts::from([
            (ErrorKind::Refused, 12 * index as u64),
            (ErrorKind::TimedOut, 1234 * index as u64),
            (ErrorKind::Status, 7),
            (ErrorKind::Unavailable, 40_000 * (index as u64 / 6)),
        ]);
        step.errors_per_s =
            step.errors.iter().map(|(kind, count)| (*kind, *count as f64 / step.elapsed_s)).collect();
        step.steady = index % 2 == 0;
    }
    run.laws.little_holds = false;
    run.laws.little_gap_max = 0.123;
    run.verdict.bottleneck.kind = ResourceKind::AcceptQueue;
    run.verdict.bottleneck.confidence = Probability::new(0.87);
    run.verdict.bottleneck.alternatives = vec![Explanation {
        kind: ResourceKind::WorkerPool,
        identity: run.verdict.bottleneck.identity.clone(),
        at_a_time: Some(4),
        probability: Probability::new(0.08),
        ..Explanation::default()
    }];
    run.warnings = vec![
        warn(WarningKind::Errors, "38 % of the requests failed from 4 users on, most of them timed out."),
        warn(WarningKind::NotSteady, "3 steps never became steady."),
    ];
    run
}

/// Nobody answered.
pub fn all_failed() -> Run {
    let mut step = step(4, 0.0, 0.0, 0.0);
    step.errors = ErrorCounts::from([(ErrorKind::Refused, 81_234)]);
    step.throughput_ci_per_s = None;
    step.response_time_us = ResponseTime::default();
    let mut run = base(vec![step]);
    run.verdict = nothing_found(&["No request completed: connections were refused."]);
    run.laws = Laws::default();
    run
}

/// One step, as `nstar load` writes it.
pub fn load() -> Run {
    let mut step = step(32, 4990.0, 6400.0, 12_100.0);
    step.resources = vec![resource(ResourceKind::Cpu, NGINX, 0.41, 2.0, "cores")];
    let mut run = base(vec![step]);
    run.topology = Some(one_host("nginx"));
    run.load = LoadShape {
        loop_kind: LoopKind::Open,
        rate_per_s: Some(5000.0),
        connections: Connections::PerRequest,
        threads: 1,
        ..LoadShape::default()
    };
    run.verdict = Verdict {
        throughput_max_per_s: 4990.0,
        throughput_max_ci_per_s: [4940.1, 5039.9],
        response_time_at_saturation_us: run.steps[0].response_time_us,
        ..nothing_found(&[])
    };
    run
}

/// A remote server: no resource was seen.
pub fn unobserved() -> Run {
    let mut run = cpu();
    for step in &mut run.steps {
        step.resources.clear();
    }
    run.laws.demands.clear();
    run.verdict.bottleneck = nothing_found(&[]).bottleneck;
    run.verdict.bottleneck.kind = ResourceKind::Unknown;
    run.verdict.next_limit = None;
    run.warnings = vec![warn(
        WarningKind::NotObserved,
        "The server's processes could not be seen from here: run `nstar observe` on its host.",
    )];
    run
}

/// The ends of every range.
pub fn extreme() -> Run {
    let mut slow = step(1, 1e-6, 3.6e9, 3.6e9);
    slow.throughput_ci_per_s = Some([0.0, 2e-6]);
    let mut fast = step(1_000_000, 1e9, 1e-3, 1.0);
    fast.completed = u64::MAX;
    fast.errors = ErrorCounts::from([(ErrorKind::Reset, u64::MAX), (ErrorKind::Tls, 1)]);
    fast.resources = vec![
        resource(ResourceKind::Cpu, &"very-long-process-name-".repeat(8), 1.0, 1e9, "cores"),
        resource(ResourceKind::Disk, "", 0.0, 0.0, ""),
        resource(ResourceKind::Network, "eth0", 1e-9, 4e11, "bits/s"),
    ];
    let mut run = base(vec![step(0, 0.0, 0.0, 0.0), slow, fast]);
    run.verdict.throughput_max_per_s = 1e9;
    run.verdict.throughput_max_ci_per_s = [1e9, 1e9];
    run.verdict.users_at_saturation = Some(1_000_000);
    run.verdict.users_at_saturation_ci = Some([0, u32::MAX]);
    run.seed = u64::MAX;
    run.elapsed_s = 1e9;
    run
}

/// Several kinds of request: a fast one, and a slow one that is too rare for its 99th percentile.
pub fn mix() -> Run {
    let mut run = cpu();
    let asked = |name: &str, asked_share, completed| RequestShare {
        name: name.into(),
        asked_share,
        share: asked_share,
        completed,
        replaced: 0,
        demands: Vec::new(),
    };
    run.requests = vec![asked("search", 0.998, 1_234_567), asked("book", 0.002, 2_469)];
    let fast = ResponseTime {
        mean: 114.7,
        mean_ci: Some([113.2, 116.2]),
        p50: 108.0,
        p90: 160.0,
        p95: Some(182.0),
        p99: 205.0,
        p999: 330.0,
        max: 1_210.0,
        samples: 136_256,
        ..ResponseTime::default()
    };
    let slow = ResponseTime {
        mean: 1_840.0,
        mean_ci: Some([1_690.0, 1_990.0]),
        p50: 1_700.0,
        p90: 2_500.0,
        p95: Some(3_000.0),
        p99: 4_200.0,
        p999: 4_900.0,
        max: 4_900.0,
        samples: 220,
        timed_out: 2,
    };
    run.steps[3].requests =
        vec![kind("search", 136_256, 0.9984, 34_064.1, fast), kind("book", 218, 0.0016, 54.6, slow)];
    run
}

fn kind(
    name: &str,
    completed: u64,
    share: f64,
    throughput_per_s: f64,
    response_time_us: ResponseTime,
) -> StepRequest {
    StepRequest { name: name.into(), completed, share, throughput_per_s, response_time_us }
}

/// The same with what each kind costs: a database that the fast one does not call, which is too little to be known.
pub fn mix_with_costs() -> Run {
    let mut run = mix();
    let demand = |role, name: &str, pid, demand_us, demand_ci_us| {
        let of = Processes { role, name: name.into(), pid: Some(pid), processes: 1, on: None };
        let identity = Some(Identity::Processes(of));
        RequestDemand { kind: ResourceKind::Cpu, holder: Words::default(), identity, demand_us, demand_ci_us }
    };
    let server = |us, ci| demand(Role::Server, "nginx worker", 812, us, ci);
    run.requests[0].demands = vec![server(27.0, [25.0, 29.0])];
    let database = demand(Role::Downstream, "db", 900, 640.0, [600.0, 680.0]);
    run.requests[1].demands = vec![server(1_900.0, [1_700.0, 2_100.0]), database];
    run
}

/// Interrupted before the first step ended.
pub fn empty() -> Run {
    let mut run = base(Vec::new());
    run.verdict = nothing_found(&["Interrupted before a step was measured."]);
    run.laws = Laws::default();
    run.warnings = vec![warn(WarningKind::Interrupted, "Interrupted after 0 of 8 steps.")];
    run
}

/// Strings that would break a page, a terminal or a spreadsheet.
pub fn hostile() -> Run {
    const SCRIPT: &str = "</title></style></script><script>document.title='owned'</script>";
    const QUOTES: &str = "\" onfocus=\"document.title='owned'\" ' & {{ 7*7 }} {% raw %}";
    const TERMINAL: &str = "\x1b[2J\x1b]0;owned\x07\u{202e}drawkcab,\r\n=1+1";
    let mut run = cpu();
    run.target = format!("http://127.0.0.1/{SCRIPT}{QUOTES}{TERMINAL}");
    run.host.processor = SCRIPT.into();
    run.host.kernel = QUOTES.into();
    run.version = SCRIPT.into();
    run.started = QUOTES.into();
    run.verdict.bottleneck.identity = named(format!("{SCRIPT}{QUOTES}{TERMINAL}"));
    run.verdict.bottleneck.findings = told(&[SCRIPT, QUOTES, TERMINAL]);
    run.verdict.bottleneck.threads = Some(threads(&[(&format!("{QUOTES}{SCRIPT}{TERMINAL}"), 2, 0.9)]));
    run.verdict.next_limit = Some(NextLimit::Told { text: format!("{QUOTES}{SCRIPT}") });
    run.verdict.doubts = doubts(&[SCRIPT]);
    run.topology = Some(one_host(&format!("{SCRIPT}{QUOTES}{TERMINAL}")));
    run.warnings = vec![warn(WarningKind::HostLimit, &format!("{SCRIPT}{QUOTES}{TERMINAL}"))];
    for step in &mut run.steps {
        step.resources[0].identity = named(format!("{SCRIPT}{QUOTES}{TERMINAL}"));
        step.resources[1].unit = Unit::from(format!("{SCRIPT}{QUOTES}"));
    }
    run.laws.demands[0].identity = named(format!("{QUOTES}{SCRIPT}"));
    let name = format!("{SCRIPT}{QUOTES}{TERMINAL}");
    run.steps[3].requests = vec![kind(&name, 90, 1.0, 9.0, ResponseTime::default()), StepRequest::default()];
    run
}

/// The hostile run with every string made harmless, and of the same shape.
pub fn tame(run: &mut Run) {
    run.target = "x".into();
    run.host.processor = "x".into();
    run.host.kernel = "x".into();
    run.version = "x".into();
    run.started = "x".into();
    run.verdict.bottleneck.identity = named("x");
    run.verdict.bottleneck.findings = told(&["x"; 3]);
    run.verdict.bottleneck.threads = Some(threads(&[("x", 2, 0.9)]));
    run.verdict.next_limit = Some(NextLimit::Told { text: "x".into() });
    run.verdict.doubts = doubts(&["x"]);
    run.topology = Some(one_host("x"));
    run.warnings[0].cause = Cause::Told { text: "x".into() };
    for step in &mut run.steps {
        step.resources[0].identity = named("x");
        step.resources[1].unit = Unit::from("x".to_owned());
    }
    run.laws.demands[0].identity = named("x");
    run.steps[3].requests[0].name = "x".into();
}

/// A long ladder over a wide range, two tiers, many resources.
pub fn long() -> Run {
    let ladder = [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64, 96, 128, 256, 512, 600];
    let steps = ladder.into_iter().map(|users: u32| {
        let n = f64::from(users);
        let rate = (n * 210.0).min(8400.0 - n * 0.4);
        let mut step = step(users, rate, n / rate * 1e6, n / rate * 2.3e6);
        let share = rate / 8400.0;
        step.resources = vec![
            resource(ResourceKind::SingleThread, "accounts/writer (pid 4021)", share * 0.97, 1.0, "cores"),
            resource(ResourceKind::Cpu, "files (pid 4022)", share * 0.71, 4.0, "cores"),
            resource(ResourceKind::Disk, "nvme0n1", share * 0.66, 1.0, "devices"),
            resource(ResourceKind::Cpu, "accounts (pid 4021)", share * 0.52, 4.0, "cores"),
            resource(ResourceKind::Generator, "nstar", share * 0.24, 2.0, "cores"),
            resource(ResourceKind::Network, "lo", share * 0.12, 1e10, "bits/s"),
            resource(ResourceKind::CpuQuota, "files (pid 4022)", share * 0.35, 8.0, "cores"),
        ];
        step
    });
    let mut run = base(steps.collect());
    run.target = "files-authenticated at http://127.0.0.1:8080".into();
    run.verdict.users_at_saturation = Some(40);
    run.verdict.users_at_saturation_ci = Some([32, 48]);
    run.verdict.knee_users = Some(39.9);
    run.verdict.throughput_max_per_s = 8384.0;
    run.verdict.throughput_max_ci_per_s = [8301.0, 8467.0];
    run.verdict.response_time_at_saturation_us = run.steps[7].response_time_us;
    run.verdict.bottleneck.kind = ResourceKind::SingleThread;
    run.verdict.bottleneck.identity = named("accounts/writer (pid 4021)");
    run.verdict.bottleneck.findings = told(&[
        "Thread writer of accounts (pid 4021) is busy 97 % of one core at 40 users while its other threads are busy 9 %.",
        "Each request costs it 115 µs, so it alone allows 8 660 req/s; 8 384 were seen.",
    ]);
    run.verdict.bottleneck.threads =
        Some(threads(&[("writer", 1, 0.91), ("tokio-rt-worker", 4, 0.06), ("reader-*", 16, 0.015)]));
    run.verdict.bottleneck.runner_up = run.steps[7].resources.get(1).cloned();
    run.verdict.next_limit =
        Some(NextLimit::Told { text: "the CPU of files (pid 4022), at about 11 800 req/s.".into() });
    run.models.bounds =
        Some(Bounds { response_time_alone_us: 4761.9, throughput_max_per_s: 8660.0, knee_users: 41.2 });
    run.laws.demands = vec![
        demand(ResourceKind::SingleThread, "accounts/writer (pid 4021)", 115.5),
        demand(ResourceKind::Cpu, "files (pid 4022)", 84.5),
        demand(ResourceKind::Disk, "nvme0n1", 78.6),
    ];
    run.topology = Some(several_hosts());
    run
}

/// Two tiers on two hosts, a cache beside the second, and a database that nobody observes.
fn several_hosts() -> Topology {
    let tier = |role, name: &str, on: Option<&str>| Tier {
        processes: Processes { role, name: name.into(), pid: None, processes: 4, on: on.map(str::to_owned) },
        cpu_us_per_request: Some(84.5),
        cores: 2.84,
        utilization: 0.71,
        ..Tier::default()
    };
    let files = Tier {
        containers: vec![Container {
            engine: "docker".into(),
            id: "3f4e2b1a9c8d".into(),
            name: Some("shop-files-1".into()),
            pod: None,
        }],
        ..tier(Role::Server, "files", Some("web"))
    };
    let accounts = Tier {
        containers: vec![Container {
            engine: "containerd".into(),
            id: "77aa2b1a9c8d".into(),
            name: Some("accounts".into()),
            pod: Some("accounts-7d4b9c-x2x9k".into()),
        }],
        ..tier(Role::Downstream, "accounts", Some("app"))
    };
    let cache =
        Tier { units: vec!["redis.service".into()], ..tier(Role::Downstream, "redis-server", Some("app")) };
    let database = ServerAddress::Tcp { address: ([10, 0, 0, 7], 5432).into() };
    let node = |is| Node { is, is_bottleneck: false };
    let edge = |from: &[usize], to, port, connections, outstanding| Edge {
        from: from.into(),
        to,
        address: Some(ServerAddress::Tcp { address: ([10, 0, 0, 5], port).into() }),
        connections: Some(connections),
        outstanding: Some(outstanding),
    };
    Topology {
        users: 40,
        nodes: vec![
            node(NodeKind::Generator { name: None, users: 40 }),
            node(NodeKind::Tier(Box::new(files))),
            Node { is_bottleneck: true, ..node(NodeKind::Tier(Box::new(accounts))) },
            node(NodeKind::Tier(Box::new(cache))),
            node(NodeKind::Unobserved { address: database.clone(), translation_unread: false }),
        ],
        edges: vec![
            edge(&[0], 1, 8080, 40.0, [38.2, 38.2]),
            edge(&[1], 2, 8081, 64.0, [31.4, 31.4]),
            edge(&[1, 2], 3, 6379, 12.0, [0.3, 1.2]),
            Edge { address: Some(database), ..edge(&[2], 4, 0, 8.0, [4.1, 4.1]) },
        ],
    }
}

/// The load and one process on this host.
fn one_host(name: &str) -> Topology {
    let tier = Tier {
        processes: Processes {
            role: Role::Server,
            name: name.into(),
            pid: Some(812),
            processes: 1,
            on: None,
        },
        units: vec!["nginx.service".into()],
        cpu_us_per_request: Some(29.1),
        cores: 0.991,
        utilization: 0.991,
        ..Tier::default()
    };
    let address = Some(ServerAddress::Tcp { address: ([127, 0, 0, 1], 8080).into() });
    let (connections, outstanding) = (Some(4.0), Some([3.9, 3.9]));
    Topology {
        users: 4,
        nodes: vec![
            Node { is: NodeKind::Generator { name: None, users: 4 }, is_bottleneck: false },
            Node { is: NodeKind::Tier(Box::new(tier)), is_bottleneck: true },
        ],
        edges: vec![Edge { from: vec![0], to: 1, address, connections, outstanding }],
    }
}

fn base(steps: Vec<Step>) -> Run {
    let at = steps.get(3).or(steps.first()).map(|step| step.response_time_us).unwrap_or_default();
    Run {
        schema: SCHEMA.into(),
        target: "http://127.0.0.1:8080/report.pdf".into(),
        host: Host {
            cores: 2,
            memory_bytes: 8_327_512_064,
            kernel: "6.12.0-amd64".into(),
            processor: "AMD EPYC 7B13".into(),
        },
        server_hosts: Vec::new(),
        started: "2026-11-21T17:25:03Z".into(),
        elapsed_s: 41.3,
        version: "0.1.0".into(),
        seed: 42,
        load: LoadShape {
            threads: 1,
            generator_cpus: Some(vec![1]),
            system_cpus: Some(vec![0]),
            ..LoadShape::default()
        },
        sent_digest: None,
        name_lookup_us: None,
        requests: Vec::new(),
        proof: None,
        confirmation: None,
        profile: None,
        prepared: Vec::new(),
        verdict: Verdict {
            users_at_saturation: Some(4),
            users_at_saturation_ci: Some([3, 5]),
            knee_users: Some(3.46),
            bounded: true,
            throughput_max_per_s: 34118.7,
            throughput_max_ci_per_s: [33797.2, 34440.4],
            response_time_at_saturation_us: at,
            bottleneck: cpu_bottleneck(),
            inconclusive: Vec::new(),
            doubts: Vec::new(),
            next: None,
            next_limit: Some(NextLimit::Limit { resource: Identity::Generator, throughput_per_s: 52_000.0 }),
        },
        steps,
        topology: None,
        laws: Laws {
            little_holds: true,
            little_gap_max: 0.004,
            little_untested: Vec::new(),
            demands: Vec::new(),
        },
        models: Models::default(),
        warnings: Vec::new(),
    }
}

fn cpu_bottleneck() -> Bottleneck {
    Bottleneck {
        kind: ResourceKind::Cpu,
        holder: Words::default(),
        identity: named(NGINX),
        utilization: Some(0.991),
        demand_us: Some(29.1),
        evidence: Vec::new(),
        findings: told(&[
            "nginx worker (pid 812) is busy 99 % of one core; each request costs it 29.1 µs.",
            "At twice the users throughput is the same (34 094 req/s) and response time doubles.",
        ]),
        threads: None,
        runner_up: Some(resource(ResourceKind::Generator, "nstar", 0.38, 1.0, "cores")),
        at_a_time: None,
        alternatives: Vec::new(),
        confidence: Probability::new(0.97),
    }
}

fn threads(names: &[(&str, u64, f64)]) -> ThreadTime {
    let named = |(name, threads, share): &(&str, u64, f64)| NamedThreads {
        name: (*name).to_owned(),
        threads: *threads,
        share: *share,
        demand_us: Some(29.1 * share),
    };
    let listed: f64 = names.iter().map(|(_, _, share)| share).sum();
    ThreadTime { names: names.iter().map(named).collect(), rest: 1.0 - listed }
}

fn nothing_found(reasons: &[&str]) -> Verdict {
    Verdict {
        users_at_saturation: None,
        users_at_saturation_ci: None,
        knee_users: None,
        bounded: false,
        throughput_max_per_s: 0.0,
        throughput_max_ci_per_s: [0.0, 0.0],
        response_time_at_saturation_us: ResponseTime::default(),
        bottleneck: Bottleneck {
            kind: ResourceKind::None,
            holder: Words::default(),
            identity: None,
            utilization: None,
            demand_us: None,
            evidence: Vec::new(),
            findings: Vec::new(),
            threads: None,
            runner_up: None,
            at_a_time: None,
            alternatives: Vec::new(),
            confidence: Probability::new(0.5),
        },
        inconclusive: Vec::new(),
        doubts: doubts(reasons),
        next: None,
        next_limit: None,
    }
}

fn step(users: u32, rate: f64, mean: f64, p99: f64) -> Step {
    Step {
        users,
        elapsed_s: 4.0,
        warmup_s: 0.3,
        completed: (rate * 4.0) as u64,
        throughput_per_s: rate,
        throughput_ci_per_s: Some([rate * 0.99, rate * 1.01]),
        response_time_us: ResponseTime {
            mean,
            mean_ci: Some([mean * 0.985, mean * 1.015]),
            p50: mean * 0.93,
            p90: mean * 1.4,
            p95: Some(mean * 1.6),
            p99,
            p999: p99 * 1.7,
            max: p99 * 6.0,
            ..ResponseTime::default()
        },
        errors: ErrorCounts::new(),
        errors_per_s: ErrorRates::new(),
        steady: true,
        little_gap: 0.004 - f64::from(users % 7) * 0.001,
        received_bytes_per_s: rate * 1024.0,
        sent_bytes_per_s: 0.0,
        resources: Vec::new(),
        locks: None,
        generator: Generator { useful_work: 0.38, lag_us_p99: 12.0, run_queue_wait: 0.01, throttled: 0.0 },
        ..Step::default()
    }
}

fn resource(kind: ResourceKind, holder: &str, utilization: f64, capacity: f64, unit: &str) -> Resource {
    Resource {
        kind,
        holder: Words::default(),
        identity: named(holder),
        utilization,
        used: utilization * capacity,
        capacity,
        unit: Unit::from(unit.to_owned()),
    }
}

fn demand(kind: ResourceKind, holder: &str, demand_us: f64) -> Demand {
    Demand {
        kind,
        holder: Words::default(),
        identity: named(holder),
        demand_us,
        demand_ci_us: Some([demand_us * 0.985, demand_us * 1.015]),
        throughput_limit_per_s: 1e6 / demand_us,
    }
}

fn warn(kind: WarningKind, text: &str) -> Warning {
    Warning::new(kind, Cause::Told { text: text.to_owned() })
}

/// An identity of which only the name is known.
fn named(name: impl Into<String>) -> Option<Identity> {
    Identity::named(name)
}

/// Evidence of which only the sentences are known.
fn told(sentences: &[&str]) -> Vec<Evidence> {
    let told = |text: &&str| OutcomeEvidence::Told { text: (*text).to_owned() }.into();
    sentences.iter().map(told).collect()
}

fn doubts(sentences: &[&str]) -> Vec<Doubt> {
    sentences.iter().map(|text| Doubt::Told { text: (*text).to_owned() }).collect()
}
