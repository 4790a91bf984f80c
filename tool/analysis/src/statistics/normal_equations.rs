//! Linear regression without an intercept, with coefficients that are not negative, from sums alone: the sums of several
//! lots of observations add up to those of all of them.
//!
//! An observation is the amount of something that several kinds of events took together, with how many of each kind there
//! were. Its variance grows with the number of events, so that it counts for one over that.

/// The sums that a regression needs (normal equations).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NormalEquations {
    /// Products of the counts of two kinds, row by row.
    products: Vec<Vec<f64>>,
    /// Products of the count of a kind and the amount.
    with_amount: Vec<f64>,
    amount_squared: f64,
    observations: u64,
}

/// A coefficient, and its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coefficient {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

/// The coefficients that explain the observations best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// One for each kind; `None` where the observations do not tell it from those of others, or held none of its kind.
    pub(crate) coefficients: Vec<Option<Coefficient>>,
    /// Observations beyond the number of coefficients.
    pub(crate) degrees_of_freedom: f64,
}

/// Fewer degrees of freedom than this say little of how far the observations scatter.
const DEGREES_OF_FREEDOM_MIN: f64 = 5.0;

/// A kind of whose counts the others leave less than this share unexplained is not told from them: sums of some hundred
/// observations are exact to 1e-13.
const TOLERANCE: f64 = 1e-7;

/// Added to the diagonal, which is 1, so that kinds that are not told apart leave the others solvable.
const RIDGE: f64 = 1e-10;

/// Coefficients and gradients below this are zero. The largest are about 1.
const ZERO: f64 = 1e-12;

/// The search for the coefficients above zero ends after this many passes for each coefficient.
const PASSES: usize = 10;

impl NormalEquations {
    /// Adds an observation: an amount, and how many events of each kind took it.
    pub fn add(&mut self, amount: f64, counts: &[f64]) {
        let events: f64 = counts.iter().sum();
        if !(events > 0.0 && events.is_finite() && amount.is_finite()) {
            return;
        }
        self.widen(counts.len());
        for ((row, sum), count) in self.products.iter_mut().zip(&mut self.with_amount).zip(counts) {
            let weighted = count / events;
            row.iter_mut().zip(counts).for_each(|(product, other)| *product += weighted * other);
            *sum += weighted * amount;
        }
        self.amount_squared += amount * amount / events;
        self.observations += 1;
    }

    /// Adds the sums of other observations.
    pub fn merge(&mut self, other: &Self) {
        self.widen(other.with_amount.len());
        for (row, others) in self.products.iter_mut().zip(&other.products) {
            row.iter_mut().zip(others).for_each(|(product, more)| *product += more);
        }
        self.with_amount.iter_mut().zip(&other.with_amount).for_each(|(sum, more)| *sum += more);
        self.amount_squared += other.amount_squared;
        self.observations = self.observations.saturating_add(other.observations);
    }

    /// Makes room for so many kinds.
    fn widen(&mut self, kinds: usize) {
        let kinds = kinds.max(self.with_amount.len());
        self.products.resize_with(kinds, Vec::new);
        self.products.iter_mut().for_each(|row| row.resize(kinds, 0.0));
        self.with_amount.resize(kinds, 0.0);
    }

    /// The amount of one event on average, whatever its kind; `None` without observations.
    pub(crate) fn mean(&self) -> Option<f64> {
        // Each observation counts for one over its events, so that sums over all kinds are plain ones.
        let events: f64 = self.products.iter().flatten().sum();
        (events > 0.0).then(|| self.with_amount.iter().sum::<f64>() / events)
    }

    /// Fits the amount that an event of each kind takes. `None` where there are too few observations, or nothing was taken.
    pub(crate) fn fit(&self) -> Option<Fit> {
        let scaled = Scaled::of(self)?;
        let degrees_of_freedom = self.observations as f64 - scaled.kinds.len() as f64;
        if degrees_of_freedom < DEGREES_OF_FREEDOM_MIN {
            return None;
        }
        let values = non_negative(&scaled.matrix, &scaled.vector);
        let variance = scaled.residual(&values).max(0.0) / degrees_of_freedom;
        let inverse = inverse_diagonal(&scaled.matrix)?;
        let mut coefficients = vec![None; self.with_amount.len()];
        for (((kind, unit), value), inverse) in scaled.kinds.iter().zip(values).zip(inverse) {
            let is_told = inverse * TOLERANCE <= 1.0;
            if let Some(found) = coefficients.get_mut(*kind).filter(|_| is_told) {
                *found = Some(Coefficient { value: value * unit, error: (variance * inverse).sqrt() * unit });
            }
        }
        Some(Fit { coefficients, degrees_of_freedom })
    }
}

