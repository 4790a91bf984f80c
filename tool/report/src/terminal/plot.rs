//! Throughput and response time against users, drawn with characters.

use analysis::run::{Run, Step};

use super::style::Style;
use crate::axis::Axis;
use crate::number::{self, TimeUnit};
use crate::summary;

/// Rows of a plot above its axis.
const ROWS: usize = 9;
/// With fewer rows a plot shows too little.
const ROWS_MIN: usize = 4;
/// A narrower panel shows too little.
const PANEL_MIN: usize = 44;
const PANEL_MAX: usize = 72;
const GAP: usize = 4;

/// Lines of a plot beside its rows: the title, the axis, and its labels.
const FRAME: usize = 3;

/// The lines of both plots, side by side if there is room; none for fewer than two steps.
pub(super) fn lines(run: &Run, style: Style, width: usize) -> Vec<String> {
    if run.steps.len() < 2 {
        return Vec::new();
    }
    if let Some(beside) = beside([throughput(run), response(run)], style, width, ROWS) {
        return beside;
    }
    let panel = width.min(PANEL_MAX);
    let throughput = throughput(run).draw(style, panel, ROWS);
    let response = response(run).draw(style, panel, ROWS);
    throughput
        .iter()
        .map(Line::painted)
        .chain([String::new()])
        .chain(response.iter().map(Line::painted))
        .collect()
}

/// The same in at most so many lines, with the intervals of the throughput: it alone where both have no room. None where that
/// is too few lines for a plot.
pub(super) fn lines_within(run: &Run, style: Style, width: usize, height: usize) -> Vec<String> {
    let rows = height.saturating_sub(FRAME);
    if run.steps.is_empty() || rows < ROWS_MIN {
        return Vec::new();
    }
    let alone = || with_intervals(run).draw(style, width, rows).iter().map(Line::painted).collect();
    beside([with_intervals(run), response(run)], style, width, rows).unwrap_or_else(alone)
}

/// Both plots side by side; `None` where that has no room.
fn beside(plots: [Plot; 2], style: Style, width: usize, rows: usize) -> Option<Vec<String>> {
    if width < 2 * PANEL_MIN + GAP {
        return None;
    }
    let panel = (width - GAP) / 2;
    let gap = " ".repeat(GAP);
    let both = plots.map(|plot| plot.draw(style, panel, rows));
    let [left, right] = &both;
    let lines =
        left.iter().zip(right).map(|(left, right)| format!("{}{gap}{}", left.painted(), right.painted()));
    Some(lines.collect())
}

/// One plot: a curve over users.
struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    points: Vec<(f64, f64)>,
    /// The ends of intervals that are worth showing: users, low, high.
    intervals: Vec<(f64, f64, f64)>,
    /// Users at N*, or when the generator was full, and the word for that.
    mark: Option<(f64, &'static str)>,
}

fn throughput(run: &Run) -> Plot {
    let values = run.steps.iter().map(|step| step.throughput_per_s);
    Plot::new(run, "requests a second".into(), Axis::from_zero(values.clone()), values.collect())
}

/// The same with the intervals of the throughput: they are wide while a sweep goes on.
fn with_intervals(run: &Run) -> Plot {
    let interval = |step: &Step| step.throughput_ci_per_s.map(|[lo, hi]| (f64::from(step.users), lo, hi));
    Plot { intervals: run.steps.iter().filter_map(interval).collect(), ..throughput(run) }
}

fn response(run: &Run) -> Plot {
    let times: Vec<f64> = run.steps.iter().map(|step| step.response_time_us.mean).collect();
    let unit = TimeUnit::for_largest(times.iter().copied());
    let values: Vec<f64> = times.into_iter().map(|time| unit.of(time)).collect();
    let title = format!("mean response time, {}", unit.name());
    Plot::new(run, title, Axis::fitting(values.iter().copied()), values)
}

