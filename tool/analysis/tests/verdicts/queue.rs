//! A closed queueing system in virtual time: users who spend a delay of their own and queue for one of m servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How much times vary: not at all, somewhat, or as exponential ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Varies {
    Never,
    Somewhat,
    Exponentially,
}

impl Varies {
    fn draw(self, mean_us: f64, random: &mut fastrand::Rng) -> f64 {
        match self {
            Self::Never => mean_us,
            Self::Somewhat => mean_us * (0.5 + random.f64()),
            Self::Exponentially => -mean_us * (1.0 - random.f64()).ln(),
        }
    }
}

/// What users queue for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Gate {
    /// So many servers, each of whom takes this long, microseconds.
    Servers(u32, f64),
    /// A request may pass every so often, microseconds.
    Rate(f64),
}

/// The system: whatever the users queue for, and work beside it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct System {
    pub(super) gate: Gate,
    pub(super) beside_us: f64,
    pub(super) varies: Varies,
}

/// A mean with its 95 % interval.
pub(super) type Measured = (f64, [f64; 2]);

const COMPLETIONS: usize = 3_000;
const BATCHES: usize = 20;
/// Student's t for that many batches.
const T: f64 = 2.093;

impl System {
    /// Throughput per second and mean response time in microseconds with so many users.
    pub(super) fn measure(&self, users: u32, random: &mut fastrand::Rng) -> (Measured, Measured) {
        let servers = if let Gate::Servers(servers, _) = self.gate { servers } else { 1 };
        let mut free: BinaryHeap<Reverse<u64>> = (0..servers).map(|_| Reverse(0)).collect();
        let mut arrivals: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
        let ns = |us: f64| (us * 1e3).round() as u64;
        for _ in 0..users {
            let beside = ns(self.varies.draw(self.beside_us, random) * random.f64());
            arrivals.push(Reverse((beside, 0)));
        }
        let mut done: Vec<(u64, u64)> = Vec::with_capacity(COMPLETIONS);
        while let Some(Reverse((arrived, sent))) =
            arrivals.pop().filter(|_| done.len() < COMPLETIONS * 11 / 10)
        {
            let start = free.pop().map_or(0, |Reverse(free)| free).max(arrived);
            let (held, ended) = match self.gate {
                Gate::Servers(_, us) => {
                    let end = start + ns(self.varies.draw(us, random));
                    (end, end)
                }
                Gate::Rate(us) => (start + ns(us), start + ns(self.varies.draw(self.beside_us, random))),
            };
            free.push(Reverse(held));
            done.push((ended, ended - sent));
            let beside = if let Gate::Servers(..) = self.gate {
                self.varies.draw(self.beside_us, random)
            } else {
                0.0
            };
            arrivals.push(Reverse((ended + ns(beside), ended)));
        }
        done.sort_unstable();
        let settled = &done[COMPLETIONS / 10..];
        let batches: Vec<&[(u64, u64)]> = settled.chunks_exact(settled.len() / BATCHES).collect();
        let ends: Vec<u64> = [done[COMPLETIONS / 10 - 1].0]
            .into_iter()
            .chain(batches.iter().map(|batch| batch[batch.len() - 1].0))
            .collect();
        let rates = batches
            .iter()
            .zip(ends.windows(2))
            .map(|(batch, ends)| batch.len() as f64 / ((ends[1] - ends[0]).max(1) as f64) * 1e9);
        let times = batches
            .iter()
            .map(|batch| batch.iter().map(|(_, time)| *time as f64).sum::<f64>() / batch.len() as f64 / 1e3);
        let length_s = (ends[BATCHES] - ends[0]) as f64 / 1e9;
        let total = batches.iter().map(|batch| batch.len()).sum::<usize>() as f64 / length_s;
        let times: Vec<f64> = times.collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        (with_interval(total, &rates.collect::<Vec<_>>()), with_interval(mean, &times))
    }
}

fn with_interval(mean: f64, batches: &[f64]) -> Measured {
    let count = batches.len() as f64;
    let centre = batches.iter().sum::<f64>() / count;
    let variance = batches.iter().map(|one| (one - centre).powi(2)).sum::<f64>() / (count - 1.0);
    let half = (T * (variance / count).sqrt()).max(0.002 * mean);
    (mean, [mean - half, mean + half])
}
