//! A channel for one value, sent from any thread and awaited under any model.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Makes both ends.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State { value: None, waker: None, closed: false }) });
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

/// Sends the value.
#[derive(Debug)]
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Hands the value over and wakes the receiver.
    ///
    /// # Errors
    /// Gives the value back when the receiver is gone.
    pub fn send(self, value: T) -> Result<(), T> {
        let mut state = self.shared.lock();
        if state.closed {
            return Err(value);
        }
        state.value = Some(value);
        Ok(())
        // Dropping the sender wakes the receiver.
    }

    /// Whether nobody waits for the value any more.
    pub fn is_closed(&self) -> bool {
        self.shared.lock().closed
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.shared.lock();
            state.closed = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Awaits the value.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, Closed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock();
        if let Some(value) = state.value.take() {
            return Poll::Ready(Ok(value));
        }
        if state.closed {
            return Poll::Ready(Err(Closed));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.waker = None;
    }
}

/// The sender went away without sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer's sender went away without sending it")]
pub struct Closed;

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code of others runs under the lock, so the state is whole even when a thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    waker: Option<Waker>,
    /// One end is gone.
    closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;

    #[test]
    fn a_value_crosses_threads() {
        let (sender, receiver) = channel();
        let thread = std::thread::spawn(move || sender.send(7));
        assert_eq!(block_on(receiver), Ok(7));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    #[test]
    fn a_lost_sender_is_told() {
        let (sender, receiver) = channel::<u8>();
        drop(sender);
        assert_eq!(block_on(receiver), Err(Closed));
    }

    #[test]
    fn a_lost_receiver_gives_the_value_back() {
        let (sender, receiver) = channel();
        assert!(!sender.is_closed());
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(sender.send(7), Err(7));
    }
}
