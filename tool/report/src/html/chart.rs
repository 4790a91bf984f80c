//! Geometry of a line chart, over users or over runs.

use serde::Serialize;

use crate::axis::Axis;
use crate::number;

/// The paper: outer size and margins, in SVG user units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paper {
    name: &'static str,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    x_ticks: usize,
    /// The most characters of a label beside a curve.
    label_chars: usize,
}

/// For print, and for screens wider than a phone's.
pub(super) const WIDE: Paper = Paper {
    name: "wide",
    width: 720.0,
    height: 400.0,
    left: 62.0,
    right: 142.0,
    x_ticks: 10,
    label_chars: 19,
};
/// For a phone held upright.
pub(super) const NARROW: Paper = Paper {
    name: "narrow",
    width: 340.0,
    height: 290.0,
    left: 50.0,
    right: 92.0,
    x_ticks: 6,
    label_chars: 12,
};

/// For one of several charts side by side.
pub(super) const SMALL: Paper = Paper {
    name: "small",
    width: 460.0,
    height: 260.0,
    left: 48.0,
    right: 96.0,
    x_ticks: 6,
    label_chars: 12,
};

/// Ticks wanted on the vertical axis.
const Y_TICKS: usize = 8;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 46.0;
/// The least distance between the baselines of two labels.
const LABEL_STEP: f64 = 15.0;

/// The content of a chart.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) id: String,
    pub(super) title: String,
    /// The chart in a sentence or two, for people who cannot see it.
    pub(super) description: String,
    pub(super) y_name: String,
    pub(super) x_name: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// How a tick of the vertical axis is written.
    pub(super) y_tick: fn(f64) -> String,
    pub(super) series: Vec<Series>,
    pub(super) saturation: Option<Saturation>,
    /// The note shown at each number of users.
    pub(super) notes: Vec<(f64, String)>,
}

/// A curve.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Class of the style sheet, which decides how it is drawn.
    pub(super) class: &'static str,
    pub(super) name: String,
    /// For labels without room for the name; empty where there is no shorter name.
    pub(super) short_name: String,
    pub(super) values: Vec<(f64, f64)>,
    /// Intervals of some of the values: users, low, high.
    pub(super) intervals: Vec<(f64, f64, f64)>,
}

/// N* on the chart.
#[derive(Debug)]
pub(super) struct Saturation {
    pub(super) users: f64,
    pub(super) ci: Option<[f64; 2]>,
    pub(super) label: String,
}

/// A chart placed on paper. Lengths are text with one decimal.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    id: String,
    paper: &'static str,
    title: String,
    description: String,
    y_name: String,
    x_name: &'static str,
    width: String,
    height: String,
    left: String,
    right: String,
    top: String,
    bottom: String,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
    curves: Vec<Curve>,
    saturation: Option<Mark>,
    strips: Vec<Strip>,
}

#[derive(Debug, Serialize)]
struct Tick {
    at: String,
    label: String,
}

#[derive(Debug, Serialize)]
struct Curve {
    class: &'static str,
    points: String,
    dots: Vec<[String; 2]>,
    /// x, low end, high end.
    bars: Vec<[String; 3]>,
    label: String,
    label_x: String,
    label_y: String,
}

#[derive(Debug, Serialize)]
struct Mark {
    x: String,
    band_x: String,
    band_width: String,
    label: String,
    anchor: &'static str,
    label_x: String,
}

/// The part of the chart that belongs to one step; lengths in per cent of the paper's width.
#[derive(Debug, Serialize)]
struct Strip {
    left: String,
    width: String,
    side: &'static str,
    note: String,
}

impl Plot {
    /// Places the plot on paper.
    pub(super) fn draw(&self, paper: Paper) -> Chart {
        let canvas = Canvas { paper, plot: self };
        Chart {
            id: format!("{}-{}", self.id, paper.name),
            paper: paper.name,
            title: self.title.clone(),
            description: self.description.clone(),
            y_name: self.y_name.clone(),
            x_name: self.x_name,
            width: px(paper.width),
            height: px(paper.height),
            left: px(paper.left),
            right: px(paper.width - paper.right),
            top: px(TOP),
            bottom: px(paper.height - BOTTOM),
            x_ticks: canvas.x_ticks(),
            y_ticks: canvas.y_ticks(),
            curves: canvas.curves(),
            saturation: self.saturation.as_ref().map(|saturation| canvas.mark(saturation)),
            strips: canvas.strips(),
        }
    }
}

struct Canvas<'a> {
    paper: Paper,
    plot: &'a Plot,
}