/// The equations in units that make the diagonal of the matrix 1, and the amount as well.
struct Scaled {
    /// The kinds that were seen, each with the unit of its coefficient.
    kinds: Vec<(usize, f64)>,
    matrix: Vec<Vec<f64>>,
    vector: Vec<f64>,
}

impl Scaled {
    fn of(sums: &NormalEquations) -> Option<Self> {
        let amount = Some(sums.amount_squared.sqrt()).filter(|amount| *amount > 0.0 && amount.is_finite())?;
        let length = |(kind, row): (usize, &Vec<f64>)| Some((kind, row.get(kind)?.sqrt()));
        let seen = sums.products.iter().enumerate().filter_map(length).filter(|(_, length)| *length > 0.0);
        let seen: Vec<(usize, f64)> = seen.collect();
        let row = |(kind, length): &(usize, f64)| -> Option<Vec<f64>> {
            let products = sums.products.get(*kind)?;
            let scaled = seen.iter().map(|(other, others)| {
                let ridge = if other == kind { RIDGE } else { 0.0 };
                Some(products.get(*other)? / length / others + ridge)
            });
            scaled.collect()
        };
        let matrix = seen.iter().map(row).collect::<Option<Vec<_>>>()?;
        let with_amount =
            |(kind, length): &(usize, f64)| Some(sums.with_amount.get(*kind)? / length / amount);
        let vector = seen.iter().map(with_amount).collect::<Option<Vec<_>>>()?;
        let kinds = seen.iter().map(|(kind, length)| (*kind, amount / length)).collect();
        Some(Self { kinds, matrix, vector })
    }

    /// The sum of squares that these coefficients leave.
    fn residual(&self, values: &[f64]) -> f64 {
        let times = |(row, value): (&Vec<f64>, &f64)| value * (dot(row, values) - RIDGE * value);
        let explained: f64 = self.matrix.iter().zip(values).map(times).sum();
        1.0 - 2.0 * dot(&self.vector, values) + explained
    }
}

/// Least squares with coefficients that are not negative: the active set method of Lawson and Hanson (*Solving Least Squares
/// Problems*, 1974, chapter 23), on the normal equations (Bro and De Jong, Journal of Chemometrics 11(5), 1997).
fn non_negative(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; vector.len()];
    let mut positive = Vec::new();
    for _ in 0..PASSES * vector.len() {
        let Some(next) = steepest(matrix, vector, &solution, &positive) else { break };
        positive.push(next);
        settle(matrix, vector, &mut solution, &mut positive);
    }
    solution
}

