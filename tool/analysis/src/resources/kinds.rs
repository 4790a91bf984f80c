//! What each kind of request costs, where a load has several: the use of tiers and devices in short windows, beside the
//! completions of each kind in them.
//!
//! Users draw the kind of each request, so that its share changes from window to window by chance, and the use with it (Zhang,
//! Cherkasova and Smirni, "A regression-based analytic model for dynamic resource provisioning of multi-tier applications",
//! ICAC 2007). Windows reach from sample to sample, as nothing is known of the use in between. Kept are sums alone, so that
//! those of several measurements and steps can be added.

use super::{Usage, device, process};
use crate::counters::{Counters, Role};
use crate::ticks::KindCounts;

/// A window is so long that this many requests complete for each that is under way. One that is under way at an edge is counted
/// in one of two windows and costs something in both, which takes counts and use apart: the differences between kinds come out
/// smaller by about half of one over this where requests use a resource all the while, by twice that where only at their
/// beginning, and by more for kinds that take longer than others.
const COMPLETED_PER_UNDER_WAY: f64 = 10.0;

impl Usage {
    /// The same with what its tiers and devices were used for by each kind of request. `covering` gives the samples that cover
    /// a window of the monotonic clock, microseconds.
    #[must_use]
    pub fn with_kinds(
        mut self,
        measured: &[KindCounts],
        covering: impl Fn((u64, u64)) -> Vec<Counters>,
    ) -> Self {
        for counts in measured {
            let counters = covering(counts.window());
            for window in windows(&counters, counts) {
                self.add(&window);
            }
        }
        self
    }

    fn add(&mut self, window: &Window<'_>) {
        let Window { samples, completed } = window;
        let elapsed_us = elapsed_us(samples);
        let cpu_us = process::cpu_us(samples);
        for group in self.groups.iter_mut().filter(|group| group.role != Role::Generator) {
            if let Some(used_us) = cpu_us.get(&(group.role, group.name.clone())) {
                group.by_kind.add(*used_us, completed);
            }
        }
        for own in device::disks(samples, elapsed_us) {
            let disks = self.disks.iter_mut().filter(|disk| disk.name == own.name);
            disks.for_each(|disk| disk.by_kind.add(own.busy * elapsed_us, completed));
        }
        for own in device::links(samples, elapsed_us) {
            let Some((used, capacity)) = own.use_of_limit() else { continue };
            let links = self.links.iter_mut().filter(|link| link.name == own.name);
            links.for_each(|link| link.by_kind.add(used / capacity * elapsed_us, completed));
        }
    }
}

/// Consecutive samples, and the completions of each kind between the first and the last.
#[derive(Debug, Clone, PartialEq)]
struct Window<'a> {
    samples: Vec<&'a Counters>,
    completed: Vec<f64>,
}

/// Windows of one measurement that are long enough, one after the other. What is left at its end is in none.
fn windows<'a>(counters: &'a [Counters], counts: &KindCounts) -> Vec<Window<'a>> {
    let (start_us, end_us) = counts.window();
    let inside = counters.iter().filter(|sample| (start_us..=end_us).contains(&sample.at_us));
    let mut inside: Vec<&Counters> = inside.collect();
    inside.sort_by_key(|sample| sample.at_us);
    let least = COMPLETED_PER_UNDER_WAY * counts.under_way().max(1.0);
    let (mut found, mut begin) = (Vec::new(), 0);
    for (end, last) in inside.iter().enumerate() {
        let completed = counts.between(inside[begin].at_us, last.at_us);
        if completed.iter().sum::<f64>() >= least {
            found.push(Window { samples: inside[begin..=end].to_vec(), completed });
            begin = end;
        }
    }
    found
}

