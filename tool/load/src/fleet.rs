//! Users dealt over several generators that make one load together.
//!
//! User n of the whole load belongs to one generator, whatever the number of users: with more users each generator keeps
//! those that it has and gets others besides, so that connections are kept, and no two generators ever have the same user
//! number. Values that a user draws, which follow from its number, are therefore unique over all generators.
//!
//! Who gets the next user is the chairman assignment problem: seats handed out one by one so that after each everybody has
//! his share but for less than one. The algorithm is Tijdeman's (The chairman assignment problem, Discrete Mathematics 32,
//! 1980). Largest remainders would be as near to the shares, but take users away from a generator when there are more of
//! them.

use serde::{Deserialize, Serialize};

/// Most generators of a load.
pub const MEMBERS_MAX: usize = 256;

/// One of several generators that make a load together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    weights: Vec<u32>,
    index: usize,
}

impl Default for Member {
    /// The only one.
    fn default() -> Self {
        Self { weights: vec![1], index: 0 }
    }
}

impl Member {
    /// The generator with this index of those that have these weights: its share of the users is its weight over the sum.
    /// `None` if there is none with that index, or if there are more than [`MEMBERS_MAX`].
    #[must_use]
    pub fn new(weights: Vec<u32>, index: usize) -> Option<Self> {
        Some(Self { weights, index }).filter(Self::is_sound)
    }

    /// Whether it is one that [`Member::new`] could have made.
    pub(crate) fn is_sound(&self) -> bool {
        self.index < self.weights.len() && self.weights.len() <= MEMBERS_MAX
    }

    /// How many generators there are.
    pub(crate) fn of(&self) -> usize {
        self.weights.len()
    }

    /// Its place among them.
    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The numbers of its users, ascending, among all users of the load.
    pub(crate) fn numbers(&self) -> Numbers {
        Numbers { owners: Owners::new(&self.weights), index: self.index, next: 0, user: 0 }
    }

    /// The first of its users that sends to this server of so many; user n sends to server n modulo their count.
    pub(crate) fn first_user_of(&self, server: u32, servers: usize) -> u32 {
        let servers = u32::try_from(servers).unwrap_or(u32::MAX).max(1);
        let owners = Owners::new(&self.weights).enumerate();
        // A generator with a tiny share of many may have none among the first; then any number of that server will do that
        // is no user's.
        let mut first = owners.take(SEARCHED).filter(|(_, owner)| *owner == self.index);
        let found = first.find(|(user, _)| *user as u32 % servers == server);
        found.map_or(server + servers * (SEARCHED as u32 + self.index as u32), |(user, _)| user as u32)
    }
}

/// How many users are looked at for the first one of a server.
const SEARCHED: usize = 1 << 16;

/// How many of so many users each generator has, by weight: its share, but for less than one.
#[must_use]
pub fn deal(weights: &[u32], users: u32) -> Vec<u32> {
    let mut dealt = vec![0; weights.len()];
    for owner in Owners::new(weights).take(users as usize) {
        if let Some(users) = dealt.get_mut(owner) {
            *users += 1;
        }
    }
    dealt
}

/// Numbers of the users of one generator.
pub(crate) struct Numbers {
    owners: Owners,
    index: usize,
    /// How many of its users were passed.
    next: usize,
    /// How many users of all were passed.
    user: u32,
}

impl Numbers {
    /// The number of its user in this place; places have to be asked for in ascending order.
    pub(crate) fn at(&mut self, place: usize) -> u32 {
        loop {
            let user = self.user;
            let owner = self.owners.next();
            self.user = self.user.saturating_add(1);
            if owner == Some(self.index) {
                self.next += 1;
                if self.next > place {
                    return user;
                }
            }
        }
    }
}

/// Whom each user belongs to, in order: an endless sequence.
struct Owners {
    /// At least 1 each.
    weights: Vec<u64>,
    sum: u64,
    /// How many users each has.
    has: Vec<u64>,
    dealt: u64,
}

impl Owners {
    fn new(weights: &[u32]) -> Self {
        let weights: Vec<u64> = weights.iter().map(|weight| u64::from(*weight).max(1)).collect();
        Self { sum: weights.iter().sum(), has: vec![0; weights.len()], weights, dealt: 0 }
    }
}

impl Iterator for Owners {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.dealt += 1;
        let (dealt, sum) = (u128::from(self.dealt), u128::from(self.sum));
        // With k generators, shares in units of 1/(2k - 2) of a user: whole numbers throughout.
        let unit = 2 * self.weights.len().max(2) as u128 - 2;
        let all = || self.weights.iter().map(|w| u128::from(*w)).zip(self.has.iter().map(|h| u128::from(*h)));
        // Whoever is behind its share by one unit at least may get the user..
        let is_behind = |(weight, has): (u128, u128)| unit * weight * dealt >= unit * has * sum + sum;
        // ..and does whose share will soonest be ahead by all but one unit of a user.
        let soonest = all().enumerate().filter(|(_, one)| is_behind(*one)).min_by(|(_, a), (_, b)| {
            let due = |(_, has): &(u128, u128)| unit * (has + 1) - 1;
            (due(a) * b.0).cmp(&(due(b) * a.0))
        });
        let owner = soonest.map_or(0, |(owner, _)| owner);
        *self.has.get_mut(owner)? += 1;
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::value::{ValueKind, value};
    use crate::values::stream::{SharedDraws, UserStream};

