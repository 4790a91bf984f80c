//! Contrasts as a whole: what is claimed of runs that are the same, and of runs that are not.

use super::*;
use crate::comparison::{Comparison, Entry, PercentileByRound, TierByRound, Workload};
use crate::conclude::{Context, Provenance, conclude};
use crate::run::{
    Demand, Host, Identity, LoadShape, Processes, Resource, ResourceKind, ResponseTime, Step, Unit, Words,
};

/// A conclusive sweep over 1, 2 and 4 users with N* = 4, whose server `app` takes this CPU time for each request.
pub(crate) fn sweep(file: &str, throughput_per_s: f64, cpu_us: f64) -> Given {
    let steps = [1, 2, 4].map(|users| {
        let rate = throughput_per_s * f64::from(users) / 4.0;
        Step {
            users,
            elapsed_s: 2.0,
            completed: 1_000,
            throughput_per_s: rate,
            response_time_us: response_time(f64::from(users) / rate * 1e6),
            steady: true,
            resources: vec![app(cpu_us * rate / 1e6)],
            ..Step::default()
        }
    });
    let provenance = Provenance {
        target: "http://127.0.0.1:8080/page".into(),
        host: Host { cores: 2, memory_bytes: 1 << 33, kernel: "6.1".into(), processor: "a".into() },
        version: "1".into(),
        started: file.to_owned(),
        load: LoadShape { threads: 1, ..LoadShape::default() },
        ..Provenance::default()
    };
    let mut run = conclude(Vec::new(), &Context::default()).into_run(provenance);
    run.steps = steps.to_vec();
    run.warnings.clear();
    run.verdict.doubts.clear();
    run.verdict.bottleneck.kind = ResourceKind::Cpu;
    run.verdict.bounded = true;
    run.verdict.users_at_saturation = Some(4);
    run.verdict.users_at_saturation_ci = Some([4, 4]);
    run.verdict.throughput_max_per_s = throughput_per_s;
    run.verdict.throughput_max_ci_per_s = [throughput_per_s * 0.99, throughput_per_s * 1.01];
    Given { file: file.to_owned(), run }
}

fn response_time(mean: f64) -> ResponseTime {
    ResponseTime {
        mean,
        mean_ci: Some([mean * 0.99, mean * 1.01]),
        p50: mean,
        p90: mean * 1.5,
        p95: Some(mean * 1.7),
        p99: mean * 2.0,
        p999: mean * 3.0,
        max: mean * 4.0,
        samples: 1_000,
        timed_out: 0,
    }
}

fn app(cores: f64) -> Resource {
    let of = Processes { name: "app".into(), pid: Some(7), processes: 1, ..Processes::default() };
    Resource {
        kind: Identity::Processes(of.clone()).kind(),
        holder: Words::default(),
        identity: Some(Identity::Processes(of)),
        utilization: cores,
        used: cores,
        capacity: 1.0,
        unit: Unit::Cores,
    }
}

/// The run with so much CPU time per request of each of these tiers, regressed over its steps to within 1 %.
fn regressed(mut given: Given, tiers: &[(&str, f64)]) -> Given {
    let demand = |(name, demand_us): &(&str, f64)| Demand {
        kind: ResourceKind::Cpu,
        holder: Words::default(),
        identity: Some(Identity::Processes(Processes { name: (*name).to_owned(), ..Processes::default() })),
        demand_us: *demand_us,
        demand_ci_us: Some([demand_us * 0.99, demand_us * 1.01]),
        throughput_limit_per_s: 1e6 / demand_us,
    };
    given.run.laws.demands = tiers.iter().map(demand).collect();
    given
}

fn contrast(before: Vec<Given>, after: Vec<Given>) -> Contrast {
    of_runs(before, after, "1").expect("runs on both sides")
}

fn ratio<'a>(found: &'a Contrast, figure: &Figure) -> &'a Ratio {
    found.cases[0].figures.iter().find(|ratio| ratio.figure == *figure).expect("the figure")
}

fn claims(found: &Contrast) -> usize {
    found.cases.iter().flat_map(|case| &case.figures).filter(|ratio| ratio.changed).count()
}

