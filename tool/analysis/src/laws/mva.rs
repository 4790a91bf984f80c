//! Exact mean value analysis of a closed network (Reiser and Lavenberg, "Mean-value analysis of closed
//! multichain queueing networks", JACM 27(2), 1980).
//!
//! A station of several servers is taken as one server that many times as fast, followed by a delay
//! (Seidmann, Schweitzer and Shalev-Oren 1987): exact with one user and in saturation, slightly pessimistic
//! between.

use crate::run::Predicted;

/// Where requests spend time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Station {
    /// A queue before one or more equal servers; the demand is per request, on whichever server.
    Queue {
        /// Service demand, microseconds per request.
        demand_us: f64,
        /// How many servers, at least one.
        servers: u32,
    },
    /// No queue: everyone is served at once.
    Delay {
        /// Microseconds per request.
        demand_us: f64,
    },
}

/// Predictions for 1, 2, .. `users_max` users with mean think time `think_us`.
pub fn mva(stations: &[Station], think_us: f64, users_max: u32) -> Vec<Predicted> {
    let demands_us: Vec<f64> = stations.iter().map(queueing_us).collect();
    let delay_us: f64 = stations.iter().map(delay_us).sum();
    let mut queues = vec![0.0f64; demands_us.len()];
    (1..=users_max)
        .map(|users| {
            let times_us: Vec<f64> =
                demands_us.iter().zip(&queues).map(|(demand, queue)| demand * (1.0 + queue)).collect();
            let response_time_us = times_us.iter().sum::<f64>() + delay_us;
            let cycle_us = response_time_us + think_us;
            let per_us = if cycle_us > 0.0 { f64::from(users) / cycle_us } else { 0.0 };
            queues.iter_mut().zip(&times_us).for_each(|(queue, time_us)| *queue = per_us * time_us);
            Predicted { users, throughput_per_s: per_us * 1e6, response_time_us }
        })
        .collect()
}

/// The exact throughput of `users` who spend a delay of their own and queue for one station of equal servers, each of whom
/// takes a mean exponential time: the machine repairman, M/M/m//N. In units of one over the service time.
///
/// The number at the station is a birth and death process (Gross and Harris, "Fundamentals of queueing theory"): from n to
/// n + 1 at the rate (N - n) / delay, and back at the rate of as many servers as are busy.
pub fn repairman(servers: u32, delay: f64, users: u32) -> f64 {
    let busy = |at_station: u32| f64::from(at_station.min(servers));
    if delay <= 0.0 {
        return busy(users);
    }
    let mut log_weights = vec![0.0f64];
    for at_station in 0..users {
        let arrivals = f64::from(users - at_station) / delay;
        log_weights.push(log_weights[at_station as usize] + (arrivals / busy(at_station + 1)).ln());
    }
    let most = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights = || log_weights.iter().map(|log_weight| (log_weight - most).exp());
    let working: f64 = weights().zip(0..).map(|(weight, at_station)| weight * busy(at_station)).sum();
    working / weights().sum::<f64>()
}

fn queueing_us(station: &Station) -> f64 {
    match *station {
        Station::Queue { demand_us, servers } => demand_us / f64::from(servers.max(1)),
        Station::Delay { .. } => 0.0,
    }
}

fn delay_us(station: &Station) -> f64 {
    match *station {
        Station::Queue { demand_us, servers } => demand_us * (1.0 - 1.0 / f64::from(servers.max(1))),
        Station::Delay { demand_us } => demand_us,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(demand_us: f64) -> Station {
        Station::Queue { demand_us, servers: 1 }
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
    }

    /// R. Jain, "The Art of Computer Systems Performance Analysis" (1991), table 34.1: demands of 2, 3 and 1 s, think
    /// time 4 s.
    #[test]
    fn published_table() {
        let found = mva(&[queue(2e6), queue(3e6), queue(1e6)], 4e6, 20);
        let table =
            [(1, 6.0, 0.1), (2, 7.4, 0.175), (3, 9.088, 0.229), (4, 11.051, 0.266), (5, 13.256, 0.290)];
        for (users, response_s, throughput) in
            table.into_iter().chain([(17, 47.045, 0.333), (20, 56.016, 0.333)])
        {
            let step = found[users - 1];
            near(step.response_time_us / 1e6, response_s, 1e-3);
            near(step.throughput_per_s, throughput, 6e-4);
        }
    }

    /// Balanced network of K stations: X(N) = N / (N + K - 1) / D.
    #[test]
    fn balanced_network() {
        let found = mva(&[queue(100.0); 3], 0.0, 50);
        for step in found {
            let users = f64::from(step.users);
            near(step.throughput_per_s, users / (users + 2.0) / 100.0 * 1e6, 1e-6);
        }
    }

    #[test]
    fn several_servers_are_exact_at_both_ends() {
        let found = mva(&[Station::Queue { demand_us: 1_000.0, servers: 4 }], 0.0, 400);
        near(found[0].throughput_per_s, 1_000.0, 1e-6);
        near(found[399].throughput_per_s, 4_000.0, 40.0);
    }

    #[test]
    fn a_repairman_is_a_queue_with_a_delay() {
        let found = mva(&[queue(1.0), Station::Delay { demand_us: 3.0 }], 0.0, 12);
        for step in found {
            near(repairman(1, 3.0, step.users), step.throughput_per_s / 1e6, 1e-9);
        }
        // Two machines and two repairmen never wait: N / (S + Z).
        near(repairman(2, 3.0, 2), 0.5, 1e-12);
        // Erlang's engset formula, by hand: three machines, two repairmen, S = Z = 1; weights 1, 3, 3, 1.5.
        near(repairman(2, 1.0, 3), (3.0 + 6.0 + 3.0) / 8.5, 1e-12);
        near(repairman(64, 1e-3, 100_000), 64.0, 1e-6);
        near(repairman(5, 0.0, 3), 3.0, 0.0);
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(mva(&[], 0.0, 2)[1].throughput_per_s, 0.0);
        assert!(mva(&[queue(1.0)], 0.0, 0).is_empty());
    }
}
