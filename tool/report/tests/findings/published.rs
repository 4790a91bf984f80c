//! What was published and what is claimed, held against measurements: one of each kind.

use analysis::comparison::*;
use analysis::run::{Identity, ResourceKind, Words};
use report::comparison::{json, parse};

use super::evidence::nginx;

/// Every kind of thing that is seen.
pub(super) fn seen() -> Vec<Seen> {
    let limit = Limit {
        kind: ResourceKind::Cpu,
        holder: Words::default(),
        identity: Some(Identity::Processes(nginx())),
    };
    let reversed = vec![["aio".to_owned(), "poll".to_owned()]];
    let mut all = vec![
        Seen::Bottleneck { limits: vec![limit] },
        Seen::Saturation { users: 1_000, ci: [800, 1_200] },
        Seen::Order(PairCount { pairs: 3, agree: 1, reversed }),
        Seen::Order(PairCount { pairs: 1, agree: 1, reversed: Vec::new() }),
        Seen::Order(PairCount { pairs: 1, ..PairCount::default() }),
        Seen::Change { from: "1".into(), to: "8".into(), ratio: 1.234, ci: [1.1, 1.4] },
        Seen::Change { from: "1".into(), to: "8".into(), ratio: 1.234, ci: [1.234, 1.234] },
        Seen::Denied { share: 0.0 },
        Seen::Denied { share: 0.3 },
        Seen::Proofs { made: 0, failed: 0 },
        Seen::Proofs { made: 1, failed: 0 },
        Seen::Proofs { made: 3, failed: 1 },
    ];
    all.extend(reasons().map(|why| Seen::Open { why }));
    all
}

/// Every reason why something stays open.
fn reasons() -> [Open; 9] {
    use Open::*;
    [
        NotMeasured,
        InDoubt,
        GeneratorLimit,
        NotSaturated,
        CauseUnknown,
        NotSearched,
        RunsDisagree,
        NoInterval,
        Unknown,
    ]
}

fn case(variant: &str, met: Option<bool>, seen: Seen) -> Case {
    Case { work: String::new(), variant: variant.into(), met, seen }
}

/// Every kind of agreement.
pub(super) fn agreement() -> Vec<AgreementFinding> {
    let cases = |met| {
        let open = case("1 MB", None, Seen::Open { why: Open::NotMeasured });
        vec![case("1 KB", met, Seen::Saturation { users: 4, ci: [3, 5] }), open]
    };
    let pairs = PairCount { pairs: 3, agree: 3, reversed: Vec::new() };
    let shape = |published, measured, gap| AgreementFinding::Shape {
        agrees: Some(false),
        variant: "mariadb".into(),
        published,
        measured,
        gap,
    };
    let gap = Gap { at: 30.0, published: 0.26, measured: 0.88 };
    vec![
        AgreementFinding::Order { agrees: Some(true), pairs: pairs.clone() },
        AgreementFinding::Workloads { agrees: Some(true), variant: "8".into(), pairs },
        shape(Course::Flat, Course::Levels { at: 300.0 }, None),
        shape(Course::Grows, Course::Falls { at: 6.0, left: 0.81 }, Some(gap)),
        AgreementFinding::Bottleneck { agrees: None, published: ResourceKind::Disk, cases: cases(None) },
        AgreementFinding::Saturation { agrees: Some(true), published: 300, cases: cases(Some(true)) },
        AgreementFinding::Nothing,
        AgreementFinding::Told { text: "A newer version says so.".into() },
    ]
}

/// Every kind of requirement.
pub(super) fn requirements() -> Vec<Requirement> {
    vec![
        Requirement::Bottleneck {
            resource: ResourceKind::Disk,
            or: vec![ResourceKind::Memory],
            holder: Some("vda".into()),
        },
        Requirement::Saturates { users: [1, 4] },
        Requirement::Order { variants: vec![vec!["select".into()], vec!["poll".into(), "aio".into()]] },
        Requirement::Trend { course: Trend::Grows, of: Quantity::CpuTime, over_works: true },
        Requirement::Denied,
        Requirement::Proven,
        Requirement::Told { text: "A newer version says so.".into() },
    ]
}

/// A comparison of nothing, with everything that can be said about publications.
fn everything() -> Comparison {
    let mut comparison = parse(include_str!("../golden/study-1.json")).unwrap();
    let claim = |requires, cases: Vec<Case>| Claim {
        text: "Somebody claims it.".into(),
        met: cases.first().and_then(|case| case.met),
        requires,
        cases,
        ..Claim::default()
    };
    let seen =
        seen().into_iter().map(|seen| claim(Requirement::Denied, vec![case("1 KB", Some(true), seen)]));
    let required = requirements().into_iter().map(|requires| claim(requires, Vec::new()));
    let missing = case("mariadb", None, Seen::Open { why: Open::NotMeasured });
    let partly = [1, 5].map(|measured| {
        let met = case("sqlite", Some(true), Seen::Proofs { made: 3, failed: 0 });
        let cases = std::iter::once(missing.clone()).chain(vec![met; measured]);
        claim(Requirement::Proven, cases.collect())
    });
    comparison.claims = seen.chain(required).chain(partly).collect();
    comparison.published[0].compared = agreement();
    comparison
}

#[test]
fn everything_about_publications_is_written_read_back_and_has_its_words() {
    let everything = everything();
    let text = json(&everything).unwrap();
    assert_eq!(parse(&text).unwrap(), everything);
    let written: serde_json::Value = serde_json::from_str(&text).unwrap();
    let agreement = written["published"][0]["agreement"].as_array().unwrap().iter();
    let claims = written["claims"].as_array().unwrap().iter().map(|claim| &claim["outcome"]);
    let lines: Vec<&str> = agreement.chain(claims).map(|words| words.as_str().unwrap()).collect();
    insta::assert_snapshot!("publications", lines.join("\n"));
}