/// The run as if it had begun in this minute.
pub(crate) fn began(mut given: Given, minute: u32) -> Given {
    given.run.started = format!("2026-11-22T00:{minute:02}:00Z");
    given
}

/// Normal enough.
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// `repeats` runs of a server whose starts scatter by 1 % in throughput and, apart from that, in cost.
fn repeats(random: &mut fastrand::Rng, repeats: usize, throughput: f64) -> Vec<Given> {
    let one = |number: usize, random: &mut fastrand::Rng| {
        let (speed, cost) = (1.0 + 0.01 * normal(random), 1.0 + 0.01 * normal(random));
        let mut given = sweep(&number.to_string(), throughput * speed, 100.0 * cost);
        for percentile in ["p50", "p90", "p99"] {
            let own = 1.0 + 0.02 * normal(random);
            let steps = given.run.steps.iter_mut().map(|step| &mut step.response_time_us);
            steps.for_each(|time| match percentile {
                "p50" => time.p50 *= own,
                "p90" => time.p90 *= own,
                _ => time.p99 *= own,
            });
        }
        // What a single run knows of itself is less than what starts differ by.
        given.run.verdict.throughput_max_ci_per_s = [0.998, 1.002].map(|end| end * throughput * speed);
        given
    };
    (0..repeats).map(|number| one(number, random)).collect()
}

#[test]
fn a_run_compared_with_itself_claims_nothing_and_says_that_it_is_itself() {
    let found = contrast(vec![sweep("a.json", 1_000.0, 100.0)], vec![sweep("a.json", 1_000.0, 100.0)]);
    assert_eq!(claims(&found), 0);
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    assert_eq!(found.cautions, [Caution::Copy { file: "a.json".into(), of: "a.json".into() }]);
    let throughput = ratio(&found, &Figure::Throughput);
    assert_eq!((throughput.ratio, throughput.basis), (1.0, Basis::WithinRuns));
    assert_eq!(ratio(&found, &Figure::CpuPerRequest).ci, None, "no cost was regressed");
}

/// Copies of a file are no repeats: they would seem to agree perfectly.
#[test]
fn copies_count_once() {
    let side = |throughput| (0..3).map(|_| sweep("x", throughput, 100.0)).collect();
    let found = contrast(side(1_000.0), side(1_001.0));
    assert_eq!(ratio(&found, &Figure::Throughput).basis, Basis::WithinRuns);
    assert_eq!((claims(&found), found.cautions.len()), (0, 4));
}

/// What the promise is: repeats of one build claim no change of throughput in more than 5 of 100 comparisons, and none of the
/// other figures in more than 5 of 100 more.
#[test]
fn repeats_of_one_build_claim_nothing() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut throughput, mut others) = (0, 0);
    for _ in 0..400 {
        let (before, after) = (repeats(&mut random, 4, 1_000.0), repeats(&mut random, 4, 1_000.0));
        let found = contrast(before, after);
        let first = usize::from(ratio(&found, &Figure::Throughput).changed);
        throughput += first;
        others += usize::from(claims(&found) > first);
    }
    // 20 of 400 are expected at most; 33 or more would be seen once in 300 times.
    assert!(throughput <= 32 && others <= 32, "{throughput} and {others} of 400");
}

/// Starts that scatter by 1 %: five repeats find a build that is 3 % slower 19 times in 20, which is what repeats are counted for.
#[test]
fn a_build_that_is_3_percent_slower_is_found_with_five_repeats() {
    let mut random = fastrand::Rng::with_seed(4);
    let mut found = 0;
    for _ in 0..200 {
        let (before, after) = (repeats(&mut random, 5, 1_000.0), repeats(&mut random, 5, 970.0));
        let throughput = ratio(&contrast(before, after), &Figure::Throughput).clone();
        found += usize::from(throughput.changed && throughput.ratio < 1.0);
    }
    // More than 190 are expected; 181 or fewer would be seen once in 300 times.
    assert!(found >= 182, "{found} of 200");
}

