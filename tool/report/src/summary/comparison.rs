//! What a comparison comes to, in phrases and sentences: shared by the terminal, the page and CSV.

use analysis::comparison::{
    AgreementFinding, Comparison, Entry, Factor, Limit, Published, Workload, all_users,
};
use analysis::run::ResourceKind;

use crate::number;
use crate::progress;
use crate::sentences::published::{agreement, agreement_summary, stopped_by as stopped};
use crate::sentences::{self, comparisons};
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

/// What is said of a comparison that was interrupted; nothing of one that was not.
pub(crate) fn interrupted(comparison: &Comparison) -> Option<&'static str> {
    match (comparison.interrupted, comparison.works.is_empty()) {
        (false, _) => None,
        (true, true) => Some("Interrupted before the first trial ended: nothing was measured."),
        (true, false) => Some("Interrupted before its end: this is what had been measured by then."),
    }
}

/// The variants whose runs do not all count, in a sentence each.
pub(crate) fn set_aside(work: &Workload) -> Vec<String> {
    let entries = work.entries.iter().filter(|entry| entry.runs_set_aside > 0);
    let sentence = |entry: &Entry| {
        let (aside, runs) = (entry.runs_set_aside, entry.runs.len());
        let counts = if aside == 1 { "It counts" } else { "They count" };
        format!(
            "{}: {aside} of {runs} runs gave only a lower bound, as the generator was the limit, throughput never stopped \
             growing, or other processes used the processors. {counts} towards neither throughput nor response time.",
            entry.variant
        )
    };
    entries.map(sentence).collect()
}

/// The bottleneck of the variant. Where its runs disagree, every answer.
pub(crate) fn stopped_by(entry: &Entry) -> String {
    stopped(&entry.bottleneck)
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

/// What slowing each tier showed of the variants that were tested, with its figures: `4: Tested by experiment, ..`.
pub(crate) fn tested(work: &Workload) -> Vec<String> {
    let of_entry = |entry: &Entry| {
        let tested = entry.confirmation.as_ref().map(sentences::confirmation)?;
        Some(of_variants(std::slice::from_ref(&entry.variant), &tested))
    };
    work.entries.iter().filter_map(of_entry).collect()
}

/// The same in short, with variants together of which the same is said.
pub(crate) fn tested_in_short(work: &Workload) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for entry in &work.entries {
        let Some(tested) = entry.confirmation.as_ref().map(sentences::tested) else { continue };
        match told.iter_mut().find(|(text, _)| *text == tested) {
            Some((_, variants)) => variants.push(entry.variant.clone()),
            None => told.push((tested, vec![entry.variant.clone()])),
        }
    }
    told.iter().map(|(text, variants)| of_variants(variants, text)).collect()
}

/// Where the CPU time of each variant that was profiled goes: `4: 41 % of nginx’s CPU is in ..`.
pub(crate) fn profiled(work: &Workload) -> Vec<String> {
    let of_entry = |entry: &Entry| {
        let bottleneck = entry.bottleneck.first().and_then(|limit| limit.identity.as_ref());
        let profile = entry.profile.as_ref()?;
        let told =
            [Some(sentences::profile_of(profile, bottleneck)), sentences::asleep_of(profile, bottleneck)];
        let told: Vec<_> = told.into_iter().flatten().collect();
        Some(of_variants(std::slice::from_ref(&entry.variant), &told.join(" ")))
    };
    work.entries.iter().filter_map(of_entry).collect()
}

/// A sentence about some variants; where nothing is varied, the sentence alone.
fn of_variants(variants: &[String], text: &str) -> String {
    match comparisons::listed(variants) {
        names if names.is_empty() => text.to_owned(),
        names => format!("{names}: {text}"),
    }
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
            let text =
                if proof.holds { progress::proof_text(proof).to_owned() } else { progress::proved(proof) };
            (proof.holds, format!("{name}: {text}"))
        });
        said.collect::<Vec<_>>()
    };
    work.entries.iter().flat_map(of_entry).collect()
}

