//! Which samples show a window of time, and how counters grew over them.

use crate::counters::Counters;

/// The samples that best cover the window.
pub(super) fn covering(counters: &[Counters], (start, end): (u64, u64)) -> Vec<&Counters> {
    let mut all: Vec<&Counters> = counters.iter().collect();
    all.sort_by_key(|sample| sample.at_us);
    let first = all.partition_point(|sample| sample.at_us < start);
    let past = all.partition_point(|sample| sample.at_us <= end).max(first);
    let inside = &all[first..past];
    if let (Some(a), Some(b)) = (inside.first(), inside.last())
        && (b.at_us - a.at_us) as f64 * 2.0 >= end.saturating_sub(start) as f64
        && b.at_us > a.at_us
    {
        return inside.to_vec();
    }
    all[first.saturating_sub(1)..(past + 1).min(all.len())].to_vec()
}

/// Growth of a counter; 0 where it went backwards, because what it counts was restarted.
pub(super) fn growth(before: u64, after: u64) -> u64 {
    after.saturating_sub(before)
}

/// Growth of a counter over consecutive samples, a restart in between losing only its own interval.
pub(super) fn grown(samples: &[&Counters], read: impl Fn(&Counters) -> u64) -> u64 {
    samples.windows(2).fold(0u64, |sum, pair| sum.saturating_add(growth(read(pair[0]), read(pair[1]))))
}

/// Growth of one device's counter over consecutive samples that both hold it.
pub(super) fn grown_where<T>(
    samples: &[&Counters],
    find: impl Fn(&Counters) -> Option<T>,
    read: fn(&T) -> u64,
) -> u64 {
    let pair_growth = |pair: &[&Counters]| Some(growth(read(&find(pair[0])?), read(&find(pair[1])?)));
    samples.windows(2).filter_map(pair_growth).fold(0, u64::saturating_add)
}
