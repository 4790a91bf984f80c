//! A study's entries as comma-separated values (RFC 4180).

use analysis::study::{Entry, Study, Work};

use super::{ends, errors, line, name, response_times};
use crate::words::ERROR_KINDS;

/// The columns before those of errors; names as in the study's file.
const COLUMNS: [&str; 23] = [
    "work",
    "variant",
    "place_best",
    "place_worst",
    "users",
    "throughput_per_s",
    "throughput_lo_per_s",
    "throughput_hi_per_s",
    "of_fastest",
    "of_fastest_lo",
    "of_fastest_hi",
    "lower_bound",
    "response_time_mean_us",
    "response_time_mean_lo_us",
    "response_time_mean_hi_us",
    "response_time_p50_us",
    "response_time_p90_us",
    "response_time_p99_us",
    "response_time_p999_us",
    "response_time_max_us",
    "cpu_us_per_request",
    "completed",
    "bottleneck",
];

/// One line per variant and work, after a line of column names; the columns are always the same. Numbers are unrounded.
pub(crate) fn csv(study: &Study) -> String {
    let mut header: Vec<String> = COLUMNS.map(str::to_owned).into();
    header.extend(ERROR_KINDS.map(|kind| format!("errors_{}", name(&kind))));
    let entries = study.works.iter().flat_map(|work| work.entries.iter().map(move |entry| (work, entry)));
    entries.fold(line(header), |text, (work, entry)| text + &line(cells(work, entry)))
}

fn cells(work: &Work, entry: &Entry) -> Vec<String> {
    let [best, worst] = or_empty(entry.place);
    let [lo, hi] = entry.throughput_ci_per_s.map(|end| end.to_string());
    let [share_lo, share_hi] = ends(entry.of_fastest.map(|share| share.ci));
    let mut cells = vec![
        work.name.clone(),
        entry.variant.clone(),
        best,
        worst,
        text(entry.users),
        entry.throughput_per_s.to_string(),
        lo,
        hi,
        text(entry.of_fastest.map(|share| share.ratio)),
        share_lo,
        share_hi,
        entry.lower_bound.to_string(),
    ];
    cells.extend(response_times(&entry.response_time_us));
    cells.extend([
        text(entry.cpu_us_per_request),
        entry.completed.to_string(),
        crate::study::stopped_by(entry),
    ]);
    cells.extend(errors(&entry.errors));
    cells
}

fn or_empty(place: Option<[u32; 2]>) -> [String; 2] {
    place.map_or_else(Default::default, |place| place.map(|end| end.to_string()))
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
