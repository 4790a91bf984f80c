//! Runs with a profile: where the processor time of several tiers goes, and where their threads sleep.

use analysis::counters::Role;
use analysis::run::*;

use super::{cpu, long};

/// A function's name as C++ makes them.
const CPP: &str = "std::_Hashtable<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, \
     std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, \
     shop::cache::Entry<shop::Invoice, 64ul>*>, std::allocator<std::pair<std::__cxx11::basic_string<char, \
     std::char_traits<char>, std::allocator<char> > const, shop::cache::Entry<shop::Invoice, 64ul>*> >, \
     std::__detail::_Select1st>::_M_find_before_node(unsigned long, std::__cxx11::basic_string<char, \
     std::char_traits<char>, std::allocator<char> > const&, unsigned long) const";
const SCRIPT: &str = "</title></svg></script><script>document.title='owned'</script>";
const QUOTES: &str = "\" onfocus=\"document.title='owned'\" ' & {{ 7*7 }} {% raw %}\x1b[2J\u{202e}";

/// Nginx that compresses, a C++ server with deep stacks and hostile names, and JavaScript on another host.
pub fn profiled() -> Run {
    let profile = Profile {
        users: 4,
        elapsed_s: 5.0,
        hertz: 99,
        throughput_share: Some(0.992),
        tiers: vec![nginx(), deep(), javascript()],
        troubles: vec![ProfileTrouble::WithoutKernel { paranoid: Some(2) }],
        off_cpu: Some(OffCpu {
            elapsed_s: 5.0,
            looks: 480,
            tiers: vec![waiting(), hostile_waits()],
            troubles: vec![OffCpuTrouble::OnHost {
                host: "web".into(),
                trouble: Box::new(OffCpuTrouble::StacksRefused),
            }],
        }),
    };
    Run { profile: Some(profile), ..cpu() }
}

/// Three parts are of functions whose names hold `deflate`.
fn nginx() -> TierProfile {
    let nameless = Function { offset: Some(0x5000), ..function("", "libz.so.1.3.1") };
    let functions = vec![
        function("main", "nginx"),
        function("ngx_worker_process_cycle", "nginx"),
        function("ngx_process_events_and_timers", "nginx"),
        function("ngx_http_gzip_body_filter", "nginx"),
        function("deflate", "libz.so.1.3.1"),
        function("deflate_slow", "libz.so.1.3.1"),
        function("longest_match", "libz.so.1.3.1"),
        nameless,
        in_kernel("entry_SYSCALL_64_after_hwframe"),
        in_kernel("tcp_sendmsg"),
    ];
    let stacks = vec![
        stack(&[0, 1, 2, 3, 4, 5], 200),
        stack(&[0, 1, 2, 8, 9], 150),
        stack(&[0, 1, 2, 3, 4, 5, 6], 60),
        stack(&[0, 1, 2, 4], 40),
        stack(&[0, 1], 21),
        stack(&[0, 1, 2, 3, 4, 7], 20),
    ];
    let hottest = HotFunction {
        function: functions[5].clone(),
        share: 0.407,
        share_ci: [0.365, 0.451],
        caller: Some(functions[4].clone()),
    };
    TierProfile {
        processes: processes(Role::Server, "nginx worker", Some(812), None),
        samples: 491,
        cores: 0.991,
        kernel_share: Some(0.305),
        hottest: Some(hottest),
        functions,
        stacks,
        ..TierProfile::default()
    }
}

/// Calls sixty deep.
fn deep() -> TierProfile {
    let functions = vec![
        function("clone3", "libc.so.6"),
        function(SCRIPT, "files"),
        function(QUOTES, CPP),
        function(CPP, "files"),
    ];
    let deep: Vec<u32> = std::iter::once(0).chain((0..60).map(|depth| 1 + depth % 3)).collect();
    let hottest = HotFunction {
        function: functions[1].clone(),
        share: 0.62,
        share_ci: [0.57, 0.67],
        caller: Some(functions[2].clone()),
    };
    TierProfile {
        processes: processes(Role::Downstream, "files", None, None),
        samples: 320,
        cores: 0.65,
        hottest: Some(hottest),
        functions,
        stacks: vec![stack(&deep, 200), stack(&deep[..30], 60), stack(&[0, 3, 2, 1], 40), stack(&[3], 20)],
        cut_short: Some(CutShort { share: 0.0625, untold: 20, ..CutShort::default() }),
        ..TierProfile::default()
    }
}

fn javascript() -> TierProfile {
    let functions = vec![
        function("node::Start(int, char**)", "node"),
        function("JS:*slowSquares n.js:1:21", "[jit]"),
        function("JS:*圧縮する関数 n.js:7:3", "[jit]"),
        Function { kernel: true, ..Function::default() },
    ];
    TierProfile {
        processes: processes(Role::Downstream, "node", Some(77), Some("web")),
        samples: 60,
        cores: 0.12,
        functions,
        stacks: vec![stack(&[0, 1], 30), stack(&[0, 2], 20), stack(&[0, 2, 3], 9), stack(&[0, 2, 9], 1)],
        ..TierProfile::default()
    }
}

