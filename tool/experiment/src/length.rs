//! How long the loads of a workload are: as short as they may be, so that there are many rounds to compare them by.

use std::{collections::BTreeMap, time::Duration};

use analysis::comparison::show_the_same;

/// A longer load tells less than two: what differs from one trial to the next is not in its interval.
pub(crate) const LONGEST_LOAD: Duration = Duration::from_secs(10);
/// Time per trial for starting programs, stopping them, and the first request, until it is known.
pub(crate) const AROUND: Duration = Duration::from_millis(1_200);
/// Longer by less is not worth another round.
const LONGER: f64 = 1.25;

/// The length of the loads of one workload.
#[derive(Debug, Clone)]
pub(crate) struct LoadLength<'a> {
    time: Option<Duration>,
    /// Whether it stays as it is.
    found: bool,
    /// How many loads of this round were too short to settle.
    unsettled: usize,
    /// Throughput in this round, by variant, and of the loads before it that were shorter, the longest of each.
    throughput: [BTreeMap<&'a str, f64>; 2],
    /// The least time that a trial took besides its load: longer ones may have made data, too.
    around: Option<Duration>,
}

impl<'a> LoadLength<'a> {
    /// Begins with this length; `fixed`: it stays so.
    pub(crate) fn new(time: Option<Duration>, fixed: bool) -> Self {
        LoadLength { time, found: fixed, unsettled: 0, throughput: Default::default(), around: None }
    }

    /// The length; `None`: as long as a load takes that nothing is said of.
    pub(crate) fn time(&self) -> Option<Duration> {
        self.time
    }

    /// How long a trial takes at least.
    pub(crate) fn cost(&self) -> Duration {
        self.time.unwrap_or_default() + self.around.unwrap_or_default()
    }

    /// Begins a round.
    pub(crate) fn begin_round(&mut self) {
        self.unsettled = 0;
        self.throughput[0].clear();
    }

    /// Takes note of how long a trial took.
    pub(crate) fn made(&mut self, took: Duration) {
        let around = took.saturating_sub(self.time.unwrap_or_default());
        self.around = Some(self.around.map_or(around, |least| least.min(around)));
    }

    /// Takes note of the throughput of a load, and of whether it was long enough to settle.
    pub(crate) fn note(&mut self, variant: &'a str, throughput_per_s: f64, settled: bool) {
        self.unsettled += usize::from(!settled);
        self.throughput[0].insert(variant, throughput_per_s);
    }

    /// Makes loads twice as long, if most of so many variants did not settle, there is time for it, and the throughput is not what
    /// shorter loads showed: where it is, longer ones will show the same as well, however unsteady it is. A trial may take
    /// `share` then. Returns whether the round is to be made again.
    pub(crate) fn lengthen(&mut self, variants: usize, share: Option<Duration>) -> bool {
        if self.found || 2 * self.unsettled <= variants || self.is_as_before() {
            return false;
        }
        let longer = self.time.map(|time| time * 2).min(self.most(share));
        let is_longer = longer > self.time.map(|time| time.mul_f64(LONGER));
        if is_longer {
            self.time = longer;
            let [now, before] = &mut self.throughput;
            before.append(now);
        }
        is_longer
    }

    /// Ends a round that counts. After the first, loads become at least as long as what is around them, if there is time: then
    /// at least half of the time is measured (Cochran 1977, 10.6).
    pub(crate) fn keep(&mut self, share: Option<Duration>) {
        if !std::mem::replace(&mut self.found, true) {
            self.time = self.time.max(self.around.min(self.most(share)));
        }
    }

    /// The most that a load may take of a trial's share.
    fn most(&self, share: Option<Duration>) -> Option<Duration> {
        Some(share?.saturating_sub(self.around.unwrap_or(AROUND)).min(LONGEST_LOAD))
    }

