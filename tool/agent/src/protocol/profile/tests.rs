//! What is sampled comes back as it was, what is too long is cut, and what cannot be is not believed.

use analysis::run::{
    CutShort, Function, HotFunction, OffCpu, OffCpuTrouble, Processes, ProfileTrouble, RunState, Stack,
    TierOffCpu, TierProfile, Wait,
};
use proptest::prelude::*;

use super::bounds::{NAME_CHARS_MAX, STACKS_MAX, TROUBLES_MAX, WAIT_CHARS_MAX, WAITS_MAX, cut};
use super::*;

/// A profile of one tier with something of every kind in it.
pub(in crate::protocol) fn host() -> HostProfile {
    let function = |name: &str, offset, kernel| {
        let module = "libz.so.1".into();
        Function { name: name.into(), module, offset, kernel }
    };
    let functions = vec![function("deflate", None, false), function("", Some(0x5000), true)];
    let stack = |calls: &[u32], samples| Stack { calls: calls.into(), samples };
    let tier = TierProfile {
        samples: 10,
        cores: 0.9,
        kernel_share: Some(0.5),
        hottest: Some(HotFunction {
            function: functions[1].clone(),
            share: 0.7,
            share_ci: [0.6, 0.8],
            caller: Some(functions[0].clone()),
        }),
        functions: functions.clone(),
        stacks: vec![stack(&[0, 1], 7), stack(&[0], 2)],
        left_out: 1,
        cut_short: Some(CutShort { share: 0.3, untold: 1, too_deep: 2, not_in_time: 3 }),
        ..TierProfile::default()
    };
    let wait = Wait {
        state: RunState::Uninterruptible,
        call: Some("fsync".into()),
        wchan: Some("io_schedule".into()),
        samples: 8,
        share: 0.4,
    };
    let asleep = TierOffCpu {
        threads: 8.5,
        samples: 20,
        asleep_share: 0.6,
        waits: vec![wait],
        left_out: 12,
        functions: functions[1..].to_vec(),
        stacks: vec![stack(&[0], 8)],
        stacks_left_out: 4,
        ..TierOffCpu::default()
    };
    HostProfile {
        elapsed_s: 5.01,
        hertz: 99,
        by_thread: true,
        tiers: vec![tier],
        troubles: every_trouble(),
        off_cpu: Some(OffCpu {
            elapsed_s: 4.9,
            looks: 400,
            tiers: vec![asleep],
            troubles: vec![
                OffCpuTrouble::CallsRefused { ptrace_scope: Some(1) },
                OffCpuTrouble::StacksRefused,
            ],
        }),
    }
}

/// Every trouble that an agent may have.
fn every_trouble() -> Vec<ProfileTrouble> {
    vec![
        ProfileTrouble::NotBuilt,
        ProfileTrouble::Refused { paranoid: Some(3) },
        ProfileTrouble::WithoutKernel { paranoid: None },
        ProfileTrouble::KernelUnnamed,
        ProfileTrouble::Unavailable { os_error: 38 },
        ProfileTrouble::TooManyThreads { left_out: 4 },
        ProfileTrouble::NoRoom { left_out: 2, of: 8 },
        ProfileTrouble::Lost { samples: 5 },
        ProfileTrouble::FramePointersAlone,
        ProfileTrouble::Ended { processes: 6 },
        ProfileTrouble::NotHere,
    ]
}

fn asked() -> Tier {
    let processes = Processes { name: "nginx".into(), ..Processes::default() };
    Tier { processes, pids: [812].into() }
}

/// What an honest agent sends of it.
fn sent(of: HostProfile) -> HostProfile {
    serde_json::from_str(&Profiled::new(1, of).json).expect("it was just written")
}

/// What is believed of this text.
fn believed(json: impl Into<String>) -> Option<HostProfile> {
    Profiled { number: 1, json: json.into() }.into_host(&[asked()])
}

