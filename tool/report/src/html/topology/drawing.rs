//! A topology on paper.

use serde::Serialize;

use super::layout::{Arranged, GUTTER, HEADING, LINE, MARGIN, PADDING, Rect};
use crate::html::chart::shortened;

/// How far a line that passes other boxes keeps from the next such line.
const APART: f64 = 6.0;

/// So many such lines have a place of their own.
const TRACKS: usize = 5;

/// A drawing. Lengths are text with one decimal.
#[derive(Debug, Serialize)]
pub(super) struct Drawing {
    id: String,
    paper: &'static str,
    description: String,
    width: String,
    height: String,
    lanes: Vec<Lane>,
    arrows: Vec<Arrow>,
    boxes: Vec<Box>,
}

#[derive(Debug, Serialize)]
struct Lane {
    rect: [String; 4],
    label: Line,
    mark: Line,
}

#[derive(Debug, Serialize)]
struct Arrow {
    line: String,
    head: String,
}

#[derive(Debug, Serialize)]
struct Box {
    class: &'static str,
    rect: [String; 4],
    /// A second border; empty but for the bottleneck.
    inner: Vec<String>,
    name: Line,
    mark: Option<Line>,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    x: String,
    y: String,
    text: String,
}

fn line(x: f64, y: f64, text: impl Into<String>) -> Line {
    Line { x: px(x), y: px(y), text: text.into() }
}

impl Arranged<'_> {
    /// Draws it.
    pub(super) fn draw(&self) -> Drawing {
        let (width, height) = self.size;
        let boxes = self.boxes.iter().enumerate();
        Drawing {
            id: format!("topology-{}", self.paper.name),
            paper: self.paper.name,
            description: self.graph.description.clone(),
            width: px(width),
            height: px(height),
            lanes: self
                .lanes
                .iter()
                .enumerate()
                .map(|(host, rect)| self.lane_on_paper(host, *rect))
                .collect(),
            arrows: self.arrows(),
            boxes: boxes.filter_map(|(place, rect)| Some(self.box_on_paper(place, (*rect)?))).collect(),
        }
    }

    fn lane_on_paper(&self, host: usize, rect: Rect) -> Lane {
        let host = &self.graph.hosts[host];
        let baseline = rect.y + HEADING - 8.0;
        // Lines past other boxes do not cross it.
        let gutter = if self.paper.columns { 0.0 } else { GUTTER };
        Lane {
            rect: on_paper(rect),
            label: line(rect.x + gutter + MARGIN, baseline, shortened(&host.label, self.paper.chars)),
            mark: line(rect.x + rect.width - MARGIN, baseline, shortened(&host.mark, self.paper.chars)),
        }
    }

    fn box_on_paper(&self, place: usize, rect: Rect) -> Box {
        let node = &self.graph.nodes[place];
        let x = rect.x + 10.0;
        let baseline = |index: usize| rect.y + PADDING + LINE * (index + 1) as f64 - 4.0;
        let lines = node.lines.iter().enumerate();
        let chars = self.paper.chars;
        let inner =
            Rect { x: rect.x + 3.0, y: rect.y + 3.0, width: rect.width - 6.0, height: rect.height - 6.0 };
        // The word for the bottleneck stands on the border.
        let mark = line(rect.x + rect.width - 8.0, rect.y + 4.0, "bottleneck");
        Box {
            class: node.class,
            rect: on_paper(rect),
            inner: if node.is_bottleneck { on_paper(inner).into() } else { Vec::new() },
            name: line(x, baseline(0), shortened(&node.name, self.paper.name_chars)),
            mark: node.is_bottleneck.then_some(mark),
            lines: lines.map(|(index, text)| line(x, baseline(index + 1), shortened(text, chars))).collect(),
        }
    }

    fn arrows(&self) -> Vec<Arrow> {
        let placed =
            |(from, to): &(usize, usize)| Some(((*self.boxes.get(*from)?)?, (*self.boxes.get(*to)?)?));
        let ends = self.graph.arrows.iter().filter(|(from, to)| from != to).filter_map(placed);
        ends.enumerate().map(|(index, (from, to))| self.arrow(index, from, to)).collect()
    }

    fn arrow(&self, index: usize, from: Rect, to: Rect) -> Arrow {
        if self.paper.columns && to.x > from.x {
            return across(from, to);
        }
        if !self.paper.columns && self.are_next(from, to) {
            return down(from, to);
        }
        past(from, to, (index % TRACKS) as f64 * APART)
    }

    /// Whether no box stands between the two, and the second is below.
    fn are_next(&self, from: Rect, to: Rect) -> bool {
        let between = |other: &Rect| other.y > from.y && other.y < to.y;
        to.y > from.y && !self.boxes.iter().flatten().any(between)
    }
}

/// From the right side of one to the left side of another.
fn across(from: Rect, to: Rect) -> Arrow {
    let (x1, y1) = (from.x + from.width, from.y + from.height / 2.0);
    let (x2, y2) = (to.x, to.y + to.height / 2.0);
    let bend = ((x2 - x1) / 2.0).clamp(12.0, 60.0);
    let curve =
        [(x1 + bend, y1), (x2 - bend, y2), (x2 - 4.0, y2)].map(|(x, y)| format!("{} {}", px(x), px(y)));
    Arrow { line: format!("M{} {}C{}", px(x1), px(y1), curve.join(" ")), head: right_head(x2, y2) }
}

/// From the bottom of one to the top of the next.
fn down(from: Rect, to: Rect) -> Arrow {
    let (x, y1, y2) = (from.x + from.width / 2.0, from.y + from.height, to.y);
    Arrow {
        line: format!("M{} {}V{}", px(x), px(y1), px(y2 - 4.0)),
        head: format!("M{} {}l-4 -7h8z", px(x), px(y2)),
    }
}

/// Past other boxes: from the left side of one to the left side of another.
fn past(from: Rect, to: Rect, by: f64) -> Arrow {
    let (y1, y2) = (from.y + from.height * 0.6, to.y + to.height * 0.4);
    let x = (from.x.min(to.x) - 12.0 - by).max(2.0);
    Arrow {
        line: format!("M{} {}H{}V{}H{}", px(from.x), px(y1), px(x), px(y2), px(to.x - 4.0)),
        head: right_head(to.x, y2),
    }
}

fn right_head(x: f64, y: f64) -> String {
    format!("M{} {}l-7 -4v8z", px(x), px(y))
}

fn on_paper(rect: Rect) -> [String; 4] {
    [rect.x, rect.y, rect.width, rect.height].map(px)
}

fn px(length: f64) -> String {
    format!("{length:.1}")
}
