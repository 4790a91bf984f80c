//! A user's random stream and the values that it draws, all derived from the seed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrand::Rng;

use super::captured::CapturedValues;
use crate::fleet::Member;
use crate::scenario::sizes::Sizes;
use crate::scenario::value::{CheckDigit, Each, Value, ValueKind};

/// Streams of body sizes are numbered from here on, apart from those of values.
const BODIES: u64 = 1 << 32;

/// One user's private state: its random stream, its draws of each value so far, and the values it has captured.
#[derive(Debug, Clone)]
pub(crate) struct UserStream {
    pub(crate) rng: Rng,
    pub(crate) captured: CapturedValues,
    user: u32,
    seed: u64,
    draws: Box<[u64]>,
    /// How many bodies it has sent of each request whose body has one of several sizes.
    bodies: Box<[u64]>,
    shared: SharedDraws,
}

/// How often all users together have drawn each value that they draw in turn. Where several generators make the load, each
/// counts in steps of their number from a start of its own, so that none draws what another does.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedDraws {
    next: Arc<[AtomicU64]>,
    step: u64,
}

impl SharedDraws {
    /// None of this many values has been drawn.
    pub(crate) fn new(values: usize, member: &Member) -> Self {
        let first = member.index() as u64;
        let next = (0..values).map(|_| AtomicU64::new(first)).collect();
        SharedDraws { next, step: member.of() as u64 }
    }

    /// Counts a draw of the value with this index. Returns its place among the draws of all.
    fn count(&self, index: usize) -> u64 {
        self.next.get(index).map_or(0, |draws| draws.fetch_add(self.step, Relaxed))
    }
}

impl UserStream {
    /// Makes the stream of `user`, which depends only on the seed and not on other users.
    pub(crate) fn new(seed: u64, user: u32, values: usize) -> Self {
        let rng = Rng::with_seed(mix(seed, u64::from(user) + 1));
        let draws = vec![0; values].into_boxed_slice();
        UserStream {
            rng,
            captured: CapturedValues::default(),
            user,
            seed,
            draws,
            bodies: Box::default(),
            shared: SharedDraws::default(),
        }
    }

    /// Draws sequences together with all users that share these counts.
    pub(crate) fn with_shared(mut self, shared: &SharedDraws) -> Self {
        self.shared = shared.clone();
        self
    }

    /// Adds room for this many lists of captured values.
    pub(crate) fn with_lists(mut self, lists: usize) -> Self {
        self.captured = CapturedValues::new(lists);
        self
    }

    /// Counts the bodies of this many requests, whose sizes vary.
    pub(crate) fn with_bodies(mut self, requests: usize) -> Self {
        self.bodies = vec![0; requests].into_boxed_slice();
        self
    }

    /// Returns the size of the next body of the request with this index.
    pub(crate) fn body_size(&mut self, request: usize, sizes: &Sizes) -> u64 {
        let k = self.bodies.get_mut(request).map_or(0, |k| std::mem::replace(k, k.wrapping_add(1)));
        let own = mix(mix(self.seed, u64::from(self.user) + 1), BODIES.wrapping_add(request as u64));
        sizes.of_turn(k, |round| mix(own, round))
    }

    /// Appends the next draw of `value`, the value with this index in the scenario, to `out`.
    pub(crate) fn draw(&mut self, index: usize, value: &Value, out: &mut Vec<u8>) {
        match value.each {
            Each::Request => {
                let k = match value.kind {
                    ValueKind::Sequence { .. } => self.shared.count(index),
                    _ => self.draws.get_mut(index).map_or(0, |k| std::mem::replace(k, k.wrapping_add(1))),
                };
                write_value(value, u64::from(self.user), k, &mut self.rng, out);
            }
            // The same draw every time, from a stream that depends on user and value only: there is nothing to store.
            Each::User => {
                let stream = mix(mix(self.seed, u64::from(self.user) + 1), index as u64 + 1);
                write_value(value, u64::from(self.user), 0, &mut Rng::with_seed(stream), out);
            }
        }
    }
}