/// A tier with so many stacks, each with a function of its own.
fn tier(count: u32, name: &str) -> TierProfile {
    let function = |number: u32| Function { name: format!("{number}{name}"), ..Function::default() };
    let stack = |number: u32| Stack { calls: vec![0, number], samples: u64::from(count - number) };
    let stacks: Vec<Stack> = (0..count).map(stack).collect();
    let samples = stacks.iter().map(|stack| stack.samples).sum();
    TierProfile { samples, functions: (0..count).map(function).collect(), stacks, ..TierProfile::default() }
}

fn told_samples(of: &TierProfile) -> u64 {
    of.stacks.iter().map(|stack| stack.samples).sum::<u64>() + of.left_out
}

#[test]
fn a_profile_comes_back_as_it_was_with_the_tiers_that_were_asked_for() {
    let mut expected = host();
    expected.tiers[0].processes = asked().processes;
    expected.off_cpu.as_mut().expect("threads were seen").tiers[0].processes = asked().processes;
    let told = Profiled::new(3, host());
    assert_eq!(told.number, 3);
    assert_eq!(told.into_host(&[asked()]), Some(expected));
}

#[test]
fn an_answer_that_is_short_enough_is_sent_as_it_is() {
    assert_eq!(sent(host()), host());
    let many = HostProfile { tiers: vec![tier(100, "f")], ..HostProfile::default() };
    assert_eq!(sent(many.clone()), many);
}

#[test]
fn the_rarest_stacks_are_left_out_of_an_answer_that_is_too_long() {
    let long = "x".repeat(NAME_CHARS_MAX);
    let told = Profiled::new(1, HostProfile { tiers: vec![tier(1_000, &long); 8], ..HostProfile::default() });
    let bytes = told.json.len();
    assert!(bytes <= PROFILE_BYTES_MAX && bytes > PROFILE_BYTES_MAX / 4, "{bytes} bytes");
    let tiers = vec![asked(); 8];
    for tier in told.into_host(&tiers).expect("it is honest").tiers {
        assert_eq!(tier.stacks.first().map(|stack| stack.samples), Some(1_000), "the most frequent stay");
        assert_eq!(told_samples(&tier), tier.samples, "none is forgotten");
        assert_eq!(tier.functions.len(), tier.stacks.len(), "all that stacks refer to, and no other");
    }
}

#[test]
fn an_answer_of_the_largest_host_fits_without_its_stacks() {
    let wait = Wait { call: Some("c".repeat(99)), wchan: Some("w".repeat(99)), ..Wait::default() };
    let asleep = TierOffCpu { waits: vec![wait; 99], ..TierOffCpu::default() };
    let function = || Function { name: "n".repeat(999), module: "m".repeat(999), ..Function::default() };
    let hottest = HotFunction { function: function(), caller: Some(function()), ..HotFunction::default() };
    let host = HostProfile {
        tiers: vec![TierProfile { hottest: Some(hottest), ..TierProfile::default() }; 99],
        troubles: vec![ProfileTrouble::NotHere; 99],
        off_cpu: Some(OffCpu {
            tiers: vec![asleep; 99],
            troubles: vec![OffCpuTrouble::StacksRefused; 99],
            ..OffCpu::default()
        }),
        ..HostProfile::default()
    };
    let told = Profiled::new(1, host);
    assert!(told.json.len() < PROFILE_BYTES_MAX, "{} bytes", told.json.len());
    let told = told.into_host(&vec![asked(); TIERS_MAX]).expect("it is honest");
    let seen = told.off_cpu.as_ref().expect("threads were seen");
    assert_eq!((told.tiers.len(), seen.tiers.len()), (TIERS_MAX, TIERS_MAX));
    assert_eq!((told.troubles.len(), seen.troubles.len()), (TROUBLES_MAX, TROUBLES_MAX));
    assert_eq!(seen.tiers[0].waits.len(), WAITS_MAX);
}

