//! What one end of a stream may send, and what it believes of what comes: no I/O and no clock.
//!
//! NATS passes a message on once or not at all, in the order of its sender. Every frame is numbered, so that a lost one is
//! seen; each tells how many the sender has taken of the other's, so that no more than a window of them wait anywhere.

/// Frames with data that may be under way or wait to be read.
pub(crate) const WINDOW: u64 = 64;

/// The most that a frame carries.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 16 << 10;

/// What stands before it: kind, number, how many of the other end's frames were taken.
pub(crate) const HEADER_BYTES: usize = 17;

/// An end that sends nothing for so many beats of the other is gone.
pub(crate) const QUIET_BEATS_MAX: u32 = 10;

/// What a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes of the stream.
    Data,
    /// A sign of life.
    Beat,
    /// No more data follows; what comes the other way is still read.
    End,
    /// The sender is done with both ways. Its last words follow.
    Bye,
    /// The sender gave up. Why follows.
    Break,
}

const KINDS: [Kind; 5] = [Kind::Data, Kind::Beat, Kind::End, Kind::Bye, Kind::Break];

/// Why a stream cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A message that the other end sent did not come.
    #[error("the bus lost messages: number {came} came where {expected} was due")]
    Lost {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        came: u64,
    },
    /// What came is no frame, or cannot be true.
    #[error("what came over the bus is not what nstar sends")]
    Malformed,
    /// The other end sent more than it was allowed to.
    #[error("the other end sent more than it may")]
    Flooded,
    /// Nothing came any more.
    #[error("nothing came from the other end for {seconds} s")]
    Silent {
        /// For so long.
        seconds: u32,
    },
    /// The connection to the bus broke.
    #[error("the connection to the bus broke")]
    BusGone,
    /// The other end gave up.
    #[error("the other end gave up: {0}")]
    GivenUp(String),
    /// This end does not want any more.
    #[error("nobody reads any more")]
    Unwanted,
}

/// What came with a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) payload: &'a [u8],
}

/// The numbers of one end.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    sent: u64,
    data_sent: u64,
    /// Of our data, as the other end says.
    data_taken: u64,
    received: u64,
    data_received: u64,
    /// Of its data, by whoever reads here.
    taken: u64,
    taken_told: u64,
    quiet_beats: u32,
}

impl Flow {
    /// Whether data may be sent beside so many frames that wait to be.
    pub(crate) fn may_send(&self, waiting: usize) -> bool {
        self.data_sent + waiting as u64 - self.data_taken < WINDOW
    }

    /// The next frame to send. What it carries is at most [`PAYLOAD_BYTES_MAX`] long.
    pub(crate) fn frame(&mut self, kind: Kind, payload: &[u8]) -> Vec<u8> {
        let number = self.sent;
        self.sent += 1;
        self.data_sent += u64::from(kind == Kind::Data);
        self.taken_told = self.taken;
        let code = KINDS.iter().position(|known| *known == kind).unwrap_or_default();
        [&[code as u8][..], &number.to_le_bytes(), &self.taken.to_le_bytes(), payload].concat()
    }

