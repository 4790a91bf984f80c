//! Two clocks brought together by round trips, as NTP does it (RFC 5905).
//!
//! The far clock was read somewhere between sending a ping and receiving its answer, so its offset is known to half the
//! round trip. The ping with the least round trip says most, until the clocks have drifted apart since.

/// Clocks that nobody corrects drift apart by so much of the time that passes: crystals keep to a few tens of millionths.
const DRIFT: f64 = 50e-6;

/// One round trip, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ping {
    /// When it was sent, by the near clock.
    pub sent_us: u64,
    /// What the far clock showed.
    pub far_us: u64,
    /// When its answer came, by the near clock.
    pub received_us: u64,
}

/// The offset of a far clock from the near one, as well as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Alignment {
    best: Option<Best>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Best {
    /// What to add to the far clock, microseconds.
    offset_us: i128,
    /// Half the round trip, microseconds.
    half_us: f64,
    at_us: u64,
}

impl Best {
    fn of(ping: Ping) -> Self {
        let middle_us = (i128::from(ping.sent_us) + i128::from(ping.received_us)) / 2;
        Self {
            offset_us: middle_us - i128::from(ping.far_us),
            half_us: ping.received_us.saturating_sub(ping.sent_us) as f64 / 2.0,
            at_us: ping.received_us,
        }
    }

    fn error_us(&self, now_us: u64) -> f64 {
        self.half_us + DRIFT * now_us.saturating_sub(self.at_us) as f64
    }
}

impl Alignment {
    /// Takes a round trip into account: it counts if it says more than what is known by now, or contradicts it, as after a
    /// jump of a clock.
    pub fn add(&mut self, ping: Ping) {
        let (new, now_us) = (Best::of(ping), ping.received_us);
        let keeps = self.best.is_some_and(|best| {
            let apart_us = (best.offset_us - new.offset_us).unsigned_abs() as f64;
            best.error_us(now_us) <= new.half_us && apart_us <= best.error_us(now_us) + new.half_us
        });
        if !keeps {
            self.best = Some(new);
        }
    }

    /// A time of the far clock by the near one, microseconds; `None` before any round trip.
    #[must_use]
    pub fn near_us(&self, far_us: u64) -> Option<u64> {
        let near_us = i128::from(far_us) + self.best?.offset_us;
        Some(u64::try_from(near_us.max(0)).unwrap_or(u64::MAX))
    }

    /// A time of the near clock by the far one, microseconds; `None` before any round trip.
    #[must_use]
    pub fn far_us(&self, near_us: u64) -> Option<u64> {
        let far_us = i128::from(near_us) - self.best?.offset_us;
        Some(u64::try_from(far_us.max(0)).unwrap_or(u64::MAX))
    }

    /// By how much the far clock is ahead of the near one, microseconds; `None` before any round trip.
    #[must_use]
    pub fn ahead_us(&self) -> Option<i64> {
        let ahead_us = -self.best?.offset_us;
        Some(i64::try_from(ahead_us).unwrap_or(if ahead_us < 0 { i64::MIN } else { i64::MAX }))
    }

    /// By how much that may be wrong now, microseconds; `None` before any round trip.
    #[must_use]
    pub fn error_us(&self, now_us: u64) -> Option<f64> {
        self.best.map(|best| best.error_us(now_us))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ping between clocks that differ by so much, whose ways there and back took these times.
    fn ping(sent_us: u64, offset_us: i64, there_us: u64, back_us: u64) -> Ping {
        let far_us = (sent_us + there_us).wrapping_add_signed(-offset_us);
        Ping { sent_us, far_us, received_us: sent_us + there_us + back_us }
    }

    #[test]
    fn equal_ways_give_the_exact_offset() {
        let mut clocks = Alignment::default();
        assert_eq!((clocks.near_us(5), clocks.error_us(5)), (None, None));
        clocks.add(ping(1_000_000, -300_000, 100, 100));
        assert_eq!(clocks.near_us(2_300_000), Some(2_000_000));
        assert_eq!((clocks.far_us(2_000_000), clocks.ahead_us()), (Some(2_300_000), Some(300_000)));
        assert_eq!(clocks.error_us(1_000_200), Some(100.0));
    }

    #[test]
    fn the_shortest_round_trip_counts_until_the_clocks_may_have_drifted() {
        let mut clocks = Alignment::default();
        clocks.add(ping(0, 0, 100, 100));
        clocks.add(ping(1_000_000, 0, 900, 100));
        assert_eq!(clocks.near_us(500), Some(500), "the better one is kept");
        clocks.add(ping(60_000_000, 0, 900, 100));
        assert_eq!(clocks.near_us(500), Some(100), "after a minute it is the worse one");
    }

    #[test]
    fn a_clock_that_jumps_is_followed_at_once() {
        let mut clocks = Alignment::default();
        clocks.add(ping(10_000_000, 0, 50, 50));
        clocks.add(ping(11_000_000, 5_000_000, 300, 300));
        assert_eq!(clocks.near_us(7_000_000), Some(12_000_000));
    }

    proptest! {
        /// The truth is never further away than the error says.
        #[test]
        fn the_error_is_a_bound(
            offset_us in -4_000_000_000i64..4_000_000_000,
            ways in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..20),
            drift_millionths in -20i64..20,
        ) {
            let mut clocks = Alignment::default();
            for (number, (there_us, back_us)) in ways.iter().enumerate() {
                let sent_us = 5_000_000_000 + number as u64 * 1_000_000;
                let drifted = drift_millionths * number as i64;
                let one = ping(sent_us, offset_us + drifted, *there_us, *back_us);
                clocks.add(one);
                let now_us = one.received_us;
                let far_now_us = now_us.wrapping_add_signed(-(offset_us + drifted));
                let apart = clocks.near_us(far_now_us).unwrap().abs_diff(now_us) as f64;
                prop_assert!(apart <= clocks.error_us(now_us).unwrap() + 1.0, "{apart} us");
            }
        }

        #[test]
        fn no_times_make_it_panic(pings in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..9), far in any::<u64>()) {
            let mut clocks = Alignment::default();
            for (sent_us, far_us, received_us) in pings {
                clocks.add(Ping { sent_us, far_us, received_us });
            }
            let _ = (clocks.near_us(far), clocks.far_us(far), clocks.ahead_us(), clocks.error_us(far));
        }
    }
}
