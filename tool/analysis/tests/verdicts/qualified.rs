//! Answers that hold only in part, and those that are none.

use analysis::comparison::{LittleFinding, Tested, little};
use analysis::conclude::{Context, Provenance, RunKind};
use analysis::run::{
    Again, Cause, Doubt, GeneratorShare, LoopKind, ResourceKind, ServerUnwatched, Step, WarningKind,
};
use analysis::ticks::ErrorKind;

use super::lab::{Observed, Sure, conclude, server, sure, sweep};

#[test]
fn throughput_that_still_grows_has_no_bottleneck() {
    let found = sweep().users(&[1, 2, 4, 8]).tier(server("nginx").threads(3)).delay_us(5_000.0).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::None);
    assert!(!found.verdict.bounded && !found.verdict.is_conclusive());
    assert!(found.verdict.bottleneck.runner_up.is_some());
    assert!(found.warnings.iter().any(|warning| warning.kind == WarningKind::NotBounded));
}

/// Whoever asked for more users than there was time for is told of the time, and not to ask for more.
#[test]
fn throughput_that_grew_until_the_time_was_up_wants_more_time() {
    let mut lab = sweep().users(&[1, 2, 4, 8]).tier(server("nginx").threads(3)).delay_us(5_000.0);
    (lab.context.kind, lab.context.out_of_time) = (RunKind::Sweep { users_max: 64 }, true);
    let found = lab.conclude();
    assert_eq!(found.verdict.doubts, [Doubt::NeverBounded { users: 8, asked: Some(64) }]);
    let grew = Cause::StillGrew { users: 8, asked: Some(64) };
    assert!(found.warnings.iter().any(|warning| warning.cause == grew), "{:?}", found.warnings);
}

#[test]
fn one_load_is_not_asked_where_growth_ends() {
    let mut lab = sweep().users(&[8]).tier(server("nginx").cpus(&[0]));
    lab.context.kind = RunKind::Load;
    let found = lab.conclude();
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    assert!(!found.warnings.iter().any(|warning| warning.kind == WarningKind::NotBounded));
    assert_eq!(found.steps.len(), 1);
}

#[test]
fn a_sweep_of_one_step_does_not_show_where_growth_ends() {
    let found = sweep().users(&[8]).tier(server("nginx").cpus(&[0])).conclude();
    assert!(!found.verdict.is_conclusive() && !found.verdict.bounded);
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Unknown);
    assert_eq!(found.verdict.doubts, [Doubt::OnlyStep { users: 8 }]);
    let warned = found.warnings.iter().any(|warning| warning.kind == WarningKind::NotBounded);
    assert!(!warned, "nobody saw it grow");
}

#[test]
fn errors_at_saturation_make_it_inconclusive() {
    let found = sweep().tier(server("nginx").cpus(&[0])).errors(2, 0.3, ErrorKind::Status).conclude();
    assert!(!found.verdict.is_conclusive());
    assert!(
        found.verdict.inconclusive[0].contains("30 % of the requests failed"),
        "{:?}",
        found.verdict.inconclusive
    );
    assert_ne!(sure(&found), Sure::Direct);
}

#[test]
fn errors_beyond_saturation_are_only_warned_of() {
    let found = sweep().tier(server("nginx").cpus(&[0])).errors(64, 0.1, ErrorKind::TimedOut).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Cpu);
    assert!(found.verdict.is_conclusive(), "{:?}", found.verdict.inconclusive);
    let warning = found.warnings.iter().find(|warning| warning.kind == WarningKind::Errors).unwrap();
    assert!(warning.text.contains("first at 64 users") && warning.text.contains("timed out"), "{warning:?}");
}

#[test]
fn a_server_that_dies_before_saturation_is_not_said_to_saturate() {
    let lab = sweep().tier(server("nginx").cpus(&[0])).errors(2, 1.0, ErrorKind::Refused);
    let found = lab.conclude();
    assert!(!found.verdict.is_conclusive(), "{found:#?}");
    assert!(found.verdict.inconclusive.iter().any(|why| why.contains("stopped answering")), "{found:#?}");
}

#[test]
fn users_that_never_connected_are_not_taken_for_thinking() {
    let mut steps = sweep().tier(server("nginx").cpus(&[0])).observed();
    for Observed { step, .. } in &mut steps {
        step.measurement.mean_thinking_users = 0.5 * f64::from(step.users);
    }
    let found = conclude(&steps, &sweep().context);
    assert!(found.verdict.inconclusive.iter().any(|why| why.contains("idle")), "{found:#?}");
    assert!(found.warnings.iter().any(|warning| warning.text.contains("50 %")), "{:?}", found.warnings);
}

