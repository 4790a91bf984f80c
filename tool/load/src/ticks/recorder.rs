//! The counts of one thread, in slices of 20 ms aligned to the monotonic clock.

use std::collections::BTreeMap;

use analysis::ticks::{ErrorCounts, ErrorKind, KindTick};
use hdrhistogram::Histogram;

use super::by_kind::ByKind;

/// Length of a slice, microseconds: the resolution at which warm-up and steady state can be told apart.
pub const SLICE_US: u64 = 20_000;

pub(crate) const SLICE_NS: u64 = SLICE_US * 1_000;

/// Longest response time in the histogram; longer ones are counted separately.
pub(super) const LONGEST_US: u64 = 3_600_000_000;

/// Longest lag in the histogram; longer ones count as this one.
const LONGEST_LAG_US: u64 = 10_000_000;

/// How long Linux delays the acknowledgement of a segment on which no other follows: 40 ms (`TCP_DELACK_MIN`; RFC 1122 section
/// 4.2.3.2 allows 500). A sender that waits for it (Nagle, RFC 896) sends the rest so much later.
const DELAYED_ACKNOWLEDGEMENT_NS: std::ops::RangeInclusive<u64> = 39_000_000..=48_000_000;

/// The counts of one thread in one slice.
#[derive(Debug, Default)]
pub(crate) struct Slice {
    /// The slice starts at `index * SLICE_NS` on the monotonic clock.
    pub(crate) index: u64,
    pub(crate) completed: u64,
    pub(crate) response_time_ns_sum: u64,
    /// Pairs of microseconds and count, ascending.
    pub(crate) response_times: Vec<(u64, u64)>,
    /// Response times too long for the histogram.
    pub(crate) beyond: u64,
    /// Pairs of microseconds and count, of requests that timed out; in no order.
    pub(crate) timed_out: Vec<(u64, u64)>,
    /// The response times of each kind of request, ascending by kind, where the load has several.
    pub(crate) by_kind: Vec<KindTick>,
    pub(crate) errors: ErrorCounts,
    pub(crate) unexpected_statuses: BTreeMap<u16, u64>,
    pub(crate) bytes_received: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) busy_ns: u64,
    /// Pairs of microseconds and count, ascending.
    pub(crate) lags: Vec<(u64, u64)>,
    pub(crate) thinking_user_ns: u64,
    /// Requests under way at some instant of the slice, if they were counted then.
    pub(crate) in_flight: Option<u32>,
    pub(crate) late_starts: u64,
    /// Attempts to connect, failed ones included.
    pub(crate) connects: u32,
    /// Connections that became ready to send, and the sum of the times that took.
    pub(crate) connected: u32,
    pub(crate) connecting_ns_sum: u64,
    /// Responses that paused for a delayed acknowledgement, and the sum of their pauses.
    pub(crate) held_back: u64,
    pub(crate) held_back_ns_sum: u64,
}

/// Counts into the current slice. Finished slices wait until they are taken.
pub(crate) struct Recorder {
    slice: Slice,
    end_ns: u64,
    response_times: Histogram<u32>,
    /// Where the load has several kinds of request.
    by_kind: Option<Box<ByKind>>,
    lags: Histogram<u32>,
    thinking: u64,
    thinking_since_ns: u64,
    /// When the requests under way are to be counted next.
    count_at_ns: u64,
    finished: Vec<Slice>,
}

/// Counting more users than this in every slice would cost the generator more than the count is worth.
const COUNTED_EACH_SLICE: u64 = 256;

impl Recorder {
    pub(crate) fn new(now_ns: u64) -> Self {
        let index = now_ns / SLICE_NS;
        Recorder {
            slice: Slice { index, ..Slice::default() },
            end_ns: (index + 1) * SLICE_NS,
            response_times: histogram(LONGEST_US, 3),
            by_kind: None,
            lags: histogram(LONGEST_LAG_US, 2),
            thinking: 0,
            thinking_since_ns: now_ns,
            count_at_ns: within_slice(index + 1),
            finished: Vec::new(),
        }
    }

    /// The same for a load of so many kinds of request, whose response times are told apart.
    pub(crate) fn with_kinds(self, kinds: usize) -> Self {
        Recorder { by_kind: ByKind::of(kinds), ..self }
    }

    /// End of the current slice.
    pub(crate) fn slice_end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Index of the current slice.
    pub(crate) fn index(&self) -> u64 {
        self.slice.index
    }

    /// Closes the slices that end at or before `now_ns`, the time of the events recorded next.
    #[inline]
    pub(crate) fn roll(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns {
            self.close();
        }
    }

