//! What a figure is measured in, and how it is written.

use std::fmt;

use crate::number::{self, TimeUnit};

/// A value, with its 95 % interval if it has one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The value, in the unit of the run file.
    pub value: Value,
    /// The ends of the interval.
    pub interval: Option<[f64; 2]>,
}

/// A value of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A measured or estimated number.
    Number(f64),
    /// Whether something holds.
    Flag(bool),
}

/// The unit of a metric, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// A whole number of things.
    Count,
    /// Requests a second.
    PerSecond,
    /// A response time in microseconds; the times of a table share one unit.
    Time,
    /// The longest of the response times, in microseconds; its column has a unit of its own.
    LongestTime,
    /// A time in microseconds, each written in the unit that suits it.
    Cost,
    /// Seconds.
    Seconds,
    /// Bytes a second.
    BytesPerSecond,
    /// A share of one.
    Share,
    /// A share of the best of a table.
    OfBest,
    /// Whether something holds.
    YesNo,
}

impl Quantity {
    pub(crate) fn estimate(value: f64, interval: Option<[f64; 2]>) -> Self {
        Self { value: Value::Number(value), interval }
    }

    /// The value as a number: 1 or 0 for a flag.
    pub fn number(&self) -> f64 {
        match self.value {
            Value::Count(count) => count as f64,
            Value::Number(number) => number,
            Value::Flag(holds) => f64::from(u8::from(holds)),
        }
    }
}

impl From<u32> for Quantity {
    fn from(count: u32) -> Self {
        u64::from(count).into()
    }
}

impl From<u64> for Quantity {
    fn from(count: u64) -> Self {
        Self { value: Value::Count(count), interval: None }
    }
}

impl From<f64> for Quantity {
    fn from(value: f64) -> Self {
        Self::estimate(value, None)
    }
}

impl From<bool> for Quantity {
    fn from(holds: bool) -> Self {
        Self { value: Value::Flag(holds), interval: None }
    }
}

/// Unrounded, for programs.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Flag(holds) => holds.fmt(f),
        }
    }
}

impl MetricUnit {
    /// A value in a message on stderr, which may be any terminal or a log: ASCII alone.
    #[must_use]
    pub fn ascii(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{value:.1} req/s"),
            Self::Share | Self::OfBest => format!("{:.3} %", value * 100.0),
            Self::Time | Self::LongestTime | Self::Cost => format!("{value:.0} us"),
            Self::Count | Self::Seconds | Self::BytesPerSecond | Self::YesNo => value.to_string(),
        }
    }

    /// A figure in a cell of its own, without its interval: `34 120`, `117 µs`, `99 %`.
    pub(crate) fn cell(self, figure: &Quantity) -> String {
        let value = figure.number();
        match self {
            Self::Count => match figure.value {
                Value::Count(count) => number::count(count),
                _ => number::plain(value),
            },
            Self::PerSecond => number::estimate(value, figure.interval),
            Self::Time | Self::LongestTime | Self::Cost => number::time(value),
            Self::Seconds => number::elapsed(value),
            Self::BytesPerSecond => number::prefixed(value, "B/s"),
            Self::Share | Self::OfBest => number::percent(value),
            Self::YesNo => if value > 0.0 { "yes" } else { "no" }.to_owned(),
        }
    }

    /// A figure with its interval, if it has one: `34 120 (33 800–34 440)`.
    pub(crate) fn cell_with_interval(self, figure: &Quantity) -> String {
        let value = figure.number();
        match (self, figure.interval) {
            (Self::Time, interval) => number::time_with_interval(value, interval),
            (Self::PerSecond, Some(ends)) => {
                format!("{} ({})", self.cell(figure), number::interval(value, ends))
            }
            // The best is all of itself; there is nothing to be unsure of.
            (Self::OfBest, Some(ends)) if value != 1.0 => {
                format!("{} ({})", self.cell(figure), number::percent_interval(ends))
            }
            _ => self.cell(figure),
        }
    }

    /// A figure in a column whose times are all in `times`.
    pub(crate) fn cell_in(self, figure: &Quantity, times: TimeUnit) -> String {
        match self {
            Self::Time | Self::LongestTime => number::plain(times.of(figure.number())),
            _ => self.cell(figure),
        }
    }
}