#[test]
fn more_stacks_than_a_run_keeps_are_cut_and_names_made_fit_to_be_shown() {
    let odd = "\x1b[31m".repeat(99);
    let hottest = HotFunction { function: tier(1, &odd).functions.remove(0), ..HotFunction::default() };
    let many = TierProfile { hottest: Some(hottest), ..tier(2_500, &odd) };
    let wait = Wait { call: Some(odd.clone()), wchan: Some(odd), ..Wait::default() };
    let asleep = TierOffCpu { waits: vec![wait; 99], ..TierOffCpu::default() };
    let off_cpu = Some(OffCpu { tiers: vec![asleep], ..OffCpu::default() });
    let endless = HostProfile { tiers: vec![many], off_cpu, ..HostProfile::default() };
    let told = cut(endless);
    let [tier] = &told.tiers[..] else { panic!("{} tiers", told.tiers.len()) };
    assert_eq!((tier.stacks.len(), tier.functions.len()), (STACKS_MAX, STACKS_MAX));
    assert_eq!(told_samples(tier), tier.samples);
    let hottest = tier.hottest.as_ref().expect("a function");
    for name in [&hottest.function.name, &tier.functions[0].name] {
        assert!(name.chars().count() == NAME_CHARS_MAX && !name.contains(char::is_control), "{name:?}");
    }
    let waits = &told.off_cpu.as_ref().expect("threads were seen").tiers[0].waits;
    assert_eq!(waits.len(), WAITS_MAX);
    for name in waits.iter().flat_map(|wait| wait.call.iter().chain(&wait.wchan)) {
        assert!(name.chars().count() == WAIT_CHARS_MAX && !name.contains(char::is_control), "{name:?}");
    }
}

#[test]
fn stacks_of_sleepers_that_are_left_out_are_counted() {
    let TierProfile { functions, stacks, samples, .. } = tier(2_500, "f");
    let asleep = TierOffCpu { functions, stacks, ..TierOffCpu::default() };
    let off_cpu = Some(OffCpu { tiers: vec![asleep], ..OffCpu::default() });
    let told = cut(HostProfile { off_cpu, ..HostProfile::default() });
    let asleep = &told.off_cpu.as_ref().expect("threads were seen").tiers[0];
    let kept: u64 = asleep.stacks.iter().map(|stack| stack.samples).sum();
    assert_eq!((asleep.stacks.len(), kept + asleep.stacks_left_out), (STACKS_MAX, samples));
}

#[test]
fn what_is_received_is_cut_before_it_is_kept() {
    let mut lies = host();
    lies.tiers[0].functions[0].name = "\x1b[2J".repeat(999);
    lies.tiers[0].processes.name = "\x1b[2J".into();
    lies.troubles = vec![ProfileTrouble::NotHere; 99];
    lies.off_cpu.as_mut().expect("threads were seen").troubles.push(OffCpuTrouble::Unknown);
    let told = believed(serde_json::to_string(&lies).expect("JSON")).expect("no number of it is wrong");
    let name = &told.tiers[0].functions[0].name;
    assert!(name.chars().count() == NAME_CHARS_MAX && !name.contains(char::is_control), "{name:?}");
    assert_eq!(told.tiers[0].processes, asked().processes, "as it was called by whoever asked");
    assert_eq!(told.troubles.len(), TROUBLES_MAX);
    assert_eq!(told.off_cpu.expect("threads were seen").troubles.len(), 2);
}

#[test]
fn troubles_of_whoever_asks_are_not_an_agents() {
    let nested = |trouble| ProfileTrouble::OnHost { host: "web".into(), trouble: Box::new(trouble) };
    let not_answered = ProfileTrouble::NotAnswered { waited_s: None };
    let troubles = vec![
        ProfileTrouble::Idle,
        ProfileTrouble::Malformed,
        ProfileTrouble::NotHere,
        nested(not_answered.clone()),
        not_answered,
    ];
    let lies = HostProfile { troubles, ..HostProfile::default() };
    assert_eq!(sent(lies.clone()).troubles, [ProfileTrouble::NotHere]);
    let told = believed(serde_json::to_string(&lies).expect("JSON")).expect("no number of it is wrong");
    assert_eq!(told.troubles, [ProfileTrouble::NotHere]);
}