    #[test]
    fn equal_generators_take_turns_and_one_alone_has_all() {
        assert_eq!(deal(&[7, 7, 7], 8), [3, 3, 2]);
        assert_eq!(deal(&[5], 9), [9]);
        assert_eq!(deal(&[], 9), [0u32; 0]);
        assert_eq!(deal(&[100, 300], 8), [2, 6]);
        let mut alone = Member::default().numbers();
        assert_eq!([0, 1, 5, 70].map(|place| alone.at(place)), [0, 1, 5, 70]);
        assert_eq!(Member::new(vec![1, 2], 2), None);
    }

    /// Every generator has a user of its own for the first request to each server.
    #[test]
    fn first_users_of_servers_differ() {
        let of = |weights: &[u32], servers: usize| -> Vec<u32> {
            let members = (0..weights.len()).map(|index| Member::new(weights.to_vec(), index).unwrap());
            let pairs = members.flat_map(|one| (0..servers as u32).map(move |server| (one.clone(), server)));
            pairs.map(|(one, server)| one.first_user_of(server, servers)).collect()
        };
        assert_eq!(of(&[1], 3), [0, 1, 2]);
        for (weights, servers) in [(vec![1, 1], 2), (vec![1, u32::MAX, 3], 2), (vec![3, 4, 5], 1)] {
            let mut users = of(&weights, servers);
            assert!(users.iter().enumerate().all(|(i, user)| *user as usize % servers == i % servers));
            users.sort_unstable();
            users.dedup();
            assert_eq!(users.len(), weights.len() * servers, "{weights:?}");
        }
    }

    /// What users of several generators draw: a value that differs from user to user, one that all draw in turn, and a
    /// number that each counts by itself.
    #[test]
    fn values_are_unique_over_all_generators() {
        let values = [
            value(ValueKind::User { start: 1 }),
            value(ValueKind::Sequence { start: 10, wrap: 0 }),
            value(ValueKind::Counter { start: 5, step: 1, per_user: 1_000, wrap: 0 }),
        ];
        let weights = vec![5, 9, 2];
        let dealt = deal(&weights, 32);
        let mut drawn: [Vec<String>; 3] = Default::default();
        for (index, users) in dealt.into_iter().enumerate() {
            let member = Member::new(weights.clone(), index).unwrap();
            let (shared, mut numbers) = (SharedDraws::new(values.len(), &member), member.numbers());
            for place in 0..users as usize {
                let mut stream = UserStream::new(7, numbers.at(place), values.len()).with_shared(&shared);
                // The user's own number stays; of the others it draws several.
                for (at, times) in [(0, 1), (1, 4), (2, 4)] {
                    for _ in 0..times {
                        let mut out = Vec::new();
                        stream.draw(at, &values[at], &mut out);
                        drawn[at].push(String::from_utf8(out).unwrap());
                    }
                }
            }
        }
        for (drawn, expected) in drawn.into_iter().zip([32, 128, 128]) {
            let unique: std::collections::BTreeSet<_> = drawn.iter().collect();
            assert_eq!((drawn.len(), unique.len()), (expected, expected), "{drawn:?}");
        }
    }

    proptest! {
        /// All are dealt, each generator has its share but for less than one, and one more user takes none from anybody.
        #[test]
        fn users_are_dealt_in_proportion(weights in prop::collection::vec(1u32..2_000_000, 1..12), users in 0u32..400) {
            let dealt = deal(&weights, users);
            prop_assert_eq!(dealt.iter().sum::<u32>(), users);
            let sum: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
            for (weight, dealt) in weights.iter().zip(&dealt) {
                let share = f64::from(*weight) / sum * f64::from(users);
                prop_assert!((share - f64::from(*dealt)).abs() < 1.0, "{share} {dealt}");
            }
            let more = deal(&weights, users + 1);
            prop_assert!(dealt.iter().zip(&more).all(|(fewer, more)| fewer <= more));
            prop_assert_eq!(&dealt, &deal(&weights, users), "always the same");
        }

        /// The users of all generators together are those of one that makes the load alone.
        #[test]
        fn user_numbers_are_unique_and_without_gaps(weights in prop::collection::vec(1u32..1_000, 1..8), users in 0u32..300) {
            let mut all = Vec::new();
            for (index, own) in deal(&weights, users).into_iter().enumerate() {
                let mut numbers = Member::new(weights.clone(), index).unwrap().numbers();
                all.extend((0..own as usize).map(|place| numbers.at(place)));
            }
            all.sort_unstable();
            prop_assert_eq!(all, (0..users).collect::<Vec<_>>());
        }
    }
}
