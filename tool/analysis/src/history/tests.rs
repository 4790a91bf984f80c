//! Histories as a whole: which runs belong together, and what is found in them.

use super::*;
use crate::contrast::tests::sweep;

fn given(number: usize, throughput_per_s: f64) -> Given {
    let started =
        ["2026-11-21T17:25:", if number < 10 { "0" } else { "" }, &number.to_string(), "Z"].concat();
    let mut given = sweep(&number.to_string(), throughput_per_s, 100.0);
    given.run.started = started;
    given
}

/// So many runs, the throughput of each scattered by 1 % and times what `share` says of its number.
fn runs(count: usize, share: impl Fn(usize) -> f64) -> Vec<Given> {
    let wave = |number: usize| 1_000.0 + (number * 7 % 10) as f64;
    (0..count).map(|number| given(number, wave(number) * share(number))).collect()
}

fn of(runs: &[Given]) -> History {
    history(runs.iter().map(Brief::of).collect(), "1")
}

fn sizes(found: &History) -> Vec<usize> {
    found.courses.iter().map(|course| course.runs.len()).collect()
}

fn changes(found: &History) -> Vec<&ChangePoint> {
    found.courses.iter().flat_map(|course| &course.changes).collect()
}

#[test]
fn runs_are_sorted_by_time_and_a_drop_is_found() {
    let mut runs = runs(20, |number| if number < 12 { 1.0 } else { 0.95 });
    let copy = Given { file: "copy".into(), ..runs[3].clone() };
    runs.reverse();
    runs.push(copy);
    let found = of(&runs);
    let [course] = found.courses.as_slice() else { panic!("{found:?}") };
    assert_eq!(course.runs.len(), 20, "the copy counts once");
    assert!(course.runs.is_sorted_by(|a, b| a.started < b.started));
    let [change] = course.changes.as_slice() else { panic!("{:?}", course.changes) };
    assert_eq!((change.figure, change.first_run, change.file.as_str()), (Followed::Throughput, 12, "12"));
    assert!((change.ratio - 0.95).abs() < 0.005 && change.chance < 0.025, "{change:?}");
    let levels = course.levels(Followed::Throughput);
    assert_eq!(levels.iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>(), [(0, 11), (12, 19)]);
    let [(0, 19, users)] = course.levels(Followed::Users)[..] else { panic!("one level") };
    assert!((users - 4.0).abs() < 1e-9);
}

#[test]
fn other_loads_have_courses_of_their_own() {
    let mut one_load = given(1, 5.0);
    one_load.run.steps.truncate(1);
    let found = of(&[given(0, 5.0), one_load, given(2, 5.0)]);
    let shapes: Vec<_> = found.courses.iter().map(|course| (course.runs.len(), course.load)).collect();
    assert_eq!(shapes, [(2, None), (1, Some(OneLoad { users: 1, rate_per_s: None }))]);
    assert!(found.courses.iter().all(|course| course.told_apart_by.is_empty()), "the titles do");
    assert!(of(&[]).courses.is_empty());
}

#[test]
fn think_time_that_is_set_from_a_run_on_is_no_change_of_the_server() {
    let mut runs = runs(12, |number| if number < 6 { 1.0 } else { 0.8 });
    runs[6..].iter_mut().for_each(|given| given.run.load.think_time_us = 1e5);
    let found = of(&runs);
    assert_eq!((sizes(&found), changes(&found)), (vec![6, 6], vec![]));
    let told = |think_time_us| {
        vec![LoadSetting { aspect: Aspect::ThinkTime, setting: Setting::Number(think_time_us) }]
    };
    let found: Vec<_> = found.courses.into_iter().map(|course| course.told_apart_by).collect();
    assert_eq!(found, [told(0.0), told(1e5)]);
}

