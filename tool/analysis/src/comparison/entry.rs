//! The finished trials of one variant on one workload, as one entry.

use std::{cmp::Ordering, mem::discriminant};

use super::by_round::{percentiles, tiers};
use super::tier::{cpu_us_per_request, is_host, is_tier};
use super::users::by_users;
use super::{Entry, Limit};
use crate::confirmation::carry;
use crate::run::{
    Cause, Confirmation, Doubt, Profile, Resource, ResourceKind, Run, Warning, WarningKind, Words,
};
use crate::statistics::NORMAL_95;
use crate::statistics::pooling::{Between, Estimate, pooled};
use crate::thresholds::DISTURBING;
use crate::ticks::{ErrorCounts, add_errors, failed_share, failures, many_failed};

/// A finished trial: one sweep or load of a variant on a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Which workload, by name; empty if there is only one.
    pub work: String,
    /// Which variant, by name; empty if nothing is varied.
    pub variant: String,
    /// The round in which it was made, from 0.
    pub round: u32,
    /// What was found.
    pub run: Run,
}

/// Pools the trials of a variant on a workload into one entry, which has no place yet and names no run files. Where one of them
/// was tested by slowing its tiers, this holds for all. With `overload`, failures are part of the answer.
/// `None` without trials.
pub fn entry(mut runs: Vec<Finished>, overload: bool) -> Option<Entry> {
    let confirmation = carry_test(&mut runs);
    let runs = runs.as_slice();
    let lower_bound = is_often(runs, |run| is_lower_bound(run) || disturbed(run).is_some());
    // What only bounds a few runs from below says nothing of the system beside the others, which do, but that it is at least
    // so fast; nor does what others disturbed.
    let counts = |finished: &&Finished| {
        lower_bound || !(is_lower_bound(&finished.run) || disturbed(&finished.run).is_some())
    };
    let (counted, aside): (Vec<&Finished>, Vec<&Finished>) = runs.iter().partition(counts);
    let estimates: Vec<Estimate> = counted.iter().map(|finished| throughput_max(&finished.run)).collect();
    let found = pooled(&estimates, Between::of(std::slice::from_ref(&estimates)))?;
    let middle = &middle(&counted)?.run;
    let rounds = runs.iter().map(|finished| finished.round + 1).max().unwrap_or(0);
    let at = middle.verdict_step();
    let errors = errors(runs);
    let completed = runs.iter().map(|finished| completed(&finished.run)).sum();
    Some(Entry {
        variant: runs.first()?.variant.clone(),
        place: None,
        throughput_per_s: found.value,
        throughput_ci_per_s: found.interval(),
        throughput_by_round_per_s: by_round(rounds, &counted, |run| Some(run.verdict.throughput_max_per_s)),
        at_least_by_round_per_s: by_round(rounds, &aside, |run| Some(run.verdict.throughput_max_per_s)),
        cpu_us_per_request_by_round: cpu_by_round(rounds, runs),
        tiers_by_round: tiers(rounds, runs),
        response_time_us_by_round: by_round(rounds, &counted, response_time_mean),
        percentiles_by_round: percentiles(rounds, &counted),
        processor_speed_by_round: speed_by_round(rounds, runs),
        of_fastest: None,
        of_baseline: None,
        lower_bound,
        runs_set_aside: aside.len() as u32,
        users: middle.verdict.users_at_saturation.or(at.map(|step| step.users)),
        users_ci: middle.verdict.users_at_saturation_ci,
        users_ci_by_run: counted.iter().map(|finished| finished.run.verdict.users_at_saturation_ci).collect(),
        response_time_us: middle.verdict.response_time_at_saturation_us,
        cpu_us_per_request: at.and_then(cpu_us_per_request),
        received_bytes_per_s: at.map_or(0.0, |step| step.received_bytes_per_s),
        completed,
        bottleneck: runs.iter().filter_map(|finished| limit(&finished.run)).collect(),
        confirmation,
        profile: runs.iter().find_map(|finished| finished.run.profile.as_ref()).map(Profile::without_stacks),
        busiest: at.and_then(|step| step.resources.iter().find(|resource| !is_host(resource))).cloned(),
        steps: if is_sweep(middle) { by_users(middle) } else { Vec::new() },
        steps_by_run: counted.iter().map(|one| &one.run).filter(|run| is_sweep(run)).map(by_users).collect(),
        proofs: runs.iter().filter_map(|finished| finished.run.proof.clone()).collect(),
        prepared: middle.prepared.clone(),
        inconclusive: Vec::new(),
        doubts: doubts(runs, &counted, &errors, overload),
        errors,
        runs: Vec::new(),
    })
}

