//! Exact answers for M/M/m//N: the machine repairman (Feller 1950; Kleinrock, "Queueing Systems" I, section
//! 3.8).

use crate::closed_network::System;

/// Exact throughput (per second) and mean response time (microseconds) of exponential service and think
/// times.
pub(crate) fn repairman(system: System, users: u32) -> (f64, f64) {
    let service_us = system.service.mean_us();
    let think_us = system.think.mean_us();
    if think_us == 0.0 {
        let throughput = f64::from(users.min(system.servers)) / service_us;
        return (throughput * 1e6, f64::from(users) / throughput);
    }
    let mut weight = 1.0;
    let (mut total, mut busy) = (1.0, 0.0);
    for present in 1..=users {
        let serving = f64::from(present.min(system.servers));
        weight *= f64::from(users - present + 1) * service_us / think_us / serving;
        total += weight;
        busy += weight * serving;
    }
    let throughput = busy / total / service_us;
    (throughput * 1e6, f64::from(users) / throughput - think_us)
}

/// What all servers together complete per second when always busy.
pub(crate) fn throughput_max_per_s(system: System) -> f64 {
    f64::from(system.servers) / system.service.mean_us() * 1e6
}

/// The smallest number of users that reaches 95 % of the maximum throughput.
pub(crate) fn users_at_saturation(system: System) -> u32 {
    let saturated = |users: &u32| repairman(system, *users).0 >= 0.95 * throughput_max_per_s(system);
    (1..).find(saturated).unwrap_or(u32::MAX)
}

/// One repairman, three machines, failure rate a quarter of the repair rate. By hand: weights 1, 3/4, 3/8,
/// 3/32, total 71/32, so the repairman is idle 32/71 of the time.
#[test]
fn repairman_by_hand() {
    let system = System::exponential(1, 1_000.0, 4_000.0);
    let (throughput, response_us) = repairman(system, 3);
    assert!((throughput - 39.0 / 71.0 * 1_000.0).abs() < 1e-9);
    assert!((response_us - (3.0 / throughput * 1e6 - 4_000.0)).abs() < 1e-9);
}

/// Exact MVA is exact for one server: both ways must agree.
#[test]
fn repairman_agrees_with_mean_value_analysis() {
    let system = System::exponential(1, 1_000.0, 10_000.0);
    let predicted = analysis::laws::mva::mva(
        &[analysis::laws::mva::Station::Queue { demand_us: 1_000.0, servers: 1 }],
        10_000.0,
        40,
    );
    for step in predicted {
        let (throughput, response_us) = repairman(system, step.users);
        assert!((step.throughput_per_s / throughput - 1.0).abs() < 1e-9, "{step:?}");
        assert!((step.response_time_us / response_us - 1.0).abs() < 1e-9, "{step:?}");
    }
}

/// Several servers are an approximation: within 6 % of exact everywhere.
#[test]
fn several_servers_come_close_in_mean_value_analysis() {
    let system = System::exponential(4, 2_000.0, 8_000.0);
    let predicted = analysis::laws::mva::mva(
        &[analysis::laws::mva::Station::Queue { demand_us: 2_000.0, servers: 4 }],
        8_000.0,
        60,
    );
    for step in predicted {
        let (throughput, _) = repairman(system, step.users);
        assert!((step.throughput_per_s / throughput - 1.0).abs() < 0.06, "{step:?}, exact {throughput}");
    }
}