/// Derives a seed from a seed and a stream number, with SplitMix64's finaliser (Steele, Lea and Flood 2014).
pub(crate) fn mix(seed: u64, stream: u64) -> u64 {
    let mut z = seed.wrapping_add(stream.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn write_value(value: &Value, user: u64, k: u64, rng: &mut Rng, out: &mut Vec<u8>) {
    match &value.kind {
        ValueKind::User { start } => write_number(start.wrapping_add(user), value, out),
        ValueKind::Counter { start, step, per_user, wrap } => {
            let first = start.wrapping_add(user.wrapping_mul(*per_user));
            write_number(first.wrapping_add(wrapped(k, *wrap).wrapping_mul(*step)), value, out);
        }
        ValueKind::Sequence { start, wrap } => {
            write_number(start.wrapping_add(wrapped(k, *wrap)), value, out);
        }
        ValueKind::Random { min, max } => write_number(rng.u64(*min..=*max), value, out),
        ValueKind::RandomString { length, alphabet } => {
            out.extend((0..*length).filter_map(|_| rng.choice(alphabet.iter().copied())));
        }
        ValueKind::Choice { items } => {
            let item = rng.choice(items).map_or("", String::as_str);
            out.extend_from_slice(item.as_bytes());
        }
        ValueKind::Cycle { items, step } => {
            let turn = user.wrapping_add(k.wrapping_mul(*step)) % items.len().max(1) as u64;
            let item = items.get(turn as usize).map_or("", String::as_str);
            out.extend_from_slice(item.as_bytes());
        }
    }
}

fn wrapped(k: u64, wrap: u64) -> u64 {
    if wrap == 0 { k } else { k % wrap }
}

fn write_number(number: u64, value: &Value, out: &mut Vec<u8>) {
    let (start, width) = (out.len(), value.width);
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{number:0width$}");
    if value.check == CheckDigit::Verhoeff {
        let digits = out.get(start..).and_then(|digits| std::str::from_utf8(digits).ok());
        out.push(b'0' + verhoeff::calculate(digits.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::value::value;

    fn draws(value: &Value, seed: u64, user: u32, times: usize) -> Vec<String> {
        let mut stream = UserStream::new(seed, user, 1);
        let draw = |_| {
            let mut out = Vec::new();
            stream.draw(0, value, &mut out);
            String::from_utf8(out).unwrap()
        };
        (0..times).map(draw).collect()
    }

    #[test]
    fn a_different_file_each_time() {
        let file = value(ValueKind::Counter { start: 0, step: 1, per_user: 2000, wrap: 2000 });
        assert_eq!(draws(&file, 7, 3, 3), ["6000", "6001", "6002"]);
        let all = draws(&file, 7, 1, 2001);
        assert_eq!((all[1999].as_str(), all[2000].as_str()), ("3999", "2000"));
    }

    #[test]
    fn no_user_draws_from_a_sequence_what_another_has_drawn() {
        let file = value(ValueKind::Sequence { start: 10, wrap: 5 });
        let shared = SharedDraws::new(1, &Member::default());
        let mut users = [0, 1].map(|user| UserStream::new(7, user, 1).with_shared(&shared));
        let mut out = Vec::new();
        for turn in [0, 1, 1, 0, 1, 0] {
            users[turn].draw(0, &file, &mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "101112131410");
    }

    #[test]
    fn users_and_padding() {
        let user = Value { width: 4, ..value(ValueKind::User { start: 1 }) };
        assert_eq!(draws(&user, 7, 41, 2), ["0042", "0042"]);
    }

    #[test]
    fn numbers_with_a_check_digit() {
        let kind =
            ValueKind::Counter { start: 10_098_765_431, step: 98_765_431, per_user: 98_765_431, wrap: 0 };
        let id = Value { check: CheckDigit::Verhoeff, ..value(kind) };
        // The booking server accepts these numbers.
        assert_eq!(draws(&id, 7, 0, 2), ["100987654315", "101975308622"]);
        assert_eq!(draws(&id, 7, 1, 2), ["101975308622", "102962962936"]);
    }

    #[test]
    fn cycles_begin_at_the_user() {
        let items = ["a", "b", "c"].map(String::from).to_vec();
        assert_eq!(draws(&value(ValueKind::Cycle { items, step: 1 }), 7, 1, 4), ["b", "c", "a", "b"]);
    }

    /// Users 1 and 3 of two servers draw what lies at odd places.
    #[test]
    fn cycles_in_steps_give_each_server_its_own() {
        let items = ["a0", "b0", "a1", "b1", "a2", "b2"].map(String::from).to_vec();
        let of_two = value(ValueKind::Cycle { items, step: 2 });
        assert_eq!(draws(&of_two, 7, 1, 4), ["b0", "b1", "b2", "b0"]);
        assert_eq!(draws(&of_two, 7, 3, 2), ["b1", "b2"]);
    }

    #[test]
    fn choices_are_drawn_from_the_items() {
        let items = ["a", "b", "c"].map(String::from).to_vec();
        let mut drawn = draws(&value(ValueKind::Choice { items }), 7, 1, 100);
        assert_ne!(drawn[..3], drawn[3..6], "not in turn");
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn, ["a", "b", "c"]);
    }

    /// Independent draws left a load of a few bodies per user 5 % heavier or lighter than another, which is no property of
    /// the server.
    #[test]
    fn users_send_every_size_equally_often_from_a_start_of_their_own() {
        let sizes = Sizes::new([100, 1_000, 10_000]).unwrap();
        let of = |user| {
            let mut stream = UserStream::new(7, user, 0).with_bodies(2);
            [0, 0, 0, 0, 0, 0, 1, 1, 1].map(|request| stream.body_size(request, &sizes))
        };
        for user in 0..50 {
            assert!(of(user).chunks(3).all(|round| round.iter().sum::<u64>() == 11_100), "{:?}", of(user));
        }
        let first = |size| (0..3_000).filter(|user| of(*user)[0] == size).count();
        // Standard deviation 26.
        assert!([100, 1_000, 10_000].map(first).iter().all(|count| count.abs_diff(1_000) < 130));
    }

    #[test]
    fn random_is_seeded_per_user_and_in_range() {
        let random = value(ValueKind::Random { min: 5, max: 9 });
        let first = draws(&random, 1, 0, 200);
        assert_eq!(first, draws(&random, 1, 0, 200));
        assert_ne!(first, draws(&random, 1, 1, 200));
        assert_ne!(first, draws(&random, 2, 0, 200));
        let mut seen: Vec<_> = first.clone();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, ["5", "6", "7", "8", "9"]);
    }

    #[test]
    fn a_string_per_user_stays() {
        let kind = ValueKind::RandomString { length: 12, alphabet: b"ab".to_vec() };
        let name = Value { each: Each::User, ..value(kind) };
        let drawn = draws(&name, 1, 5, 3);
        assert!(drawn.iter().all(|d| *d == drawn[0] && d.len() == 12));
        assert_ne!(drawn[0], draws(&name, 1, 6, 1)[0]);
    }
}
