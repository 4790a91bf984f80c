//! Has stacks unwound while others are sampled, on a thread of its own: files may be slow to read, and the tables in them are
//! the server's. What waits is bounded, and nothing waits for it: stacks that do not fit keep what frame pointers tell.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    thread,
    time::{Duration, Instant},
};

use analysis::profile::{SampledStack, Snapshot, StackEnd, Unwinder, Unwound};

/// How many snapshots may wait for each processor: what it takes in a third of a second.
const WAITING_EACH: usize = 32;

/// How many may wait in all: with 16 KiB of stack each, 16 MiB.
const WAITING_MAX: usize = 1_024;

/// How long the last ones are waited for once sampling has ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often each stack was seen.
pub(super) type Stacks = BTreeMap<SampledStack, u64>;

/// The way to the thread that unwinds, and back.
#[derive(Debug)]
pub(super) struct Unwinding {
    snapshots: SyncSender<Snapshot>,
    unwound: Receiver<Unwound>,
    /// Stacks as frame pointers tell them, in the order in which the others come back.
    waiting: VecDeque<SampledStack>,
}

impl Unwinding {
    /// Starts the thread.
    pub(super) fn start(mut unwinder: Box<dyn Unwinder>, processors: usize) -> io::Result<Self> {
        let room = processors.saturating_mul(WAITING_EACH).clamp(WAITING_EACH, WAITING_MAX);
        let (snapshots, to_unwind) = mpsc::sync_channel::<Snapshot>(room);
        let (done, unwound) = mpsc::channel();
        thread::Builder::new().name("unwinder".into()).spawn(move || {
            let unwound = to_unwind.iter().map(|snapshot| unwinder.unwind(&snapshot));
            // It ends once nobody listens.
            unwound.map(|unwound| done.send(unwound)).find(Result::is_err);
        })?;
        Ok(Self { snapshots, unwound, waiting: VecDeque::new() })
    }

    /// Takes a stack to unwind, or counts it as it is where too many wait.
    pub(super) fn take(&mut self, stack: SampledStack, snapshot: Snapshot, stacks: &mut Stacks) {
        self.collect(stacks);
        match self.snapshots.try_send(snapshot) {
            Ok(()) => self.waiting.push_back(stack),
            Err(_) => count(SampledStack { end: Some(StackEnd::NotInTime), ..stack }, stacks),
        }
    }

    /// Counts those that have been unwound.
    pub(super) fn collect(&mut self, stacks: &mut Stacks) {
        while let Ok(unwound) = self.unwound.try_recv() {
            self.count(unwound, stacks);
        }
    }

    /// Counts the rest: those that come in time as they are unwound, the others as they are.
    pub(super) fn finish(mut self, stacks: &mut Stacks) {
        let deadline = Instant::now() + PATIENCE;
        while !self.waiting.is_empty() {
            match self.unwound.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(unwound) => self.count(unwound, stacks),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        for stack in self.waiting {
            count(SampledStack { end: Some(StackEnd::NotInTime), ..stack }, stacks);
        }
    }

    fn count(&mut self, Unwound { calls, end }: Unwound, stacks: &mut Stacks) {
        if let Some(stack) = self.waiting.pop_front() {
            count(SampledStack { user: calls, end: Some(end), ..stack }, stacks);
        }
    }
}

/// Counts a stack once more.
pub(super) fn count(stack: SampledStack, stacks: &mut Stacks) {
    *stacks.entry(stack).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the caller 1; at process 9 it waits for ever, at process 8 it panics.
    struct Fake;

    impl Unwinder for Fake {
        fn unwind(&mut self, snapshot: &Snapshot) -> Unwound {
            match snapshot.pid {
                9 => loop {
                    thread::park();
                },
                8 => panic!("as a fault would"),
                _ => {}
            }
            let calls = snapshot.linked.iter().copied().chain([1]).collect();
            Unwound { calls, end: StackEnd::Start }
        }
    }

    /// What comes of samples of these processes.
    fn unwound(pids: &[u32]) -> Stacks {
        let mut unwinding = Unwinding::start(Box::new(Fake), 1).expect("a thread");
        let mut stacks = Stacks::new();
        for pid in pids {
            let stack = SampledStack { pid: *pid, user: vec![5], ..SampledStack::default() };
            let snapshot = Snapshot { pid: *pid, linked: stack.user.clone(), ..Snapshot::default() };
            unwinding.take(stack, snapshot, &mut stacks);
        }
        unwinding.finish(&mut stacks);
        stacks
    }

    fn of(pid: u32, user: &[u64], end: StackEnd) -> SampledStack {
        SampledStack { pid, user: user.into(), end: Some(end), ..SampledStack::default() }
    }

    #[test]
    fn stacks_come_back_with_their_callers() {
        assert_eq!(
            unwound(&[7, 6, 7]),
            [(of(7, &[5, 1], StackEnd::Start), 2), (of(6, &[5, 1], StackEnd::Start), 1)].into()
        );
    }

    #[test]
    fn what_does_not_come_back_is_counted_as_it_was() {
        for gone in [8, 9] {
            let mut pids = vec![7, gone];
            // More than may wait.
            pids.extend([6; 2 * WAITING_EACH]);
            let expected = [
                (of(7, &[5, 1], StackEnd::Start), 1),
                (of(gone, &[5], StackEnd::NotInTime), 1),
                (of(6, &[5], StackEnd::NotInTime), 2 * WAITING_EACH as u64),
            ];
            assert_eq!(unwound(&pids), expected.into());
        }
    }
}
