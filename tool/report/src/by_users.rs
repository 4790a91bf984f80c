//! Throughput and response time of every variant by users, beside what others published.

use analysis::study::{Entry, Published, Study, Work, all_users};

use crate::study::listed;

/// Throughput per second, and mean response time in microseconds.
pub(crate) type Figures = (f64, f64);

/// A row per number of users, two figures per variant and publication.
pub(crate) struct ByUsers<'a> {
    pub(crate) users: Vec<u32>,
    pub(crate) columns: Vec<Column<'a>>,
}

/// The figures of one variant or publication.
pub(crate) struct Column<'a> {
    pub(crate) name: &'a str,
    pub(crate) figures: Vec<Option<Figures>>,
}

/// The table of a work, where others published points to put beside it. Points that are drawn as figures already are for the
/// laws alone.
pub(crate) fn by_users<'a>(study: &'a Study, work: &'a Work) -> Option<ByUsers<'a>> {
    let beside = |published: &&Published| {
        let of_this = published.work.as_ref() == Some(&work.name);
        of_this && !published.points.is_empty() && published.figures.is_empty()
    };
    let published: Vec<&Published> = study.published.iter().filter(beside).collect();
    if published.is_empty() {
        return None;
    }
    let users = all_users(work, &published);
    let ours = listed(study, work).into_iter().map(|entry| of_entry(entry, &users));
    let others = published.iter().map(|published| of_published(published, &users));
    Some(ByUsers { columns: ours.chain(others).collect(), users })
}

fn of_entry<'a>(entry: &'a Entry, users: &[u32]) -> Column<'a> {
    let step = |users: &u32| entry.steps.iter().find(|step| step.users == *users);
    let figures =
        users.iter().map(|users| step(users).map(|step| (step.throughput_per_s, step.response_time_us)));
    Column { name: &entry.variant, figures: figures.collect() }
}

fn of_published<'a>(published: &'a Published, users: &[u32]) -> Column<'a> {
    let point = |users: &u32| published.points.iter().find(|point| point.users == *users);
    // Published in milliseconds; the unit is all that changes.
    let figures = users.iter().map(|users| point(users).map(|point| (point.per_s, point.ms * 1e3)));
    Column { name: "published", figures: figures.collect() }
}

/// What was proven of each variant: `sqlite: 12 345 bookings acknowledged, 12 345 rows. ..`, and whether it holds.
pub(crate) fn proofs(work: &Work) -> Vec<(bool, String)> {
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

/// Laws of the measured and of the published figures.
pub(crate) fn laws(study: &Study, work: &Work) -> Vec<String> {
    let beside = study.published.iter().filter(|published| published.work.as_ref() == Some(&work.name));
    work.laws.iter().cloned().chain(beside.filter_map(|published| published.law.clone())).collect()
}
