//! Universal scalability law, X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)).
//!
//! N. J. Gunther, "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla
//! Capacity Planning", 2007. N / X(N) is linear in 1, N - 1 and N (N - 1), so the fit is a weighted linear
//! least squares with coefficients kept from going below zero.
//!
//! Because of that limit the coefficients are not normal, so their intervals come from a parametric bootstrap (Efron and
//! Tibshirani 1993): throughputs are drawn around the fitted law as measured ones scatter around the truth, and fitted again.

use crate::run::{Step, Usl};
use crate::search::growth::throughput_error;
use crate::statistics::random::Random;
use crate::statistics::regression::{IDENTITY, dot, inverted};
use crate::statistics::{at_share, chi_squared_exceeds};

/// A law is useful where it is within this share of the throughput, however small the intervals of the steps are.
const USEFUL: f64 = 0.02;

/// Deviations from the law that have less than this chance are lack of fit.
const LACK_OF_FIT: f64 = 0.01;

/// How many times throughputs are drawn.
const DRAWS: usize = 400;

/// Predicted throughput, requests per second.
pub fn throughput(law: &Usl, users: u32) -> f64 {
    let users = f64::from(users);
    law.lambda_per_s * users / (1.0 + law.sigma * (users - 1.0) + law.kappa * users * (users - 1.0))
}

/// The law that fits the steps best; `None` with fewer than four steps with completions, or where no law
/// fits.
pub fn usl(steps: &[&Step]) -> Option<Usl> {
    let steps: Vec<&Step> = steps.iter().copied().filter(|step| Row::of(step).is_some()).collect();
    let rows: Vec<Row> = steps.iter().filter_map(|step| Row::of(step)).collect();
    if rows.len() < 4 {
        return None;
    }
    let fit = Fit::best(&rows)?;
    let law = fit.law()?;
    let scatter = Scatter::around(&law, &steps, &fit);
    let [lambda, sigma, kappa] = intervals(&law, &steps, &scatter);
    Some(Usl {
        r_squared: r_squared(&law, &steps),
        lambda_ci_per_s: lambda,
        sigma_ci: sigma,
        kappa_ci: kappa,
        fits: Some(scatter.fits),
        ..law
    })
}

/// How measured throughputs lie around a law.
struct Scatter {
    /// The standard error of each step, as a share of its throughput.
    errors: Vec<f64>,
    fits: bool,
}

impl Scatter {
    /// The errors that the steps' intervals stand for; where the steps lie further from the law than that, larger in
    /// proportion. Steps without an interval have the error that they show.
    fn around(law: &Usl, steps: &[&Step], fit: &Fit) -> Self {
        let df = (steps.len() as f64 - 3.0).max(1.0);
        let shown = (fit.squares / df).sqrt();
        let own = |step: &&Step| match step.throughput_ci_per_s {
            Some(_) => throughput_error(step) / step.throughput_per_s,
            None => shown,
        };
        let errors: Vec<f64> = steps.iter().map(own).collect();
        let off = |step: &&Step| 1.0 - throughput(law, step.users) / step.throughput_per_s;
        let squares = |least: f64| -> f64 {
            let square = |(step, error): (&&Step, &f64)| off(step).powi(2) / (error.powi(2) + least.powi(2));
            steps.iter().zip(&errors).map(square).filter(|square| square.is_finite()).sum()
        };
        let wider = (squares(0.0) / df).max(1.0).sqrt();
        let fits = chi_squared_exceeds(df, squares(USEFUL)) >= LACK_OF_FIT;
        Self { errors: errors.iter().map(|error| error * wider).collect(), fits }
    }
}

/// 95 % intervals of lambda, sigma and kappa by drawing from the law; `None` where too few draws can be fitted.
fn intervals(law: &Usl, steps: &[&Step], scatter: &Scatter) -> [Option<[f64; 2]>; 3] {
    let mut random = Random::seeded(steps.len() as u64);
    let mut draw = || {
        let drawn = |(step, error): (&&Step, &f64)| {
            let throughput_per_s = throughput(law, step.users) * (error * random.normal()).exp();
            Row::at(step.users, throughput_per_s)
        };
        Fit::best(&steps.iter().zip(&scatter.errors).filter_map(drawn).collect::<Vec<_>>())?.law()
    };
    let laws: Vec<Usl> = (0..DRAWS).filter_map(|_| draw()).collect();
    [
        interval(law, &laws, |law| law.lambda_per_s),
        interval(law, &laws, |law| law.sigma),
        interval(law, &laws, |law| law.kappa),
    ]
}

/// From the percentiles of the draws and, as far as they reach further, from the basic interval: how far draws lie from the
/// fit on one side is how far the truth may lie on the other.
fn interval(law: &Usl, drawn: &[Usl], of: fn(&Usl) -> f64) -> Option<[f64; 2]> {
    let mut values: Vec<f64> = drawn.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (at_share(&values, 0.025)?, at_share(&values, 0.975)?);
    let mirrored = |end: f64| 2.0 * of(law) - end;
    (values.len() >= DRAWS / 2).then(|| [mirrored(high).min(low).max(0.0), mirrored(low).max(high)])
}

/// One step as a row of the linear model `y = a0 + a1 (N - 1) + a2 N (N - 1)` with `y = N / X`, divided by
/// `y` so that relative errors of throughput weigh the same at every step.
struct Row {
    terms: [f64; 3],
}

