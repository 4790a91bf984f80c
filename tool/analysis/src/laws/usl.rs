//! Universal scalability law, X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).
//!
//! N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla
//! Capacity Planning", 2007. N / X(N) is linear in 1, N - 1 and N (N - 1), so the fit is a weighted linear
//! least squares with coefficients kept from going below zero.

use crate::run::{Step, Usl};
use crate::statistics::regression::{IDENTITY, dot, inverted};
use crate::statistics::t_95;

/// A fitted law with 95 % intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UslFit {
    /// The law.
    pub law: Usl,
    /// Interval of the throughput of one user, requests per second.
    pub lambda_ci_per_s: [f64; 2],
    /// Interval of the contention.
    pub sigma_ci: [f64; 2],
    /// Interval of the coherency.
    pub kappa_ci: [f64; 2],
}

/// Predicted throughput, requests per second.
pub fn throughput(law: &Usl, users: u32) -> f64 {
    let users = f64::from(users);
    law.lambda_per_s * users / (1.0 + law.sigma * (users - 1.0) + law.kappa * users * (users - 1.0))
}

/// The law that fits the steps best; `None` with fewer than four steps with completions, or where no law
/// fits.
pub fn usl(steps: &[&Step]) -> Option<UslFit> {
    let rows: Vec<Row> = steps.iter().filter_map(|step| Row::of(step)).collect();
    if rows.len() < 4 {
        return None;
    }
    let fit = SUBSETS
        .iter()
        .filter_map(|subset| Fit::of(&rows, subset))
        .min_by(|a, b| a.squares.total_cmp(&b.squares))?;
    fit.law(steps, rows.len())
}

/// One step as a row of the linear model `y = a0 + a1 (N - 1) + a2 N (N - 1)` with `y = N / X`, divided by
/// `y` so that relative errors of throughput weigh the same at every step.
struct Row {
    terms: [f64; 3],
}

impl Row {
    fn of(step: &Step) -> Option<Self> {
        if step.users == 0 || step.throughput_per_s <= 0.0 {
            return None;
        }
        let users = f64::from(step.users);
        let scale = step.throughput_per_s / users;
        Some(Self { terms: [1.0, users - 1.0, users * (users - 1.0)].map(|term| term * scale) })
    }
}

/// The coefficients that may differ from zero. The best fit with none below zero is the best of these that has
/// none below zero.
const SUBSETS: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];

struct Fit {
    coefficients: [f64; 3],
    /// Inverse of the normal matrix, zero where a coefficient is held at zero.
    inverse: [[f64; 3]; 3],
    squares: f64,
}

impl Fit {
    /// Least squares over the chosen coefficients; `None` if singular or if one comes out negative.
    fn of(rows: &[Row], subset: &[usize]) -> Option<Self> {
        let scales = scales(rows);
        let scaled = |row: &Row, term: usize| row.terms[term] / scales[term];
        let sum = |a: usize, b: usize| rows.iter().map(|row| scaled(row, a) * scaled(row, b)).sum::<f64>();
        let mut normal = IDENTITY;
        for &a in subset {
            for &b in subset {
                normal[a][b] = sum(a, b);
            }
        }
        let mut inverse = inverted(normal)?;
        let mut coefficients = [0.0; 3];
        for &a in subset {
            let right = |b: usize| rows.iter().map(|row| scaled(row, b)).sum::<f64>();
            coefficients[a] = subset.iter().map(|&b| inverse[a][b] * right(b)).sum::<f64>() / scales[a];
        }
        if coefficients.iter().any(|c| *c < 0.0 || !c.is_finite()) || coefficients[0] <= 0.0 {
            return None;
        }
        for (a, row) in inverse.iter_mut().enumerate() {
            for (b, entry) in row.iter_mut().enumerate() {
                let free = subset.contains(&a) && subset.contains(&b);
                *entry = if free { *entry / (scales[a] * scales[b]) } else { 0.0 };
            }
        }
        let squares = rows.iter().map(|row| (1.0 - dot(row.terms, coefficients)).powi(2)).sum();
        Some(Self { coefficients, inverse, squares })
    }

