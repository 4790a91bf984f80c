//! Which groups of some content are still missing, and which peer is being asked for which.

use std::{collections::HashMap, net::SocketAddr, ops::Range};

/// Most peers to ask for the same groups at the end, when all others are assigned.
const PEERS_MAX: usize = 2;

/// The groups of some content: received, assigned to peers, or neither.
#[derive(Debug)]
pub(crate) struct Assignments {
    count: u64,
    done: Vec<u8>,
    done_count: u64,
    /// All groups before this one have been received.
    first: u64,
    /// Assigned ranges by their start: the end, and the peers that were asked.
    assigned: HashMap<u64, (u64, Vec<SocketAddr>)>,
}

impl Assignments {
    /// For `count` groups, of which those whose bits are set have been received.
    pub(crate) fn new(count: u64, mut done: Vec<u8>) -> Self {
        done.resize(usize::try_from(count.div_ceil(8)).unwrap_or(usize::MAX), 0);
        let done_count = (0..count).filter(|&group| bit(&done, group)).count() as u64;
        let mut assignments = Self { count, done, done_count, first: 0, assigned: HashMap::new() };
        assignments.skip_received();
        assignments
    }

    /// Assigns at most `limit` consecutive groups to a peer. When all are assigned, assigns a range that another peer has not
    /// sent yet.
    pub(crate) fn take(&mut self, limit: u64, of: SocketAddr) -> Option<Range<u64>> {
        let range = self.free(limit.max(1)).or_else(|| self.shared(of))?;
        self.assigned.entry(range.start).or_insert((range.end, Vec::new())).1.push(of);
        Some(range)
    }

    /// Ends an assignment, whether the groups were received or not. Every assigned range has to be given back once.
    pub(crate) fn give_back(&mut self, range: &Range<u64>, of: SocketAddr) {
        if let Some((_, peers)) = self.assigned.get_mut(&range.start) {
            if let Some(at) = peers.iter().position(|peer| *peer == of) {
                peers.swap_remove(at);
            }
            if peers.is_empty() {
                self.assigned.remove(&range.start);
            }
        }
    }

    /// Marks a group as received. Returns `false` if it already was.
    pub(crate) fn finish(&mut self, group: u64) -> bool {
        if group >= self.count || bit(&self.done, group) {
            return false;
        }
        if let Some(byte) = usize::try_from(group / 8).ok().and_then(|at| self.done.get_mut(at)) {
            *byte |= 1 << (group % 8);
        }
        self.done_count += 1;
        self.skip_received();
        true
    }

    /// Whether a group has been received.
    pub(crate) fn is_received(&self, group: u64) -> bool {
        bit(&self.done, group)
    }

    /// Whether all groups have been received.
    pub(crate) fn is_done(&self) -> bool {
        self.done_count == self.count
    }

    /// One bit per group, set if it has been received.
    pub(crate) fn bits(&self) -> &[u8] {
        &self.done
    }

    /// The groups that have been received.
    pub(crate) fn received(&self) -> impl Iterator<Item = u64> {
        (0..self.count).filter(|&group| bit(&self.done, group))
    }

    /// Number of groups that are neither received nor assigned.
    pub(crate) fn unassigned(&self) -> u64 {
        let open = |(start, (end, _)): (&u64, &(u64, _))| {
            (*start..*end).filter(|group| !self.is_received(*group)).count()
        };
        let being_had: u64 = self.assigned.iter().map(|assigned| open(assigned) as u64).sum();
        self.count.saturating_sub(self.done_count).saturating_sub(being_had)
    }

    fn free(&self, limit: u64) -> Option<Range<u64>> {
        let mut start = self.first;
        while start < self.count {
            if let Some((end, _)) = self.assigned.get(&start) {
                start = *end;
            } else if bit(&self.done, start) {
                start += 1;
            } else {
                let open = |group: &u64| !bit(&self.done, *group) && !self.assigned.contains_key(group);
                let end =
                    (start..self.count.min(start.saturating_add(limit))).take_while(open).count() as u64;
                return Some(start..start + end);
            }
        }
        None
    }

    fn skip_received(&mut self) {
        while self.first < self.count && bit(&self.done, self.first) {
            self.first += 1;
        }
    }

    fn shared(&self, with: SocketAddr) -> Option<Range<u64>> {
        let open = |(start, (end, peers)): (&u64, &(u64, Vec<SocketAddr>))| {
            let helps = peers.len() < PEERS_MAX && !peers.contains(&with);
            let wanted = helps && (*start..*end).any(|group| !bit(&self.done, group));
            wanted.then_some(*start..*end)
        };
        self.assigned.iter().filter_map(open).min_by_key(|range| range.start)
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
        let mut assignments = Assignments::new(10, vec![0b0000_0100]);
        let (ann, bob, eve) = (peer(1), peer(2), peer(3));
        assert_eq!(assignments.take(4, ann), Some(0..2));
        assert_eq!(assignments.unassigned(), 7);
        assert_eq!(assignments.take(4, bob), Some(3..7));
        assert_eq!(assignments.take(4, bob), Some(7..10));
        assert_eq!(assignments.take(4, bob), Some(0..2), "a second peer helps at the end");
        assert_eq!(assignments.take(4, bob), None, "nobody is asked twice at once for the same");
        (0..2).for_each(|group| assert!(assignments.finish(group) && !assignments.finish(group)));
        assert_eq!(assignments.unassigned(), 0);
        assignments.give_back(&(0..2), ann);
        assignments.give_back(&(0..2), bob);
        assert_eq!(assignments.take(4, eve), Some(3..7));
        assignments.give_back(&(3..7), bob);
        assignments.give_back(&(3..7), eve);
        assert_eq!(assignments.take(2, bob), Some(3..5), "what was given back unhad is given out again");
        (3..10).for_each(|group| assert!(assignments.finish(group)));
        assert!(assignments.is_done() && assignments.take(1, eve).is_none());
    }

    proptest! {
        #[test]
        fn whatever_fails_everything_is_received_in_the_end(
            count in 1u64..200,
            had in prop::collection::vec(any::<u8>(), 0..25),
            steps in prop::collection::vec((1u64..9, 0u8..3, any::<bool>()), 0..100),
        ) {
            let mut assignments = Assignments::new(count, had);
            let mut held = Vec::new();
            for (limit, from, succeeds) in steps {
                if let Some(range) = assignments.take(limit, peer(from)) {
                    prop_assert!(range.start < range.end && range.end <= count);
                    held.push((range, peer(from), succeeds));
                }
                if held.len() > 3 {
                    let (range, from, succeeds) = held.remove(0);
                    if succeeds {
                        range.clone().for_each(|group| {
                            assignments.finish(group);
                        });
                    }
                    assignments.give_back(&range, from);
                }
            }
            held.iter().for_each(|(range, from, _)| assignments.give_back(range, *from));
            while let Some(range) = assignments.take(7, peer(9)) {
                range.clone().for_each(|group| {
                            assignments.finish(group);
                        });
                assignments.give_back(&range, peer(9));
            }
            prop_assert!(assignments.is_done());
            prop_assert_eq!(assignments.received().count() as u64, count);
        }
    }
}
