//! When simulated peers come and go.

use std::ops::Range;

/// How peers come and go. All times are in steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Churn {
    /// How long a peer stays on average.
    pub(super) session: u32,
    /// For how long peers come and go. Afterwards all stay.
    pub(super) until: u32,
}

/// The sessions of the peers that have a seat one after the other, without a pause. Their lengths are exponentially
/// distributed, so that at each step each peer is as likely to leave as any other. Always the same for one seat.
pub(super) fn sessions(seat: usize, churn: Option<Churn>) -> Vec<Range<u32>> {
    let mut random = fastrand::Rng::with_seed(seat as u64);
    let mut sessions = Vec::new();
    let mut from = 0;
    while from < u32::MAX {
        let end = churn.map_or(u32::MAX, |churn| end(from, churn, &mut random));
        sessions.push(from..end);
        from = end;
    }
    sessions
}

/// The step at which a peer leaves that came at `from`; it stays for one at least.
fn end(from: u32, churn: Churn, random: &mut fastrand::Rng) -> u32 {
    let length = -(1.0 - random.f64()).ln() * f64::from(churn.session);
    let end = from.saturating_add((length.ceil() as u32).max(1));
    if end <= churn.until { end } else { u32::MAX }
}

#[test]
fn seats_are_never_empty_and_peers_leave_at_the_rate_that_is_given() {
    let churn = Churn { session: 50, until: 200 };
    let all: Vec<_> = (0..10_000).map(|seat| sessions(seat, Some(churn))).collect();
    for sessions in &all {
        assert_eq!((sessions[0].start, sessions[sessions.len() - 1].end), (0, u32::MAX));
        assert!(sessions.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].end <= churn.until));
    }
    // A peer leaves at each step with probability 1 - exp(-1 / 50): 39 603 do on average, with a standard deviation of 197.
    let left = all.iter().map(|sessions| sessions.len() - 1).sum::<usize>() as f64;
    let expected = 10_000.0 * 200.0 * (1.0 - (-1.0_f64 / 50.0).exp());
    assert!((left - expected).abs() < 1_000.0, "{left} of {expected}");
    assert_eq!(sessions(0, None).len(), 1);
}
