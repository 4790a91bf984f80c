//! Linear and logarithmic axes: where a value goes on a chart, and the ticks.

/// The ratio of the largest to the smallest positive value from which an axis is logarithmic.
const LOG_RATIO: f64 = 16.0;

/// No number is smaller than this power of ten.
const POWER_MIN: i32 = -324;

/// An axis from `lo` to `hi`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    scale: Scale,
    lo: f64,
    hi: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Log,
}

impl Axis {
    /// An axis from zero to a round number at or above the largest value.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let largest = finite(values).fold(0.0, f64::max);
        let hi = if largest > 0.0 { largest } else { 1.0 };
        let step = nice_step(hi / 4.0);
        Self { scale: Scale::Linear, lo: 0.0, hi: (hi / step).ceil() * step }
    }

    /// An axis that fits the values: logarithmic if they span more than [`LOG_RATIO`], otherwise from zero.
    pub(crate) fn fitting(values: impl IntoIterator<Item = f64>) -> Self {
        let positive: Vec<f64> = finite(values).filter(|value| *value > 0.0).collect();
        let lo = positive.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = positive.iter().copied().fold(0.0, f64::max);
        if hi / lo >= LOG_RATIO {
            Self { scale: Scale::Log, lo: floor_125(lo), hi: ceil_125(hi) }
        } else {
            Self::from_zero(positive)
        }
    }

    /// An axis for numbers of users, with a little room at both ends and no tick beyond the last step.
    pub(crate) fn users(users: impl IntoIterator<Item = u32> + Clone) -> Self {
        let lo = users.clone().into_iter().filter(|users| *users > 0).min().unwrap_or(1);
        let hi = users.into_iter().max().unwrap_or(1).max(lo);
        let (lo, hi) = (f64::from(lo), f64::from(hi));
        if hi / lo >= LOG_RATIO {
            Self { scale: Scale::Log, lo: lo / 1.12, hi: hi * 1.12 }
        } else {
            Self { scale: Scale::Linear, lo: 0.0, hi: hi * 1.04 }
        }
    }

    /// A linear axis around the values, which may begin above zero: so that a change of a few per cent is seen.
    pub(crate) fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = finite(values).collect();
        let lo = values.iter().copied().fold(f64::INFINITY, f64::min);
        let hi = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if !(lo > 0.0 && hi.is_finite()) {
            return Self::from_zero(values);
        }
        // No narrower than a tenth of the values, so that noise does not fill the chart.
        let wide = (hi - lo).max(0.1 * hi);
        let step = nice_step(wide / 4.0);
        let lo = ((lo + hi - wide) / 2.0 / step).floor() * step;
        let hi = ((hi.max(lo + wide)) / step).ceil() * step;
        Self { scale: Scale::Linear, lo: lo.max(0.0), hi }
    }

    /// A linear axis for things that are counted from 1.
    pub(crate) fn counted(count: usize) -> Self {
        Self { scale: Scale::Linear, lo: 0.0, hi: (count.max(1) as f64) * 1.04 }
    }

    /// Where `value` lies, as a share of the axis's length. Values outside go to the ends.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.lo) / (self.hi - self.lo),
            Scale::Log if value <= 0.0 => 0.0,
            Scale::Log => (value / self.lo).ln() / (self.hi / self.lo).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The value at a share of the axis's length.
    pub(crate) fn value_at(&self, share: f64) -> f64 {
        match self.scale {
            Scale::Linear => self.lo + share * (self.hi - self.lo),
            Scale::Log => self.lo * (self.hi / self.lo).powf(share),
        }
    }

    /// The largest value on the axis.
    pub(crate) fn hi(&self) -> f64 {
        self.hi
    }

    /// Whether the axis is logarithmic.
    pub(crate) fn is_log(&self) -> bool {
        self.scale == Scale::Log
    }

    /// About `wanted` round values on the axis, ascending.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        match self.scale {
            Scale::Linear => self.linear_ticks(wanted),
            Scale::Log => self.log_ticks(wanted),
        }
    }

    /// Ticks for numbers of users: whole numbers, powers of two on a logarithmic axis.
    pub(crate) fn user_ticks(&self, wanted: usize) -> Vec<f64> {
        let ticks: Vec<f64> = match self.scale {
            Scale::Linear => self.ticks(wanted).into_iter().filter(|tick| tick.fract() == 0.0).collect(),
            Scale::Log => self.powers_of_two(),
        };
        if ticks.len() <= wanted { ticks } else { self.ticks(wanted) }
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = nice_step((self.hi - self.lo) / wanted.max(1) as f64);
        let first = (self.lo / step).ceil() as i64;
        let last = (self.hi / step * (1.0 + 1e-9)).floor() as i64;
        (first..=last.min(first + 64)).map(|index| index as f64 * step).collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let sets: [&[f64]; 2] = [&[1.0, 2.0, 5.0], &[1.0]];
        let sets = sets.map(|leads| self.within(leads));
        let [dense, decades] = sets;
        if dense.len() <= wanted {
            return dense;
        }
        let every = decades.len().div_ceil(wanted.max(1)).max(1);
        decades.into_iter().step_by(every).collect()
    }

    fn within(&self, leads: &[f64]) -> Vec<f64> {
        // An end that was rounded to zero or to infinity has no power of ten.
        let [first, last] = [self.lo.log10().floor(), self.hi.log10().ceil()]
            .map(|power| power.clamp(f64::from(POWER_MIN), f64::from(f64::MAX_10_EXP)) as i32);
        (first..=last)
            .flat_map(|power| leads.iter().map(move |lead| lead * 10f64.powi(power)))
            .filter(|value| self.holds(*value))
            .collect()
    }

    fn powers_of_two(&self) -> Vec<f64> {
        (0..32).map(|power| f64::from(1u32 << power)).filter(|value| self.holds(*value)).collect()
    }

    fn holds(&self, value: f64) -> bool {
        value >= self.lo * (1.0 - 1e-9) && value <= self.hi * (1.0 + 1e-9)
    }
}