impl Row {
    fn of(step: &Step) -> Option<Self> {
        Self::at(step.users, step.throughput_per_s)
    }

    fn at(users: u32, throughput_per_s: f64) -> Option<Self> {
        if users == 0 || throughput_per_s <= 0.0 {
            return None;
        }
        let users = f64::from(users);
        let scale = throughput_per_s / users;
        Some(Self { terms: [1.0, users - 1.0, users * (users - 1.0)].map(|term| term * scale) })
    }
}

/// The coefficients that may differ from zero. The best fit with none below zero is the best of these that has
/// none below zero.
const SUBSETS: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];

struct Fit {
    coefficients: [f64; 3],
    squares: f64,
}

impl Fit {
    fn best(rows: &[Row]) -> Option<Self> {
        let fits = SUBSETS.iter().filter_map(|subset| Self::of(rows, subset));
        fits.min_by(|a, b| a.squares.total_cmp(&b.squares))
    }

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
        let inverse = inverted(normal)?;
        let mut coefficients = [0.0; 3];
        for &a in subset {
            let right = |b: usize| rows.iter().map(|row| scaled(row, b)).sum::<f64>();
            coefficients[a] = subset.iter().map(|&b| inverse[a][b] * right(b)).sum::<f64>() / scales[a];
        }
        if coefficients.iter().any(|c| *c < 0.0 || !c.is_finite()) || coefficients[0] <= 0.0 {
            return None;
        }
        let squares = rows.iter().map(|row| (1.0 - dot(row.terms, coefficients)).powi(2)).sum();
        Some(Self { coefficients, squares })
    }

    fn law(&self) -> Option<Usl> {
        let [base, contention, coherency] = self.coefficients;
        let law = Usl {
            lambda_per_s: 1.0 / base,
            sigma: contention / base,
            kappa: coherency / base,
            ..Usl::default()
        };
        [law.lambda_per_s, law.sigma, law.kappa].iter().all(|figure| figure.is_finite()).then_some(law)
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

    const USERS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

    fn fitted(throughput_of: impl Fn(u32) -> f64, error: f64) -> Option<Usl> {
        let step = |users| {
            let throughput_per_s = throughput_of(users);
            let ends = [-1.96, 1.96].map(|errors| throughput_per_s * (1.0 + errors * error));
            Step { users, throughput_per_s, throughput_ci_per_s: Some(ends), ..Step::default() }
        };
        usl(&USERS.map(step).iter().collect::<Vec<_>>())
    }

    fn law(sigma: f64, kappa: f64) -> Usl {
        Usl { lambda_per_s: 1_000.0, sigma, kappa, ..Usl::default() }
    }

    #[test]
    fn finds_the_law_again() {
        for (sigma, kappa) in [(0.05, 0.001), (0.0, 0.002), (0.2, 0.0), (0.0, 0.0)] {
            let found = fitted(|n| throughput(&law(sigma, kappa), n), 0.01).unwrap();
            assert!((found.lambda_per_s - 1_000.0).abs() < 0.1, "{found:?}");
            assert!((found.sigma - sigma).abs() < 1e-4 && (found.kappa - kappa).abs() < 1e-5, "{found:?}");
            assert!(found.r_squared > 0.999 && found.fits == Some(true), "{found:?}");
        }
    }

    /// A knee is sharper than the law: it says itself that it does not fit.
    #[test]
    fn a_sharp_knee_does_not_fit() {
        let found = fitted(|n| 1_000.0 * f64::from(n.min(8)), 0.01).unwrap();
        assert_eq!(found.fits, Some(false), "{found:?}");
    }

    #[test]
    fn never_negative() {
        let found = fitted(|n| 1_000.0 * f64::from(n).powf(1.05), 0.01).unwrap();
        assert!(found.sigma >= 0.0 && found.kappa >= 0.0);
    }

    #[test]
    fn too_few_steps() {
        let steps = [1, 2, 4].map(|users| Step { users, throughput_per_s: 1.0, ..Step::default() });
        assert_eq!(usl(&steps.iter().collect::<Vec<_>>()), None);
    }

    /// With 2 % noise the intervals hold the truth at least about as often as they say, and the law is seldom refused.
    #[test]
    fn intervals_cover() {
        let mut random = fastrand::Rng::with_seed(7);
        let truth = law(0.05, 0.001);
        let (mut covered, mut fits) = ([0; 3], 0);
        for _ in 0..300 {
            let mut noise = || 1.0 + 0.02 * ((0..12).map(|_| random.f64()).sum::<f64>() - 6.0);
            let noisy: Vec<f64> = USERS.iter().map(|&n| throughput(&truth, n) * noise()).collect();
            let found = fitted(|n| noisy[n.ilog2() as usize], 0.02).unwrap();
            let truths = [1_000.0, truth.sigma, truth.kappa];
            let intervals = [found.lambda_ci_per_s, found.sigma_ci, found.kappa_ci];
            for (count, (truth, interval)) in covered.iter_mut().zip(truths.iter().zip(intervals)) {
                *count += usize::from(interval.is_some_and(|[low, high]| low <= *truth && *truth <= high));
            }
            fits += usize::from(found.fits == Some(true));
        }
        assert!(covered.iter().all(|count| *count >= 279), "{covered:?} of 300");
        assert!(fits >= 290, "{fits} of 300");
    }
}