fn waiting() -> TierOffCpu {
    TierOffCpu {
        processes: processes(Role::Server, "nginx worker", Some(812), None),
        threads: 1.0,
        samples: 480,
        asleep_share: 0.4,
        waits: vec![
            wait(RunState::Running, None, None, 0.6),
            wait(RunState::Sleeping, Some("epoll_wait"), Some("ep_poll"), 0.3),
            wait(RunState::Uninterruptible, Some("pread64"), Some("folio_wait_bit_common"), 0.1),
        ],
        functions: vec![in_kernel("do_syscall_64"), in_kernel("ep_poll"), in_kernel("folio_wait_bit_common")],
        stacks: vec![stack(&[0, 1], 144), stack(&[0, 2], 48)],
        ..TierOffCpu::default()
    }
}

fn hostile_waits() -> TierOffCpu {
    TierOffCpu {
        processes: processes(Role::Downstream, SCRIPT, None, Some("web")),
        threads: 12.0,
        samples: 480,
        asleep_share: 1.0,
        waits: vec![
            wait(RunState::Sleeping, Some(QUOTES), Some(SCRIPT), 0.7),
            wait(RunState::Stopped, Some(CPP), None, 0.3),
        ],
        ..TierOffCpu::default()
    }
}

/// The profiled run with every name made harmless, and of the same shape.
pub fn tame(run: &mut Run) {
    let profile = run.profile.as_mut().expect("a profile");
    for tier in &mut profile.tiers {
        tier.processes.name = "x".into();
        tier.functions.iter_mut().for_each(tame_function);
        let hottest = tier.hottest.iter_mut();
        let named = hottest.flat_map(|hot| std::iter::once(&mut hot.function).chain(&mut hot.caller));
        named.for_each(tame_function);
    }
    for tier in profile.off_cpu.iter_mut().flat_map(|seen| &mut seen.tiers) {
        tier.processes.name = "x".into();
        tier.functions.iter_mut().for_each(tame_function);
        let words = tier.waits.iter_mut().flat_map(|wait| wait.call.iter_mut().chain(&mut wait.wchan));
        words.for_each(|word| *word = "x".into());
    }
}

fn tame_function(of: &mut Function) {
    of.name = "x".into();
    of.module = "x".into();
}

/// More than a page can hold: nine tiers with many deep stacks, names that grow sixfold when they are escaped, and a long
/// ladder.
pub fn largest() -> Run {
    const TIERS: u32 = 9;
    let name = |number: u32| format!("{number}{}", "\"".repeat(250));
    let mut functions: Vec<_> = (0..300).map(|number| function(&name(number), &name(number))).collect();
    functions[0].name = "main".into();
    let calls = |number: u32| -> Vec<u32> {
        std::iter::once(0).chain((0..40).map(|depth| 1 + (number * 7 + depth) % 299)).collect()
    };
    let stacks: Vec<_> = (0..200).map(|number| stack(&calls(number), 1 + u64::from(number % 5))).collect();
    let of = |number: u32| processes(Role::Server, &"\"".repeat(15), Some(number), None);
    let running = |number: u32| TierProfile {
        processes: of(number),
        samples: 600,
        cores: 0.5,
        functions: functions.clone(),
        stacks: stacks.clone(),
        ..TierProfile::default()
    };
    let waits: Vec<_> = (0..24)
        .map(|number| wait(RunState::Sleeping, Some(&name(number)), Some(&name(number)), 0.04))
        .collect();
    let asleep = |number: u32| TierOffCpu {
        processes: of(number),
        threads: 24.0,
        samples: 600,
        asleep_share: 0.96,
        waits: waits.clone(),
        functions: functions.clone(),
        stacks: stacks.clone(),
        ..TierOffCpu::default()
    };
    let off_cpu = OffCpu { tiers: (0..TIERS).map(asleep).collect(), ..OffCpu::default() };
    let profile =
        Profile { tiers: (0..TIERS).map(running).collect(), off_cpu: Some(off_cpu), ..Profile::default() };
    let ladder = long().steps;
    let steps = (1..=60).zip(ladder.iter().cycle()).map(|(users, step)| Step { users, ..step.clone() });
    Run { profile: Some(profile), steps: steps.collect(), ..long() }
}

fn function(name: &str, module: &str) -> Function {
    Function { name: name.into(), module: module.into(), ..Function::default() }
}

fn in_kernel(name: &str) -> Function {
    Function { kernel: true, ..function(name, "kernel") }
}

fn stack(calls: &[u32], samples: u64) -> Stack {
    Stack { calls: calls.into(), samples }
}

fn wait(state: RunState, call: Option<&str>, wchan: Option<&str>, share: f64) -> Wait {
    let samples = (share * 480.0) as u64;
    Wait { state, call: call.map(str::to_owned), wchan: wchan.map(str::to_owned), samples, share }
}

fn processes(role: Role, name: &str, pid: Option<u32>, on: Option<&str>) -> Processes {
    let processes = if pid.is_some() { 1 } else { 4 };
    Processes { role, name: name.into(), pid, processes, on: on.map(str::to_owned) }
}
