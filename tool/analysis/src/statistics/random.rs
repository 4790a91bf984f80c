//! Random numbers for resampling: the same ones every time.

/// SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// A whole number below `end`, which is above 0; nearly uniform, as `end` is small against 2^64.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// From the exponential distribution with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.share().ln()
    }

    /// From the standard normal distribution (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.share().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.share()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_below_their_end_and_reach_it() {
        let mut random = Random::seeded(3);
        let drawn: std::collections::BTreeSet<usize> = (0..200).map(|_| random.below(5)).collect();
        assert!(drawn.into_iter().eq(0..5) && random.below(0) == 0);
    }

    #[test]
    fn exponential_numbers_have_mean_1_and_variance_1() {
        let mut random = Random::seeded(2);
        let drawn: Vec<f64> = (0..20_000).map(|_| random.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(drawn.iter().all(|value| *value >= 0.0));
        assert!((mean - 1.0).abs() < 0.03 && (variance - 1.0).abs() < 0.1, "{mean} {variance}");
    }

    #[test]
    fn normal_numbers_have_mean_0_and_variance_1() {
        let mut random = Random::seeded(1);
        let drawn: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 20_000.0;
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
