//! Soft interrupts: a processor full of the kernel's work on packets.

use analysis::conclude::Conclusion;
use analysis::run::ResourceKind;

use super::lab::{Lab, Softirqs, says, server, sweep};

fn kind(found: &Conclusion) -> ResourceKind {
    found.verdict.bottleneck.kind
}

/// Two workers with room, and a network card that interrupts processor 0.
fn interrupted(softirqs: Softirqs) -> Lab {
    sweep().tier(server("nginx").demand_us(20.0).threads(2).processes(2).cpus(&[1, 2])).softirqs(softirqs)
}

#[test]
fn a_processor_full_of_soft_interrupts_is_the_limit() {
    let found = interrupted(Softirqs { cpu: 0, demand_us: 50.0, ..Softirqs::default() }).conclude();
    let bottleneck = &found.verdict.bottleneck;
    assert_eq!(
        (kind(&found), bottleneck.holder.as_str()),
        (ResourceKind::Softirq, "processor 0"),
        "{found:#?}"
    );
    assert!(bottleneck.confidence.share() > 0.9, "{bottleneck:#?}");
    assert!(found.verdict.is_conclusive() && bottleneck.utilization.unwrap() > 0.95);
    assert!((bottleneck.demand_us.unwrap() - 50.0).abs() < 1.0, "{bottleneck:?}");
    assert!(says(&found, "Processor 0 is busy"), "{:?}", bottleneck.evidence);
    assert!(says(&found, "it had no time for all that had arrived"), "{:?}", bottleneck.evidence);
    assert!(says(&found, "3 processors had room"), "{:?}", bottleneck.evidence);
    let next = found.verdict.next.as_deref().unwrap();
    assert!(next.contains("the processors of the host"), "{next}");
    let told =
        found.steps.last().unwrap().resources.iter().find(|seen| seen.holder == "processor 0").unwrap();
    assert_eq!((told.kind, told.unit.as_str()), (ResourceKind::Softirq, "cores"));
}

/// The server has the processor that is interrupted, and gets what is left of it.
#[test]
fn a_server_beside_them_gets_what_they_leave() {
    let found = sweep().tier(server("nginx").demand_us(20.0).cpus(&[0])).softirqs(Softirqs {
        cpu: 0,
        demand_us: 50.0,
        background: 0.0,
    });
    // Together they need 70 us of the one processor.
    let found = found.delay_us(200.0).conclude();
    assert_eq!(kind(&found), ResourceKind::Softirq, "{found:#?}");
    assert!(says(&found, "nginx (pid 812) had room"), "{:?}", found.verdict.bottleneck.evidence);
}

#[test]
fn a_busy_server_with_a_third_of_soft_interrupts_is_not_stopped_by_them() {
    let nginx = server("nginx").demand_us(30.0).cpus(&[0]);
    let found =
        sweep().tier(nginx).softirqs(Softirqs { cpu: 0, demand_us: 12.0, background: 0.0 }).conclude();
    assert_ne!(kind(&found), ResourceKind::Softirq, "{found:#?}");
    let four = sweep().tier(server("nginx").demand_us(30.0).threads(3).processes(3));
    let found = four.softirqs(Softirqs { cpu: 1, demand_us: 3.0, background: 0.0 }).conclude();
    assert_eq!(kind(&found), ResourceKind::Cpu, "{found:#?}");
}

#[test]
fn a_processor_with_room_is_not_the_limit_whatever_it_does() {
    let pool = interrupted(Softirqs { cpu: 0, demand_us: 500.0, background: 0.0 }).pool(4, 5_000.0);
    let found = pool.conclude();
    assert_eq!(kind(&found), ResourceKind::WorkerPool, "{found:#?}");
}

#[test]
fn soft_interrupts_of_other_traffic_do_not_follow_the_load() {
    let flooded = interrupted(Softirqs { cpu: 0, demand_us: 0.0, background: 1.0 }).pool(4, 5_000.0);
    assert_ne!(kind(&flooded.conclude()), ResourceKind::Softirq);
}

#[test]
fn a_full_server_is_named_though_a_processor_beside_it_is_full_too() {
    let both = sweep().tier(server("nginx").demand_us(49.0).cpus(&[1])).softirqs(Softirqs {
        cpu: 0,
        demand_us: 50.0,
        background: 0.0,
    });
    let found = both.conclude();
    assert_ne!(kind(&found), ResourceKind::Softirq, "{found:#?}");
    assert!(found.verdict.bottleneck.confidence.share() < 0.95, "two that are nearly as full: {found:#?}");
}