impl Plot {
    fn new(run: &Run, title: String, y: Axis, values: Vec<f64>) -> Self {
        let users: Vec<u32> = run.steps.iter().map(|step| step.users).collect();
        Self {
            title,
            x: Axis::users(users.iter().copied()),
            y,
            points: users.into_iter().map(f64::from).zip(values).collect(),
            intervals: Vec::new(),
            mark: summary::mark(run).map(|(users, word)| (f64::from(users), word)),
        }
    }

    fn draw(&self, style: Style, width: usize, rows: usize) -> Vec<Line> {
        let labels = self.y_labels(rows);
        let margin = labels.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let columns = width.saturating_sub(margin + 1).max(8);
        let canvas = self.canvas(style, columns, rows);
        let mut lines = vec![Line::new(style, format!("{:margin$} {}", "", self.title), width)];
        for (row, cells) in canvas.rows().enumerate() {
            let label = labels.iter().find(|(at, _)| *at == row).map_or("", |(_, label)| label);
            let edge = style.pick(if label.is_empty() { '│' } else { '┤' }, '|');
            lines.push(Line::new(style, format!("{label:>margin$}{edge}{cells}"), width));
        }
        let rule = String::from(style.pick('─', '-')).repeat(columns);
        lines.push(Line::new(style, format!("{:margin$}{}{rule}", "", style.pick('└', '+')), width));
        lines.push(Line::new(style, format!("{:margin$} {}", "", self.x_labels(columns)), width));
        lines
    }

    /// Labels of the vertical axis, each with its row.
    fn y_labels(&self, rows: usize) -> Vec<(usize, String)> {
        let ticks = self.y.ticks(4);
        ticks.into_iter().map(|tick| (row_of(self.y.place(tick), rows), number::axis_label(tick))).collect()
    }

    /// Labels of the horizontal axis, each centred below its place without overlap; then "users".
    fn x_labels(&self, columns: usize) -> String {
        let mut line = String::new();
        let name = " users";
        for tick in self.x.user_ticks(9) {
            let label = number::axis_label(tick);
            let centre = column_of(self.x.place(tick), columns);
            let start = centre.saturating_sub(label.chars().count() / 2);
            let used = line.chars().count();
            let free = used == 0 || start > used;
            if free && start + label.chars().count() + name.len() <= columns {
                line += &" ".repeat(start.saturating_sub(used));
                line += &label;
            }
        }
        let room = columns.saturating_sub(line.chars().count());
        format!("{line}{name:>room$}")
    }

    fn canvas(&self, style: Style, columns: usize, rows: usize) -> Canvas {
        let mut canvas = Canvas::new(style, columns, rows);
        if let Some((users, _)) = self.mark {
            canvas.column(self.x.place(users), style.pick('┊', ':'));
        }
        for pair in self.points.windows(2) {
            if let [from, to] = pair {
                canvas.segment(self.place(*from), self.place(*to));
            }
        }
        for (users, low, high) in &self.intervals {
            canvas.interval(self.x.place(*users), [*low, *high].map(|end| self.y.place(end)));
        }
        let marked = self.mark.map(|(users, _)| users);
        for point in &self.points {
            let mark = style.pick(if marked == Some(point.0) { '◆' } else { '●' }, '*');
            canvas.mark(self.place(*point), mark);
        }
        if let Some((users, word)) = self.mark {
            canvas.label(self.x.place(users), self.free_row(users, rows), word);
        }
        canvas
    }

    /// The row at that end of the mark of N* which the curve leaves free.
    fn free_row(&self, users: f64, rows: usize) -> usize {
        let at = self.points.iter().find(|point| point.0 == users);
        if at.is_some_and(|(_, value)| self.y.place(*value) < 0.5) { 0 } else { rows - 1 }
    }

    fn place(&self, (users, value): (f64, f64)) -> (f64, f64) {
        (self.x.place(users), self.y.place(value))
    }
}

fn row_of(share: f64, rows: usize) -> usize {
    rows - 1 - (share * (rows - 1) as f64).round() as usize
}

fn column_of(share: f64, columns: usize) -> usize {
    (share * (columns - 1) as f64).round() as usize
}

