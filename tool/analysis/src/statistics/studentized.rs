//! What the distributions of differences between several means have in common: their scatter is estimated, and the
//! chance of a point is an integral over it.

use statrs::function::gamma::ln_gamma;

/// Beyond this many degrees of freedom the scatter counts as known.
const KNOWN: f64 = 5_000.0;

/// The mean of `chance(s)` over s, an estimated scatter in units of the true one, with `df` degrees of freedom.
pub(super) fn over_scatter(df: f64, chance: impl Fn(f64) -> f64) -> f64 {
    if df > KNOWN {
        return chance(1.0);
    }
    // ln of the density of s = sqrt(chi² / df).
    let constant = 2.0_f64.ln() + df / 2.0 * (df / 2.0).ln() - ln_gamma(df / 2.0);
    let density = |s: f64| (constant + (df - 1.0) * s.ln() - df * s * s / 2.0).exp();
    // Nearly all of s lies within some standard deviations of 1; the deviation is about 1 / sqrt(2 df).
    let spread = 9.0 / (2.0 * df).sqrt();
    integral((1.0 - spread).max(0.0), 1.0 + spread, 24, |s| density(s) * chance(s)).clamp(0.0, 1.0)
}

/// The point beyond which lies this chance, for a chance that falls from 1 at zero: by chords of its logarithm (the
/// Illinois method, Dowell and Jarratt 1971).
pub(super) fn point_beyond(chance: f64, exceeds: impl Fn(f64) -> f64) -> f64 {
    let off = |point: f64| (exceeds(point).max(f64::MIN_POSITIVE) / chance).ln();
    let (mut low, mut high) = ((0.0, -chance.ln()), (2.0, off(2.0)));
    while high.1 > 0.0 && high.0 < 1e6 {
        (low, high) = (high, (2.0 * high.0, off(2.0 * high.0)));
    }
    let mut low_moved = None;
    while high.0 - low.0 > 1e-7 * high.0 {
        let next = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
        let found = (next, off(next));
        if found.1.abs() < 1e-9 {
            return next;
        }
        let moves_low = found.1 > 0.0;
        // An end that stays twice counts half, so that it moves as well.
        let weight = if low_moved == Some(moves_low) { 0.5 } else { 1.0 };
        (low, high) =
            if moves_low { (found, (high.0, high.1 * weight)) } else { ((low.0, low.1 * weight), found) };
        low_moved = Some(moves_low);
    }
    high.0
}

/// The integral of a smooth function by Gauss and Legendre with eight points on each of these many panels.
pub(super) fn integral(from: f64, to: f64, panels: u32, f: impl Fn(f64) -> f64) -> f64 {
    // Abramowitz and Stegun, table 25.4, n = 8: points and weights of one half.
    const POINTS: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    ];
    let width = (to - from) / f64::from(panels);
    let panel = |number: u32| {
        let (half, middle) = (width / 2.0, from + (f64::from(number) + 0.5) * width);
        POINTS
            .iter()
            .map(|(x, weight)| weight * half * (f(middle - half * x) + f(middle + half * x)))
            .sum::<f64>()
    };
    (0..panels).map(panel).sum()
}
