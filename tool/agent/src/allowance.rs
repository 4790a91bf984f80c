//! How much an agent may say: what is kept of it takes memory, and an honest one never comes near.

/// What may come at once: several of the longest messages.
const BURST_BYTES: u64 = 16 << 20;

/// What may come in a second after that, ten times the 200 kbit/s that observing should take at most.
const BYTES_PER_S: u64 = 250_000;

/// What may come in all: samples of a server with hundreds of threads for an hour.
const ALL_BYTES: u64 = 192 << 20;

/// What the smallest message counts as: that much memory it takes at least.
const MESSAGE_BYTES: u64 = 256;

/// Counts what an agent says against what it may.
#[derive(Debug)]
pub(crate) struct Allowance {
    started_us: u64,
    used: u64,
}

/// The agent said more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl Allowance {
    pub(crate) fn new(now_us: u64) -> Self {
        Self { started_us: now_us, used: 0 }
    }

    /// Counts a message of so many bytes, unpacked.
    pub(crate) fn take(&mut self, now_us: u64, bytes: usize) -> Result<(), Exceeded> {
        self.used = self.used.saturating_add((bytes as u64).max(MESSAGE_BYTES));
        let earned = now_us.saturating_sub(self.started_us).saturating_mul(BYTES_PER_S) / 1_000_000;
        let most = BURST_BYTES.saturating_add(earned).min(ALL_BYTES);
        if self.used <= most { Ok(()) } else { Err(Exceeded) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_a_big_server_is_allowed_and_a_flood_is_not() {
        let mut hour = Allowance::new(0);
        // Four samples of 8 kB a second and 25 looks of 300 bytes.
        for second in 0..3600u64 {
            let now_us = second * 1_000_000;
            let honest = (0..4).map(|_| 8_000).chain((0..25).map(|_| 40));
            assert!(honest.into_iter().all(|bytes| hour.take(now_us, bytes).is_ok()), "second {second}");
        }
        let mut flood = Allowance::new(0);
        let messages = (0..1_000_000u64).take_while(|number| flood.take(number * 10, 0).is_ok()).count();
        assert!((60_000..80_000).contains(&messages), "{messages}");
    }
}