fn elapsed_us(samples: &[&Counters]) -> f64 {
    let at_us = |sample: Option<&&Counters>| sample.map_or(0, |sample| sample.at_us);
    at_us(samples.last()).saturating_sub(at_us(samples.first())) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::{Disk, Interface, Process};
    use crate::resources::usage;
    use crate::statistics::random::Random;
    use crate::ticks::{Counts, KindTick, Tick};

    const TICK_US: u64 = 50_000;
    const SAMPLE_US: u64 = 250_000;

    /// What a request of each of two kinds takes, microseconds: of the server, the tier behind it, a disk and a link.
    const SERVER_US: [u64; 2] = [400, 4_000];
    const BEHIND_US: [u64; 2] = [0, 1_500];
    const DISK_US: [u64; 2] = [100, 900];
    const LINK_BYTES: [u64; 2] = [1_000, 20_000];

    fn kind(kind: u16, count: u64) -> KindTick {
        let response_times = Counts { values_us: vec![(5_000, count)], beyond: 0 };
        KindTick { kind, response_times, ..KindTick::default() }
    }

    /// Slices in which so many of each kind complete, with so many requests under way.
    fn ticks(completed: &[[u64; 2]], under_way: u64) -> Vec<Tick> {
        let tick = |(number, of): (usize, &[u64; 2])| Tick {
            start_us: number as u64 * TICK_US,
            length_us: TICK_US,
            completed: of[0] + of[1],
            response_time_ns_sum: under_way * TICK_US * 1_000,
            by_kind: vec![kind(0, of[0]), kind(1, of[1])],
            ..Tick::default()
        };
        completed.iter().enumerate().map(tick).collect()
    }

    fn process(role: Role, name: &str, pid: u32, user_us: u64) -> Process {
        Process { pid, name: name.into(), role, user_us, started_ticks: 1, ..Process::default() }
    }

    /// The counters after so many of each kind.
    fn sample(at_us: u64, so_far: [u64; 2]) -> Counters {
        let took = |each: [u64; 2]| each[0] * so_far[0] + each[1] * so_far[1];
        Counters {
            at_us,
            processes: vec![
                process(Role::Server, "web", 7, took(SERVER_US)),
                process(Role::Downstream, "db", 8, took(BEHIND_US)),
                process(Role::Generator, "nstar", 9, so_far[0] + so_far[1]),
            ],
            disks: vec![Disk { name: "vda".into(), busy_us: took(DISK_US), ..Disk::default() }],
            interfaces: vec![Interface {
                name: "eth0".into(),
                sent_bytes: took(LINK_BYTES),
                link_bits_per_s: Some(1_000_000_000),
                ..Interface::default()
            }],
            ..Counters::default()
        }
    }

    /// Samples of a measurement, and of a moment before and after it.
    fn samples(completed: &[[u64; 2]]) -> Vec<Counters> {
        let so_far = |slices: usize| {
            let part = completed.get(..slices).unwrap_or(completed);
            part.iter().fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
        };
        let slices = (SAMPLE_US / TICK_US) as usize;
        let all = completed.len() / slices;
        (0..=all).map(|number| sample(number as u64 * SAMPLE_US, so_far(number * slices))).collect()
    }

    fn drawn(slices: usize, seed: u64) -> Vec<[u64; 2]> {
        let mut random = Random::seeded(seed);
        (0..slices).map(|_| [10 + random.below(10) as u64, random.below(5) as u64]).collect()
    }

    fn seen(completed: &[[u64; 2]], under_way: u64) -> Usage {
        let counts = KindCounts::of(&ticks(completed, under_way)).expect("two kinds");
        let counters = samples(completed);
        usage(&counters, &[], counts.window()).with_kinds(&[counts], |_| counters.clone())
    }

    fn costs(sums: &crate::statistics::normal_equations::NormalEquations) -> Vec<f64> {
        let fit = sums.fit().expect("enough windows");
        fit.coefficients.iter().map(|one| one.expect("both kinds").value).collect()
    }

    fn are(found: &[f64], expected: [f64; 2]) -> bool {
        found.len() == 2 && found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.01)
    }

    #[test]
    fn each_kind_costs_what_it_takes_of_tiers_and_devices() {
        let usage = seen(&drawn(200, 5), 4);
        let of = |name: &str| usage.groups.iter().find(|group| group.name == name).expect(name);
        assert!(are(&costs(&of("web").by_kind), [400.0, 4_000.0]), "{:?}", costs(&of("web").by_kind));
        assert!(are(&costs(&of("db").by_kind), [0.0, 1_500.0]), "{:?}", costs(&of("db").by_kind));
        assert!(are(&costs(&usage.disks[0].by_kind), [100.0, 900.0]));
        assert!(are(&costs(&usage.links[0].by_kind), [8.0, 160.0]), "a bit takes a nanosecond");
        assert_eq!(of("nstar").by_kind.fit(), None, "the generator is no tier");
    }

    #[test]
    fn sums_of_several_measurements_are_those_of_all_their_windows() {
        let (first, second) = (drawn(100, 1), drawn(100, 2));
        let counts = |completed: &[[u64; 2]]| KindCounts::of(&ticks(completed, 4)).expect("two kinds");
        let (one, other) = (counts(&first), counts(&second));
        let before = usage(&samples(&first), &[], one.window());
        let apart = |usage: Usage, of: &KindCounts, completed: &[[u64; 2]]| {
            usage.with_kinds(std::slice::from_ref(of), |_| samples(completed))
        };
        let both = apart(apart(before.clone(), &one, &first), &other, &second);
        let mut added = apart(before.clone(), &one, &first).groups[1].by_kind.clone();
        added.merge(&apart(before, &other, &second).groups[1].by_kind);
        let (both, added) = (costs(&both.groups[1].by_kind), costs(&added));
        assert!(both.iter().zip(&added).all(|(one, other)| (one - other).abs() < 1e-6), "{both:?} {added:?}");
    }

    #[test]
    fn windows_hold_ten_completions_for_each_request_under_way() {
        let completed = vec![[10u64, 0]; 100];
        let lengths = |under_way: u64| {
            let counts = KindCounts::of(&ticks(&completed, under_way)).expect("kinds");
            let counters = samples(&completed);
            let windows = windows(&counters, &counts);
            windows.iter().map(|window| (window.samples.len(), window.completed[0])).collect::<Vec<_>>()
        };
        // Fifty complete between two samples.
        assert_eq!(lengths(4), vec![(2, 50.0); 20]);
        assert_eq!(lengths(12), vec![(4, 150.0); 6], "the rest is too short");
        assert!(lengths(101).is_empty());
    }

    #[test]
    fn samples_outside_a_measurement_are_in_no_window() {
        let completed = drawn(40, 3);
        let counts = KindCounts::of(&ticks(&completed, 4)).expect("kinds");
        let mut counters = samples(&completed);
        counters.push(sample(counts.window().1 + 1, [u64::from(u32::MAX); 2]));
        let windows = windows(&counters, &counts);
        assert!(windows.iter().flat_map(|of| &of.samples).all(|of| of.at_us <= counts.window().1));
        assert!(!windows.is_empty());
    }
}