/// Holds the verdict of every run against the test that one of them was put to, and returns it. Tiers are no others in the
/// next round.
fn carry_test(runs: &mut [Finished]) -> Option<Confirmation> {
    let tests = || runs.iter().filter_map(|finished| finished.run.confirmation.as_ref());
    let test = tests().find(|test| !test.tiers.is_empty()).or_else(|| tests().next())?.clone();
    let untested = |run: &Run| run.confirmation.as_ref().is_none_or(|own| own.tiers.is_empty());
    for finished in runs.iter_mut().filter(|finished| untested(&finished.run)) {
        carry(&mut finished.run.verdict, &test);
    }
    Some(test)
}

/// A figure in each round; nothing for a round that was missed or cut short.
pub(super) fn by_round(
    rounds: u32,
    runs: &[&Finished],
    figure: impl Fn(&Run) -> Option<f64>,
) -> Vec<Option<f64>> {
    let whole = |finished: &&&Finished| {
        !finished.run.warnings.iter().any(|warning| warning.kind == WarningKind::Interrupted)
    };
    let of = |round| runs.iter().filter(whole).find(|finished| finished.round == round);
    (0..rounds).map(|round| of(round).and_then(|finished| figure(&finished.run))).collect()
}

fn response_time_mean(run: &Run) -> Option<f64> {
    let mean = run.verdict.response_time_at_saturation_us.mean;
    (mean > 0.0).then_some(mean)
}

/// What a request costs does not depend on whether throughput could grow, so every run counts.
fn cpu_by_round(rounds: u32, runs: &[Finished]) -> Vec<Option<f64>> {
    let runs: Vec<&Finished> = runs.iter().collect();
    let all = by_round(rounds, &runs, |run| run.verdict_step().and_then(cpu_us_per_request));
    if all.iter().any(Option::is_some) { all } else { Vec::new() }
}

/// The speed of the processors in each round; of loads, as the figures of a sweep come from several steps.
fn speed_by_round(rounds: u32, runs: &[Finished]) -> Vec<Option<f64>> {
    let runs: Vec<&Finished> = runs.iter().filter(|finished| !is_sweep(&finished.run)).collect();
    let all = by_round(rounds, &runs, |run| run.verdict_step().and_then(|step| step.processor_speed));
    if all.iter().any(Option::is_some) { all } else { Vec::new() }
}

/// Whether something holds of half of the runs or more: a single one of many, beside other work, is part of the scatter.
fn is_often(runs: &[Finished], holds: impl Fn(&Run) -> bool) -> bool {
    2 * runs.iter().filter(|finished| holds(&finished.run)).count() >= runs.len()
}

fn throughput_max(run: &Run) -> Estimate {
    let (value, [_, high]) = (run.verdict.throughput_max_per_s, run.verdict.throughput_max_ci_per_s);
    Estimate {
        value,
        error: (high - value).max(0.0) / NORMAL_95,
        // The interval is one of Student's t already.
        degrees_of_freedom: f64::from(u16::MAX),
        weight: 1.0,
    }
}

/// The run with the median throughput; of two, the slower.
fn middle<'a>(runs: &[&'a Finished]) -> Option<&'a Finished> {
    let mut sorted: Vec<&Finished> = runs.to_vec();
    sorted.sort_by(|a, b| by_throughput(&a.run, &b.run));
    sorted.get(runs.len().saturating_sub(1) / 2).copied()
}

fn by_throughput(a: &Run, b: &Run) -> Ordering {
    a.verdict.throughput_max_per_s.total_cmp(&b.verdict.throughput_max_per_s)
}

pub(crate) fn is_sweep(run: &Run) -> bool {
    run.steps.len() > 1
}

pub(crate) fn is_lower_bound(run: &Run) -> bool {
    run.verdict.bottleneck.kind == ResourceKind::Generator || (is_sweep(run) && !run.verdict.bounded)
}

pub(crate) fn limit(run: &Run) -> Option<Limit> {
    let bottleneck = &run.verdict.bottleneck;
    let told = is_sweep(run) || bottleneck.kind != ResourceKind::None;
    told.then(|| Limit {
        kind: bottleneck.kind,
        holder: Words::default(),
        identity: bottleneck.identity.clone(),
    })
}