fn finite(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|value| value.is_finite())
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    ceil_125(step)
}

fn ceil_125(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|lead| lead * power)
        .find(|candidate| *candidate >= value * (1.0 - 1e-9))
        .unwrap_or(value)
}

fn floor_125(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|lead| lead * power)
        .find(|candidate| *candidate <= value * (1.0 + 1e-9))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_start_at_zero_and_end_round() {
        let axis = Axis::from_zero([34_120.0, 9_870.0]);
        assert_eq!(axis.ticks(4), [0.0, 10_000.0, 20_000.0, 30_000.0, 40_000.0]);
        assert_eq!(axis.place(20_000.0), 0.5);
        assert_eq!(axis.place(-5.0), 0.0);
        assert_eq!(axis.place(1e12), 1.0);
    }

    #[test]
    fn wide_ranges_are_logarithmic() {
        let axis = Axis::fitting([110.0, 9_000.0]);
        assert!(axis.is_log());
        assert_eq!(axis.ticks(9), [100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0]);
        assert_eq!(axis.ticks(3), [100.0, 1_000.0, 10_000.0]);
        assert!((axis.place(1_000.0) - 0.5).abs() < 1e-12);
        assert!((axis.value_at(0.5) - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn an_axis_around_values_shows_small_changes() {
        let axis = Axis::around([33_000.0, 34_000.0]);
        assert_eq!(axis.ticks(4), [31_000.0, 32_000.0, 33_000.0, 34_000.0, 35_000.0]);
        assert!(axis.place(34_000.0) - axis.place(33_000.0) > 0.2);
        assert_eq!(Axis::around([0.0, 5.0]), Axis::from_zero([0.0, 5.0]));
        assert!((0.2..0.8).contains(&Axis::around([4.0; 9]).place(4.0)));
        assert_eq!(Axis::counted(20).place(0.0), 0.0);
    }

    #[test]
    fn users_double_on_a_wide_ladder() {
        assert_eq!(Axis::users([1, 64]).user_ticks(9), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert_eq!(Axis::users([1, 2, 4]).user_ticks(5), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn nothing_to_show_is_still_an_axis() {
        for axis in [
            Axis::from_zero([]),
            Axis::fitting([f64::NAN, f64::INFINITY]),
            Axis::around([f64::NAN]),
            Axis::around([1e-300, 1e300]),
            Axis::counted(0),
            Axis::users([]),
            Axis::users([0]),
            Axis::fitting([1e-300, 1e300]),
            Axis::fitting([5e-324, 1.0]),
            Axis::fitting([1.0, f64::MAX]),
            Axis::users([1, u32::MAX]),
        ] {
            assert!(axis.ticks(6).len() < 70);
            assert!((0.0..=1.0).contains(&axis.place(1.0)));
            assert!((0.0..=1.0).contains(&axis.place(f64::NAN)));
        }
    }
}
