//! What a comparison comes to, in phrases and sentences: shared by the terminal, the page and CSV.

use analysis::comparison::{Comparison, Entry, Factor, Published, Workload, all_users};

use crate::sentences::{self, comparisons, holders};
use crate::words;

/// The entries as tables list them: fastest first, or in the order of the experiment where variants have one of their
/// own, such as numbers of workers.
pub(crate) fn listed<'a>(comparison: &Comparison, work: &'a Workload) -> Vec<&'a Entry> {
    let mut entries: Vec<&Entry> = work.entries.iter().collect();
    if !comparison.is_ordered() {
        entries.sort_by(|a, b| {
            let unplaced = |entry: &Entry| entry.place.is_none();
            unplaced(a).cmp(&unplaced(b)).then(b.throughput_per_s.total_cmp(&a.throughput_per_s))
        });
    }
    entries
}

/// `1`, `2–4`, or nothing for an entry that cannot be compared.
pub(crate) fn place(entry: &Entry) -> String {
    match entry.place {
        Some([best, worst]) if best == worst => best.to_string(),
        Some([best, worst]) => format!("{best}–{worst}"),
        None => String::new(),
    }
}

/// The bottleneck of the variant. Where its runs disagree, every answer.
pub(crate) fn stopped_by(entry: &Entry) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for limit in &entry.bottleneck {
        let kind = words::kind(limit.kind);
        let text = match &limit.identity {
            None => kind.to_owned(),
            Some(identity) => format!("{kind}, {}", holders::name(identity)),
        };
        if !kinds.contains(&text) {
            kinds.push(text);
        }
    }
    kinds.join("; ")
}

/// Reasons not to rely on an entry's figure, each once.
pub(crate) fn doubts(entry: &Entry) -> Vec<String> {
    let mut doubts: Vec<String> = Vec::new();
    for doubt in entry.doubts.iter().map(sentences::doubt) {
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    doubts
}

/// Failed requests by kind, most frequent first: `812 reset, 3 timed out`.
pub(crate) fn failed(entry: &Entry) -> String {
    words::error_counts(&entry.errors, words::error_kind)
}

/// The difference between variants, as the heading of their column.
pub(crate) fn factor(factor: &Factor) -> String {
    match factor.0.as_str() {
        // Of files from when concurrency models had a name of their own here.
        "engine" => "model".into(),
        name => name.replace('_', " "),
    }
}

/// The proofs of every variant, each with whether it holds: `sqlite: 12 345 bookings acknowledged, 12 345 rows.`
pub(crate) fn proofs(work: &Workload) -> Vec<(bool, String)> {
    let of_entry = |entry: &Entry| {
        let name = entry.variant.clone();
        let said = entry.proofs.iter().map(move |proof| {
            let word = if proof.holds { "" } else { "THE PROOF FAILED. " };
            (proof.holds, format!("{name}: {word}{}", proof.text))
        });
        said.collect::<Vec<_>>()
    };
    work.entries.iter().flat_map(of_entry).collect()
}

/// The order of a workload's variants, in sentences.
pub(crate) fn order(work: &Workload) -> Vec<String> {
    work.ranking.iter().map(comparisons::order).collect()
}

/// Little's law on the measured and on the published figures, in sentences.
pub(crate) fn laws(comparison: &Comparison, work: &Workload) -> Vec<String> {
    let published = beside(comparison, work).filter_map(|(_, published)| published.little.as_ref());
    let published = published.map(comparisons::published_little);
    work.little.iter().map(comparisons::little).chain(published).collect()
}

/// The published figures that are shown beside a workload, each with its place in the file.
pub(crate) fn beside<'a>(
    comparison: &'a Comparison,
    work: &'a Workload,
) -> impl Iterator<Item = (usize, &'a Published)> {
    let published = comparison.published.iter().enumerate();
    published.filter(|(_, published)| published.work.as_ref() == Some(&work.name))
}

/// The published figures that are shown beside no workload, each with its place in the file.
pub(crate) fn alone(comparison: &Comparison) -> impl Iterator<Item = (usize, &Published)> {
    comparison.published.iter().enumerate().filter(|(_, published)| published.work.is_none())
}

/// A row per number of users, two figures per variant and publication.
pub(crate) struct ByUsers<'a> {
    pub(crate) users: Vec<u32>,
    pub(crate) columns: Vec<Column<'a>>,
}

/// The figures of one variant or publication.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    /// Throughput per second and mean response time in microseconds, one of each per number of users.
    pub(crate) figures: Vec<Option<(f64, f64)>>,
}

/// Throughput and response time of every variant by users, beside what others published. `None` where nobody published
/// such points, or where the points are only there for the laws and others' figures are drawn.
pub(crate) fn by_users<'a>(comparison: &'a Comparison, work: &'a Workload) -> Option<ByUsers<'a>> {
    let points = |published: &&Published| !published.points.is_empty() && published.figures.is_empty();
    let published: Vec<&Published> =
        beside(comparison, work).map(|(_, published)| published).filter(points).collect();
    if published.is_empty() {
        return None;
    }
    let users = all_users(work, &published);
    let ours = listed(comparison, work).into_iter().map(|entry| entry_by_users(entry, &users));
    let others = published.iter().map(|published| published_by_users(published, &users));
    Some(ByUsers { columns: ours.chain(others).collect(), users })
}

fn entry_by_users<'a>(entry: &'a Entry, users: &[u32]) -> Column<'a> {
    let figures = users.iter().map(|users| {
        let step = entry.steps.iter().find(|step| step.users == *users)?;
        Some((step.throughput_per_s, step.response_time_us))
    });
    Column { name: &entry.variant, figures: figures.collect() }
}

fn published_by_users<'a>(published: &'a Published, users: &[u32]) -> Column<'a> {
    let figures = users.iter().map(|users| {
        let point = published.points.iter().find(|point| point.users == *users)?;
        Some((point.per_s, point.us()))
    });
    Column { name: "published", figures: figures.collect() }
}
