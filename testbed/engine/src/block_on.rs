//! Runs one future on the calling thread, which sleeps while the future waits.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

/// Runs `future` to completion.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let (parker, waker) = parker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        parker.park();
    }
}

/// Runs `future` to completion, or drops it once `stop` returns true. `stop` is called whenever the thread is unparked.
pub(crate) fn block_on_until<F: Future>(future: F, stop: impl Fn() -> bool) -> Option<F::Output> {
    let mut future = pin!(future);
    let (parker, waker) = parker();
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        while !parker.woken.swap(false, SeqCst) {
            if stop() {
                return None;
            }
            thread::park();
        }
    }
}

fn parker() -> (Arc<Parker>, Waker) {
    let parker = Arc::new(Parker { thread: thread::current(), woken: AtomicBool::new(false) });
    (Arc::clone(&parker), Waker::from(parker))
}

#[derive(Debug)]
struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Parker {
    fn park(&self) {
        while !self.woken.swap(false, SeqCst) {
            thread::park();
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, SeqCst) {
            self.thread.unpark();
        }
    }
}