/// Runs of two builds in turns, A B B A, on a host that loses this share of its speed with each.
fn in_turns(random: &mut fastrand::Rng, pairs: u32, ratio: f64, loss: f64) -> [Vec<Given>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    for turn in 0..2 * pairs {
        let is_after = matches!(turn % 4, 1 | 2);
        let build = if is_after { ratio } else { 1.0 };
        let host = 1.0 - loss * f64::from(turn);
        let run = repeats(random, 1, 1_000.0 * build * host).remove(0);
        sides[usize::from(is_after)].push(began(run, turn));
    }
    sides
}

#[test]
fn runs_that_took_turns_on_a_host_that_drifts_are_compared_pair_by_pair() {
    let mut random = fastrand::Rng::with_seed(6);
    let fell = |found: &Ratio| usize::from(found.changed && found.ratio < 1.0);
    let (mut paired, mut apart) = (0, 0);
    for _ in 0..20 {
        let [before, after] = in_turns(&mut random, 8, 0.97, 0.01);
        let throughput = ratio(&contrast(before.clone(), after.clone()), &Figure::Throughput).clone();
        assert_eq!(throughput.basis, Basis::Turns { pairs: 8 });
        paired += fell(&throughput);
        // The same runs, if those of one side had all come first.
        let after = after.into_iter().zip(30..).map(|(run, minute)| began(run, minute)).collect();
        let throughput = ratio(&contrast(before, after), &Figure::Throughput).clone();
        assert_eq!(throughput.basis, Basis::BetweenRuns { before: 8, after: 8 });
        apart += fell(&throughput);
    }
    assert!(paired >= 18 && apart <= 2, "{paired} and {apart} of 20");
}

#[test]
fn a_build_measured_in_turns_with_itself_claims_nothing() {
    let mut random = fastrand::Rng::with_seed(7);
    let (mut throughput, mut others) = (0, 0);
    for _ in 0..200 {
        let [before, after] = in_turns(&mut random, 8, 1.0, 0.0);
        let found = contrast(before, after);
        let first = usize::from(ratio(&found, &Figure::Throughput).changed);
        throughput += first;
        others += usize::from(claims(&found) > first);
    }
    // 10 of 200 are expected at most; 20 or more would be seen once in 300 times.
    assert!(throughput <= 19 && others <= 19, "{throughput} and {others} of 200");
}

#[test]
fn a_cost_that_rose_is_claimed_beside_a_throughput_that_did_not() {
    let side = |cost: f64| {
        (0..5).map(|n| sweep(&n.to_string(), 1_000.0 + f64::from(n), cost + 0.1 * f64::from(n))).collect()
    };
    let found = contrast(side(100.0), side(110.0));
    let cpu = ratio(&found, &Figure::CpuPerRequest);
    assert!(cpu.changed && (cpu.ratio - 1.1).abs() < 0.002, "{cpu:?}");
    assert!(!ratio(&found, &Figure::Throughput).changed);
    assert_eq!(found.cases[0].at_users, Some(4));
}

#[test]
fn the_cost_of_single_runs_has_the_interval_of_their_regressions() {
    let side = |file: &str, app_us| regressed(sweep(file, 1_000.0, 0.995 * app_us), &[("app", app_us)]);
    let found = contrast(vec![side("a", 100.0)], vec![side("b", 110.0)]);
    let cpu = ratio(&found, &Figure::CpuPerRequest);
    assert!((cpu.before - 100.0).abs() < 1e-9 && (cpu.ratio - 1.1).abs() < 1e-9, "of all steps: {cpu:?}");
    let [low, high] = cpu.ci.expect("an interval");
    // 1 % of both, which are independent, is 1.41 % of the ratio.
    let half_width = 0.01 * f64::sqrt(2.0);
    assert!((low / 1.1 - 1.0 + half_width).abs() < 3e-4 && (high / 1.1 - 1.0 - half_width).abs() < 3e-4);
    assert!(cpu.changed && cpu.basis == Basis::WithinRuns, "{cpu:?}");
    let same = contrast(vec![side("a", 100.0)], vec![side("b", 101.0)]);
    assert!(!ratio(&same, &Figure::CpuPerRequest).changed);
}

