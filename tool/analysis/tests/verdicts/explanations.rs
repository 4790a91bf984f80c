//! Explanations that compete: how probable each is, and what is said where none is probable enough.

use analysis::counters::{ProcessLook, ThreadLook, ThreadState};
use analysis::run::{Bottleneck, Doubt, ResourceKind, TellApart};

use super::calibration;
use super::lab::{Lab, Observed, Sure, conclude, server, sure, sweep};
use super::queue::{Gate, System, Varies};

fn pool(workers: u32) -> Lab {
    sweep().tier(server("app").demand_us(20.0).threads(8)).pool(workers, 5_000.0)
}

/// What was said, and the two explanations and the measurement of the doubt.
fn undecided(lab: &Lab) -> (Bottleneck, Option<(ResourceKind, Option<ResourceKind>, TellApart)>) {
    let verdict = lab.conclude().verdict;
    let found = verdict.doubts.iter().find_map(|doubt| match doubt {
        Doubt::Undecided { best, next, tell_apart } => {
            Some((best.kind, next.as_ref().map(|next| next.kind), *tell_apart))
        }
        _ => None,
    });
    (verdict.bottleneck, found)
}

fn adds_up(of: &Bottleneck) {
    let all: f64 = of.alternatives.iter().map(|other| other.probability.share()).sum();
    assert!(of.confidence.share() + all <= 1.0 + 1e-9, "{of:#?}");
    let sorted = of.alternatives.windows(2).all(|pair| pair[0].probability >= pair[1].probability);
    assert!(sorted && of.alternatives.len() <= 3, "{of:#?}");
}

#[test]
fn a_pool_of_four_is_said_with_its_size_and_the_next_best() {
    let (said, doubt) = undecided(&pool(4));
    assert_eq!((said.kind, said.at_a_time), (ResourceKind::WorkerPool, Some(4)));
    assert!((0.8..0.95).contains(&said.confidence.share()), "{said:#?}");
    assert_eq!(said.alternatives[0].kind, ResourceKind::Lock, "{said:#?}");
    assert_eq!(doubt, None);
    adds_up(&said);
}

#[test]
fn between_one_and_a_pool_it_is_open_and_a_pair_would_tell() {
    let (said, doubt) = undecided(&pool(2).delay_us(600.0));
    let (best, next, tell_apart) = doubt.unwrap_or_else(|| panic!("{said:#?}"));
    let mut both = [Some(best), next];
    both.sort();
    assert_eq!(both, [Some(ResourceKind::Lock), Some(ResourceKind::WorkerPool)]);
    assert_eq!((tell_apart, said.kind), (TellApart::PairTest, best));
    adds_up(&said);
}

#[test]
fn threads_that_pile_up_make_a_lock_surer() {
    let of = |tier| sweep().tier(tier).pool(1, 5_000.0).conclude().verdict.bottleneck;
    let app = server("app").demand_us(20.0).threads(8).state(ThreadState::Futex);
    let (idle, piling) = (of(app.clone()), of(app.thread_per_user()));
    assert_eq!((idle.kind, piling.kind), (ResourceKind::Lock, ResourceKind::Lock));
    assert!(piling.confidence > idle.confidence, "{idle:#?} {piling:#?}");
}

/// What is said of one at a time if closer looks with 1, 2 and 4 users found so many of 40 threads at one futex.
fn looked_at(at_one: impl Fn(u32) -> usize) -> Bottleneck {
    let tier = server("app").demand_us(20.0).threads(40).state(ThreadState::Futex);
    let lab = sweep().tier(tier).delay_us(1_500.0).pool(1, 5_000.0);
    let mut steps = lab.observed();
    for seen in steps.iter_mut().filter(|seen| seen.step.users <= 4) {
        let look = |number: u64| {
            let wobble = usize::from(number.is_multiple_of(3));
            let futexes = vec![0x7f00; at_one(seen.step.users) + wobble];
            let process =
                ProcessLook { name: "app".into(), threads: 40, looked_at: 40, futexes, ..Default::default() };
            ThreadLook { at_us: seen.step.measurement.window.0 + number * 40_000, processes: vec![process] }
        };
        seen.looks = (0..50).map(look).collect();
    }
    conclude(&steps, &lab.context).verdict.bottleneck
}

