//! A bounded queue in which no group can crowd out the others.
//!
//! Groups take turns, and if the queue is full, the longest group makes room for a shorter one. As there may be as many groups
//! as places, a part of the queue is kept for groups that are [known](Ticket::is_known), which also get every other turn.

use std::collections::{HashMap, VecDeque};

/// The part of a queue that is kept for known groups: one place in this many.
const RESERVE_PART: usize = 4;

/// The group to which a job belongs, and whether that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The number of the group.
    pub group: u64,
    /// Whether its job may take a place of those kept for known groups.
    pub is_known: bool,
}

/// A queue of jobs by group.
#[derive(Debug)]
pub(super) struct FairQueue<J> {
    known: Groups<J>,
    strangers: Groups<J>,
    /// Whether a stranger is next, if there is one.
    is_strangers_turn: bool,
}

/// The jobs of each group, and the groups in the order of their turns.
#[derive(Debug)]
struct Groups<J> {
    jobs: HashMap<u64, VecDeque<J>>,
    turns: VecDeque<u64>,
    len: usize,
}

impl<J> Default for FairQueue<J> {
    fn default() -> Self {
        Self { known: Groups::default(), strangers: Groups::default(), is_strangers_turn: false }
    }
}

impl<J> Default for Groups<J> {
    fn default() -> Self {
        Self { jobs: HashMap::new(), turns: VecDeque::new(), len: 0 }
    }
}

impl<J> FairQueue<J> {
    pub(super) fn len(&self) -> usize {
        self.known.len + self.strangers.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues a job, of which there may be `free` for threads that are idle and `queue` that wait. Returns a job for which
    /// there is no room: this one, or that of a longer group.
    pub(super) fn push(&mut self, ticket: Ticket, job: J, (free, queue): (usize, usize)) -> Option<J> {
        let places = queue.saturating_add(free);
        let for_strangers = places - queue / RESERVE_PART;
        let are_strangers_full = !ticket.is_known && self.strangers.len >= for_strangers;
        let from = if are_strangers_full {
            &mut self.strangers
        } else if self.len() >= places {
            // Strangers never have more than their part, so known groups have at least theirs.
            &mut self.known
        } else {
            self.of(ticket).push(ticket.group, job);
            return None;
        };
        let is_same = are_strangers_full || ticket.is_known;
        let own = if is_same { from.len_of(ticket.group) + 1 } else { 0 };
        let Some(instead) = from.take_from_longer_than(own) else { return Some(job) };
        self.of(ticket).push(ticket.group, job);
        Some(instead)
    }

    /// The next job.
    pub(super) fn pop(&mut self) -> Option<J> {
        let (first, second) = if self.is_strangers_turn {
            (&mut self.strangers, &mut self.known)
        } else {
            (&mut self.known, &mut self.strangers)
        };
        self.is_strangers_turn = !self.is_strangers_turn;
        first.pop().or_else(|| second.pop())
    }

    fn of(&mut self, ticket: Ticket) -> &mut Groups<J> {
        if ticket.is_known { &mut self.known } else { &mut self.strangers }
    }
}

impl<J> Groups<J> {
    fn len_of(&self, group: u64) -> usize {
        self.jobs.get(&group).map_or(0, VecDeque::len)
    }

    fn push(&mut self, group: u64, job: J) {
        let jobs = self.jobs.entry(group).or_default();
        if jobs.is_empty() {
            self.turns.push_back(group);
        }
        jobs.push_back(job);
        self.len += 1;
    }

    fn pop(&mut self) -> Option<J> {
        let group = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&group)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&group);
        } else {
            self.turns.push_back(group);
        }
        self.len -= 1;
        job
    }

    /// Takes the newest job of the longest group, if that has more than so many.
    fn take_from_longer_than(&mut self, most: usize) -> Option<J> {
        let (&group, jobs) = self.jobs.iter_mut().max_by_key(|(_, jobs)| jobs.len())?;
        if jobs.len() <= most {
            return None;
        }
        let job = jobs.pop_back();
        if jobs.is_empty() {
            self.jobs.remove(&group);
            self.turns.retain(|turn| *turn != group);
        }
        self.len -= 1;
        job
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stranger(group: u64) -> Ticket {
        Ticket { group, is_known: false }
    }

    fn known(group: u64) -> Ticket {
        Ticket { group, is_known: true }
    }

    fn all<J>(mut queue: FairQueue<J>) -> Vec<J> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn groups_take_turns() {
        let mut queue = FairQueue::default();
        for (group, job) in [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e"), (2, "f")] {
            assert_eq!(queue.push(stranger(group), job, (0, 100)), None);
        }
        assert_eq!(all(queue), ["a", "d", "e", "b", "f", "c"]);
    }

    #[test]
    fn known_groups_get_every_other_turn() {
        let mut queue = FairQueue::default();
        for job in 0..4 {
            assert_eq!(queue.push(stranger(job), job, (0, 100)), None);
        }
        assert_eq!(queue.push(known(0), 10, (0, 100)), None);
        assert_eq!(queue.push(known(1), 11, (0, 100)), None);
        assert_eq!(all(queue), [10, 0, 11, 1, 2, 3]);
    }

    #[test]
    fn the_longest_group_makes_room_for_a_shorter_one_with_its_newest_job() {
        let mut queue = FairQueue::default();
        for job in 0..6 {
            assert_eq!(queue.push(stranger(1), job, (0, 8)), None);
        }
        assert_eq!(queue.push(stranger(1), 6, (0, 8)), Some(6), "two places are kept for known groups");
        assert_eq!(queue.push(stranger(2), 7, (0, 8)), Some(5));
        assert_eq!(queue.push(stranger(2), 8, (0, 8)), Some(4));
        assert_eq!(queue.push(stranger(2), 9, (0, 8)), Some(3));
        assert_eq!(queue.push(stranger(2), 10, (0, 8)), Some(10), "they are equal");
        assert_eq!(all(queue), [0, 7, 1, 8, 2, 9]);
    }

    #[test]
    fn strangers_from_everywhere_leave_room_for_known_groups_and_the_reverse() {
        let mut queue = FairQueue::default();
        let refused: Vec<u64> = (0..100).filter_map(|n| queue.push(stranger(n), n, (0, 8))).collect();
        assert_eq!((queue.len(), refused.len()), (6, 94));
        assert_eq!(queue.push(known(1), 200, (0, 8)), None);
        assert_eq!(queue.push(known(2), 201, (0, 8)), None);
        assert_eq!(queue.push(known(3), 202, (0, 8)), Some(202));

        let mut queue = FairQueue::default();
        for job in 0..8 {
            assert_eq!(queue.push(known(1), job, (0, 8)), None, "they may have what strangers do not need");
        }
        assert_eq!(queue.push(known(2), 8, (0, 8)), Some(7));
        assert_eq!(queue.push(stranger(3), 9, (0, 8)), Some(6), "but not for long");
    }

    #[test]
    fn threads_that_are_idle_take_anybody() {
        let mut queue = FairQueue::default();
        assert_eq!(queue.push(stranger(1), 1, (1, 0)), None);
        assert_eq!(queue.push(stranger(2), 2, (1, 0)), Some(2));
        assert_eq!(all(queue), [1]);
    }
}
