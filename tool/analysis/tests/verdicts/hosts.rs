//! A generator on one host, and servers on others: whose processors are full, and whose are not.

use analysis::conclude::{Conclusion, Context, RunKind};
use analysis::counters::{Counters, Cpu, Role};
use analysis::resources::{Observer, Usage, usage};
use analysis::run::{Identity, LoadShape, ResourceKind, Step, WarningKind};

use super::lab::{Lab, Observed, conclude_steps, server, sweep};

fn on(name: &str) -> Observer {
    Observer { place: Some(name.into()), machine: Some(name.into()), is_second: false }
}

/// What is left of a sample without some processes, and with the processors so busy.
fn part(sample: &Counters, keeps: impl Fn(Role) -> bool, busy: f64) -> Counters {
    let cpu = |number| {
        let user_us = (busy * sample.at_us as f64) as u64;
        Cpu { number, user_us, idle_us: sample.at_us - user_us, ..Cpu::default() }
    };
    let processes = sample.processes.iter().filter(|process| keeps(process.role)).cloned().collect();
    Counters { cpus: (0..4).map(cpu).collect(), processes, ..sample.clone() }
}

/// A step whose generator is on a host of its own, with processors so busy.
fn apart(observed: &Observed, busy_here: f64) -> Step {
    let window = observed.step.measurement.window;
    let generator = |role| role == Role::Generator;
    let here: Vec<_> = observed.counters.iter().map(|sample| part(sample, generator, busy_here)).collect();
    let here = Usage { disks: Vec::new(), links: Vec::new(), ..usage(&here, &[], window) };
    let there = usage(&observed.counters, &[], window).seen_by(&on("web"));
    Step { usage: here.joined_with(there), ..observed.step.clone() }
}

fn concluded(lab: &Lab, busy_here: f64) -> Conclusion {
    let steps = lab.observed().iter().map(|observed| apart(observed, busy_here)).collect();
    let context = Context {
        load: LoadShape { threads: 1, ..LoadShape::default() },
        kind: RunKind::Sweep { users_max: 64 },
        ..Context::default()
    };
    conclude_steps(steps, &context)
}

fn warned(found: &Conclusion, kind: WarningKind) -> bool {
    found.warnings.iter().any(|warning| warning.kind == kind)
}

#[test]
fn a_full_processor_elsewhere_is_named_with_its_host() {
    let found = concluded(&sweep().tier(server("nginx").cpus(&[0])), 0.1);
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (bottleneck.kind, &*bottleneck.holder),
        (ResourceKind::Cpu, "nginx on web (pid 812)"),
        "{found:#?}"
    );
    let hosts = |name: Option<&str>| {
        let host = Some(Identity::Host { on: name.map(Into::into) });
        found.steps[0].resources.iter().filter(|resource| resource.identity == host).count()
    };
    assert_eq!((hosts(None), hosts(Some("web"))), (1, 1));
}

/// Both may use processor 3, and it is not the same one.
#[test]
fn processors_of_the_same_number_on_two_hosts_are_not_shared() {
    let lab = sweep().tier(server("nginx").cpus(&[3]));
    let beside = lab.clone().conclude();
    assert!(warned(&beside, WarningKind::SharedCores), "beside each other they share it: {beside:#?}");
    let found = concluded(&lab, 0.2);
    assert!(!warned(&found, WarningKind::SharedCores), "{:?}", found.warnings);
    assert_eq!(&*found.verdict.bottleneck.holder, "nginx on web (pid 812)", "{:?}", found.verdict);
}

/// The processors of the generator's host are full of other work, which is nothing to the server.
#[test]
fn other_work_beside_the_generator_is_not_the_servers() {
    let lab = sweep().tier(server("app").threads(4).demand_us(10.0)).pool(4, 2_000.0);
    let quiet = concluded(&lab, 0.1);
    let bottleneck = &quiet.verdict.bottleneck;
    assert_ne!(bottleneck.identity, Some(Identity::Host { on: None }), "{bottleneck:#?}");
    let full = concluded(&sweep().tier(server("nginx").cpus(&[0])), 0.97);
    assert_eq!(&*full.verdict.bottleneck.holder, "nginx on web (pid 812)", "{:#?}", full.verdict);
}

#[test]
fn one_machine_seen_twice_has_its_processors_once() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let observed = &lab.observed()[0];
    let window = observed.step.measurement.window;
    let seen = || usage(&observed.counters, &[], window);
    let container = Observer { place: Some("web".into()), machine: None, is_second: true };
    let joined = seen().joined_with(seen().seen_by(&container));
    assert_eq!((joined.hosts.len(), joined.disks.len()), (1, seen().disks.len()));
    assert_eq!(joined.groups.iter().filter(|group| group.role == Role::Generator).count(), 1);
    let places: Vec<_> =
        joined.tiers().map(|group| (group.on.as_deref(), group.machine.as_deref())).collect();
    assert_eq!(places, [(None, None), (Some("web"), None)]);
    assert_eq!(joined.tier_hosts().count(), 1);
}

#[test]
fn an_observer_that_says_nothing_any_more_leaves_the_rest_as_it_is() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let observed = &lab.observed()[0];
    let seen = usage(&observed.counters, &[], observed.step.measurement.window);
    assert_eq!(seen.clone().joined_with(Usage::default().seen_by(&on("web"))), seen);
}