#[test]
fn our_own_want_of_ports_is_the_generator() {
    let found = sweep().tier(server("nginx").cpus(&[0])).errors(2, 0.5, ErrorKind::LocalLimit).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Generator);
    assert!(!found.verdict.is_conclusive());
}

#[test]
fn a_server_out_of_sight_is_unknown_but_its_saturation_stands() {
    let mut lab = sweep().tier(server("nginx").cpus(&[0])).hidden();
    lab.context.unwatched = Some(ServerUnwatched::NotLocal { address: ([10, 0, 0, 1], 80).into() });
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Unknown, "{found:#?}");
    assert_eq!(found.verdict.bottleneck.confidence.share(), 0.0, "nothing is claimed");
    assert!(found.verdict.users_at_saturation.is_some() && found.verdict.is_conclusive());
    assert!(found.warnings.iter().any(|warning| warning.kind == WarningKind::NotObserved));
}

#[test]
fn a_server_out_of_sight_does_not_hide_a_full_generator() {
    let lab = sweep()
        .tier(server("nginx").demand_us(2.0).cpus(&[0]))
        .generator(|tier| tier.demand_us(20.0))
        .hidden();
    let found = lab.conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Generator);
}

/// The server and most generators have room, but users of the one that is full wait for it.
#[test]
fn one_full_generator_of_several_is_named_and_others_may_be_idle() {
    let concluded = |busy: [f64; 3], lag_us: f64| {
        let mut steps = sweep().tier(server("nginx").demand_us(20.0).cpus(&[0])).observed();
        for Observed { step, .. } in &mut steps {
            let share = |(name, useful_work): (&str, f64)| GeneratorShare {
                name: name.into(),
                users: 1,
                completed: step.completed / 3,
                useful_work,
                lag_us_p99: if name == "two" { lag_us } else { 9.0 },
            };
            let generators = ["one", "two", "three"].into_iter().zip(busy).map(share).collect();
            step.generators = generators;
        }
        conclude(&steps, &sweep().context)
    };
    let found = concluded([0.2, 0.97, 0.3], 9.0);
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(bottleneck.kind, ResourceKind::Generator, "{found:#?}");
    assert!(!found.verdict.is_conclusive());
    assert!(bottleneck.evidence[0].contains("on two was busy 97 %"), "{:?}", bottleneck.evidence);
    let warning = found.warnings.iter().find(|one| one.kind == WarningKind::GeneratorBusy).unwrap();
    assert!(warning.text.contains("on two"), "{warning:?}");

    let idle = concluded([0.2, 0.3, 0.3], 9.0);
    assert_ne!(idle.verdict.bottleneck.kind, ResourceKind::Generator, "{idle:#?}");
    assert!(idle.warnings.iter().all(|one| one.kind != WarningKind::GeneratorBusy), "{:?}", idle.warnings);
}

#[test]
fn an_idle_server_out_of_sight_is_not_called_a_pool() {
    let found = sweep().tier(server("app").demand_us(100.0)).pool(4, 5_000.0).hidden().conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Unknown);
}

#[test]
fn late_handling_while_all_is_idle_is_the_generator() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0).lag_us(60_000.0);
    assert_eq!(lab.conclude().verdict.bottleneck.kind, ResourceKind::Generator);
}

#[test]
fn a_step_that_is_not_steady_at_saturation_is_inconclusive() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let mut steps = lab.observed();
    steps.iter_mut().for_each(|observed| observed.step.steady = false);
    let found = conclude(&steps, &lab.context);
    assert!(!found.verdict.is_conclusive());
    assert!(found.warnings.iter().any(|warning| warning.kind == WarningKind::NotSteady));
}

#[test]
fn a_server_that_was_slower_when_the_sweep_came_back_is_inconclusive() {
    for (share, conclusive) in [(0.97, true), (0.6, false)] {
        let mut steps = sweep().tier(server("nginx").cpus(&[0])).observed();
        let again = steps.iter_mut().map(|observed| &mut observed.step).find(|step| step.users == 8).unwrap();
        let of = |figure: f64| figure * share;
        again.again = Some(Again {
            elapsed_s: 2.0,
            throughput_per_s: of(again.throughput_per_s),
            throughput_ci_per_s: again.throughput_ci_per_s.map(|ci| ci.map(of)),
        });
        let found = conclude(&steps, &sweep().context);
        assert_eq!(found.verdict.is_conclusive(), conclusive, "{:?}", found.verdict.inconclusive);
        let said = found.verdict.inconclusive.iter().any(|why| why.contains("changed while it was measured"));
        assert_eq!(said, !conclusive, "{:?}", found.verdict.inconclusive);
    }
}