/// A grid of characters: each has two by four dots in Braille, or one dot in ASCII.
struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<char>,
    dots: (usize, usize),
    line: char,
    bar: char,
}

impl Canvas {
    fn new(style: Style, columns: usize, rows: usize) -> Self {
        let dots = if style.is_unicode() { (2, 4) } else { (1, 1) };
        let (line, bar) = ('.', style.pick('│', '|'));
        Self { columns, rows, cells: vec![' '; columns * rows], dots, line, bar }
    }

    fn rows(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.columns).map(|row| row.iter().collect())
    }

    fn set(&mut self, column: usize, row: usize, mark: char) {
        if let Some(cell) = self.cells.get_mut(row * self.columns + column) {
            *cell = mark;
        }
    }

    fn column(&mut self, share: f64, mark: char) {
        for row in 0..self.rows {
            self.set(column_of(share, self.columns), row, mark);
        }
    }

    fn mark(&mut self, (x, y): (f64, f64), mark: char) {
        self.set(column_of(x, self.columns), row_of(y, self.rows), mark);
    }

    /// Draws an interval that is taller than the mark in its middle.
    fn interval(&mut self, x: f64, [low, high]: [f64; 2]) {
        let (top, bottom) = (row_of(high, self.rows), row_of(low, self.rows));
        for row in (top..=bottom).filter(|_| bottom > top) {
            self.set(column_of(x, self.columns), row, self.bar);
        }
    }

    /// Writes a word to the right of a column, or to its left at the right edge.
    fn label(&mut self, share: f64, row: usize, text: &str) {
        let at = column_of(share, self.columns);
        let start = if at + 1 + text.len() <= self.columns { at + 1 } else { at.saturating_sub(text.len()) };
        for (index, c) in text.chars().enumerate() {
            self.set(start + index, row, c);
        }
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64)) {
        let steps = (self.columns * self.dots.0).max(self.rows * self.dots.1);
        for step in 0..=steps {
            let share = step as f64 / steps as f64;
            let at = |from: f64, to: f64| from + (to - from) * share;
            self.dot(at(from.0, to.0), at(from.1, to.1));
        }
    }

    fn dot(&mut self, x: f64, y: f64) {
        if self.dots == (1, 1) {
            return self.mark((x, y), self.line);
        }
        // Dots are placed relative to cell centres, so that curve and marks meet.
        let across = x * (self.columns - 1) as f64 + 0.5;
        let down = (1.0 - y) * (self.rows - 1) as f64 + 0.5;
        let (column, row) = (across as usize, down as usize);
        let bit = braille_bit((across.fract() * 2.0) as usize, (down.fract() * 4.0) as usize);
        if let Some(cell) = self.cells.get_mut(row * self.columns + column) {
            let dots = u32::from(*cell).checked_sub(BRAILLE).filter(|dots| *dots < 256).unwrap_or(0);
            *cell = char::from_u32(BRAILLE + (dots | bit)).unwrap_or(self.line);
        }
    }
}

/// The empty Braille pattern. Each of the 255 after it has one bit per dot (Unicode block 2800).
const BRAILLE: u32 = 0x2800;

fn braille_bit(across: usize, down: usize) -> u32 {
    const BITS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    BITS.get(across).and_then(|column| column.get(down)).copied().unwrap_or(0)
}

/// One line of a panel, padded so that panels fit side by side.
struct Line {
    style: Style,
    text: String,
}

impl Line {
    fn new(style: Style, text: String, width: usize) -> Self {
        Self { style, text: format!("{:<width$}", style.text(&text)) }
    }

    /// The line with the marks of N* in the accent colour.
    fn painted(&self) -> String {
        let marks = ['┊', '◆'];
        self.text.split_inclusive(marks).fold(String::new(), |line, part| {
            match part.chars().next_back().filter(|last| marks.contains(last)) {
                Some(last) => {
                    let before = &part[..part.len() - last.len_utf8()];
                    line + before + &self.style.accent(last.encode_utf8(&mut [0; 4]))
                }
                None => line + part,
            }
        })
    }
}
