//! Asymptotic bounds of a closed system (Denning and Buzen 1978).

use crate::run::Bounds;

/// The asymptotes: with few users throughput is at most N / (R(1) + Z), with many at most X_max.
pub fn bounds(response_time_alone_us: f64, think_us: f64, throughput_max_per_s: f64) -> Bounds {
    Bounds {
        response_time_alone_us,
        throughput_max_per_s,
        knee_users: (response_time_alone_us + think_us) / 1e6 * throughput_max_per_s,
    }
}

/// Upper bound on throughput with `users`, requests per second.
pub fn throughput_at_most(bounds: &Bounds, think_us: f64, users: u32) -> f64 {
    let cycle_us = bounds.response_time_alone_us + think_us;
    let alone = if cycle_us > 0.0 { f64::from(users) / cycle_us * 1e6 } else { f64::INFINITY };
    alone.min(bounds.throughput_max_per_s)
}

/// Lower bound on the mean response time with `users`, microseconds.
pub fn response_time_at_least(bounds: &Bounds, think_us: f64, users: u32) -> f64 {
    if bounds.throughput_max_per_s <= 0.0 {
        return bounds.response_time_alone_us;
    }
    let queueing = f64::from(users) / bounds.throughput_max_per_s * 1e6 - think_us;
    queueing.max(bounds.response_time_alone_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: demands 2, 0.5 and 3 s, think time 15 s, so X <= min(N / 20.5, 1 / 3) and the knee is at 6.83.
    #[test]
    fn by_hand() {
        let found = bounds(5.5e6, 15e6, 1.0 / 3.0);
        assert!((found.knee_users - 6.833).abs() < 1e-3);
        assert!((throughput_at_most(&found, 15e6, 1) - 1.0 / 20.5).abs() < 1e-9);
        assert!((throughput_at_most(&found, 15e6, 20) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(response_time_at_least(&found, 15e6, 1), 5.5e6);
        assert!((response_time_at_least(&found, 15e6, 20) - 45e6).abs() < 1.0);
    }
}