/// What the commands of every variant said and counted while they prepared, reset and proved.
pub(crate) fn commands(work: &Workload) -> Vec<String> {
    let of_entry = |entry: &Entry| {
        let prepared = entry.prepared.iter().map(|said| {
            let when = if said.reset { "reset" } else { "prepared" };
            format!("{when} by {}: {}", said.program, words::unbroken(&comparisons::prepared(said)))
        });
        let counted = entry.proofs.iter().filter(|proof| !proof.counts.is_empty());
        let counted = counted.map(|proof| format!("proof: {}", comparisons::counts(&proof.counts)));
        let name = if entry.variant.is_empty() { String::new() } else { format!("{}: ", entry.variant) };
        prepared.chain(counted).map(|said| format!("{name}{said}")).collect::<Vec<_>>()
    };
    work.entries.iter().flat_map(of_entry).collect()
}

/// What a workload comes to, in sentences: the order of its variants, or the verdict where nothing is varied.
pub(crate) fn order(comparison: &Comparison, work: &Workload) -> Vec<String> {
    if is_varied(comparison) {
        work.ranking.iter().map(comparisons::order).collect()
    } else {
        work.entries.iter().map(headline).collect()
    }
}

/// Whether variants are compared, rather than one thing measured.
pub(crate) fn is_varied(comparison: &Comparison) -> bool {
    !comparison.factor.0.is_empty()
}

/// The verdict of an entry as a sentence.
fn headline(entry: &Entry) -> String {
    let rate = number::estimate(entry.throughput_per_s, Some(entry.throughput_ci_per_s));
    let is_known = |limit: &&Limit| !matches!(limit.kind, ResourceKind::None | ResourceKind::Unknown);
    let known: Vec<Limit> = entry.bottleneck.iter().filter(is_known).cloned().collect();
    let by = match stopped(&known) {
        by if by.is_empty() => String::new(),
        by => format!(", limited by {by}"),
    };
    match (entry.completed, entry.users, entry.users_ci) {
        (0, ..) => "No request completed.".to_owned(),
        (_, Some(users), Some([lo, hi])) if !entry.lower_bound => {
            let sure = if entry.doubts.is_empty() { "Saturates" } else { "Inconclusive: seems to saturate" };
            let (lo, hi) = (number::count(lo.into()), number::count(hi.into()));
            format!("{sure} at {} ({lo}–{hi}), {rate} requests a second{by}.", words::users(users))
        }
        (_, Some(users), _) if entry.lower_bound => {
            format!("At least {rate} requests a second, with {}{by}.", words::users(users))
        }
        (_, users, _) => {
            let with = users.map_or_else(String::new, |users| format!(" with {}", words::users(users)));
            format!("{rate} requests a second{with}{by}.")
        }
    }
}

/// A publication held against what was measured, in sentences.
pub(crate) struct Held {
    pub(crate) title: String,
    pub(crate) hardware: String,
    pub(crate) summary: String,
    pub(crate) sentences: Vec<String>,
}

/// The publications of a workload that can be held against it.
pub(crate) fn held(comparison: &Comparison, work: &Workload) -> Vec<Held> {
    let held = |(_, published): (usize, &Published)| {
        Some(Held {
            title: published.title.clone(),
            hardware: hardware(published),
            summary: agreement_summary(&published.compared)?,
            sentences: match published.compared.as_slice() {
                // The summary says all of it.
                [AgreementFinding::Nothing] => Vec::new(),
                findings => findings.iter().map(agreement).collect(),
            },
        })
    };
    beside(comparison, work).filter_map(held).collect()
}

/// Hardware and year of a publication: `two cores, 2017`.
pub(crate) fn hardware(published: &Published) -> String {
    match published.year {
        Some(year) => format!("{}, {year}", published.hardware),
        None => published.hardware.clone(),
    }
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
    published.filter(|(_, published)| comparison.is_of(published, work))
}

/// The published figures that are shown beside no workload, each with its place in the file.
pub(crate) fn alone(comparison: &Comparison) -> impl Iterator<Item = (usize, &Published)> {
    let is_alone =
        |published: &Published| !comparison.works.iter().any(|work| comparison.is_of(published, work));
    comparison.published.iter().enumerate().filter(move |(_, published)| is_alone(published))
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
