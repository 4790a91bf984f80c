//! Publications and claims held against measurements made by hand.

use super::*;
use crate::run::{Explanation, Processes, TellApart};
use crate::ticks::ErrorKind;

fn entry(variant: &str, throughput_per_s: f64, place: [u32; 2]) -> Entry {
    Entry {
        variant: variant.to_owned(),
        place: Some(place),
        throughput_per_s,
        throughput_ci_per_s: [0.98, 1.02].map(|end| end * throughput_per_s),
        users: Some(8),
        completed: 10_000,
        ..Entry::default()
    }
}

/// A sweep that saturates at so many users, limited by a kind of resource that `nginx` holds.
fn swept(variant: &str, points: &[(u32, f64)], users_ci: [u32; 2], kind: ResourceKind) -> Entry {
    let nginx = Processes { name: "nginx".to_owned(), ..Processes::default() };
    let at = |(users, throughput_per_s): &(u32, f64)| AtUsers {
        users: *users,
        throughput_per_s: *throughput_per_s,
        response_time_us: 100.0,
        little_gap: 0.0,
    };
    let identity = Some(Identity::Processes(nginx));
    Entry {
        users_ci: Some(users_ci),
        bottleneck: vec![Limit { kind, holder: Words::default(), identity }],
        steps: points.iter().map(at).collect(),
        ..entry(variant, points.iter().map(|point| point.1).fold(0.0, f64::max), [1, 1])
    }
}

fn comparison(works: Vec<(&str, Vec<Entry>)>) -> Comparison {
    let work = |(name, entries): (&str, Vec<Entry>)| Workload {
        name: name.to_owned(),
        entries,
        ..Workload::default()
    };
    Comparison {
        schema: SCHEMA.to_owned(),
        factor: Factor("engine".to_owned()),
        seed: 1,
        works: works.into_iter().map(work).collect(),
        ..Comparison::default()
    }
}

