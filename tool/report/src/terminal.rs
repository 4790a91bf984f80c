//! A run on a terminal: the verdict in words, the table of steps, the plot, the warnings.

pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod contrast;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod live;
mod plot;
pub(crate) mod prediction;
mod requests;
mod runs;
mod steps;
pub(crate) mod style;
mod table;

use analysis::run::{ResourceKind, Run, Step};

use self::style::Style;
use crate::metrics::tail_us;
use crate::number;
use crate::sentences::{self, holders, sure};
use crate::summary::{self, Outcome};
use crate::words;

/// Properties of the terminal, and files to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOptions {
    /// Columns of the terminal; fewer than 40 are taken to be 40.
    pub width: usize,
    /// Whether ANSI colours may be used.
    pub colour: bool,
    /// Whether anything beyond ASCII may be used.
    pub unicode: bool,
    /// Names of the files written, for the last line.
    pub files: Vec<String>,
}

impl Default for TerminalOptions {
    /// A plain terminal of 100 columns.
    fn default() -> Self {
        Self { width: 100, colour: false, unicode: true, files: Vec::new() }
    }
}

const WIDTH_MIN: usize = 40;
/// Sentences and plots are no wider than this: longer lines are hard to read. Tables take the whole width.
const TEXT_WIDTH_MAX: usize = 120;
const MARGIN: &str = "  ";

/// The run as text for a terminal, ending in a newline. Control characters in names are replaced.
#[must_use]
pub fn terminal(run: &Run, options: &TerminalOptions) -> String {
    let style = Style::new(options.colour, options.unicode);
    let table = options.width.max(WIDTH_MIN) - MARGIN.len();
    let width = table.min(TEXT_WIDTH_MAX - MARGIN.len());
    let blocks = [
        verdict(run, style, width),
        requests::lines(run, style, table),
        steps::lines(run, style, table),
        steps::failures(run, style, table),
        plot::lines(run, style, width),
        warnings(run, style, width),
        footer(run, options, style, width),
    ];
    joined(&blocks)
}

/// The names of the files written; nothing without any.
fn written(options: &TerminalOptions, style: Style, width: usize) -> Vec<String> {
    let files = Some(options.files.join("  ")).filter(|files| !files.is_empty());
    let lines = |files: String| style::wrap(&style.text(&files), width, |line| style.dim(line));
    files.map(lines).unwrap_or_default()
}

/// Text in ASCII on one line.
pub(crate) fn plain(text: &str) -> String {
    Style::new(false, false).text(text).replace(style::NO_BREAK, " ")
}

/// Joins blocks of lines with an empty line between them, and puts a margin on the left.
fn joined(blocks: &[Vec<String>]) -> String {
    let mut text = String::new();
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        if !text.is_empty() {
            text.push('\n');
        }
        for line in block {
            text += format!("{MARGIN}{line}").trim_end();
            text.push('\n');
        }
    }
    text.replace(style::NO_BREAK, " ")
}

fn verdict(run: &Run, style: Style, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in sentences::doubts(&run.verdict) {
        lines.extend(style::wrap(&style.text(&format!("Inconclusive: {reason}")), width, |s| style.warn(s)));
    }
    lines.extend(side_by_side(facts(run, style), width, |line| style.strong(line)));
    lines.extend(bottleneck(run, style, width));
    let proof = run.proof.as_ref().map(|proof| words::unbroken(&proof.text));
    let mix = Some(summary::mix(run)).filter(|mix| !mix.is_empty()).map(|mix| format!("Requests: {mix}."));
    let tested = run.confirmation.as_ref().map(sentences::confirmation);
    let why = sentences::profile(run).map(|why| format!("Why: {why}"));
    let asleep = sentences::asleep(run).map(|asleep| format!("Off CPU: {asleep}"));
    let (little, lookup) = (Some(summary::little(run)), summary::name_lookup(run));
    let closing = [why, asleep, tested, runner_up(run), next(run), lookup, little, mix, proof];
    let closing = closing.into_iter().flatten().map(|text| style.text(&text)).filter(|t| !t.is_empty());
    lines.extend(side_by_side(closing.collect(), width, str::to_owned));
    lines
}