#[test]
fn a_cost_without_a_regression_on_both_sides_has_no_interval() {
    let with = || regressed(sweep("a", 1_000.0, 99.5), &[("app", 100.0)]);
    let found = contrast(vec![with()], vec![sweep("b", 1_000.0, 1.1 * 99.5)]);
    let cpu = ratio(&found, &Figure::CpuPerRequest);
    assert_eq!((cpu.ci, cpu.basis), (None, Basis::Nothing));
    assert!((cpu.ratio - 1.1).abs() < 1e-9, "that of one step on both sides: {cpu:?}");
    let mut open = with();
    open.run.laws.demands[0].demand_ci_us = None;
    let found = contrast(vec![with()], vec![open]);
    assert_eq!(ratio(&found, &Figure::CpuPerRequest).ci, None, "two steps give no interval");
}

/// Of two runs whose steps cost the same, the regression of one keeps apart what is done without requests.
#[test]
fn a_cost_by_regression_that_the_compared_step_contradicts_is_that_of_the_step() {
    let side = |file: &str, app_us| regressed(sweep(file, 1_000.0, 100.0), &[("app", app_us)]);
    for (before, after) in [(100.0, 90.0), (90.0, 100.0)] {
        let found = contrast(vec![side("a", before)], vec![side("b", after)]);
        let cpu = ratio(&found, &Figure::CpuPerRequest);
        assert!((cpu.ratio - 1.0).abs() < 1e-9 && (cpu.before - 100.0).abs() < 1e-9, "{cpu:?}");
        assert_eq!((cpu.ci, cpu.basis, cpu.changed), (None, Basis::Nothing, false));
    }
}

#[test]
fn costs_of_tiers_add_up_and_have_intervals_of_their_own() {
    let side = |file: &str, db_us| {
        let mut given = regressed(sweep(file, 1_000.0, 99.5), &[("app", 100.0), ("db", db_us)]);
        let db = Processes { name: "db".into(), processes: 1, ..Processes::default() };
        // With four users, a thousand requests a second.
        let db = Resource { identity: Some(Identity::Processes(db)), ..app(0.995e-3 * db_us) };
        given.run.steps.iter_mut().for_each(|step| step.resources.push(db.clone()));
        let mut host = given.run.laws.demands[0].clone();
        host.identity = Some(Identity::Host { on: None });
        given.run.laws.demands.push(host);
        given
    };
    let found = contrast(vec![side("a", 50.0)], vec![side("b", 80.0)]);
    let of = |name: &str| {
        let tier = Tier { name: name.into(), on: None };
        ratio(&found, &Figure::CpuPerRequestOf { tier }).clone()
    };
    let all = ratio(&found, &Figure::CpuPerRequest);
    assert!((all.before - 150.0).abs() < 1e-9 && (all.after - 180.0).abs() < 1e-9, "not the host: {all:?}");
    assert!((of("db").ratio - 1.6).abs() < 1e-9 && of("db").changed, "{:?}", of("db"));
    assert!(of("app").ci.is_some() && !of("app").changed, "{:?}", of("app"));
}

