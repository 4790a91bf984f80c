//! Which groups of some content are still to be had, and who is having which.

use std::{collections::HashMap, net::SocketAddr, ops::Range};

/// Most peers that are asked for the same groups at the end, when there is nothing else to ask for.
const HOLDERS_MAX: usize = 2;

/// The groups of some content: had, being had by somebody, or neither.
#[derive(Debug)]
pub(crate) struct Plan {
    count: u64,
    done: Vec<u8>,
    done_count: u64,
    /// All before this one are had.
    first: u64,
    /// What is being had, by where it begins: its end, and from whom.
    taken: HashMap<u64, (u64, Vec<SocketAddr>)>,
}

impl Plan {
    /// Of so many groups, of which those are had whose bits are set.
    pub(crate) fn new(count: u64, mut done: Vec<u8>) -> Self {
        done.resize(usize::try_from(count.div_ceil(8)).unwrap_or(usize::MAX), 0);
        let done_count = (0..count).filter(|&group| bit(&done, group)).count() as u64;
        let mut plan = Self { count, done, done_count, first: 0, taken: HashMap::new() };
        plan.pass_over_had();
        plan
    }

    /// At most `limit` groups in a row, to be asked of a peer, that nobody is having; at the end those that another peer
    /// has not given yet.
    pub(crate) fn take(&mut self, limit: u64, of: SocketAddr) -> Option<Range<u64>> {
        let range = self.free(limit.max(1)).or_else(|| self.shared(of))?;
        self.taken.entry(range.start).or_insert((range.end, Vec::new())).1.push(of);
        Some(range)
    }

    /// This peer is no longer asked for these, had or not. Every range that was taken is given back once.
    pub(crate) fn give_back(&mut self, range: &Range<u64>, of: SocketAddr) {
        if let Some((_, holders)) = self.taken.get_mut(&range.start) {
            if let Some(at) = holders.iter().position(|holder| *holder == of) {
                holders.swap_remove(at);
            }
            if holders.is_empty() {
                self.taken.remove(&range.start);
            }
        }
    }

    /// A group is had; whether it was not before.
    pub(crate) fn finish(&mut self, group: u64) -> bool {
        if group >= self.count || bit(&self.done, group) {
            return false;
        }
        if let Some(byte) = usize::try_from(group / 8).ok().and_then(|at| self.done.get_mut(at)) {
            *byte |= 1 << (group % 8);
        }
        self.done_count += 1;
        self.pass_over_had();
        true
    }

    /// Whether a group is had.
    pub(crate) fn is_had(&self, group: u64) -> bool {
        bit(&self.done, group)
    }

    /// Whether all are had.
    pub(crate) fn is_done(&self) -> bool {
        self.done_count == self.count
    }

    /// A bit for each group, set when it is had.
    pub(crate) fn bits(&self) -> &[u8] {
        &self.done
    }

    /// The groups that are had.
    pub(crate) fn had(&self) -> impl Iterator<Item = u64> {
        (0..self.count).filter(|&group| bit(&self.done, group))
    }

    /// How many groups are neither had nor being had by anybody.
    pub(crate) fn unclaimed(&self) -> u64 {
        let open = |(start, (end, _)): (&u64, &(u64, _))| {
            (*start..*end).filter(|group| !self.is_had(*group)).count()
        };
        let being_had: u64 = self.taken.iter().map(|taken| open(taken) as u64).sum();
        self.count.saturating_sub(self.done_count).saturating_sub(being_had)
    }

    fn free(&self, limit: u64) -> Option<Range<u64>> {
        let mut start = self.first;
        while start < self.count {
            if let Some((end, _)) = self.taken.get(&start) {
                start = *end;
            } else if bit(&self.done, start) {
                start += 1;
            } else {
                let open = |group: &u64| !bit(&self.done, *group) && !self.taken.contains_key(group);
                let end =
                    (start..self.count.min(start.saturating_add(limit))).take_while(open).count() as u64;
                return Some(start..start + end);
            }
        }
        None
    }

    fn pass_over_had(&mut self) {
        while self.first < self.count && bit(&self.done, self.first) {
            self.first += 1;
        }
    }

    fn shared(&self, with: SocketAddr) -> Option<Range<u64>> {
        let open = |(start, (end, holders)): (&u64, &(u64, Vec<SocketAddr>))| {
            let helps = holders.len() < HOLDERS_MAX && !holders.contains(&with);
            let wanted = helps && (*start..*end).any(|group| !bit(&self.done, group));
            wanted.then_some(*start..*end)
        };
        self.taken.iter().filter_map(open).min_by_key(|range| range.start)
    }
}

fn bit(bits: &[u8], group: u64) -> bool {
    usize::try_from(group / 8)
        .ok()
        .and_then(|at| bits.get(at))
        .is_some_and(|byte| byte >> (group % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer(number: u8) -> SocketAddr {
        ([127, 0, 0, 1], 1000 + u16::from(number)).into()
    }

    #[test]
    fn groups_are_given_out_in_rows_once_and_again_at_the_end() {
        let mut plan = Plan::new(10, vec![0b0000_0100]);
        let (ann, bob, eve) = (peer(1), peer(2), peer(3));
        assert_eq!(plan.take(4, ann), Some(0..2));
        assert_eq!(plan.unclaimed(), 7);
        assert_eq!(plan.take(4, bob), Some(3..7));
        assert_eq!(plan.take(4, bob), Some(7..10));
        assert_eq!(plan.take(4, bob), Some(0..2), "a second peer helps at the end");
        assert_eq!(plan.take(4, bob), None, "nobody is asked twice at once for the same");
        (0..2).for_each(|group| assert!(plan.finish(group) && !plan.finish(group)));
        assert_eq!(plan.unclaimed(), 0);
        plan.give_back(&(0..2), ann);
        plan.give_back(&(0..2), bob);
        assert_eq!(plan.take(4, eve), Some(3..7));
        plan.give_back(&(3..7), bob);
        plan.give_back(&(3..7), eve);
        assert_eq!(plan.take(2, bob), Some(3..5), "what was given back unhad is given out again");
        (3..10).for_each(|group| assert!(plan.finish(group)));
        assert!(plan.is_done() && plan.take(1, eve).is_none());
    }

    proptest! {
        #[test]
        fn whatever_fails_everything_is_had_in_the_end(
            count in 1u64..200,
            had in prop::collection::vec(any::<u8>(), 0..25),
            steps in prop::collection::vec((1u64..9, 0u8..3, any::<bool>()), 0..100),
        ) {
            let mut plan = Plan::new(count, had);
            let mut held = Vec::new();
            for (limit, from, succeeds) in steps {
                if let Some(range) = plan.take(limit, peer(from)) {
                    prop_assert!(range.start < range.end && range.end <= count);
                    held.push((range, peer(from), succeeds));
                }
                if held.len() > 3 {
                    let (range, from, succeeds) = held.remove(0);
                    if succeeds {
                        range.clone().for_each(|group| {
                            plan.finish(group);
                        });
                    }
                    plan.give_back(&range, from);
                }
            }
            held.iter().for_each(|(range, from, _)| plan.give_back(range, *from));
            while let Some(range) = plan.take(7, peer(9)) {
                range.clone().for_each(|group| {
                            plan.finish(group);
                        });
                plan.give_back(&range, peer(9));
            }
            prop_assert!(plan.is_done());
            prop_assert_eq!(plan.had().count() as u64, count);
        }
    }
}