impl Canvas<'_> {
    fn x(&self, users: f64) -> f64 {
        let Paper { width, left, right, .. } = self.paper;
        left + self.plot.x.place(users) * (width - left - right)
    }

    fn y(&self, value: f64) -> f64 {
        let bottom = self.paper.height - BOTTOM;
        bottom - self.plot.y.place(value) * (bottom - TOP)
    }

    fn x_ticks(&self) -> Vec<Tick> {
        let ticks = self.plot.x.user_ticks(self.paper.x_ticks).into_iter();
        ticks.map(|users| Tick { at: px(self.x(users)), label: number::axis_label(users) }).collect()
    }

    fn y_ticks(&self) -> Vec<Tick> {
        let ticks = self.plot.y.ticks(Y_TICKS).into_iter();
        ticks.map(|value| Tick { at: px(self.y(value)), label: (self.plot.y_tick)(value) }).collect()
    }

    fn curves(&self) -> Vec<Curve> {
        let ends =
            self.plot.series.iter().map(|series| series.values.last().map_or(0.0, |last| self.y(last.1)));
        let label_ys = apart(ends.collect(), TOP, self.paper.height - BOTTOM);
        self.plot.series.iter().zip(label_ys).map(|(series, label_y)| self.curve(series, label_y)).collect()
    }

    fn curve(&self, series: &Series, label_y: f64) -> Curve {
        let places: Vec<[String; 2]> =
            series.values.iter().map(|(users, value)| [px(self.x(*users)), px(self.y(*value))]).collect();
        let bars = series.intervals.iter();
        Curve {
            class: series.class,
            points: places.iter().map(|[x, y]| format!("{x},{y}")).collect::<Vec<_>>().join(" "),
            dots: places,
            bars: bars
                .map(|(users, lo, hi)| [px(self.x(*users)), px(self.y(*lo)), px(self.y(*hi))])
                .collect(),
            label: label(series, self.paper.label_chars),
            label_x: px(self.paper.width - self.paper.right + 8.0),
            label_y: px(label_y + 4.0),
        }
    }

    fn mark(&self, saturation: &Saturation) -> Mark {
        let x = self.x(saturation.users);
        let [lo, hi] = saturation.ci.unwrap_or([saturation.users; 2]).map(|users| self.x(users));
        let middle = (self.paper.left + self.paper.width - self.paper.right) / 2.0;
        let (anchor, shift) = if x > middle { ("end", -6.0) } else { ("start", 6.0) };
        Mark {
            x: px(x),
            band_x: px(lo.min(x)),
            band_width: px((hi.max(x) - lo.min(x)).max(0.0)),
            label: saturation.label.clone(),
            anchor,
            label_x: px(x + shift),
        }
    }

    fn strips(&self) -> Vec<Strip> {
        let places: Vec<f64> = self.plot.notes.iter().map(|(users, _)| self.x(*users)).collect();
        let edge = |from: Option<&f64>, to: f64, end: f64| from.map_or(end, |from| (from + to) / 2.0);
        let notes = self.plot.notes.iter().zip(&places).enumerate();
        notes
            .map(|(index, ((_, note), x))| {
                let before = index.checked_sub(1).and_then(|index| places.get(index));
                let from = edge(before, *x, (x - 16.0).max(0.0));
                let to = edge(places.get(index + 1), *x, x + 16.0);
                self.strip(from, to, note)
            })
            .collect()
    }

    fn strip(&self, from: f64, to: f64, note: &str) -> Strip {
        let width = self.paper.width;
        let side = match (from + to) / 2.0 / width {
            share if share < 0.3 => "start",
            share if share > 0.6 => "end",
            _ => "middle",
        };
        let percent = |length: f64| format!("{:.2}", length / width * 100.0);
        Strip { left: percent(from), width: percent(to - from), side, note: note.to_owned() }
    }
}

/// Moves labels apart in their order, and keeps them between the limits if there is room.
fn apart(wanted: Vec<f64>, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| f64::total_cmp(&wanted[*a], &wanted[*b]));
    let mut placed = wanted;
    let mut free = top;
    for index in &order {
        placed[*index] = placed[*index].max(free);
        free = placed[*index] + LABEL_STEP;
    }
    let mut limit = bottom;
    for index in order.iter().rev() {
        placed[*index] = placed[*index].min(limit);
        limit = placed[*index] - LABEL_STEP;
    }
    placed
}

/// The name of a curve in so many characters.
fn label(series: &Series, chars: usize) -> String {
    let fits = series.name.chars().count() <= chars || series.short_name.is_empty();
    shortened(if fits { &series.name } else { &series.short_name }, chars)
}

/// Cuts a text that is longer than so many characters, with an ellipsis.
pub(super) fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_apart_and_in_order() {
        assert_eq!(apart(vec![100.0, 102.0, 20.0], 10.0, 300.0), [100.0, 115.0, 20.0]);
        assert_eq!(apart(vec![299.0, 300.0], 10.0, 300.0), [285.0, 300.0]);
        assert_eq!(apart(Vec::new(), 10.0, 300.0), Vec::<f64>::new());
    }

    #[test]
    fn long_names_are_cut_at_characters() {
        assert_eq!(shortened("ééééé", 5), "ééééé");
        assert_eq!(shortened("éééééé", 5), "éééé…");
    }
}
