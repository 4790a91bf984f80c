//! What goes where on the terminal: what is found and done on top, the busiest resources below, the curve between.

use ratatui_core::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style as Look},
    terminal::Frame as Target,
    text::{Line, Span},
};
use report::live::{BUSIEST, Busy, Frame, Gauge, HOW_TO_END, Known, curves, page_at, table, wrapped};

use super::Style;

/// The most columns that lines of words fill: longer ones are hard to read.
const WORDS_MAX: usize = 110;

/// Columns of the bar of a gauge.
const GAUGE: usize = 20;

/// The most columns of a bar of a resource.
const BAR_MAX: usize = 40;

/// The most rows of the curve: the table of the steps takes what is left.
const CURVE_MAX: u16 = 22;

/// With fewer rows the table of the steps shows too little.
const TABLE_MIN: u16 = 4;

/// Draws what is known into the whole terminal.
pub(super) fn draw(target: &mut Target<'_>, known: &Known, style: Style) {
    let area = target.area();
    render(known, style, area, target.buffer_mut());
}

/// The same into a buffer.
fn render(known: &Known, style: Style, area: Rect, buffer: &mut Buffer) {
    let frame = known.frame().for_terminal(style.unicode);
    let painter = Painter { style, width: usize::from(area.width) };
    let bottom = painter.bottom(known, &frame, usize::from(area.height) / 3);
    let top = painter.top(&frame);
    let height = |lines: &[Line<'_>]| u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let rows = [Constraint::Length(height(&top)), Constraint::Fill(1), Constraint::Length(height(&bottom))];
    let [above, middle, below] = Layout::vertical(rows).areas(area);
    put(&top, above, buffer);
    put(&bottom, below, buffer);
    let (curve, rest) = split(middle, known.so_far.steps.len());
    let size = (painter.width, usize::from(curve.height));
    put(&plain(curves(known, size, style.unicode)), curve, buffer);
    put(&painter.steps(known, rest), rest, buffer);
}

/// The rows of the curve, and those of the table, where both have room.
fn split(middle: Rect, steps: usize) -> (Rect, Rect) {
    let wanted = u16::try_from(steps + 2).unwrap_or(u16::MAX);
    let spare = middle.height.saturating_sub(CURVE_MAX);
    let table = if spare >= TABLE_MIN { wanted.min(spare.max(middle.height / 3)) } else { 0 };
    let [curve, rest] = Layout::vertical([Constraint::Fill(1), Constraint::Length(table)]).areas(middle);
    (curve, rest)
}

/// Puts lines into an area, as many as fit.
fn put(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (line, y) in lines.iter().zip(area.y..area.bottom()).filter(|_| area.width > 0) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

fn plain(lines: Vec<String>) -> Vec<Line<'static>> {
    lines.into_iter().map(Line::raw).collect()
}

#[derive(Clone, Copy)]
struct Painter {
    style: Style,
    width: usize,
}

impl Painter {
    fn top(self, frame: &Frame) -> Vec<Line<'static>> {
        let mut lines = vec![self.title(frame)];
        lines.extend(self.words(&frame.headline, strong()));
        lines.push(Line::default());
        lines.extend(self.words(&frame.doing, accent()));
        lines.extend(frame.decides.iter().flat_map(|text| self.words(text, Look::default())));
        lines.extend(frame.settled.as_ref().map(|gauge| self.gauge(gauge)));
        lines.push(Line::default());
        lines
    }

    /// What is driven on the left, and the time on the right.
    fn title(self, frame: &Frame) -> Line<'static> {
        let time = frame.time.text.clone();
        let room = self.width.saturating_sub(time.chars().count() + 2);
        let target: String = frame.target.chars().take(room).collect();
        let gap = self.width.saturating_sub(target.chars().count() + time.chars().count());
        Line::from(vec![Span::raw(target), Span::raw(" ".repeat(gap)), Span::styled(time, dim())])
    }

    /// The busiest resources, notes, and how to end; at most so many lines of resources.
    fn bottom(self, known: &Known, frame: &Frame, most: usize) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        let widths = Widths::of(&frame.busiest, self.width);
        if !frame.busiest.is_empty() {
            lines.push(Line::styled(BUSIEST, dim()));
        }
        lines.extend(frame.busiest.iter().take(most.max(2)).map(|one| self.busy(one, widths)));
        for note in frame.notes.iter().rev().take(2).rev() {
            lines.extend(self.words(note, warning()));
        }
        lines.extend(known.page.as_deref().map(|url| Line::styled(page_at(url), dim())));
        lines.push(Line::styled(HOW_TO_END, dim()));
        lines
    }

    fn steps(self, known: &Known, area: Rect) -> Vec<Line<'static>> {
        if area.height < TABLE_MIN {
            return Vec::new();
        }
        let mut lines = table(known, self.width, self.style.unicode).into_iter();
        let heading = lines.next().map(|heading| Line::styled(heading, dim()));
        let rows: Vec<String> = lines.collect();
        // Where there is no room for all, the most users say most.
        let shown = rows.len().saturating_sub(usize::from(area.height).saturating_sub(2));
        let rows = rows.into_iter().skip(shown).map(Line::raw);
        [Line::default()].into_iter().chain(heading).chain(rows).collect()
    }

    fn words(self, text: &str, look: Look) -> Vec<Line<'static>> {
        wrapped(text, self.width.clamp(20, WORDS_MAX))
            .into_iter()
            .map(|line| Line::styled(line, look))
            .collect()
    }

    fn gauge(self, gauge: &Gauge) -> Line<'static> {
        let bar = self.bar(gauge.share.unwrap_or(0.0), GAUGE, true);
        Line::from(vec![Span::styled(bar, accent()), Span::raw(format!(" {}", gauge.text))])
    }

    fn busy(self, one: &Busy, widths: Widths) -> Line<'static> {
        let Widths { holder, kind, bar } = widths;
        let name: String = one.holder.chars().take(holder).collect();
        Line::from(vec![
            Span::raw(format!("{name:<holder$}  {:<kind$}  {:>5} ", one.kind, one.text)),
            Span::styled(self.bar(one.share, bar, false), accent()),
        ])
    }

    /// A bar of so many columns that is full at a share of 1.
    fn bar(self, share: f64, columns: usize, to_the_end: bool) -> String {
        let full = (share.clamp(0.0, 1.0) * columns as f64).round() as usize;
        let (block, rest) = if self.style.unicode { ("█", "░") } else { ("#", ".") };
        let rest = if to_the_end { rest.repeat(columns - full) } else { String::new() };
        block.repeat(full) + &rest
    }
}

/// Columns of the table of resources.
#[derive(Clone, Copy)]
struct Widths {
    holder: usize,
    kind: usize,
    bar: usize,
}

impl Widths {
    fn of(all: &[Busy], width: usize) -> Self {
        let longest =
            |text: fn(&Busy) -> &str| all.iter().map(|one| text(one).chars().count()).max().unwrap_or(0);
        let kind = longest(|one| &one.kind);
        let holder = longest(|one| &one.holder).min(width.saturating_sub(kind + 24)).max(8);
        // Two gaps, and the share in words.
        let bar = width.saturating_sub(holder + kind + 10).min(BAR_MAX);
        Self { holder, kind, bar }
    }
}

fn strong() -> Look {
    Look::default().add_modifier(Modifier::BOLD)
}

fn dim() -> Look {
    Look::default().add_modifier(Modifier::DIM)
}

fn warning() -> Look {
    Look::default().fg(Color::Yellow)
}

fn accent() -> Look {
    Look::default().fg(Color::Cyan)
}

#[cfg(test)]
mod tests;
