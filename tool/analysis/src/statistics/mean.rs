//! The mean of independent figures, and how well it is known.

use super::t_two_sided;

/// The mean; 0 of no figures.
pub(crate) fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// The standard deviation of figures, of which there must be two.
pub(crate) fn standard_deviation(figures: &[f64]) -> f64 {
    let mean = mean(figures);
    let squares = figures.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    (squares / (figures.len() as f64 - 1.0)).sqrt()
}

/// The standard error of the mean of figures, of which there must be two.
pub(crate) fn standard_error(figures: &[f64]) -> f64 {
    standard_deviation(figures) / (figures.len() as f64).sqrt()
}

/// Half the width of the interval of the mean, by Student's t with one degree of freedom less than there are figures, of
/// which there must be two.
pub(crate) fn half_width(figures: &[f64], confidence: f64) -> f64 {
    t_two_sided(figures.len() as f64 - 1.0, confidence) * standard_error(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t of three degrees of freedom is 3.182 at 95 %.
    #[test]
    fn the_interval_is_that_of_students_t() {
        let figures = [9.0, 10.0, 10.0, 11.0];
        let standard_error = (2.0_f64 / 3.0 / 4.0).sqrt();
        assert_eq!((mean(&figures), mean(&[])), (10.0, 0.0));
        assert!((half_width(&figures, 0.95) - 3.182 * standard_error).abs() < 1e-3);
    }
}