#[test]
fn littles_law_is_not_tested_where_most_requests_fail() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let mut steps = lab.observed();
    let found = |steps: &[Observed]| {
        let run = conclude(steps, &lab.context).into_run(Provenance::default());
        (little(&[&run]).unwrap(), run.laws)
    };
    assert!(matches!(found(&steps).0, LittleFinding::Holds { tested: Tested::EveryStep, .. }));

    let failed = steps[3].step.completed * 10;
    steps[3].step.errors.insert(ErrorKind::Reset, failed);
    let (finding, laws) = found(&steps);
    assert_eq!(laws.little_untested, [steps[3].step.users]);
    assert!(laws.little_holds, "{laws:?}");
    assert!(matches!(finding, LittleFinding::Holds { tested: Tested::WherePossible, .. }), "{finding:?}");

    steps.iter_mut().for_each(|observed| observed.step.steady = false);
    assert_eq!(found(&steps).0, LittleFinding::Untested);
}

#[test]
fn an_open_loop_has_no_users_for_littles_law() {
    let mut lab = sweep().tier(server("nginx").cpus(&[0]));
    lab.context.load.loop_kind = LoopKind::Open;
    let mut steps = lab.observed();
    steps[3].step.errors.insert(ErrorKind::Reset, u64::MAX);
    assert_eq!(conclude(&steps, &lab.context).laws.little_untested, [0u32; 0]);
}

#[test]
fn broken_littles_law_is_warned_of() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let mut steps = lab.observed();
    steps[3].step.response_time_us.mean *= 1.5;
    let found = conclude(&steps, &lab.context);
    assert!(!found.laws.little_holds);
    assert!((found.laws.little_gap_max - 0.5).abs() < 0.02, "{:?}", found.laws);
    let warning = found.warnings.iter().find(|warning| warning.kind == WarningKind::Little).unwrap();
    assert!(warning.text.contains("at 8 users"), "{warning:?}");
}

#[test]
fn nothing_completed() {
    let steps = [Observed { step: Step { users: 1, ..Step::default() }, ..Observed::default() }];
    let found = conclude(&steps, &Context::default());
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Unknown);
    assert!(!found.verdict.is_conclusive());
    let run = found.into_run(Provenance::default());
    assert!(!run.completed_any());
    assert_eq!(conclude(&[], &Context::default()).steps.len(), 0);
}

#[test]
fn demands_are_regressed_and_predict() {
    let found = sweep().tier(server("nginx").cpus(&[0])).conclude();
    let demand = found.laws.demands.iter().find(|demand| demand.holder == "nginx (pid 812)").unwrap();
    assert!((demand.demand_us - 30.0).abs() < 0.3, "{demand:?}");
    assert!((demand.throughput_limit_per_s - 33_333.0).abs() < 400.0, "{demand:?}");
    let predicted = found.models.mva.unwrap();
    for (step, predicted) in found.steps.iter().zip(predicted) {
        assert_eq!(step.users, predicted.users);
        let error = (predicted.throughput_per_s - step.throughput_per_s).abs() / step.throughput_per_s;
        assert!(error < 0.05, "{} users: {error}", step.users);
    }
}

#[test]
fn a_throughput_near_the_generators_ceiling_is_distrusted_even_where_it_seemed_idle() {
    let lab = |ceiling_per_s| {
        let mut lab = sweep().tier(server("nginx").cpus(&[0]));
        lab.context.generator_ceiling_per_s = ceiling_per_s;
        lab.conclude()
    };
    let throughput_max_per_s = lab(None).verdict.throughput_max_per_s;
    let warns = |ceiling_per_s| {
        let found = lab(Some(ceiling_per_s));
        found.warnings.iter().any(|warning| warning.kind == WarningKind::GeneratorBusy)
    };
    assert!(warns(throughput_max_per_s * 1.1));
    assert!(!warns(throughput_max_per_s * 2.0));
    assert!(!warns(0.0));
}

#[test]
fn users_that_got_no_answer_at_n_star_leave_no_conclusion() {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let mut steps = lab.observed();
    for Observed { step, .. } in &mut steps {
        // Half of the users are stuck: the others' response times account for half of N.
        let time = &mut step.response_time_us;
        time.mean *= 0.5;
        time.mean_ci = time.mean_ci.map(|ends| ends.map(|end| 0.5 * end));
    }
    let found = conclude(&steps, &lab.context).verdict;
    assert!(found.inconclusive.iter().any(|why| why.contains("Little's law is off by 50 %")), "{found:#?}");
}