#[test]
fn repeats_tell_how_cost_scatters_whatever_their_regressions_say() {
    let side = |app_us: f64| {
        let one = |n: u32| {
            let cost = 90.0 + f64::from(n);
            regressed(sweep(&n.to_string(), 1_000.0 + f64::from(n), cost), &[("app", app_us)])
        };
        (0..3).map(one).collect::<Vec<_>>()
    };
    let found = contrast(side(100.0), side(200.0));
    let cpu = ratio(&found, &Figure::CpuPerRequest);
    assert_eq!(cpu.basis, Basis::BetweenRuns { before: 3, after: 3 });
    assert!((cpu.ratio - 1.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn a_throughput_that_is_only_a_lower_bound_did_not_fall() {
    let mut held_back = sweep("b", 500.0, 100.0);
    held_back.run.verdict.bounded = false;
    let found = contrast(vec![sweep("a", 1_000.0, 100.0)], vec![held_back]);
    let throughput = ratio(&found, &Figure::Throughput);
    assert_eq!((throughput.bound, throughput.changed), (Bound::AtLeast, false));
    assert_eq!(found.cautions, [Caution::LowerBound { file: "b".into() }]);
}

/// A sweep whose generator was the limit.
fn held_back(file: &str, throughput_per_s: f64) -> Given {
    let mut given = sweep(file, throughput_per_s, 100.0);
    given.run.verdict.bounded = false;
    given
}

#[test]
fn lower_bounds_beside_exact_runs_make_no_fall() {
    let exact = |name: &str| {
        let one = |n: u32| sweep(&[name, n.to_string().as_str()].concat(), 1_000.0 + f64::from(n), 100.0);
        (0..3).map(one).collect::<Vec<_>>()
    };
    let low = [held_back("low-1", 500.0), held_back("low-2", 500.0)];
    let mut found = contrast(exact("a"), [exact("b"), low.to_vec()].concat());
    let throughput = ratio(&found, &Figure::Throughput);
    assert_eq!(throughput.basis, Basis::BetweenRuns { before: 3, after: 3 });
    assert_eq!((throughput.bound, throughput.changed), (Bound::Exact, false));
    assert!((throughput.ratio - 1.0).abs() < 1e-9, "{throughput:?}");
    found.hold(&[Gate { text: String::new(), figure: Figure::Throughput, limit: Limit::Above, ratio: 0.9 }]);
    assert_eq!(found.gates[0].verdict, GateVerdict::Met);
    // Bounds before make no rise either.
    let back = contrast([exact("b"), low.to_vec()].concat(), exact("a"));
    assert!(!ratio(&back, &Figure::Throughput).changed);
}

/// The generator is the limit where the server happens to be fast: without those runs, what is left is slow.
#[test]
fn lower_bounds_above_the_exact_runs_count() {
    let runs = |values: &[f64]| {
        let one = |(n, value): (usize, &f64)| sweep(&n.to_string(), *value, 100.0);
        values.iter().enumerate().map(one).collect::<Vec<_>>()
    };
    let high = [held_back("high-1", 1_003.0), held_back("high-2", 1_004.0)];
    let after = [runs(&[960.0, 961.0, 962.0]), high.to_vec()].concat();
    let found = contrast(runs(&[1_000.0, 1_001.0, 1_002.0, 1_003.0, 1_004.0]), after);
    let throughput = ratio(&found, &Figure::Throughput);
    assert_eq!(throughput.basis, Basis::BetweenRuns { before: 5, after: 5 });
    assert!(!throughput.changed, "{throughput:?}");
}

#[test]
fn what_differs_besides_is_told_and_other_loads_are_told_apart() {
    let mut other = sweep("b", 1_000.0, 100.0);
    other.run.host.kernel = "6.8".into();
    other.run.target = "http://10.0.0.7:8080/page".into();
    let found = contrast(vec![sweep("a", 1_000.0, 100.0)], vec![other.clone()]);
    let aspects: Vec<&Aspect> = found.differences.iter().map(|difference| &difference.aspect).collect();
    assert_eq!(aspects, [&Aspect::Kernel, &Aspect::Server]);
    assert_eq!(found.other_loads().count(), 0);
    other.run.target = "http://127.0.0.1:8080/other".into();
    other.run.load.think_time_us = 1e3;
    other.run.steps.truncate(1);
    let found = contrast(vec![sweep("a", 1_000.0, 100.0)], vec![other]);
    let aspects: Vec<&Aspect> = found.other_loads().map(|difference| &difference.aspect).collect();
    assert_eq!(aspects, [&Aspect::Kind, &Aspect::Scenario, &Aspect::ThinkTime, &Aspect::Users]);
}

#[test]
fn runs_of_one_side_that_differ_among_themselves_are_told() {
    let mut odd = sweep("b", 1_000.0, 100.0);
    odd.run.version = "2".into();
    let found = contrast(vec![sweep("a", 999.0, 100.0), odd.clone()], vec![odd]);
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.differences) };
    assert_eq!((&difference.aspect, difference.before.len()), (&Aspect::Nstar, 2));
}

#[test]
fn gates_are_met_breached_or_not_decided() {
    let mut found = contrast(vec![sweep("a", 1_000.0, 100.0)], vec![sweep("b", 950.0, 100.0)]);
    let gate = |figure, limit, ratio| Gate { text: String::new(), figure, limit, ratio };
    let throughput = |ratio| gate(Figure::Throughput, Limit::Above, ratio);
    found.hold(&[
        throughput(0.9),
        throughput(0.99),
        throughput(0.95),
        gate(Figure::ResponseTimeMean, Limit::Below, 1.10),
        gate(Figure::ResponseTimeMean, Limit::Below, 1.01),
        gate(Figure::CpuPerRequest, Limit::Below, 2.0),
    ]);
    let verdicts: Vec<GateVerdict> = found.gates.iter().map(|gate| gate.verdict).collect();
    use GateVerdict::*;
    assert_eq!(verdicts, [Met, Breached, NotDecided, Met, Breached, NotDecided]);
}

fn variant(file: &str, name: Option<&str>, rounds: &[(&str, [f64; 4])]) -> Variant {
    let entry = |(variant, rounds): &(&str, [f64; 4])| Entry {
        variant: (*variant).to_owned(),
        throughput_by_round_per_s: rounds.iter().copied().map(Some).collect(),
        ..Entry::default()
    };
    let work =
        Workload { name: "work".into(), entries: rounds.iter().map(entry).collect(), ..Workload::default() };
    let comparison = Comparison { works: vec![work], ..Comparison::default() };
    Variant { file: file.into(), name: name.map(str::to_owned), comparison }
}

#[test]
fn variants_of_one_experiment_are_paired_by_round() {
    let rounds = [("epoll", [100.0, 200.0, 300.0, 400.0]), ("poll", [95.0, 191.0, 284.0, 381.0])];
    let [before, after] = ["epoll", "poll"].map(|name| variant("x.json", Some(name), &rounds));
    let found = of_variants(&before, &after, "1").expect("both");
    let throughput = ratio(&found, &Figure::Throughput);
    assert_eq!(throughput.basis, Basis::Rounds { rounds: 4 });
    assert!(throughput.changed && (throughput.ratio - 0.95).abs() < 0.005, "{throughput:?}");
}

#[test]
fn two_comparisons_are_compared_variant_by_variant() {
    let before = variant("x", None, &[("epoll", [100.0, 101.0, 99.0, 100.0]), ("poll", [50.0; 4])]);
    let after = variant("y", None, &[("epoll", [90.0, 91.0, 89.0, 90.0]), ("aio", [9.0; 4])]);
    let found = of_variants(&before, &after, "1").expect("epoll");
    let [case] = found.cases.as_slice() else { panic!("{:?}", found.cases) };
    assert_eq!((case.work.as_str(), case.variant.as_str()), ("work", "epoll"));
    assert_eq!(case.figures[0].basis, Basis::BetweenRuns { before: 4, after: 4 });
    let unknown = variant("y", Some("pol"), &[("poll", [1.0; 4])]);
    let known = vec!["poll".to_owned()];
    let error = VariantError::Unknown { file: "y".into(), variant: "pol".into(), known };
    assert_eq!(of_variants(&before, &unknown, "1"), Err(error));
    let apart = variant("y", None, &[("aio", [1.0; 4])]);
    assert_eq!(of_variants(&before, &apart, "1"), Err(VariantError::NothingInCommon));
}

/// The comparison in a file of its own, under these users of a load.
fn with_users(mut of: Variant, users: u32) -> Variant {
    of.comparison.title = users.to_string();
    of.comparison.works[0].entries.iter_mut().for_each(|entry| entry.users = Some(users));
    of
}

#[test]
fn comparisons_of_other_numbers_of_users_are_other_loads() {
    let rounds = [("epoll", [100.0, 101.0, 99.0, 100.0])];
    let side = |users| with_users(variant("x", None, &rounds), users);
    let found = of_variants(&side(10), &side(20), "1").expect("epoll");
    let [difference] = found.differences.as_slice() else { panic!("{:?}", found.differences) };
    assert_eq!(difference.aspect, Aspect::Users);
    let settings = (difference.before.as_slice(), difference.after.as_slice());
    assert_eq!(settings, (&[Setting::Number(10.0)][..], &[Setting::Number(20.0)][..]));
    assert_eq!(found.other_loads().count(), 1);
    let mut swept = side(20);
    swept.comparison.works[0].entries[0].users_ci = Some([8, 30]);
    let kinds = of_variants(&side(20), &swept, "1").expect("epoll");
    let aspects: Vec<&Aspect> = kinds.other_loads().map(|difference| &difference.aspect).collect();
    assert_eq!(aspects, [&Aspect::Kind, &Aspect::Users]);
    let mut same = of_variants(&side(10), &side(10), "1").expect("epoll");
    assert_eq!(same.other_loads().count(), 0);
    same = of_variants(&swept, &with_users(swept.clone(), 30), "1").expect("epoll");
    assert_eq!(same.other_loads().count(), 0, "N* is found, and not asked for");
}

/// What varies is what is compared.
#[test]
fn variants_of_one_experiment_may_have_other_numbers_of_users() {
    let mut few = variant("x", Some("10"), &[("10", [100.0; 4]), ("20", [200.0; 4])]);
    for (entry, users) in few.comparison.works[0].entries.iter_mut().zip([10, 20]) {
        entry.users = Some(users);
    }
    let many = Variant { name: Some("20".into()), ..few.clone() };
    assert_eq!(of_variants(&few, &many, "1").expect("both").other_loads().count(), 0);
}

#[test]
fn a_percentile_of_an_experiment_is_that_of_one_run() {
    let mut side = variant("x", Some("epoll"), &[("epoll", [100.0, 101.0, 99.0, 100.0])]);
    side.comparison.works[0].entries[0].response_time_us = response_time(100.0);
    let found = of_variants(&side, &side, "1").expect("epoll");
    let p99 = ratio(&found, &Figure::ResponseTimeQuantile { percentile: "p99".into() });
    assert_eq!((p99.ci, p99.basis), (None, Basis::OneRun));
    assert_eq!(ratio(&found, &Figure::Throughput).basis, Basis::Rounds { rounds: 4 });
}

#[test]
fn percentiles_and_costs_of_tiers_of_an_experiment_are_compared_round_by_round() {
    let rounds = [("epoll", [100.0, 200.0, 300.0, 400.0]), ("poll", [100.0, 201.0, 299.0, 401.0])];
    let mut side = variant("x.json", Some("epoll"), &rounds);
    for (entry, factor) in side.comparison.works[0].entries.iter_mut().zip([1.0, 1.5]) {
        let by_round = |each: [f64; 4]| each.map(|us| Some(us * factor)).to_vec();
        let response_time_us = by_round([10.0, 20.0, 31.0, 39.0]);
        entry.percentiles_by_round = vec![PercentileByRound { percentile: "p99".into(), response_time_us }];
        let cpu_us_per_request = by_round([5.0, 5.1, 5.2, 4.9]);
        entry.tiers_by_round = vec![TierByRound { name: "db".into(), on: None, cpu_us_per_request }];
    }
    let other = Variant { name: Some("poll".into()), ..side.clone() };
    let found = of_variants(&side, &other, "1").expect("both");
    let tier = Tier { name: "db".into(), on: None };
    for figure in
        [Figure::ResponseTimeQuantile { percentile: "p99".into() }, Figure::CpuPerRequestOf { tier }]
    {
        let ratio = ratio(&found, &figure);
        assert_eq!(ratio.basis, Basis::Rounds { rounds: 4 });
        assert!(ratio.changed && (ratio.ratio - 1.5).abs() < 1e-9, "{ratio:?}");
    }
}

#[test]
fn a_percentile_that_is_kept_by_round_lacks_rounds_where_it_has_no_interval() {
    let mut side = variant("x", Some("epoll"), &[("epoll", [100.0, 101.0, 99.0, 100.0])]);
    let response_time_us = vec![Some(10.0), None, None, None];
    let kept = PercentileByRound { percentile: "p99".into(), response_time_us };
    side.comparison.works[0].entries[0].percentiles_by_round = vec![kept];
    let found = of_variants(&side, &side, "1").expect("epoll");
    let p99 = ratio(&found, &Figure::ResponseTimeQuantile { percentile: "p99".into() });
    assert_eq!((p99.ci, p99.basis), (None, Basis::Nothing));
}
