//! How fast all servers of a simulated system work, over time: servers that pause, are throttled, or change their speed.

/// A course of the speed, as a share of full speed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Pace {
    /// Full speed.
    Steady,
    /// Stops for so long, after exponential times of this mean: a collector that stops the world.
    Pauses { every_ms: f64, for_ms: f64 },
    /// Stops when a share of each period was used: a quota of processor time.
    Throttled { period_ms: f64, share: f64 },
    /// Swings by this amplitude around 1.
    Swings { period_ms: f64, amplitude: f64 },
    /// Loses this share of its speed with every second.
    Slows { per_s: f64 },
    /// Full speed and a slower one in turn, each for exponential times of this mean.
    TwoSpeeds { slow: f64, mean_ms: f64 },
}

impl Pace {
    /// The mean speed; that of a server which slows down, from one second to another.
    pub(crate) fn mean(self, from_s: f64, to_s: f64) -> f64 {
        match self {
            Self::Steady | Self::Swings { .. } => 1.0,
            Self::Pauses { every_ms, for_ms } => every_ms / (every_ms + for_ms),
            Self::Throttled { share, .. } => share,
            Self::Slows { per_s } => {
                ((-per_s * from_s).exp() - (-per_s * to_s).exp()) / (per_s * (to_s - from_s))
            }
            Self::TwoSpeeds { slow, .. } => f64::midpoint(1.0, slow),
        }
    }

    /// The length of the stretch that begins at `at_ns`, and the speed during it. Every second one is the slower.
    fn stretch(self, number: usize, at_ns: f64, random: &mut fastrand::Rng) -> (f64, f64) {
        let odd = number % 2 == 1;
        let mut exponential = |mean_ms: f64| -mean_ms * (1.0 - random.f64()).ln() * 1e6;
        match self {
            Self::Steady => (1e12, 1.0),
            Self::Pauses { for_ms, .. } if odd => (for_ms * 1e6, 0.0),
            Self::Pauses { every_ms, .. } => (exponential(every_ms), 1.0),
            Self::Throttled { period_ms, share } if odd => (period_ms * (1.0 - share) * 1e6, 0.0),
            Self::Throttled { period_ms, share } => (period_ms * share * 1e6, 1.0),
            Self::Swings { period_ms, amplitude } => {
                (5e6, 1.0 + amplitude * (std::f64::consts::TAU * (at_ns + 2.5e6) / (period_ms * 1e6)).sin())
            }
            Self::Slows { per_s } => (5e6, (-per_s * (at_ns + 2.5e6) / 1e9).exp()),
            Self::TwoSpeeds { slow, mean_ms } => (exponential(mean_ms), if odd { slow } else { 1.0 }),
        }
    }
}

/// The stretches so far.
pub(crate) struct Course {
    pace: Pace,
    random: fastrand::Rng,
    /// Start, nanoseconds, and speed of each.
    stretches: Vec<(f64, f64)>,
    known_ns: f64,
}

impl Course {
    pub(crate) fn new(pace: Pace, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x00c0_ffee);
        // No measurement begins where a period does.
        let phase_ns = match pace {
            Pace::Throttled { period_ms, .. } | Pace::Swings { period_ms, .. } => {
                -random.f64() * period_ms * 1e6
            }
            Pace::Slows { .. } | Pace::Steady => 0.0,
            Pace::Pauses { every_ms, .. } | Pace::TwoSpeeds { mean_ms: every_ms, .. } => {
                -random.f64() * 10.0 * every_ms * 1e6
            }
        };
        Self { pace, random, stretches: Vec::new(), known_ns: phase_ns }
    }

    /// When work that takes so long at full speed is done, if it begins now.
    pub(crate) fn after(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        let (mut at_ns, mut left_ns) = (now_ns as f64, work_ns as f64);
        while self.known_ns <= at_ns {
            self.extend();
        }
        let mut index = self.stretches.partition_point(|stretch| stretch.0 <= at_ns).saturating_sub(1);
        loop {
            while index + 1 >= self.stretches.len() {
                self.extend();
            }
            let (speed, end_ns) = (self.stretches[index].1, self.stretches[index + 1].0);
            let done_ns = (end_ns - at_ns) * speed;
            if done_ns >= left_ns {
                return (at_ns + left_ns / speed.max(f64::MIN_POSITIVE)).round() as u64;
            }
            (at_ns, left_ns, index) = (end_ns, left_ns - done_ns, index + 1);
        }
    }

    fn extend(&mut self) {
        let (length_ns, speed) = self.pace.stretch(self.stretches.len(), self.known_ns, &mut self.random);
        self.stretches.push((self.known_ns, speed));
        self.known_ns += length_ns;
    }
}

#[test]
fn work_takes_longer_at_half_speed_and_waits_out_a_stop() {
    let mut course =
        Course { known_ns: 0.0, ..Course::new(Pace::Throttled { period_ms: 100.0, share: 0.3 }, 1) };
    assert_eq!(course.after(0, 20_000_000), 20_000_000);
    assert_eq!(course.after(20_000_000, 20_000_000), 110_000_000);
    assert_eq!(course.after(0, 300_000_000), 930_000_000);
}
