//! A series of equally spaced values: its trend, and how much the values around the trend vary and stick
//! together.

/// A least-squares line through the values, and what is left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Series {
    /// How many values.
    pub(crate) count: f64,
    /// Change from one value to the next.
    pub(crate) slope: f64,
    /// Sum of squared deviations from the line.
    pub(crate) squares: f64,
    /// Correlation of neighbouring deviations from the line.
    pub(crate) lag_one: f64,
}

impl Series {
    pub(crate) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count.max(1.0);
        let middle = (count - 1.0) / 2.0;
        let position = |index: usize| index as f64 - middle;
        let spread: f64 = (0..values.len()).map(|index| position(index).powi(2)).sum();
        let product: f64 =
            values.iter().enumerate().map(|(index, value)| position(index) * (value - mean)).sum();
        let slope = if spread > 0.0 { product / spread } else { 0.0 };
        let left: Vec<f64> =
            values.iter().enumerate().map(|(index, value)| value - mean - slope * position(index)).collect();
        let squares: f64 = left.iter().map(|value| value * value).sum();
        let neighbours: f64 = left.windows(2).map(|pair| pair[0] * pair[1]).sum();
        Self { count, slope, squares, lag_one: if squares > 0.0 { neighbours / squares } else { 0.0 } }
    }

    /// Variance around the line.
    pub(crate) fn variance(&self) -> f64 {
        self.squares / (self.count - 2.0).max(1.0)
    }

    /// Standard error of the slope, correlation of neighbours allowed for.
    pub(crate) fn slope_error(&self) -> f64 {
        let spread = self.count * (self.count * self.count - 1.0) / 12.0;
        if spread > 0.0 { (self.variance() * inflation(self.lag_one) / spread).sqrt() } else { f64::INFINITY }
    }
}

/// The factor by which first-order autoregression raises the variance of a mean; negative correlation is not
/// credited.
pub(crate) fn inflation(lag_one: f64) -> f64 {
    let correlation = lag_one.clamp(0.0, 0.9);
    (1.0 + correlation) / (1.0 - correlation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leaves_nothing() {
        let line: Vec<f64> = (0..10).map(|i| 3.0 + 2.0 * f64::from(i)).collect();
        let found = Series::of(&line);
        assert!((found.slope - 2.0).abs() < 1e-12 && found.squares < 1e-20);
    }

    #[test]
    fn neighbours() {
        assert!(Series::of(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0]).lag_one < -0.7);
        assert!(Series::of(&[1.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0]).lag_one > 0.2);
    }

    #[test]
    fn short_series() {
        assert_eq!(Series::of(&[]).slope, 0.0);
        assert_eq!(Series::of(&[1.0]).slope_error(), f64::INFINITY);
    }
}