    fn is_as_before(&self) -> bool {
        let [now, before] = &self.throughput;
        let ratio = |(variant, now): (&&str, &f64)| Some((now / before.get(*variant)?).ln());
        let ratios: Vec<f64> = now.iter().filter_map(ratio).filter(|ratio| ratio.is_finite()).collect();
        2 * ratios.len() >= now.len() && show_the_same(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARE: Option<Duration> = Some(Duration::from_secs(5));

    fn length(milliseconds: u64) -> LoadLength<'static> {
        let mut length = LoadLength::new(Some(Duration::from_millis(milliseconds)), false);
        length.made(Duration::from_millis(milliseconds + 100));
        length
    }

    #[test]
    fn loads_that_did_not_settle_are_made_again_twice_as_long_while_there_is_time() {
        let mut length = length(1_000);
        let mut round = |per_s: f64| {
            length.begin_round();
            length.note("epoll", per_s, false);
            (length.lengthen(1, SHARE), length.time().map(|time| time.as_millis()))
        };
        assert_eq!(round(10.0), (true, Some(2_000)));
        assert_eq!(round(20.0), (true, Some(4_000)));
        assert_eq!(round(40.0), (false, Some(4_000)), "a fifth longer is not worth it");
    }

    /// Ten thousand users on a listen queue of a hundred are never steady, and their throughput is the same all along.
    #[test]
    fn loads_that_longer_ones_agree_with_stay_short() {
        let mut length = length(500);
        let mut round = |per_s: [f64; 3]| {
            length.begin_round();
            let names = ["aio", "epoll", "poll"];
            names.iter().zip(per_s).for_each(|(name, per_s)| length.note(name, per_s, false));
            length.lengthen(3, SHARE)
        };
        assert!(round([1_000.0, 9_000.0, 9_100.0]));
        // One of them, or one that serves nobody, does not decide.
        assert!(!round([600.0, 9_200.0, 9_000.0]) && !round([0.0, 9_200.0, 9_000.0]));
        length.keep(SHARE);
        assert_eq!(length.time(), Some(Duration::from_secs(1)));
    }

    /// Ten models with ten thousand connections each, on a machine that scatters: loads grew to six seconds, took two thirds of
    /// all time, and showed what those of two seconds did. Each round that was broken off had measured other models.
    #[test]
    fn chance_does_not_make_loads_longer() {
        let mut length = length(500);
        let mut round = |made: &[(&'static str, f64)]| {
            length.begin_round();
            made.iter().for_each(|(name, per_s)| length.note(name, *per_s, false));
            length.lengthen(10, SHARE)
        };
        let burst = [("select", 10_140.0), ("polling", 9_660.0), ("poll", 9_890.0), ("aio", 1_140.0)];
        assert!(round(&[&burst[..], &[("pool", 8_770.0), ("epoll", 9_110.0)]].concat()));
        let second = [("uring", 9_330.0), ("aio", 720.0), ("prefork", 8_730.0), ("select", 7_730.0)];
        assert!(round(&[&second[..], &[("poll", 7_630.0), ("processes", 1_740.0)]].concat()));
        let third = [("poll", 9_310.0), ("processes", 1_770.0), ("select", 9_140.0), ("prefork", 9_650.0)];
        assert!(!round(&[&third[..], &[("epoll", 9_900.0), ("uring", 9_490.0)]].concat()));
    }

    #[test]
    fn loads_take_as_long_as_what_is_around_them() {
        let mut length = length(500);
        length.made(Duration::from_secs(40));
        length.made(Duration::from_millis(2_500));
        length.keep(SHARE);
        assert_eq!(length.time(), Some(Duration::from_millis(500)), "the least of all");
        let mut slow = LoadLength::new(Some(Duration::from_millis(500)), false);
        slow.made(Duration::from_millis(2_500));
        slow.keep(SHARE);
        assert_eq!(slow.time(), Some(Duration::from_secs(2)));
        let mut fixed = LoadLength::new(Some(Duration::from_secs(1)), true);
        fixed.note("epoll", 1.0, false);
        assert!(!fixed.lengthen(1, SHARE) && fixed.time() == Some(Duration::from_secs(1)));
    }
}