/// The doubt that processes which are not part of the test used the processors at the step that counts. A variant of many
/// threads gets more of shared processors than one of few, so throughputs measured beside others do not show their order.
fn disturbed(run: &Run) -> Option<Doubt> {
    let step = run.verdict_step()?;
    let host = step.resources.iter().find(|resource| is_host(resource))?;
    let ours = |resource: &&Resource| resource.kind == ResourceKind::Generator || is_tier(resource);
    let watched: f64 = step.resources.iter().filter(ours).map(|resource| resource.used).sum();
    let (cores, available) = (host.used - watched, host.capacity);
    (cores >= DISTURBING * available).then_some(Doubt::OthersUsedProcessors { cores, available })
}

/// The warnings that data was not as cold as asked for, or a program not as limited, and, of loads, which draw no verdict, that
/// throughput often did not settle, or that fewer users may have been there.
fn not_as_asked(run: &Run, runs: &[Finished]) -> Vec<Doubt> {
    // By the cause: one kind of warning has several.
    let is_told_often = |cause: &Cause| {
        let told = |warning: &Warning| discriminant(&warning.cause) == discriminant(cause);
        is_often(runs, |run| run.warnings.iter().any(told))
    };
    let against = |warning: &&Warning| match (warning.kind, &warning.cause) {
        (WarningKind::NotCold, _) | (_, Cause::MemoryNotLimited { .. } | Cause::DiskNotLimited { .. }) => {
            true
        }
        (WarningKind::NotSteady | WarningKind::Little, cause) => !is_sweep(run) && is_told_often(cause),
        _ => false,
    };
    let warnings = run.warnings.iter().filter(against);
    warnings.map(|warning| Doubt::Warned { warning: warning.cause.clone() }).collect()
}

fn completed(run: &Run) -> u64 {
    run.steps.iter().map(|step| step.completed).sum()
}

fn errors(runs: &[Finished]) -> ErrorCounts {
    let mut all = ErrorCounts::new();
    runs.iter().for_each(|finished| add_errors(&mut all, &finished.run.errors()));
    all
}

/// Whether a doubt of a sweep's verdict is one of the entry. That a step was not steady, or missed Little's law, matters where
/// it is so in half of the rounds.
fn counts(doubt: &Doubt, runs: &[Finished]) -> bool {
    let told = |other: &Doubt| discriminant(other) == discriminant(doubt);
    let is_scatter = matches!(doubt, Doubt::NotSteady { .. } | Doubt::Little { .. });
    !is_scatter || is_often(runs, |run| run.verdict.doubts.iter().any(told))
}

