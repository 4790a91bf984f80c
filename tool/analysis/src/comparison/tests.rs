//! Publications and claims held against measurements made by hand.

use super::*;
use crate::run::Processes;
use crate::ticks::ErrorKind;

fn entry(variant: &str, throughput_per_s: f64, place: [u32; 2]) -> Entry {
    Entry {
        variant: variant.to_owned(),
        place: Some(place),
        throughput_per_s,
        throughput_ci_per_s: [0.98, 1.02].map(|end| end * throughput_per_s),
        throughput_by_round_per_s: Vec::new(),
        cpu_us_per_request_by_round: Vec::new(),
        of_fastest: None,
        of_baseline: None,
        lower_bound: false,
        users: Some(8),
        users_ci: None,
        response_time_us: ResponseTime::default(),
        cpu_us_per_request: None,
        received_bytes_per_s: 0.0,
        completed: 10_000,
        errors: ErrorCounts::new(),
        bottleneck: Vec::new(),
        busiest: None,
        steps: Vec::new(),
        proofs: Vec::new(),
        inconclusive: Vec::new(),
        doubts: Vec::new(),
        runs: Vec::new(),
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
        title: String::new(),
        factor: Factor("engine".to_owned()),
        combines: false,
        host: Host::default(),
        started: String::new(),
        elapsed_s: 0.0,
        version: String::new(),
        seed: 1,
        works: works.into_iter().map(work).collect(),
        left_out: Vec::new(),
        published: Vec::new(),
        claims: Vec::new(),
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
    let found = agreement(&measured, &published);
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

#[test]
fn a_publication_of_another_workload_agrees_in_nothing() {
    let measured = comparison(vec![("a", vec![entry("1", 1.0, [1, 1])]), ("b", Vec::new())]);
    let of = |work: Option<&str>| Published {
        work: work.map(str::to_owned),
        bottleneck: Some(ResourceKind::Disk),
        ..Published::default()
    };
    assert_eq!(agreement(&measured, &of(None)), []);
    assert_eq!(agreement(&measured, &of(Some("c"))), []);
    assert_eq!(agreement(&measured, &of(Some("a"))).len(), 1);
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
    let found = agreement(&measured, &published);
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
    let generator = swept("epoll", &points, [4, 8], ResourceKind::Generator);
    let unbounded =
        Entry { lower_bound: true, users_ci: None, ..swept("epoll", &points, [4, 8], ResourceKind::None) };
    let single = Entry { bottleneck: Vec::new(), steps: Vec::new(), ..sure.clone() };
    let held = |entry: &Entry, resource| {
        let measured = comparison(vec![("w", vec![entry.clone()])]);
        met(&measured, Requirement::Bottleneck { resource, holder: None })
    };
    assert_eq!(held(&sure, ResourceKind::Disk), Some(true));
    assert_eq!(held(&sure, ResourceKind::Cpu), Some(false));
    for open in [&doubtful, &unbounded, &single] {
        assert_eq!(held(open, ResourceKind::Disk), None, "{open:?}");
    }
    assert_eq!(held(&generator, ResourceKind::Disk), None);
    assert_eq!(held(&generator, ResourceKind::Generator), Some(true));
    let saturates = |entry: &Entry, users| {
        met(&comparison(vec![("w", vec![entry.clone()])]), Requirement::Saturates { users })
    };
    assert_eq!(saturates(&sure, [1, 4]), Some(true));
    assert_eq!(saturates(&sure, [9, 100]), Some(false));
    for open in [&doubtful, &unbounded, &single, &generator] {
        assert_eq!(saturates(open, [1, 4]), None, "{open:?}");
    }
}

#[test]
fn the_holder_of_a_bottleneck_may_be_claimed() {
    let measured = comparison(vec![("w", vec![swept("1", &[(1, 1.0)], [1, 1], ResourceKind::Cpu)])]);
    let held = |holder: &str| {
        met(
            &measured,
            Requirement::Bottleneck { resource: ResourceKind::Cpu, holder: Some(holder.to_owned()) },
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
    let requires = Requirement::Bottleneck { resource: ResourceKind::Cpu, holder: None };
    let claim = checked(&measured, &Claim { variants: names(&["1", "2"]), requires, ..Claim::default() });
    assert_eq!((claim.met, claim.cases.len()), (None, 2));
}