fn facts(run: &Run, style: Style) -> Vec<String> {
    let mut facts = vec![summary::saturation_phrase(run)];
    if summary::outcome(run) == Outcome::AllFailed {
        facts.push(format!("no request completed: {}", summary::failures(run)));
    } else if !run.steps.is_empty() {
        facts.push(summary::throughput(run));
        let time = &run.verdict.response_time_at_saturation_us;
        let tail = tail_us(time).map_or_else(String::new, |us| format!(", p99 {}", number::time(us)));
        facts.push(format!("mean response {}{tail}", number::time(time.mean)));
    }
    facts.iter().map(|fact| style.text(fact)).collect()
}

fn bottleneck(run: &Run, style: Style, width: usize) -> Vec<String> {
    let bottleneck = &run.verdict.bottleneck;
    if bottleneck.kind == ResourceKind::None && bottleneck.findings.is_empty() {
        return Vec::new();
    }
    let kind = words::kind(bottleneck.kind);
    let evidence = summary::evidence(bottleneck).join(" ");
    let sure = sure::sure(bottleneck).map_or_else(String::new, |sure| format!(" ({sure})"));
    let text = style.text(&format!("Bottleneck: {kind}{sure}. {evidence}"));
    style::wrap(&text, width, str::to_owned)
}

fn runner_up(run: &Run) -> Option<String> {
    let resource = run.verdict.bottleneck.runner_up.as_ref()?;
    Some(format!(
        "Runner-up: {}, {} busy.",
        holders::resource_name(resource),
        number::percent(resource.utilization)
    ))
}

fn next(run: &Run) -> Option<String> {
    run.verdict.next_limit.as_ref().map(|next| format!("Next: {}", sentences::next(next)))
}

/// Puts short texts on one line if they fit, otherwise one below the other.
fn side_by_side(texts: Vec<String>, width: usize, paint: impl Fn(&str) -> String) -> Vec<String> {
    if texts.is_empty() {
        return Vec::new();
    }
    let joined = ["     ", "   "].map(|gap| texts.join(gap));
    if let Some(line) = joined.iter().find(|line| line.chars().count() <= width) {
        return vec![paint(line)];
    }
    texts.iter().flat_map(|text| style::wrap(text, width, &paint)).collect()
}

fn warnings(run: &Run, style: Style, width: usize) -> Vec<String> {
    let texts = run
        .warnings
        .iter()
        .map(|warning| format!("{}: {}", words::warning(warning.kind), sentences::warning(&warning.cause)));
    texts.flat_map(|text| style::wrap(&style.text(&text), width, |line| style.warn(line))).collect()
}

/// How busy the generator was, or the busiest of several.
fn generator_busy(step: &Step) -> String {
    match step.busiest_generator() {
        Some(one) => format!(
            "busiest of {} generators {}",
            number::count(step.generators.len() as u64),
            number::percent(one.useful_work)
        ),
        None => format!("generator busy {}", number::percent(step.generator.useful_work)),
    }
}

fn footer(run: &Run, options: &TerminalOptions, style: Style, width: usize) -> Vec<String> {
    let files = style.text(&options.files.join("  "));
    let steps = match run.steps.len() {
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    let mut facts = vec![steps, number::elapsed(run.elapsed_s)];
    facts.extend(run.verdict_step().map(generator_busy));
    let facts = style.text(&facts.join(", "));
    let used = files.chars().count() + facts.chars().count();
    if used + 2 > width {
        let files = std::iter::once(files).filter(|files| !files.is_empty());
        return files.chain(style::wrap(&facts, width, |line| style.dim(line))).collect();
    }
    vec![format!("{files}{}{}", " ".repeat(width - used), style.dim(&facts))]
}