    /// Reads a frame that came.
    pub(crate) fn receive<'a>(&mut self, bytes: &'a [u8]) -> Result<Frame<'a>, Broken> {
        let (header, payload) = bytes.split_at_checked(HEADER_BYTES).ok_or(Broken::Malformed)?;
        let kind = header.first().and_then(|code| KINDS.get(usize::from(*code))).ok_or(Broken::Malformed)?;
        let came = number(header.get(1..9));
        let expected = self.received;
        if came != expected {
            return Err(Broken::Lost { expected, came });
        }
        let taken = number(header.get(9..));
        if !(self.data_taken..=self.data_sent).contains(&taken) || payload.len() > PAYLOAD_BYTES_MAX {
            return Err(Broken::Malformed);
        }
        self.received += 1;
        self.data_taken = taken;
        self.quiet_beats = 0;
        if *kind == Kind::Data {
            self.data_received += 1;
            if self.data_received - self.taken > WINDOW {
                return Err(Broken::Flooded);
            }
        }
        Ok(Frame { kind: *kind, payload })
    }

    /// Counts a frame with data as read. Returns whether it is time to tell the other end.
    pub(crate) fn take(&mut self) -> bool {
        self.taken += 1;
        self.taken - self.taken_told >= WINDOW / 4
    }

    /// Counts a beat of this end.
    pub(crate) fn beat(&mut self) -> Result<(), Broken> {
        self.quiet_beats += 1;
        if self.quiet_beats > QUIET_BEATS_MAX {
            Err(Broken::Silent { seconds: QUIET_BEATS_MAX })
        } else {
            Ok(())
        }
    }
}

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(u64::MAX, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lost_message_is_seen_whatever_it_was() {
        for lost in [Kind::Data, Kind::Beat, Kind::End] {
            let (mut one, mut other) = (Flow::default(), Flow::default());
            other.receive(&one.frame(Kind::Data, b"a")).unwrap();
            one.frame(lost, b"");
            let next = one.frame(Kind::Beat, b"");
            assert_eq!(other.receive(&next), Err(Broken::Lost { expected: 1, came: 2 }));
        }
        let (mut one, mut other) = (Flow::default(), Flow::default());
        let twice = one.frame(Kind::Data, b"a");
        other.receive(&twice).unwrap();
        assert_eq!(other.receive(&twice), Err(Broken::Lost { expected: 1, came: 0 }));
    }

    #[test]
    fn no_more_than_a_window_is_sent_until_the_other_end_reads() {
        let (mut one, mut other) = (Flow::default(), Flow::default());
        for _ in 0..WINDOW {
            assert!(one.may_send(0));
            other.receive(&one.frame(Kind::Data, b"a")).unwrap();
        }
        assert!(!one.may_send(0));
        let tells: Vec<bool> = (0..WINDOW / 4).map(|_| other.take()).collect();
        assert!(tells.iter().rev().skip(1).all(|told| !told) && tells.last() == Some(&true), "{tells:?}");
        one.receive(&other.frame(Kind::Beat, b"")).unwrap();
        assert!(one.may_send(0) && one.may_send(15) && !one.may_send(16));
    }

    #[test]
    fn whoever_sends_more_or_claims_more_is_not_believed() {
        let (mut one, mut other) = (Flow::default(), Flow::default());
        let flood: Vec<_> =
            (0..=WINDOW).map(|_| other.receive(&one.frame(Kind::Data, b"a")).is_ok()).collect();
        assert_eq!(flood.iter().filter(|ok| !**ok).count(), 1);
        let mut liar = Flow { taken: 5, ..Flow::default() };
        assert_eq!(
            Flow::default().receive(&liar.frame(Kind::Beat, b"")),
            Err(Broken::Malformed),
            "took what was not sent"
        );
        let long = Flow::default().frame(Kind::Data, &[0; PAYLOAD_BYTES_MAX + 1]);
        assert_eq!(Flow::default().receive(&long), Err(Broken::Malformed));
    }

    #[test]
    fn silence_ends_a_stream_and_any_frame_is_a_sign_of_life() {
        let (mut one, mut other) = (Flow::default(), Flow::default());
        for _ in 0..3 {
            (0..QUIET_BEATS_MAX).for_each(|_| one.beat().unwrap());
            one.receive(&other.frame(Kind::Beat, b"")).unwrap();
        }
        (0..QUIET_BEATS_MAX).for_each(|_| one.beat().unwrap());
        assert_eq!(one.beat(), Err(Broken::Silent { seconds: QUIET_BEATS_MAX }));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Flow::default().receive(&bytes);
        }

        /// Whatever two ends do in whatever order: what was sent arrives once, in order, and never more than a window waits.
        #[test]
        fn two_ends_that_play_by_the_rules_never_break(steps in prop::collection::vec(0u8..4, 0..600)) {
            let (mut one, mut other) = (Flow::default(), Flow::default());
            let (mut there, mut back) = (Vec::new(), Vec::new());
            let (mut sent, mut read, mut waiting) = (0u8, 0u8, std::collections::VecDeque::new());
            for step in steps {
                match step {
                    0 if one.may_send(0) => { there.push(one.frame(Kind::Data, &[sent])); sent = sent.wrapping_add(1); }
                    1 if !there.is_empty() => {
                        let bytes = there.remove(0);
                        let frame = other.receive(&bytes).unwrap();
                        waiting.push_back(frame.payload[0]);
                        prop_assert!(waiting.len() as u64 <= WINDOW);
                    }
                    2 => if let Some(next) = waiting.pop_front() {
                        prop_assert_eq!(next, read);
                        read = read.wrapping_add(1);
                        if other.take() { back.push(other.frame(Kind::Beat, b"")); }
                    },
                    3 if !back.is_empty() => { one.receive(&back.remove(0)).unwrap(); }
                    _ => {}
                }
            }
        }
    }
}