#[test]
fn a_text_that_is_no_profile_is_not_believed() {
    let json = Profiled::new(1, host()).json;
    assert!(believed(json.clone()).is_some());
    assert_eq!(believed(""), None);
    assert_eq!(believed("{}"), None);
    assert_eq!(believed(format!("{json}{json}")), None, "one and another");
    assert_eq!(believed(json.replace("0.9", "null")), None);
    assert_eq!(believed(json.replace("0.9", "1e999")), None);
    assert_eq!(believed(json.replace("\"samples\":10,", "\"samples\":-10,")), None);
    let spaces = " ".repeat(PROFILE_BYTES_MAX);
    assert_eq!(believed(format!("{json}{spaces}")), None, "longer than any may be");
}

#[test]
fn a_text_that_is_nested_without_end_does_no_harm() {
    let deep = 200_000;
    assert_eq!(believed("[".repeat(deep)), None);
    let nested = r#"{"type":"on-host","host":"web","trouble":"#.repeat(deep / 10);
    let opened = r#"{"elapsed_s":1,"hertz":99,"by_thread":false,"tiers":[],"troubles":["#;
    assert_eq!(believed(format!("{opened}{nested}")), None);
    // Of something that no profile has.
    assert_eq!(believed(format!(r#"{{"more":{}"#, "[".repeat(deep))), None);
}

/// Whether something that is changed like this is believed.
fn is_believed(change: impl FnOnce(&mut HostProfile)) -> bool {
    let mut told = host();
    change(&mut told);
    believed(serde_json::to_string(&told).expect("JSON")).is_some()
}

fn seen(told: &mut HostProfile) -> &mut TierOffCpu {
    &mut told.off_cpu.as_mut().expect("threads were seen").tiers[0]
}

#[test]
fn what_cannot_be_is_not_believed() {
    assert!(is_believed(|_| ()) && is_believed(|told| told.tiers.clear()));
    assert!(!is_believed(|told| told.tiers.push(TierProfile::default())), "more tiers than there are");
    assert!(!is_believed(|told| told.tiers[0].stacks[0].calls = vec![9]), "a function that is not there");
    assert!(!is_believed(|told| told.tiers[0].stacks[0].calls = vec![0; 600]), "a call without an end");
    assert!(!is_believed(|told| told.tiers[0].stacks[0].samples = 11), "more samples than there are");
    assert!(!is_believed(|told| told.tiers[0].stacks[0].samples = u64::MAX));
    assert!(!is_believed(|told| told.tiers[0].cores = f64::INFINITY));
    assert!(!is_believed(|told| told.tiers[0].cores = -0.1));
    assert!(!is_believed(|told| told.tiers[0].kernel_share = Some(1.5)));
    assert!(!is_believed(|told| told.tiers[0].hottest.as_mut().expect("one").share_ci[1] = 1.1));
    assert!(!is_believed(|told| told.tiers[0].cut_short.as_mut().expect("one").share = -0.1));
    assert!(!is_believed(|told| told.elapsed_s = f64::NAN));
    assert!(!is_believed(|told| told.elapsed_s = -1.0));
    assert!(!is_believed(|told| told.hertz = u32::MAX));
    assert!(!is_believed(|told| seen(told).stacks[0].calls = vec![1]));
    assert!(!is_believed(|told| seen(told).threads = -1.0));
    assert!(!is_believed(|told| seen(told).asleep_share = 7.0));
    assert!(!is_believed(|told| seen(told).waits[0].share = f64::NAN));
    assert!(!is_believed(|told| told.off_cpu.as_mut().expect("it").tiers.push(TierOffCpu::default())));
}

proptest! {
    /// Whatever is believed can be drawn and written.
    #[test]
    fn a_changed_profile_is_sound_or_not_believed(at in any::<prop::sample::Index>(), with in any::<char>()) {
        let mut text: Vec<char> = Profiled::new(1, host()).json.chars().collect();
        let at = at.index(text.len());
        text[at] = with;
        if let Some(told) = believed(text.into_iter().collect::<String>()) {
            prop_assert!(soundness::is_sound(&told, 1));
            prop_assert_eq!(sent(told.clone()).troubles, told.troubles);
            let mut functions = told.tiers.iter().flat_map(|tier| &tier.functions);
            prop_assert!(functions.all(|of| !of.name.contains(char::is_control)));
        }
    }
}
