//! Geometry of a bar chart: one bar per name, with its interval.

use serde::Serialize;

use crate::axis::Axis;
use crate::number;

const WIDTH: f64 = 460.0;
/// Room for names on the left and for figures on the right.
const LEFT: f64 = 96.0;
const RIGHT: f64 = 96.0;
const TOP: f64 = 22.0;
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
/// The height of one of two bars of a row.
const PAIRED: f64 = 9.0;
const BOTTOM: f64 = 26.0;
const TICKS: usize = 4;
/// The most characters of a name.
const NAME_CHARS: usize = 14;

/// The content of a bar chart.
#[derive(Debug)]
pub(super) struct Bars {
    pub(super) id: String,
    pub(super) title: String,
    /// The chart in a sentence, for those who do not see it.
    pub(super) description: String,
    pub(super) unit: String,
    /// Class of the style sheet: `main` for what was measured here, `other` for what others published.
    pub(super) class: &'static str,
    pub(super) rows: Vec<Row>,
}

/// One bar.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) ci: Option<[f64; 2]>,
    /// A figure of somebody else on the same scale, drawn below.
    pub(super) beside: Option<f64>,
}

/// A chart placed on paper. Lengths are text with one decimal.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    id: String,
    title: String,
    description: String,
    unit: String,
    class: &'static str,
    width: String,
    height: String,
    left: String,
    bottom: String,
    ticks: Vec<Tick>,
    bars: Vec<Bar>,
}

#[derive(Debug, Serialize)]
struct Tick {
    x: String,
    label: String,
}

#[derive(Debug, Serialize)]
struct Bar {
    name: String,
    text: String,
    /// Top of the bar, its middle, and where text stands.
    y: String,
    middle: String,
    baseline: String,
    length: String,
    height: String,
    /// Top and length of the bar below; empty without one.
    beside: Vec<String>,
    /// Ends of the interval; empty without one.
    interval: Vec<String>,
    text_x: String,
}

impl Bars {
    /// Places the bars on paper.
    pub(super) fn draw(&self) -> Drawn {
        let ends = self
            .rows
            .iter()
            .flat_map(|row| [row.value, row.ci.map_or(0.0, |ci| ci[1]), row.beside.unwrap_or(0.0)]);
        let axis = Axis::from_zero(ends);
        let x = |value: f64| LEFT + axis.place(value) * (WIDTH - LEFT - RIGHT);
        let bottom = TOP + ROW * self.rows.len() as f64;
        let tick = |value: f64| Tick { x: px(x(value)), label: number::axis_label(value) };
        Drawn {
            id: self.id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            unit: self.unit.clone(),
            class: self.class,
            width: px(WIDTH),
            height: px(bottom + BOTTOM),
            left: px(LEFT),
            bottom: px(bottom),
            ticks: axis.ticks(TICKS).into_iter().map(tick).collect(),
            bars: self.rows.iter().enumerate().map(|(index, row)| bar(row, index, &x)).collect(),
        }
    }
}

fn bar(row: &Row, index: usize, x: &impl Fn(f64) -> f64) -> Bar {
    let middle = TOP + ROW * (index as f64 + 0.5);
    let ends = [row.ci.map_or(row.value, |ci| ci[1]), row.beside.unwrap_or(row.value)];
    let end = ends.into_iter().fold(row.value, f64::max);
    Bar {
        name: super::chart::shortened(&row.name, NAME_CHARS),
        text: number::estimate(row.value, row.ci),
        y: px(middle - if row.beside.is_some() { PAIRED } else { BAR / 2.0 }),
        middle: px(middle),
        baseline: px(middle + 4.0),
        length: px(x(row.value) - LEFT),
        height: px(if row.beside.is_some() { PAIRED } else { BAR }),
        beside: row.beside.map_or_else(Vec::new, |beside| vec![px(middle), px(x(beside) - LEFT)]),
        interval: row.ci.map_or_else(Vec::new, |ci| ci.map(|end| px(x(end))).to_vec()),
        text_x: px(x(end) + 8.0),
    }
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let row = |name: &str, value, ci| Row { name: name.into(), value, ci, beside: None };
        let bars = Bars {
            id: "x".into(),
            title: "x".into(),
            description: "x".into(),
            unit: "req/s".into(),
            class: "main",
            rows: vec![
                row("epoll", 1_000.0, Some([950.0, 1_000.0])),
                row("poll", 500.0, None),
                row("none", f64::NAN, None),
            ],
        };
        let drawn = bars.draw();
        let lengths: Vec<f64> = drawn.bars.iter().map(|bar| bar.length.parse().unwrap()).collect();
        assert_eq!(lengths, [268.0, 134.0, 0.0]);
        assert_eq!(drawn.bars[0].interval[1], "364.0");
        assert!(drawn.bars[1].interval.is_empty());
    }
}