#[test]
fn another_body_is_another_load_and_files_that_do_not_tell_it_belong_with_those_before() {
    let mut runs = runs(16, |number| if number < 10 { 1.0 } else { 0.8 });
    for (number, given) in runs.iter_mut().enumerate() {
        // The first are from before digests were kept; one was made by an old nstar later.
        given.run.sent_digest = match number {
            0..4 | 12 => None,
            4..10 => Some("0badcafe".into()),
            _ => Some("5eed5eed".into()),
        };
    }
    let found = of(&runs);
    assert_eq!((sizes(&found), changes(&found)), (vec![10, 6], vec![]));
    let told: Vec<_> = found.courses.iter().flat_map(|course| &course.told_apart_by).collect();
    assert!(told.iter().all(|setting| setting.aspect == Aspect::Sent) && told.len() == 2, "{told:?}");
}

#[test]
fn another_machine_is_told_at_the_run_that_came_with_it() {
    let mut runs = runs(12, |number| if number < 8 { 1.0 } else { 0.8 });
    runs[8..].iter_mut().for_each(|given| given.run.host.kernel = "6.8".into());
    let found = of(&runs);
    let [course] = found.courses.as_slice() else { panic!("{found:?}") };
    assert_eq!(course.changes.len(), 1, "{:?}", course.changes);
    let [told] = course.differences.as_slice() else { panic!("{:?}", course.differences) };
    let aspects: Vec<&Aspect> = told.differences.iter().map(|difference| &difference.aspect).collect();
    assert_eq!((told.run, told.file.as_str(), aspects), (8, "8", vec![&Aspect::Kernel]));
}

#[test]
fn lower_bounds_are_no_fall() {
    let mut runs = runs(12, |number| if number < 8 { 1.0 } else { 0.5 });
    assert_eq!(changes(&of(&runs)).len(), 1, "of runs that were driven to the limit it is one");
    runs[8..].iter_mut().for_each(|given| given.run.verdict.bounded = false);
    let found = of(&runs);
    assert_eq!((sizes(&found), changes(&found)), (vec![12], vec![]));
    assert_eq!(found.courses[0].runs.iter().filter(|run| run.lower_bound).count(), 4);
    assert_eq!(Followed::Throughput.known_in(&found.courses[0].runs), 8);
}

#[test]
fn a_change_for_the_worse_is_that_of_the_load_measured_last() {
    let fell = runs(12, |number| if number < 8 { 1.0 } else { 0.8 });
    let found = of(&fell);
    let within = |of: &History, runs| of.measured_last().map_or(0, |course| course.worse_within(runs).len());
    assert_eq!((within(&found, 4), within(&found, 3)), (1, 0), "it came with the fourth from the end");
    let rose = of(&runs(12, |number| if number < 8 { 1.0 } else { 1.2 }));
    assert_eq!((changes(&rose).len(), within(&rose, 12)), (1, 0));
    let mended = of(&runs(24, |number| match number {
        0..12 => 1.0,
        12..18 => 0.6,
        _ => 0.8,
    }));
    assert_eq!((changes(&mended).len(), within(&mended, 24)), (2, 0), "the last change is what counts");
    let mut other = given(30, 1_000.0);
    other.run.load.think_time_us = 1e5;
    assert_eq!(within(&of(&[fell, vec![other]].concat()), 12), 0, "another load was measured last");
    assert_eq!(of(&[]).measured_last(), None);
}

#[test]
fn a_cost_that_rose_is_for_the_worse() {
    let one = |number: usize| {
        let mut given = given(number, 1_000.0 + (number * 7 % 10) as f64);
        let dearer = if number < 8 { 1.0 } else { 1.3 };
        let costs = given.run.steps.iter_mut().flat_map(|step| &mut step.resources);
        costs.for_each(|resource| resource.used *= dearer);
        given
    };
    let found = of(&(0..12).map(one).collect::<Vec<_>>());
    let course = found.measured_last().expect("a course");
    let worse: Vec<Followed> = course.worse_within(4).iter().map(|change| change.figure).collect();
    assert_eq!(worse, [Followed::CpuPerRequest]);
}
