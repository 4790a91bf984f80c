//! A server, or a tier behind it, that ended while it was measured, and was started anew.

use analysis::conclude::Context;
use analysis::counters::Role;
use analysis::resources::Replacement;
use analysis::run::{Processes, WarningKind};

use super::lab::{conclude, server, sweep};

/// A restart in the middle of a sweep was told by nothing but the requests that failed meanwhile.
#[test]
fn a_server_that_was_replaced_meanwhile_is_told_with_both() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    let steps = lab.observed();
    let of = |pid| Processes { name: "app".into(), pid: Some(pid), processes: 1, ..Processes::default() };
    let warned = |at_us| {
        let replaced = Some(Replacement { before: of(812), after: of(950), at_us, times: 1 });
        let found =
            conclude(&steps, &Context { replaced: replaced.into_iter().collect(), ..lab.context.clone() });
        let texts = found.warnings.into_iter().map(|warning| warning.text.as_str().to_owned());
        texts.filter(|text| text.contains("has served since")).collect::<Vec<_>>()
    };
    let during = warned(steps[3].step.measurement.window.0 + 1);
    assert!(
        during[0].starts_with("app (pid 812) ended while it was measured at 8 users, and app (pid 950)"),
        "{during:?}"
    );
    let afterwards = warned(u64::MAX);
    assert!(
        afterwards[0].starts_with("app (pid 812) ended while it was measured, and app (pid 950)"),
        "{afterwards:?}"
    );
    let found = conclude(&steps, &lab.context);
    assert!(!found.warnings.iter().any(|warning| warning.kind == WarningKind::Changed));
}

#[test]
fn every_tier_behind_that_was_replaced_is_told_as_one() {
    let lab = sweep().tier(server("app").demand_us(100.0).threads(4)).pool(4, 5_000.0);
    let tier = |name: &str, pid| Processes {
        role: Role::Downstream,
        name: name.into(),
        pid: Some(pid),
        processes: 1,
        on: None,
    };
    let one =
        |name| Replacement { before: tier(name, 912), after: tier(name, 950), at_us: u64::MAX, times: 2 };
    let replaced = vec![one("cache"), one("postgres")];
    let found = conclude(&lab.observed(), &Context { replaced, ..lab.context.clone() });
    let changed = found.warnings.iter().filter(|warning| warning.kind == WarningKind::Changed);
    let texts: Vec<&str> = changed.map(|warning| warning.text.as_str()).collect();
    let [cache, postgres] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(cache.starts_with("cache (pid 912), a tier behind the server, ended"), "{cache}");
    assert!(postgres.contains("postgres (pid 950) has served since (the first of 2 times)"), "{postgres}");
}
