//! How much an agent may say: an honest one never comes near. What is kept of it is bounded besides, by what it takes in memory.

/// What may come at once: several of the longest messages.
const BURST_BYTES: u64 = 16 << 20;

/// What may come in a second after that, ten times the 200 kbit/s that observing should take at most.
const BYTES_PER_S: u64 = 250_000;

/// What the smallest message counts as: that much memory it takes at least.
const MESSAGE_BYTES: u64 = 256;

/// Counts what an agent says against what it may.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// What may come at once, and when that was so.
    left: u64,
    at_us: u64,
}

/// The agent said more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl Allowance {
    pub(crate) fn new(now_us: u64) -> Self {
        Self { left: BURST_BYTES, at_us: now_us }
    }

    /// Counts a message of so many bytes, unpacked.
    pub(crate) fn take(&mut self, now_us: u64, bytes: usize) -> Result<(), Exceeded> {
        let earned = now_us.saturating_sub(self.at_us).saturating_mul(BYTES_PER_S) / 1_000_000;
        if earned > 0 {
            self.left = self.left.saturating_add(earned).min(BURST_BYTES);
            self.at_us = now_us;
        }
        self.left = self.left.checked_sub((bytes as u64).max(MESSAGE_BYTES)).ok_or(Exceeded)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_a_big_server_is_allowed_and_a_flood_is_not() {
        let mut day = Allowance::new(0);
        // Four samples of 8 kB a second and 25 looks of 300 bytes.
        for second in 0..86_400u64 {
            let now_us = second * 1_000_000;
            let honest = (0..4).map(|_| 8_000).chain((0..25).map(|_| 300));
            assert!(honest.into_iter().all(|bytes| day.take(now_us, bytes).is_ok()), "second {second}");
        }
        let mut flood = Allowance::new(0);
        let messages = (0..1_000_000u64).take_while(|number| flood.take(number * 10, 0).is_ok()).count();
        assert!((60_000..80_000).contains(&messages), "{messages}");
    }

    #[test]
    fn who_was_silent_for_long_may_not_say_everything_at_once() {
        let mut late = Allowance::new(0);
        let day_us = 86_400_000_000;
        let messages = (0..1_000).take_while(|_| late.take(day_us, 1 << 20).is_ok()).count();
        assert_eq!(messages, 16);
    }
}
