//! Limits of the host that make requests fail, and connecting as a part of the response times.

use analysis::conclude::Conclusion;
use analysis::counters::{ConnectionLimits, PortsHeld, Tracked};
use analysis::run::{Connecting, HeldBack, ResourceKind, WarningKind};
use analysis::ticks::ErrorKind;

use super::lab::{Lab, conclude, says, server, sweep};

fn warns(found: &Conclusion, words: &str) -> bool {
    found
        .warnings
        .iter()
        .any(|warning| warning.kind == WarningKind::HostLimit && warning.text.contains(words))
}

/// A tenth of all requests fail, with few users already.
fn failing(kind: ErrorKind) -> Lab {
    sweep().tier(server("nginx").cpus(&[0])).errors(1, 0.1, kind)
}

fn tracked(connections: u64, refused: u64) -> ConnectionLimits {
    let tracked = Some(Tracked { connections, most: 65_536, refused });
    ConnectionLimits { tracked, ..ConnectionLimits::default() }
}

fn ports(ports: u64, is_target: bool) -> ConnectionLimits {
    let address = if is_target { ([127, 0, 0, 1], 80).into() } else { ([10, 0, 0, 7], 5432).into() };
    let most_ports = Some(PortsHeld { address, is_target, ports });
    ConnectionLimits { local_ports: 28_232, most_ports, ..ConnectionLimits::default() }
}

#[test]
fn a_full_tracking_table_explains_requests_that_time_out() {
    let found = failing(ErrorKind::TimedOut).connection_limits(tracked(65_536, 800)).conclude();
    assert!(says(&found, "raise net.netfilter.nf_conntrack_max"), "{found:#?}");
    assert!(warns(&found, "dropped 800 packets per second"), "{:?}", found.warnings);
    assert!(!found.verdict.is_conclusive(), "requests still failed");
}

#[test]
fn a_tracking_table_that_drops_nothing_or_has_room_explains_nothing() {
    for limits in [tracked(65_536, 0), tracked(30_000, 800)] {
        let found = failing(ErrorKind::TimedOut).connection_limits(limits).conclude();
        assert!(!says(&found, "nf_conntrack_max") && !warns(&found, "nf_conntrack_max"), "{found:#?}");
    }
}

#[test]
fn used_up_ports_are_told_with_whose_they_are() {
    let found = failing(ErrorKind::LocalLimit).connection_limits(ports(28_200, true)).conclude();
    assert_eq!(found.verdict.bottleneck.kind, ResourceKind::Generator);
    assert!(says(&found, "The generator used 28 200 of 28 232 local ports"), "{found:#?}");
    let behind = failing(ErrorKind::Status).connection_limits(ports(28_200, false)).conclude();
    assert!(says(&behind, "local ports towards 10.0.0.7:5432"), "{behind:#?}");
    let room = failing(ErrorKind::Status).connection_limits(ports(20_000, false)).conclude();
    assert!(!says(&room, "local ports") && !warns(&room, "local ports"), "{room:#?}");
}

#[test]
fn a_limit_that_is_reached_without_harm_changes_no_verdict() {
    let alone = sweep().tier(server("nginx").cpus(&[0]));
    let found = alone.clone().connection_limits(tracked(65_536, 5)).conclude();
    assert_eq!(found.verdict.bottleneck, alone.conclude().verdict.bottleneck);
    assert!(warns(&found, "nf_conntrack_max"));
}

fn with_connecting(share: f64) -> Conclusion {
    let lab = sweep().tier(server("nginx").cpus(&[0]));
    let mut observed = lab.observed();
    for seen in &mut observed {
        seen.step.connecting = Some(Connecting { per_request: 1.0, mean_us: 40.0, share });
    }
    conclude(&observed, &lab.context)
}

#[test]
fn connecting_is_evidence_where_it_takes_more_than_a_quarter() {
    assert!(says(&with_connecting(0.4), "40 % of the response times"), "{:?}", with_connecting(0.4));
    assert!(!says(&with_connecting(0.2), "connecting"));
}

#[test]
fn responses_held_back_are_warned_of_where_they_are_many() {
    let warned = |share: f64| {
        let lab = sweep().tier(server("nginx").cpus(&[0]));
        let mut observed = lab.observed();
        observed[0].step.held_back = Some(HeldBack { share, mean_us: 41_000.0 });
        let found = conclude(&observed, &lab.context);
        found.warnings.iter().any(|warning| warning.kind == WarningKind::HeldBack)
    };
    assert!(warned(0.9) && !warned(0.1));
}