    /// Takes the finished slices, oldest first.
    pub(crate) fn take_finished(&mut self) -> std::vec::Drain<'_, Slice> {
        self.finished.drain(..)
    }

    /// Counts a completed request of a kind with its response time.
    #[inline]
    pub(crate) fn completed(&mut self, kind: usize, response_ns: u64) {
        self.slice.completed += 1;
        self.slice.response_time_ns_sum += response_ns;
        let us = ((response_ns + 500) / 1_000).max(1);
        if self.response_times.record(us).is_err() {
            self.slice.beyond += 1;
        }
        if let Some(by_kind) = &mut self.by_kind {
            by_kind.completed(kind, response_ns, us);
        }
    }

    /// Counts a failed request.
    pub(crate) fn failed(&mut self, kind: ErrorKind) {
        *self.slice.errors.entry(kind).or_default() += 1;
    }

    /// Counts a request of a kind that failed because nothing complete came within the time allowed, with the time it waited.
    pub(crate) fn timed_out(&mut self, kind: usize, waited_ns: u64) {
        self.failed(ErrorKind::TimedOut);
        let us = (waited_ns / 1_000).clamp(1, LONGEST_US);
        // To three digits, as the histogram has response times; never more than was waited.
        let unit = 10u64.pow(us.ilog10().saturating_sub(2));
        let us = us / unit * unit;
        if let Some(by_kind) = &mut self.by_kind {
            by_kind.timed_out(kind, us);
        }
        match self.slice.timed_out.iter_mut().find(|(value, _)| *value == us) {
            Some((_, count)) => *count += 1,
            None => self.slice.timed_out.push((us, 1)),
        }
    }

    /// Counts a request that failed because of the status of its response.
    pub(crate) fn unexpected_status(&mut self, status: u16, kind: ErrorKind) {
        self.failed(kind);
        *self.slice.unexpected_statuses.entry(status).or_default() += 1;
    }

    /// Counts received body bytes.
    #[inline]
    pub(crate) fn received(&mut self, bytes: u64) {
        self.slice.bytes_received += bytes;
    }

    /// Counts sent body bytes.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u64) {
        self.slice.bytes_sent += bytes;
    }

    /// Adds time for which the thread was busy.
    #[inline]
    pub(crate) fn worked(&mut self, ns: u64) {
        self.slice.busy_ns += ns;
    }

    /// Counts an event that was handled this much later than it was ready.
    #[inline]
    pub(crate) fn lagged(&mut self, ns: u64) {
        self.lags.saturating_record(ns / 1_000);
    }

    /// Counts a request that started late because no connection was free.
    pub(crate) fn started_late(&mut self) {
        self.slice.late_starts += 1;
    }

    /// Counts an attempt to connect.
    pub(crate) fn connecting(&mut self) {
        self.slice.connects += 1;
    }

    /// Counts a connection that is ready to send, with the time that took.
    pub(crate) fn connected(&mut self, ns: u64) {
        self.slice.connected += 1;
        self.slice.connecting_ns_sum += ns;
    }

    /// Counts a response that came after a pause as long as this within it, if that is how long an acknowledgement is delayed.
    pub(crate) fn paused(&mut self, ns: u64) {
        if DELAYED_ACKNOWLEDGEMENT_NS.contains(&ns) {
            self.slice.held_back += 1;
            self.slice.held_back_ns_sum += ns;
        }
    }

    /// Notes that a user stopped waiting for a response.
    #[inline]
    pub(crate) fn think(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.thinking += 1;
    }

    /// Notes that a thinking user waits for a response again, or has left.
    #[inline]
    pub(crate) fn stop_thinking(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.thinking = self.thinking.saturating_sub(1);
    }

    /// When the requests under way are to be counted next.
    pub(crate) fn count_at_ns(&self) -> u64 {
        self.count_at_ns
    }

    /// Notes how many requests of how many users are under way now: this count knows nothing of response times, so that
    /// Little's law can be tested with it.
    pub(crate) fn count(&mut self, now_ns: u64, in_flight: u32, users: u64) {
        self.roll(now_ns);
        self.slice.in_flight = Some(in_flight);
        // All threads count in the same slices.
        let every = 1 + users / COUNTED_EACH_SLICE;
        self.count_at_ns = within_slice((self.slice.index / every + 1) * every);
    }

    fn integrate(&mut self, now_ns: u64) {
        self.roll(now_ns);
        let elapsed = now_ns.saturating_sub(self.thinking_since_ns);
        self.slice.thinking_user_ns += self.thinking * elapsed;
        self.thinking_since_ns = self.thinking_since_ns.max(now_ns);
    }

    fn close(&mut self) {
        let elapsed = self.end_ns.saturating_sub(self.thinking_since_ns);
        self.slice.thinking_user_ns += self.thinking * elapsed;
        self.thinking_since_ns = self.thinking_since_ns.max(self.end_ns);
        self.slice.response_times = drain(&mut self.response_times);
        self.slice.by_kind = self.by_kind.as_mut().map_or_else(Vec::new, |by_kind| by_kind.take());
        self.slice.lags = drain(&mut self.lags);
        let next = Slice { index: self.slice.index + 1, ..Slice::default() };
        self.finished.push(std::mem::replace(&mut self.slice, next));
        self.end_ns += SLICE_NS;
    }
}

/// An instant of a slice that differs from slice to slice, so that no load in step with the slices is met always in the same
/// state (the finaliser of SplitMix64, Steele and others 2014).
fn within_slice(index: u64) -> u64 {
    let mut mixed = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    index * SLICE_NS + (mixed ^ (mixed >> 31)) % SLICE_NS
}

fn histogram(longest_us: u64, digits: u8) -> Histogram<u32> {
    Histogram::new_with_bounds(1, longest_us, digits).expect("constant bounds are valid")
}

/// Empties a histogram. Returns the midpoint and the count of each bucket that was hit.
fn drain(histogram: &mut Histogram<u32>) -> Vec<(u64, u64)> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let middle = |value| histogram.median_equivalent(value);
    let recorded = histogram.iter_recorded();
    let counts =
        recorded.map(|step| (middle(step.value_iterated_to()), step.count_at_value().into())).collect();
    histogram.reset();
    counts
}
