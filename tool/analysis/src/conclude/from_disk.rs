//! How much of what clients received came from a disk, and not from the page cache or the server's own memory.

use crate::run::{Cause, Step};

/// A disk is read in pages, in bytes: a file of 1 KB takes one whole page.
const PAGE: f64 = 4096.0;

/// Data is cold if at least this share of it came from a disk.
const COLD: f64 = 0.90;

/// Share of the received bytes that the server and the tiers behind it read from a disk meanwhile, 0 to 1. Each response
/// counts as the whole pages that its body takes, so that short files that were in memory are not hidden by the pages
/// around those that were not. `None` where nothing was received, or where what was read is not known.
pub(super) fn share(step: &Step) -> Option<f64> {
    let read_per_s = step.usage.read_from_disks_bytes_per_s()?;
    let body = step.received_bytes_per_s / step.throughput_per_s;
    let needed_per_s = (body / PAGE).ceil() * PAGE * step.throughput_per_s;
    (needed_per_s > 0.0).then(|| (read_per_s / needed_per_s).clamp(0.0, 1.0))
}

/// A warning where data that was meant to come from a disk did not, or may not have.
pub(super) fn not_cold(step: &Step) -> Option<Cause> {
    let share = share(step);
    let cold = share.is_some_and(|share| share >= COLD);
    (!cold && step.completed > 0).then_some(Cause::NotCold { users: step.users, share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Role;
    use crate::resources::{Group, Usage};

    /// A step whose responses have bodies of this length, during which the tiers read this from disks.
    fn step(body: f64, tiers: &[Option<f64>]) -> Step {
        let tier = |read: &Option<f64>| Group {
            role: Role::Server,
            disk_read_bytes_per_s: *read,
            ..Group::default()
        };
        Step {
            users: 8,
            completed: 1_000,
            throughput_per_s: 100.0,
            received_bytes_per_s: 100.0 * body,
            usage: Usage { elapsed_us: 1e6, groups: tiers.iter().map(tier).collect(), ..Usage::default() },
            ..Step::default()
        }
    }

    #[test]
    fn the_share_is_what_was_read_of_what_was_received() {
        assert_eq!(share(&step(8_192.0, &[Some(409_600.0)])), Some(0.5));
        assert_eq!(share(&step(8_192.0, &[Some(400_000.0), Some(419_200.0)])), Some(1.0));
        assert_eq!(share(&step(8_192.0, &[Some(0.0)])), Some(0.0));
    }

    #[test]
    fn short_files_count_as_whole_pages() {
        // Half of the files were in memory, though more bytes were read than received.
        assert_eq!(share(&step(1_000.0, &[Some(204_800.0)])), Some(0.5));
    }

    #[test]
    fn directories_read_besides_do_not_make_it_more_than_all() {
        assert_eq!(share(&step(8_192.0, &[Some(9e9)])), Some(1.0));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        assert_eq!(share(&step(8_192.0, &[])), None);
        assert_eq!(share(&step(8_192.0, &[Some(819_200.0), None])), None);
        assert_eq!(share(&step(0.0, &[Some(819_200.0)])), None);
        assert_eq!(share(&Step::default()), None);
    }

    #[test]
    fn a_warning_says_how_much_came_from_the_disk() {
        assert_eq!(not_cold(&step(8_192.0, &[Some(0.9 * 819_200.0)])), None);
        let warm = not_cold(&step(8_192.0, &[Some(0.5 * 819_200.0)]));
        assert_eq!(warm, Some(Cause::NotCold { users: 8, share: Some(0.5) }));
        let unknown = not_cold(&step(8_192.0, &[None]));
        assert_eq!(unknown, Some(Cause::NotCold { users: 8, share: None }));
        assert_eq!(not_cold(&Step::default()), None);
    }
}