    /// The fitted law with its intervals, `rows` being how many of the steps were fitted.
    fn law(&self, steps: &[&Step], rows: usize) -> Option<UslFit> {
        let [base, contention, coherency] = self.coefficients;
        let law = Usl {
            lambda_per_s: 1.0 / base,
            sigma: contention / base,
            kappa: coherency / base,
            r_squared: 0.0,
        };
        let df = rows as f64 - 3.0;
        let variance = self.squares / df;
        let half_width = |gradient: [f64; 3]| {
            let spread: f64 = (0..3).map(|a| gradient[a] * dot(self.inverse[a], gradient)).sum();
            t_95(df) * (variance * spread.max(0.0)).sqrt()
        };
        let around = |centre: f64, half_width: f64| [(centre - half_width).max(0.0), centre + half_width];
        let finite = law.lambda_per_s.is_finite() && law.sigma.is_finite() && law.kappa.is_finite();
        finite.then(|| UslFit {
            law: Usl { r_squared: r_squared(&law, steps), ..law },
            lambda_ci_per_s: around(law.lambda_per_s, half_width([law.lambda_per_s.powi(2), 0.0, 0.0])),
            sigma_ci: around(law.sigma, half_width([-law.sigma / base, 1.0 / base, 0.0])),
            kappa_ci: around(law.kappa, half_width([-law.kappa / base, 0.0, 1.0 / base])),
        })
    }
}

/// The root of each term's sum of squares, to keep the normal matrix well conditioned.
fn scales(rows: &[Row]) -> [f64; 3] {
    [0, 1, 2].map(|term: usize| {
        let squares: f64 = rows.iter().map(|row| row.terms[term].powi(2)).sum();
        if squares > 0.0 { squares.sqrt() } else { 1.0 }
    })
}

/// Share of the variance of throughput that the law explains.
fn r_squared(law: &Usl, steps: &[&Step]) -> f64 {
    let mean = steps.iter().map(|step| step.throughput_per_s).sum::<f64>() / steps.len().max(1) as f64;
    let residual = |step: &&Step| step.throughput_per_s - throughput(law, step.users);
    let left: f64 = steps.iter().map(|step| residual(step).powi(2)).sum();
    let whole: f64 = steps.iter().map(|step| (step.throughput_per_s - mean).powi(2)).sum();
    if whole > 0.0 { 1.0 - left / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(throughput_of: impl Fn(u32) -> f64) -> Option<UslFit> {
        let step = |users| Step { users, throughput_per_s: throughput_of(users), ..Step::default() };
        let steps = [1, 2, 4, 8, 16, 32, 64].map(step);
        usl(&steps.iter().collect::<Vec<_>>())
    }

    fn law(sigma: f64, kappa: f64) -> Usl {
        Usl { lambda_per_s: 1_000.0, sigma, kappa, r_squared: 0.0 }
    }

    #[test]
    fn finds_the_law_again() {
        for (sigma, kappa) in [(0.05, 0.001), (0.0, 0.002), (0.2, 0.0), (0.0, 0.0)] {
            let found = fitted(|n| throughput(&law(sigma, kappa), n)).unwrap().law;
            assert!((found.lambda_per_s - 1_000.0).abs() < 0.1, "{found:?}");
            assert!((found.sigma - sigma).abs() < 1e-4 && (found.kappa - kappa).abs() < 1e-5, "{found:?}");
            assert!(found.r_squared > 0.999);
        }
    }

    #[test]
    fn never_negative() {
        let found = fitted(|n| 1_000.0 * f64::from(n).powf(1.05)).unwrap().law;
        assert!(found.sigma >= 0.0 && found.kappa >= 0.0);
    }

    #[test]
    fn too_few_steps() {
        let steps = [1, 2, 4].map(|users| Step { users, throughput_per_s: 1.0, ..Step::default() });
        assert_eq!(usl(&steps.iter().collect::<Vec<_>>()), None);
    }

    /// With 2 % noise the intervals hold the truth about as often as they say.
    #[test]
    fn intervals_cover() {
        let mut random = fastrand::Rng::with_seed(7);
        let truth = law(0.05, 0.001);
        let mut covered = [0; 3];
        for _ in 0..1_000 {
            let noisy: Vec<f64> = [1u32, 2, 4, 8, 16, 32, 64]
                .iter()
                .map(|&n| {
                    throughput(&truth, n) * (1.0 + 0.02 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0))
                })
                .collect();
            let found = fitted(|n| noisy[n.ilog2() as usize]).unwrap();
            let truths = [1_000.0, truth.sigma, truth.kappa];
            let intervals = [found.lambda_ci_per_s, found.sigma_ci, found.kappa_ci];
            for (count, (truth, [low, high])) in covered.iter_mut().zip(truths.iter().zip(intervals)) {
                *count += usize::from(low <= *truth && *truth <= high);
            }
        }
        assert!(covered.iter().all(|count| (930..=970).contains(count)), "{covered:?} of 1000");
    }
}