fn figures(all: &[(&str, f64)]) -> Published {
    let figure =
        |(variant, value): &(&str, f64)| PublishedFigure { variant: (*variant).to_owned(), value: *value };
    Published { figures: all.iter().map(figure).collect(), ..Published::default() }
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

fn met(comparison: &Comparison, requires: Requirement) -> Option<bool> {
    checked(comparison, &Claim { requires, ..Claim::default() }).met
}

/// S5's published times: `select` first, then polling and threads, which are alike, then `aio`.
#[test]
fn an_order_agrees_as_far_as_places_decide() {
    let times = [("threads", 49_350.0), ("aio", 58_890.0), ("polling", 47_295.0), ("select", 38_370.0)];
    let published = Published { smaller_is_better: true, ..figures(&times) };
    let measured = comparison(vec![(
        "100 KB",
        vec![
            entry("select", 900.0, [2, 2]),
            entry("threads", 1_000.0, [1, 1]),
            entry("polling", 800.0, [3, 4]),
            entry("aio", 790.0, [3, 4]),
        ],
    )]);
    let found = agreement(&measured, &published, &[]);
    let [AgreementFinding::Order { agrees: Some(false), pairs }] = found.as_slice() else {
        panic!("{found:?}")
    };
    // Threads and polling differ by 4 %, which is no published order.
    assert_eq!((pairs.pairs, pairs.agree, pairs.open()), (5, 3, 1));
    assert_eq!(pairs.reversed, [["threads", "select"].map(str::to_owned)]);
    let groups =
        |all: &[&[&str]]| Requirement::Order { variants: all.iter().map(|names_| names(names_)).collect() };
    assert_eq!(met(&measured, groups(&[&["threads"], &["select"], &["polling", "aio"]])), Some(true));
    assert_eq!(met(&measured, groups(&[&["threads"], &["polling"], &["aio"]])), None);
    assert_eq!(met(&measured, groups(&[&["select"], &["threads"]])), Some(false));
}

/// Places overlap where a variant between two is in order with neither of them.
#[test]
fn a_pair_in_order_agrees_though_its_places_overlap() {
    let mut measured = comparison(vec![(
        "w",
        vec![entry("a", 100.0, [1, 2]), entry("b", 97.0, [1, 3]), entry("c", 90.0, [2, 3])],
    )]);
    let published = figures(&[("a", 30.0), ("b", 20.0), ("c", 10.0)]);
    let agreeing = |measured: &Comparison| match agreement(measured, &published, &[]).as_slice() {
        [AgreementFinding::Order { pairs, .. }] => (pairs.agree, pairs.open()),
        other => panic!("{other:?}"),
    };
    assert_eq!(agreeing(&measured), (0, 3));
    measured.works[0].in_order = vec![["a", "c"].map(str::to_owned)];
    assert_eq!(agreeing(&measured), (1, 2));
    measured.works[0].entries[0].doubts = vec![Doubt::GeneratorTookMore];
    assert_eq!(agreeing(&measured), (0, 3));
}

#[test]
fn a_publication_of_another_workload_agrees_in_nothing() {
    let measured = comparison(vec![("a", vec![entry("1", 1.0, [1, 1])]), ("b", Vec::new())]);
    let of = |work: Option<&str>| Published {
        work: work.map(str::to_owned),
        bottleneck: Some(ResourceKind::Disk),
        ..Published::default()
    };
    assert_eq!(agreement(&measured, &of(None), &[]), []);
    assert_eq!(agreement(&measured, &of(Some("c")), &[]), []);
    assert_eq!(agreement(&measured, &of(Some("a")), &[]).len(), 1);
}

/// Three variants were asked for and one could not be measured: nothing that was published of all of them agrees.
#[test]
fn what_was_not_measured_agrees_in_nothing() {
    let agrees = |variants: &[&str]| {
        let points = [(1, 1.0), (8, 8.0)];
        let entries = ["1", "2"].map(|name| Entry {
            place: Some([name.parse().expect("a place"); 2]),
            ..swept(name, &points, [8, 8], ResourceKind::Cpu)
        });
        let measured = Comparison { variants: names(variants), ..comparison(vec![("w", entries.to_vec())]) };
        let published = Published {
            bottleneck: Some(ResourceKind::Cpu),
            users_at_saturation: Some(8),
            ..figures(&[("1", 30.0), ("2", 20.0), ("3", 10.0)])
        };
        let found = agreement(&measured, &published, &[]);
        found
            .iter()
            .filter(|one| !matches!(one, AgreementFinding::Shape { .. }))
            .map(AgreementFinding::agrees)
            .collect::<Vec<_>>()
    };
    assert_eq!(agrees(&["1", "2"]), [Some(true); 3]);
    assert_eq!(agrees(&["1", "2", "3"]), [None; 3]);
}

#[test]
fn users_shape_and_bottleneck_are_held_against_the_variant_that_is_alike() {
    let ours = [(1, 100.0), (10, 900.0), (30, 1_000.0), (300, 980.0)];
    let measured = comparison(vec![(
        "book",
        vec![
            swept("mariadb", &ours, [10, 30], ResourceKind::SingleThread),
            swept("sqlite", &ours, [10, 30], ResourceKind::Disk),
        ],
    )]);
    let point = |(users, per_s): &(u32, f64)| PublishedPoint { users: *users, per_s: *per_s, ms: 1.0 };
    let published = Published {
        variant: Some("mariadb".to_owned()),
        bottleneck: Some(ResourceKind::Cpu),
        users_at_saturation: Some(300),
        points: [(1, 15.0), (30, 110.0), (300, 425.0)].iter().map(point).collect(),
        ..Published::default()
    };
    let found = agreement(&measured, &published, &[]);
    let agrees: Vec<Option<bool>> = found.iter().map(AgreementFinding::agrees).collect();
    // The published curve still grows at its end and ours does not; one busy thread is short of processor time too.
    assert_eq!(agrees, [Some(false), Some(true), Some(false)], "{found:?}");
    let AgreementFinding::Shape { gap: Some(gap), .. } = &found[0] else { panic!("{found:?}") };
    assert_eq!((gap.at, gap.measured), (30.0, 1.0));
}

#[test]
fn what_cannot_be_relied_on_stays_open() {
    let points = [(1, 100.0), (8, 800.0), (64, 810.0)];
    let sure = swept("epoll", &points, [4, 8], ResourceKind::Disk);
    let doubtful = Entry { doubts: vec![Doubt::GeneratorTookMore], ..sure.clone() };
    let undecided = Entry { doubts: vec![undecided()], ..sure.clone() };
    let generator = swept("epoll", &points, [4, 8], ResourceKind::Generator);
    let unbounded =
        Entry { lower_bound: true, users_ci: None, ..swept("epoll", &points, [4, 8], ResourceKind::None) };
    let single = Entry { bottleneck: Vec::new(), steps: Vec::new(), ..sure.clone() };
    let held = |entry: &Entry, resource| {
        let measured = comparison(vec![("w", vec![entry.clone()])]);
        met(&measured, Requirement::Bottleneck { resource, or: Vec::new(), holder: None })
    };
    assert_eq!(held(&sure, ResourceKind::Disk), Some(true));
    assert_eq!(held(&sure, ResourceKind::Cpu), Some(false));
    let either = |or| {
        let requires = Requirement::Bottleneck { resource: ResourceKind::Memory, or, holder: None };
        met(&comparison(vec![("w", vec![sure.clone()])]), requires)
    };
    assert_eq!(either(vec![ResourceKind::Disk]), Some(true), "one of several");
    assert_eq!(either(vec![ResourceKind::Network]), Some(false));
    for open in [&doubtful, &undecided, &unbounded, &single] {
        assert_eq!(held(open, ResourceKind::Disk), None, "{open:?}");
    }
    assert_eq!(held(&generator, ResourceKind::Disk), None);
    assert_eq!(held(&generator, ResourceKind::Generator), Some(true));
    let saturates = |entry: &Entry, users| {
        met(&comparison(vec![("w", vec![entry.clone()])]), Requirement::Saturates { users })
    };
    assert_eq!(saturates(&sure, [1, 8]), Some(true));
    // Ours, 4 to 8, lies partly within.
    assert_eq!(saturates(&sure, [1, 4]), None);
    assert_eq!(saturates(&sure, [9, 100]), Some(false));
    for open in [&doubtful, &unbounded, &single, &generator] {
        assert_eq!(saturates(open, [1, 8]), None, "{open:?}");
    }
}

#[test]
fn the_holder_of_a_bottleneck_may_be_claimed() {
    let measured = comparison(vec![("w", vec![swept("1", &[(1, 1.0)], [1, 1], ResourceKind::Cpu)])]);
    let held = |holder: &str| {
        met(
            &measured,
            Requirement::Bottleneck {
                resource: ResourceKind::Cpu,
                or: Vec::new(),
                holder: Some(holder.to_owned()),
            },
        )
    };
    assert_eq!((held("nginx"), held("mariadbd")), (Some(true), Some(false)));
}

#[test]
fn trends_go_over_variants_and_over_workloads() {
    let row = |of: &[f64]| -> Vec<Entry> {
        let named = of.iter().enumerate();
        named.map(|(index, figure)| entry(&(index + 1).to_string(), *figure, [1, 3])).collect()
    };
    let measured =
        comparison(vec![("few", row(&[100.0, 200.0, 400.0])), ("many", row(&[400.0, 390.0, 400.0]))]);
    let trend = |works: &[&str], course, over_works| {
        let requires = Requirement::Trend { course, of: Quantity::Throughput, over_works };
        checked(&measured, &Claim { works: names(works), requires, ..Claim::default() }).met
    };
    assert_eq!(trend(&["few"], Trend::Grows, false), Some(true));
    assert_eq!(trend(&["few"], Trend::Flat, false), Some(false));
    assert_eq!(trend(&["many"], Trend::Flat, false), Some(true));
    assert_eq!(trend(&["many"], Trend::Falls, false), Some(false));
    // From few to many the first variant grows and the last does not.
    assert_eq!(trend(&[], Trend::Grows, true), Some(false));
    assert_eq!(trend(&["gone"], Trend::Grows, false), None);
}

#[test]
fn a_trend_within_its_interval_stays_open() {
    let wide = |name: &str, figure: f64| Entry {
        throughput_ci_per_s: [0.7 * figure, 1.3 * figure],
        ..entry(name, figure, [1, 2])
    };
    let measured = comparison(vec![("w", vec![wide("1", 100.0), wide("2", 120.0)])]);
    for course in [Trend::Flat, Trend::Grows, Trend::Falls] {
        let requires = Requirement::Trend { course, of: Quantity::Throughput, over_works: false };
        assert_eq!(met(&measured, requires), None, "{course:?}");
    }
}

#[test]
fn denials_and_proofs_are_counted() {
    let mut denied = entry("1", 100.0, [1, 1]);
    denied.errors.insert(ErrorKind::Unavailable, 10_000);
    denied.proofs = vec![Proof { holds: false, ..Proof::default() }];
    let measured = comparison(vec![("w", vec![denied])]);
    let claim = checked(&measured, &Claim { requires: Requirement::Denied, ..Claim::default() });
    assert_eq!((claim.met, &claim.cases[0].seen), (Some(true), &Seen::Denied { share: 0.5 }));
    assert_eq!(met(&measured, Requirement::Proven), Some(false));
    let proves_nothing = comparison(vec![("w", vec![entry("1", 100.0, [1, 1])])]);
    assert_eq!(met(&proves_nothing, Requirement::Proven), None);
    assert_eq!(met(&proves_nothing, Requirement::Denied), Some(false));
}

#[test]
fn a_variant_that_was_left_out_stays_open() {
    let measured = comparison(vec![("w", vec![swept("1", &[(1, 1.0)], [1, 1], ResourceKind::Cpu)])]);
    let requires = Requirement::Bottleneck { resource: ResourceKind::Cpu, or: Vec::new(), holder: None };
    let claim = checked(&measured, &Claim { variants: names(&["1", "2"]), requires, ..Claim::default() });
    assert_eq!((claim.met, claim.cases.len()), (None, 2));
}

fn undecided() -> Doubt {
    Doubt::Undecided { best: Explanation::default(), next: None, tell_apart: TellApart::Confirm }
}

#[test]
fn what_is_in_doubt_shows_neither_order_nor_trend() {
    let doubted = |entry: Entry| Entry { doubts: vec![Doubt::GeneratorTookMore], ..entry };
    let [fast, slow] = [entry("a", 200.0, [1, 1]), entry("b", 100.0, [2, 2])];
    let order = || Requirement::Order { variants: vec![names(&["a"]), names(&["b"])] };
    let falls = || Requirement::Trend { course: Trend::Falls, of: Quantity::Throughput, over_works: false };
    let published = figures(&[("a", 20.0), ("b", 10.0)]);
    for (entries, expected) in
        [(vec![fast.clone(), slow.clone()], Some(true)), (vec![fast.clone(), doubted(slow.clone())], None)]
    {
        let measured = comparison(vec![("w", entries)]);
        assert_eq!((met(&measured, order()), met(&measured, falls())), (expected, expected));
        assert_eq!(agreement(&measured, &published, &[])[0].agrees(), expected);
    }
    let cause_unknown = Entry { doubts: vec![undecided()], ..slow.clone() };
    let measured = comparison(vec![("w", vec![fast.clone(), cause_unknown])]);
    assert_eq!(met(&measured, order()), Some(true), "the figures hold whatever the cause is");
    let mut overload = comparison(vec![("w", vec![fast, slow])]);
    overload.works[0].overload = true;
    overload.works[0].entries[1].doubts = vec![Doubt::ManyFailed { share: 0.4 }];
    assert_eq!((met(&overload, order()), met(&overload, falls())), (Some(true), Some(true)));
}

#[test]
fn a_wide_interval_agrees_with_no_published_saturation() {
    let agrees = |users_ci, users| {
        let points = [(1, 100.0), (8, 800.0), (64, 810.0)];
        let measured = comparison(vec![("w", vec![swept("1", &points, users_ci, ResourceKind::Cpu)])]);
        let published = Published { users_at_saturation: Some(users), ..Published::default() };
        agreement(&measured, &published, &[])[0].agrees()
    };
    assert_eq!(agrees([4, 16], 8), Some(true));
    assert_eq!(agrees([4, 17], 8), None);
    assert_eq!(agrees([4, 17], 18), Some(false));
}

/// Two figures that are alike, with a third between them whose interval reaches far beyond both.
#[test]
fn flat_allows_for_every_interval() {
    let flat = |middle: [f64; 2]| {
        let mut entries: Vec<Entry> = [("1", 100.0), ("2", 101.0), ("3", 102.0)]
            .map(|(name, figure)| entry(name, figure, [1, 3]))
            .into();
        entries[1].throughput_ci_per_s = middle;
        let requires =
            Requirement::Trend { course: Trend::Flat, of: Quantity::Throughput, over_works: false };
        met(&comparison(vec![("w", entries)]), requires)
    };
    assert_eq!(flat([99.0, 103.0]), Some(true));
    assert_eq!(flat([60.0, 140.0]), None);
    assert_eq!(flat([120.0, 140.0]), Some(false));
}

#[test]
fn a_trend_of_a_quantity_without_an_interval_stays_open() {
    let costs = |name: &str, rounds: &[f64]| Entry {
        cpu_us_per_request: rounds.first().copied(),
        cpu_us_per_request_by_round: rounds.iter().copied().map(Some).collect(),
        response_time_us_by_round: rounds.iter().copied().map(Some).collect(),
        ..entry(name, 100.0, [1, 2])
    };
    for of in [Quantity::CpuTime, Quantity::ResponseTime] {
        let grows = |rounds: usize| {
            let entries = [("1", [10.0, 10.1, 9.9]), ("2", [20.0, 20.1, 19.9])]
                .map(|(name, all)| costs(name, &all[..rounds]));
            let requires = Requirement::Trend { course: Trend::Grows, of, over_works: false };
            checked(&comparison(vec![("w", entries.into())]), &Claim { requires, ..Claim::default() })
        };
        assert_eq!(grows(3).met, Some(true));
        assert_eq!(grows(2).cases[0].seen, Seen::Open { why: Open::NoInterval });
    }
}

#[test]
fn bytes_received_are_as_uncertain_as_throughput() {
    let received = |name: &str, half_width: f64, received_bytes_per_s: f64| Entry {
        throughput_ci_per_s: [1.0 - half_width, 1.0 + half_width].map(|end| end * 100.0),
        received_bytes_per_s,
        ..entry(name, 100.0, [1, 2])
    };
    for (half_width, expected) in [(0.02, Some(true)), (0.5, None)] {
        let entries = vec![received("1", half_width, 1e6), received("2", half_width, 2e6)];
        let requires = Requirement::Trend { course: Trend::Grows, of: Quantity::Received, over_works: false };
        assert_eq!(met(&comparison(vec![("w", entries)]), requires), expected);
    }
}

#[test]
fn a_trend_must_be_certain_to_go_beyond_the_threshold() {
    let trend = |last: f64, course| {
        let entries = vec![entry("1", 100.0, [1, 2]), entry("2", last, [1, 2])];
        let requires = Requirement::Trend { course, of: Quantity::Throughput, over_works: false };
        met(&comparison(vec![("w", entries)]), requires)
    };
    // Each interval is 2 % to either side.
    assert_eq!((trend(118.0, Trend::Grows), trend(122.0, Trend::Grows)), (None, Some(true)));
    assert_eq!((trend(85.0, Trend::Falls), trend(82.0, Trend::Falls)), (None, Some(true)));
}

#[test]
fn a_claim_is_met_only_where_all_that_it_names_was_measured() {
    let proof = Proof { holds: true, ..Proof::default() };
    let proved = |name: &str| Entry { proofs: vec![proof.clone()], ..entry(name, 100.0, [1, 1]) };
    let measured = comparison(vec![("w", vec![proved("sqlite"), entry("mariadb", 50.0, [2, 2])])]);
    let of = |requires: Requirement, works: &[&str], variants: &[&str]| {
        let claim = Claim { works: names(works), variants: names(variants), requires, ..Claim::default() };
        checked(&measured, &claim)
    };
    assert_eq!(of(Requirement::Proven, &["w"], &["sqlite"]).met, Some(true));
    assert_eq!(of(Requirement::Proven, &["w"], &["sqlite", "postgresql"]).met, None);
    assert_eq!(of(Requirement::Proven, &["w", "gone"], &["sqlite"]).met, None);
    let order = |last: &str| Requirement::Order {
        variants: ["sqlite", "mariadb", last].map(|name| names(&[name])).into(),
    };
    let missing = Case { work: "w".to_owned(), variant: "postgresql".to_owned(), ..Case::not_measured() };
    let ordered = of(order("postgresql"), &[], &[]);
    assert_eq!((ordered.met, ordered.cases.last()), (None, Some(&missing)));
    let falls =
        |over_works| Requirement::Trend { course: Trend::Falls, of: Quantity::Throughput, over_works };
    assert_eq!(of(falls(false), &[], &["sqlite", "mariadb"]).met, Some(true));
    assert_eq!(of(falls(false), &[], &["sqlite", "mariadb", "postgresql"]).cases, [missing]);
    assert_eq!(of(falls(true), &["w", "gone"], &[]).met, None);
}

#[test]
fn only_refusals_are_denials() {
    let denied = |kind, completed| {
        let errors = ErrorCounts::from([(kind, 10_000)]);
        let entries = vec![Entry { completed, errors, ..entry("1", 100.0, [1, 1]) }];
        met(&comparison(vec![("w", entries)]), Requirement::Denied)
    };
    for kind in [ErrorKind::Unavailable, ErrorKind::Refused, ErrorKind::Reset] {
        assert_eq!((denied(kind, 10_000), denied(kind, 0)), (Some(true), Some(true)), "{kind:?}");
    }
    assert_eq!((denied(ErrorKind::TimedOut, 10_000), denied(ErrorKind::TimedOut, 0)), (Some(false), None));
}

/// One connection that was reset among a million requests met the claim that clients are denied.
#[test]
fn a_few_denials_decide_nothing() {
    let denied = |resets: u64| {
        let errors = ErrorCounts::from([(ErrorKind::Reset, resets)]);
        let entries = vec![Entry { completed: 1_000_000, errors, ..entry("1", 100.0, [1, 1]) }];
        met(&comparison(vec![("w", entries)]), Requirement::Denied)
    };
    assert_eq!([0, 1, 2_000].map(denied), [Some(false), None, Some(true)]);
}

/// Ours levels off where the published curve was never looked at.
#[test]
fn shapes_are_compared_over_the_users_that_both_had() {
    let point = |(users, per_s): (u32, f64)| PublishedPoint { users, per_s, ms: 1.0 };
    let agrees = |published: &[(u32, f64)]| {
        let ours = [(1, 100.0), (2, 200.0), (4, 400.0), (8, 410.0), (16, 405.0)];
        let measured = comparison(vec![("w", vec![swept("1", &ours, [4, 8], ResourceKind::Cpu)])]);
        let points = published.iter().copied().map(point).collect();
        agreement(&measured, &Published { points, ..Published::default() }, &[])[0].agrees()
    };
    assert_eq!(agrees(&[(1, 1.0), (2, 2.0), (4, 4.0)]), Some(true));
    assert_eq!(agrees(&[(1, 1.0), (8, 4.0), (16, 4.0)]), Some(true));
    assert_eq!(agrees(&[(1, 1.0), (8, 4.0), (16, 2.0)]), Some(false));
    assert_eq!(agrees(&[(8, 1.0), (16, 2.0), (32, 4.0), (64, 4.0)]), None);
}

/// The run in the middle levels off as published; the two others fall to 80 % of their maximum.
#[test]
fn a_shape_that_is_another_one_in_other_runs_stays_open() {
    let point = |(users, per_s): (u32, f64)| PublishedPoint { users, per_s, ms: 1.0 };
    let points = [(1, 1.0), (8, 4.0), (16, 4.0)].map(point).to_vec();
    let published = Published { points, ..Published::default() };
    let curve = |end| swept("1", &[(1, 100.0), (8, 400.0), (16, end)], [4, 8], ResourceKind::Cpu);
    let agrees = |ends: [f64; 3]| {
        let steps_by_run = ends.map(|end| curve(end).steps).to_vec();
        let measured = comparison(vec![("w", vec![Entry { steps_by_run, ..curve(ends[1]) }])]);
        agreement(&measured, &published, &[])[0].agrees()
    };
    assert_eq!(agrees([395.0, 390.0, 398.0]), Some(true));
    assert_eq!(agrees([320.0, 390.0, 320.0]), None);
    assert_eq!(agrees([320.0, 310.0, 320.0]), Some(false));
}

/// All rounds together are flat within 10 %, as published; without the second, the last is below.
#[test]
fn a_shape_over_variants_that_hangs_on_one_round_stays_open() {
    let published = figures(&[("1", 5.88), ("2", 5.88), ("3", 5.88)]);
    let agrees = |last: [f64; 3]| {
        let with = |variant: &str, rounds: [f64; 3]| Entry {
            throughput_by_round_per_s: rounds.map(Some).to_vec(),
            ..entry(variant, rounds.iter().sum::<f64>() / 3.0, [1, 3])
        };
        let entries = vec![with("1", [100.0; 3]), with("2", [100.0; 3]), with("3", last)];
        agreement(&comparison(vec![("w", entries)]), &published, &[])[0].agrees()
    };
    assert_eq!(agrees([97.0, 99.0, 98.0]), Some(true));
    assert_eq!(agrees([85.0, 100.0, 87.0]), None);
    assert_eq!(agrees([70.0, 72.0, 71.0]), Some(false));
}

#[test]
fn a_publication_with_nothing_to_compare_says_so() {
    let measured = comparison(vec![("w", vec![entry("1", 1.0, [1, 1]), entry("8", 2.0, [1, 1])])]);
    assert_eq!(agreement(&measured, &figures(&[("8", 208.0)]), &[]), [AgreementFinding::Nothing]);
}

/// S4 has a figure of each operation for eight peers, and nothing else.
#[test]
fn workloads_of_one_publication_are_put_in_order() {
    let of = |work: &str, value| Published {
        work: Some(work.to_owned()),
        of: Some(Quantity::Throughput),
        ..figures(&[("8", value)])
    };
    let all = [of("register", 208.0), of("search", 20_888.0), of("obtain", 10_552.0)];
    let agrees = |figures: [f64; 3]| {
        let [register, search, obtain] =
            figures.map(|figure| vec![entry("1", 1.0, [1, 2]), entry("8", figure, [1, 2])]);
        let mut measured = comparison(vec![("register", register), ("search", search), ("obtain", obtain)]);
        measured.hold_against(&all, &[]);
        measured.published.iter().map(|published| published.compared[0].agrees()).collect::<Vec<_>>()
    };
    assert_eq!(agrees([100.0, 900.0, 500.0]), [Some(true); 3]);
    assert_eq!(agrees([100.0, 500.0, 900.0]), [Some(true), Some(false), Some(false)]);
    assert_eq!(agrees([100.0, 901.0, 900.0]), [Some(true), None, None]);
    let elsewhere = Published { hardware: "another machine".to_owned(), ..of("search", 1.0) };
    let measured = comparison(vec![("register", vec![entry("8", 1.0, [1, 1])]), ("search", vec![])]);
    assert_eq!(agreement(&measured, &all[0], &[elsewhere]), [AgreementFinding::Nothing]);
}