/// Reasons not to rely on the figures of the runs that count.
fn doubts(runs: &[Finished], counted: &[&Finished], errors: &ErrorCounts, overload: bool) -> Vec<Doubt> {
    let completed = runs.iter().map(|finished| completed(&finished.run)).sum();
    if completed == 0 {
        return vec![Doubt::NothingCompleted];
    }
    let share = failed_share(completed, failures(errors));
    let denied = many_failed(share);
    if denied && !overload {
        return vec![Doubt::ManyFailed { share }];
    }
    // Users who were denied stay away for a while, which is what was asked for.
    let matters =
        |doubt: &Doubt| !denied || !matches!(doubt, Doubt::Warned { warning: Cause::IdleUsers { .. } });
    let mut all: Vec<Doubt> = Vec::new();
    for run in counted.iter().map(|finished| &finished.run) {
        // Many failures under overload are what was asked for.
        let of_run = run.verdict.doubts.iter().filter(|doubt| !overload && counts(doubt, runs)).cloned();
        let of_load = not_as_asked(run, runs).into_iter().filter(matters);
        for doubt in disturbed(run).into_iter().chain(of_run).chain(of_load) {
            let same =
                |other: &Doubt| *other == doubt || (doubt.is_about_the_cause() && other.is_about_the_cause());
            if !all.iter().any(same) {
                all.push(doubt);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, Comparison, Quantity, Requirement, Trend, Workload, checked};
    use super::*;
    use crate::conclude::{Context, Provenance, conclude};
    use crate::run::{
        ConfirmationAnswer, Explanation, Identity, Probability, Processes, SlowedTier, Step, TellApart, Unit,
    };
    use crate::ticks::ErrorKind;

    /// A load of 100 users at 500 requests per second, beside others that use so many cores of two.
    fn beside(others: f64) -> Finished {
        let step = Step {
            users: 100,
            elapsed_s: 2.0,
            completed: 1_000,
            throughput_per_s: 500.0,
            throughput_ci_per_s: Some([490.0, 510.0]),
            steady: true,
            ..Step::default()
        };
        let mut run = conclude(vec![step], &Context::default()).into_run(Provenance::default());
        run.warnings.clear();
        let resource = |identity: Identity, used, capacity| Resource {
            kind: identity.kind(),
            holder: Words::default(),
            identity: Some(identity),
            utilization: used / capacity,
            used,
            capacity,
            unit: Unit::Cores,
        };
        let sink = Processes { name: "nstar-sink".to_owned(), pid: Some(8), ..Processes::default() };
        run.steps[0].resources = vec![
            resource(Identity::Host { on: None }, 0.9 + others, 2.0),
            resource(Identity::Processes(sink), 0.5, 1.0),
            resource(Identity::Generator, 0.4, 1.0),
        ];
        Finished { work: String::new(), variant: "epoll".to_owned(), round: 0, run }
    }

    #[test]
    fn runs_are_pooled_and_cost_is_per_request() {
        let found = entry(vec![beside(0.0), beside(0.05)], false).expect("an entry");
        assert_eq!((found.throughput_per_s, found.users, found.completed), (500.0, Some(100), 2_000));
        assert!((found.cpu_us_per_request.expect("watched") - 1_000.0).abs() < 1e-9);
        assert!(!found.lower_bound && found.doubts.is_empty(), "{:?}", found.doubts);
        let width = found.throughput_ci_per_s[1] - found.throughput_ci_per_s[0];
        assert!(width < 20.0, "two runs know more than one: {width}");
    }

    #[test]
    fn percentiles_and_what_each_tier_costs_are_kept_round_by_round() {
        let round = |round: u32, p99: f64, database_cores: f64| {
            let mut finished = Finished { round, ..beside(0.0) };
            let time = &mut finished.run.verdict.response_time_at_saturation_us;
            (time.p99, time.samples) = (p99, 100_000);
            let database = Processes { name: "mariadbd".to_owned(), pid: Some(9), ..Processes::default() };
            let resources = &mut finished.run.steps[0].resources;
            let tier = Resource {
                identity: Some(Identity::Processes(database)),
                used: database_cores,
                ..resources[1].clone()
            };
            resources.push(tier);
            finished
        };
        let found = entry(vec![round(0, 9_000.0, 0.1), round(2, 8_000.0, 0.2)], false).expect("an entry");
        let p99 = found.percentiles_by_round.iter().find(|one| one.percentile == "p99").expect("p99");
        assert_eq!(p99.response_time_us, [Some(9_000.0), None, Some(8_000.0)]);
        let [database, sink] = found.tiers_by_round.as_slice() else { panic!("{:?}", found.tiers_by_round) };
        assert_eq!((database.name.as_str(), sink.name.as_str()), ("mariadbd", "nstar-sink"));
        let near = |found: Option<f64>, us: f64| found.is_some_and(|found| (found - us).abs() < 1e-9);
        assert!(near(database.cpu_us_per_request[0], 200.0) && near(database.cpu_us_per_request[2], 400.0));
        assert!(near(sink.cpu_us_per_request[2], 1_000.0) && sink.cpu_us_per_request[1].is_none());
        let alone = entry(vec![beside(0.0)], false).expect("an entry");
        assert_eq!(alone.tiers_by_round, [], "one tier costs what all do");
    }

    /// What the generator held back once of three times is no throughput of the server; what a request cost then is.
    #[test]
    fn the_few_rounds_that_the_generator_limited_do_not_count() {
        let round = |round, throughput_per_s: f64, kind| {
            let mut finished = Finished { round, ..beside(0.0) };
            finished.run.verdict.throughput_max_per_s = throughput_per_s;
            finished.run.verdict.throughput_max_ci_per_s = [0.99, 1.01].map(|end| end * throughput_per_s);
            finished.run.verdict.bottleneck.kind = kind;
            if kind == ResourceKind::Generator {
                finished.run.verdict.doubts = vec![Doubt::GeneratorLimit];
            }
            finished
        };
        let limited = |rounds: &[f64]| {
            let server = [500.0, 510.0].into_iter().map(|rate| (rate, ResourceKind::None));
            let all = rounds.iter().map(|rate| (*rate, ResourceKind::Generator)).chain(server);
            let runs: Vec<Finished> =
                (0..).zip(all).map(|(number, (rate, kind))| round(number, rate, kind)).collect();
            entry(runs, false).expect("an entry")
        };
        let few = limited(&[300.0]);
        assert_eq!(few.throughput_by_round_per_s, [None, Some(500.0), Some(510.0)]);
        assert_eq!(few.at_least_by_round_per_s, [Some(300.0), None, None]);
        assert!((few.throughput_per_s - 505.0).abs() < 1e-9 && !few.lower_bound && few.doubts.is_empty());
        assert_eq!((few.runs_set_aside, few.variant.as_str()), (1, "epoll"));
        assert!(few.cpu_us_per_request_by_round.iter().all(Option::is_some));
        let many = limited(&[300.0, 310.0]);
        assert!(many.lower_bound && many.doubts.contains(&Doubt::GeneratorLimit));
        assert_eq!((many.runs_set_aside, many.throughput_by_round_per_s[0]), (0, Some(300.0)));
    }

    /// Only one round is tested; the others looked at the same tiers, and need not stay in doubt about them.
    #[test]
    fn a_test_in_one_round_holds_for_all() {
        let back = Processes { name: "back".to_owned(), pid: Some(8), ..Processes::default() };
        let mut unsure = beside(0.0);
        let bottleneck = &mut unsure.run.verdict.bottleneck;
        bottleneck.kind = ResourceKind::Lock;
        bottleneck.identity = Some(Identity::Processes(back.clone()));
        bottleneck.confidence = Probability::new(0.5);
        unsure.run.verdict.doubts = vec![Doubt::Undecided {
            best: Explanation::default(),
            next: None,
            tell_apart: TellApart::Confirm,
        }];
        let mut tested = Finished { round: 1, ..unsure.clone() };
        tested.run.verdict.doubts.clear();
        tested.run.confirmation = Some(Confirmation {
            tiers: vec![SlowedTier {
                tier: back.into(),
                elasticity: 1.0,
                elasticity_ci: [0.9, 1.1],
                ..SlowedTier::default()
            }],
            answer: ConfirmationAnswer::Confirmed,
            ..Confirmation::default()
        });
        let alone = entry(vec![unsure.clone()], false).expect("an entry");
        assert_eq!((alone.doubts.len(), &alone.confirmation), (1, &None));
        let both = entry(vec![unsure, tested.clone()], false).expect("an entry");
        assert!(both.doubts.is_empty(), "{:?}", both.doubts);
        assert_eq!(both.confirmation, tested.run.confirmation);
    }

    /// Ten thousand users of whom most never got a connection are not ten thousand.
    #[test]
    fn a_warning_of_idle_users_is_a_reason_to_doubt() {
        let mut finished = beside(0.0);
        let idle = Cause::IdleUsers { users: 10_000, share: 0.97 };
        finished.run.warnings = vec![idle.clone().into()];
        let found = entry(vec![finished], false).expect("an entry");
        assert_eq!(found.doubts, [Doubt::Warned { warning: idle }]);
    }

    /// Whoever is turned away from a full queue comes back later: a claim on overload was in doubt because of it.
    #[test]
    fn users_who_were_denied_under_overload_may_be_idle() {
        let told = |denied: u64| {
            let mut finished = beside(0.0);
            finished.run.warnings = vec![Cause::IdleUsers { users: 200, share: 0.8 }.into()];
            finished.run.steps[0].errors.insert(ErrorKind::Refused, denied);
            entry(vec![finished], true).expect("an entry").doubts.len()
        };
        assert_eq!([told(0), told(400)], [1, 0]);
    }

    /// A claim on overload stayed in doubt as one load of five was not steady: each had a warning of idle users, whose kind
    /// is the same.
    #[test]
    fn what_one_round_of_many_warns_of_is_part_of_the_scatter() {
        let doubts = |unsteady: usize, told: fn(&mut Run)| {
            let mut runs = vec![beside(0.0); 5];
            runs.iter_mut().take(unsteady).for_each(|finished| told(&mut finished.run));
            entry(runs, false).expect("an entry").doubts.len()
        };
        let load: fn(&mut Run) = |run| run.warnings.push(Cause::NotSteady { users: vec![100] }.into());
        let sweep: fn(&mut Run) = |run| run.verdict.doubts.push(Doubt::NotSteady { users: 1 });
        for told in [load, sweep] {
            assert_eq!([doubts(1, told), doubts(2, told), doubts(3, told)], [0, 0, 1]);
        }
        let mut runs = vec![beside(0.0); 5];
        for finished in &mut runs {
            finished.run.warnings = vec![Cause::IdleUsers { users: 100, share: 0.8 }.into()];
        }
        load(&mut runs[0].run);
        let idle = Doubt::Warned { warning: Cause::IdleUsers { users: 100, share: 0.8 } };
        assert_eq!(entry(runs, false).expect("an entry").doubts, [idle]);
    }

    /// The run with the median throughput saturated at 1 to 2 users, the others at many more: a claim of at most four was met.
    #[test]
    fn runs_that_saturate_at_different_users_decide_nothing() {
        use super::super::{Open, Seen};
        let swept = |round, throughput_max_per_s, users_ci: [u32; 2]| {
            let mut finished = Finished { round, ..beside(0.0) };
            finished.run.steps.push(Step { users: 200, ..finished.run.steps[0].clone() });
            let verdict = &mut finished.run.verdict;
            (verdict.bounded, verdict.throughput_max_per_s) = (true, throughput_max_per_s);
            verdict.throughput_max_ci_per_s = [0.99, 1.01].map(|end| end * throughput_max_per_s);
            verdict.users_at_saturation = Some(users_ci[0]);
            verdict.users_at_saturation_ci = Some(users_ci);
            verdict.doubts.clear();
            finished
        };
        let held = |others: [u32; 2]| {
            let runs = vec![swept(0, 500.0, others), swept(1, 501.0, [1, 2]), swept(2, 502.0, others)];
            let entries = vec![entry(runs, false).expect("an entry")];
            let measured = Comparison {
                works: vec![Workload { entries, ..Workload::default() }],
                ..Comparison::default()
            };
            let requires = Requirement::Saturates { users: [1, 4] };
            checked(&measured, &Claim { requires, ..Claim::default() }).cases.remove(0)
        };
        assert_eq!(held([1, 4]).met, Some(true));
        let apart = held([16, 64]);
        assert_eq!((apart.met, apart.seen), (None, Seen::Open { why: Open::RunsDisagree }));
    }

    #[test]
    fn a_warning_that_data_was_not_cold_is_a_reason_to_doubt() {
        let mut finished = beside(0.0);
        let warm = Cause::NotCold { users: 8, share: Some(0.2) };
        finished.run.warnings = vec![warm.clone().into()];
        finished.run.steps.push(Step { users: 101, ..Step::default() });
        let found = entry(vec![finished], false).expect("an entry");
        assert!(found.doubts.contains(&Doubt::Warned { warning: warm }), "{:?}", found.doubts);
    }

    /// Without root, variants with more and less memory are the same program, and a claim that memory brings nothing was met.
    #[test]
    fn a_limit_that_could_not_be_set_is_a_reason_to_doubt() {
        let program = || "files".to_owned();
        let memory =
            Cause::MemoryNotLimited { program: program(), limit_bytes: 64_000_000, os_error: Some(13) };
        let disk = Cause::DiskNotLimited { program: program(), os_error: Some(13) };
        for warning in [memory, disk] {
            let mut finished = beside(0.0);
            finished.run.warnings = vec![warning.clone().into()];
            let entries = ["64 MB", "128 MB"].map(|variant| {
                let of_variant = Finished { variant: variant.to_owned(), ..finished.clone() };
                entry(vec![of_variant], false).expect("an entry")
            });
            assert_eq!(entries[0].doubts, [Doubt::Warned { warning }]);
            let works = vec![Workload { entries: entries.into(), ..Workload::default() }];
            let measured = Comparison { works, ..Comparison::default() };
            let flat =
                Requirement::Trend { course: Trend::Flat, of: Quantity::Throughput, over_works: false };
            assert_eq!(checked(&measured, &Claim { requires: flat, ..Claim::default() }).met, None);
        }
    }

    /// Threads get more of a shared processor than a loop does: seen as an order of models that was none.
    #[test]
    fn a_run_beside_other_work_is_no_measure_of_order() {
        let found = entry(vec![beside(0.0), beside(0.8)], false).expect("an entry");
        assert!(found.lower_bound);
        let Doubt::OthersUsedProcessors { cores, available } = found.doubts[0] else { panic!("{found:?}") };
        assert!((cores - 0.8).abs() < 1e-9 && available == 2.0, "{cores} of {available}");
    }
}