/// The coefficient at zero whose growth makes the sum of squares smallest soonest; `None` where none makes it smaller.
fn steepest(matrix: &[Vec<f64>], vector: &[f64], solution: &[f64], positive: &[usize]) -> Option<usize> {
    let slopes = matrix.iter().zip(vector).map(|(row, value)| value - dot(row, solution)).enumerate();
    let open = slopes.filter(|(index, slope)| *slope > ZERO && !positive.contains(index));
    open.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

/// Solves for the positive coefficients. Where that makes some of them negative, goes as far towards it as none is, and solves
/// for those that are still positive.
fn settle(matrix: &[Vec<f64>], vector: &[f64], solution: &mut [f64], positive: &mut Vec<usize>) {
    while let Some(wanted) = solved_for(matrix, vector, positive) {
        let until_zero = |(index, to): (&usize, &f64)| {
            let from = solution[*index];
            if *to > 0.0 { 1.0 } else { from / (from - to).max(f64::MIN_POSITIVE) }
        };
        let way = positive.iter().zip(&wanted).map(until_zero).fold(1.0, f64::min);
        for (index, to) in positive.iter().zip(&wanted) {
            solution[*index] += way * (to - solution[*index]);
        }
        positive.retain(|index| solution[*index] > ZERO);
        let rest = (0..solution.len()).filter(|index| !positive.contains(index));
        rest.for_each(|index| solution[index] = 0.0);
        if way >= 1.0 || positive.is_empty() {
            return;
        }
    }
}

/// The solution of the equations of these coefficients alone.
fn solved_for(matrix: &[Vec<f64>], vector: &[f64], chosen: &[usize]) -> Option<Vec<f64>> {
    let row = |index: &usize| chosen.iter().map(|other| matrix[*index][*other]).collect::<Vec<f64>>();
    let matrix: Vec<Vec<f64>> = chosen.iter().map(row).collect();
    let vector: Vec<f64> = chosen.iter().map(|index| vector[*index]).collect();
    Some(solved(&cholesky(&matrix)?, &vector))
}

/// The diagonal of the inverse; `None` where there is none.
fn inverse_diagonal(matrix: &[Vec<f64>]) -> Option<Vec<f64>> {
    let lower = cholesky(matrix)?;
    let unit = |index: usize| (0..matrix.len()).map(|other| f64::from(other == index)).collect::<Vec<f64>>();
    Some((0..matrix.len()).map(|index| solved(&lower, &unit(index))[index]).collect())
}

/// The rows, up to the diagonal, of the lower triangle whose product with its transpose is the matrix; `None` where that is
/// not positive definite.
fn cholesky(matrix: &[Vec<f64>]) -> Option<Vec<Vec<f64>>> {
    let mut lower: Vec<Vec<f64>> = Vec::with_capacity(matrix.len());
    for row in matrix {
        let mut own: Vec<f64> = Vec::with_capacity(row.len());
        for (above, value) in lower.iter().zip(row) {
            let (diagonal, left) = above.split_last()?;
            own.push((value - dot(&own, left)) / diagonal);
        }
        let pivot = row.get(lower.len())? - dot(&own, &own);
        own.push(Some(pivot.sqrt()).filter(|root| *root > 0.0)?);
        lower.push(own);
    }
    Some(lower)
}

/// Solves the equations of a matrix that is the product of this lower triangle with its transpose.
fn solved(lower: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    let mut solution: Vec<f64> = Vec::with_capacity(vector.len());
    for (row, value) in lower.iter().zip(vector) {
        let known = dot(row, &solution);
        solution.push((value - known) / row[solution.len()]);
    }
    for (index, row) in lower.iter().enumerate().rev() {
        solution[index] /= row[index];
        let value = solution[index];
        solution[..index].iter_mut().zip(row).for_each(|(earlier, factor)| *earlier -= factor * value);
    }
    solution
}

/// Of as many terms as the shorter one has.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;
    use crate::statistics::t_95;

    /// Counts of windows of about a hundred events, drawn by kind.
    fn counts(random: &mut Random, shares: &[f64]) -> Vec<f64> {
        let count = |share: &f64| (100.0 * share + (100.0 * share).sqrt() * random.normal()).round().max(0.0);
        shares.iter().map(count).collect()
    }

    /// Sums of windows in which each kind takes what `costs` says, with this standard deviation of one event.
    fn observed(
        costs: &[f64],
        shares: &[f64],
        (windows, deviation): (u32, f64),
        seed: u64,
    ) -> NormalEquations {
        let mut random = Random::seeded(seed);
        let mut sums = NormalEquations::default();
        for _ in 0..windows {
            let counts = counts(&mut random, shares);
            let noise = deviation * counts.iter().sum::<f64>().sqrt() * random.normal();
            sums.add(dot(&counts, costs) + noise, &counts);
        }
        sums
    }

    fn values(sums: &NormalEquations) -> Vec<Option<f64>> {
        let fit = sums.fit().expect("enough windows");
        fit.coefficients.into_iter().map(|one| one.map(|one| one.value)).collect()
    }

    #[test]
    fn exact_observations_give_exact_coefficients() {
        let costs = [3.0, 0.0, 250.0, 17.5];
        let sums = observed(&costs, &[0.5, 0.2, 0.1, 0.2], (60, 0.0), 1);
        let fit = sums.fit().expect("a fit");
        assert_eq!(fit.degrees_of_freedom, 56.0);
        for (found, cost) in fit.coefficients.iter().zip(costs) {
            let found = found.expect("all kinds");
            assert!((found.value - cost).abs() < 1e-5 && found.error < 1e-3, "{found:?} is not {cost}");
        }
        let mean = sums.mean().expect("events");
        assert!((mean - 30.0).abs() < 5.0, "{mean}");
    }

    /// The interval of each coefficient holds it about as often as it says.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let costs = [2.0, 10.0, 5.0];
        let mut held = 0;
        for seed in 0..300 {
            let fit = observed(&costs, &[0.6, 0.1, 0.3], (40, 4.0), seed).fit().expect("a fit");
            let half = t_95(fit.degrees_of_freedom);
            let found = fit.coefficients.iter().map(|one| one.expect("all kinds"));
            held += found
                .zip(costs)
                .filter(|(found, cost)| (found.value - cost).abs() <= half * found.error)
                .count();
        }
        assert!((828..=891).contains(&held), "{held} of 900");
    }

    /// Without the bound, noise would make a kind that takes nothing take less than nothing in half of all cases.
    #[test]
    fn no_coefficient_is_negative_and_none_could_be_better() {
        let mut at_zero = 0;
        for seed in 0..200 {
            let sums = observed(&[0.0, 0.0, 8.0, 3.0], &[0.3, 0.2, 0.2, 0.3], (30, 6.0), seed);
            let scaled = Scaled::of(&sums).expect("sums");
            let found = non_negative(&scaled.matrix, &scaled.vector);
            for ((row, value), of) in scaled.matrix.iter().zip(&scaled.vector).zip(&found) {
                let slope = value - dot(row, &found);
                // Karush, Kuhn and Tucker: no slope at what is positive, none upwards at what is zero.
                assert!(*of >= 0.0 && slope < 1e-9 && (slope > -1e-9 || *of == 0.0), "{of} {slope}");
            }
            at_zero += usize::from(found[0] == 0.0);
        }
        assert!((60..=160).contains(&at_zero), "{at_zero} of 200");
    }

    #[test]
    fn kinds_in_the_same_ratio_are_not_told_apart_and_leave_the_others_known() {
        let mut random = Random::seeded(7);
        let mut sums = NormalEquations::default();
        for _ in 0..50 {
            let drawn = counts(&mut random, &[0.5, 0.5]);
            let counts = [drawn[0], 2.0 * drawn[0], drawn[1], 0.0];
            sums.add(dot(&counts, &[1.0, 4.0, 30.0, 9.0]), &counts);
        }
        let found = values(&sums);
        assert_eq!((found[0], found[1], found[3]), (None, None, None), "the last never came");
        assert!(found[2].is_some_and(|value| (value - 30.0).abs() < 1e-4), "{found:?}");
    }

    #[test]
    fn merged_sums_are_those_of_all_observations() {
        let mut random = Random::seeded(3);
        let windows: Vec<Vec<f64>> = (0..24).map(|_| counts(&mut random, &[0.7, 0.3])).collect();
        let (mut all, mut first, mut second) =
            (NormalEquations::default(), NormalEquations::default(), NormalEquations::default());
        for (number, counts) in windows.iter().enumerate() {
            // The first half has one kind alone, as those that come later are not known of yet.
            let counts = if number < 12 { &counts[..1] } else { &counts[..] };
            let amount = counts.iter().sum::<f64>() + f64::from(number as u32 % 3);
            all.add(amount, counts);
            if number < 12 { first.add(amount, counts) } else { second.add(amount, counts) }
        }
        let merged = |one: &NormalEquations, other: &NormalEquations| {
            let mut sums = one.clone();
            sums.merge(other);
            sums.fit().expect("a fit")
        };
        let whole = all.fit().expect("a fit");
        for found in [merged(&first, &second), merged(&second, &first)] {
            assert_eq!(found.degrees_of_freedom, whole.degrees_of_freedom);
            for (one, other) in found.coefficients.iter().zip(&whole.coefficients) {
                let (one, other) = (one.expect("told"), other.expect("told"));
                assert!((one.value - other.value).abs() < 1e-9 && (one.error - other.error).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn few_windows_and_windows_in_which_nothing_was_used_tell_nothing() {
        assert_eq!(observed(&[1.0, 2.0], &[0.5, 0.5], (6, 0.1), 1).fit(), None);
        assert!(observed(&[1.0, 2.0], &[0.5, 0.5], (7, 0.1), 1).fit().is_some());
        assert_eq!(observed(&[0.0, 0.0], &[0.5, 0.5], (50, 0.0), 1).fit(), None);
        assert_eq!(NormalEquations::default().fit(), None);
        assert_eq!(NormalEquations::default().mean(), None);
        let mut broken = NormalEquations::default();
        broken.add(f64::NAN, &[1.0]);
        broken.add(1.0, &[0.0, 0.0]);
        assert_eq!(broken, NormalEquations::default());
    }
}