#[test]
fn threads_at_one_futex_that_grow_with_the_users_are_a_lock_and_others_idle() {
    let queue = looked_at(|users| users as usize - 1);
    let [idle, shrinking] = [looked_at(|_| 30), looked_at(|users| 36 - 4 * users as usize)];
    assert_eq!(queue.kind, ResourceKind::Lock, "{queue:#?}");
    let said = "3.3 (3.3 to 3.4) of the server's threads waited at one futex with 4 users, 1.3";
    assert!(queue.evidence.iter().any(|seen| seen.starts_with(said)), "{queue:#?}");
    for other in [idle, shrinking] {
        assert!(other.confidence < queue.confidence, "{other:#?}");
        assert!(!other.evidence.iter().any(|seen| seen.contains("futex")), "{other:#?}");
    }
}

/// What is said of a server that computes next to nothing, if so many threads were found asleep with so many users.
fn with_asleep(gate: Gate, asleep: impl Fn(u32) -> Option<u32>) -> Bottleneck {
    let system = System { gate, beside_us: 54_000.0, varies: Varies::Never };
    let see = |observed: &mut Observed| {
        if let Some(threads) = asleep(observed.step.users) {
            calibration::asleep(observed, threads);
        }
    };
    let found = calibration::measured(&calibration::idle(), system, &mut fastrand::Rng::with_seed(7), see);
    found.verdict.bottleneck
}

fn share_of(said: &Bottleneck, kind: ResourceKind) -> f64 {
    let other = said.alternatives.iter().find(|other| other.kind == kind);
    if said.kind == kind {
        said.confidence.share()
    } else {
        other.map_or(0.0, |other| other.probability.share())
    }
}

#[test]
fn threads_that_sleep_for_each_additional_user_are_a_limit_on_the_rate() {
    let limit = |asleep: &dyn Fn(u32) -> Option<u32>| with_asleep(Gate::Rate(10_000.0), asleep);
    let (delayed, unknown, constant) = (limit(&Some), limit(&|_| None), limit(&|users| Some(users.min(6))));
    assert_eq!(delayed.kind, ResourceKind::RateLimit, "{delayed:#?}");
    assert!(delayed.confidence.share() > 0.65, "{delayed:#?}");
    assert!(delayed.evidence[0].contains("slept until a time with 32 users"), "{delayed:#?}");
    let share = |said| share_of(said, ResourceKind::RateLimit);
    assert!(share(&unknown) > share(&constant) && share(&unknown) < 0.3, "{unknown:#?} {constant:#?}");
    assert!(!constant.evidence.iter().any(|seen| seen.contains("slept until")), "{constant:#?}");
}

/// The holder sleeps, and so does whoever is still on the way to the lock: as many as throughput allows, and no more.
#[test]
fn sleep_beside_a_lock_and_under_it_does_not_grow_with_the_users() {
    let lock = |asleep: &dyn Fn(u32) -> Option<u32>| with_asleep(Gate::Servers(1, 10_000.0), asleep);
    let (seen, unseen) = (lock(&|users| Some(users.min(6))), lock(&|_| None));
    let share = |said| share_of(said, ResourceKind::Lock);
    assert!(share(&seen) >= share(&unseen), "{seen:#?} {unseen:#?}");
    assert!(
        share_of(&seen, ResourceKind::RateLimit) < share_of(&unseen, ResourceKind::RateLimit),
        "{seen:#?}"
    );
}

/// Two tiers that each fill a processor of their own, the second with so much more to do.
fn tiers(more: f64) -> Lab {
    let behind = server("db").downstream().demand_us(100.0 * more).cpus(&[1]);
    sweep().tier(server("app").demand_us(100.0).cpus(&[0])).tier(behind)
}

#[test]
fn two_tiers_that_are_as_full_share_the_probability() {
    let (said, doubt) = undecided(&tiers(1.0));
    assert_eq!(doubt.map(|(_, _, how)| how), Some(TellApart::Confirm), "{said:#?}");
    assert_eq!(said.alternatives.len(), 1, "{said:#?}");
    assert!((said.confidence.share() - said.alternatives[0].probability.share()).abs() < 0.1, "{said:#?}");
    adds_up(&said);
}

#[test]
fn a_tier_that_is_clearly_fuller_is_the_one() {
    let found = tiers(1.2).conclude();
    assert_eq!(sure(&found), Sure::Direct, "{:#?}", found.verdict.bottleneck);
    assert!(found.verdict.is_conclusive());
}
