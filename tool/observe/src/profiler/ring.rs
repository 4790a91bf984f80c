//! The ring buffer through which the kernel hands over samples.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// Bytes of data, a power of two: what comes in a third of a second, with copies of stacks. All rings together stay within what
/// any user may lock (`perf_event_mlock_kb`, by default 512 KiB and a page for each processor).
const SIZE: usize = 512 << 10;

/// The same where other programs have locked most of that already.
const SIZE_MIN: usize = 128 << 10;

// Offsets in `struct perf_event_mmap_page`, on the page before the data.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A ring buffer, and the event that it belongs to.
#[derive(Debug)]
pub(super) struct Ring {
    event: OwnedFd,
    base: ptr::NonNull<u8>,
    page: usize,
    size: usize,
}

// SAFETY: the memory belongs to this value alone, and is not tied to the thread that mapped it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring buffer of an event.
    pub(super) fn new(event: OwnedFd) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let [large, small] = [SIZE, SIZE_MIN].map(|size| size.max(page));
        let mapped = map(&event, page + large).map(|base| (base, large));
        let (base, size) = mapped.or_else(|_| map(&event, page + small).map(|base| (base, small)))?;
        Ok(Self { event, base, page, size })
    }

    /// The event, to which others may send their samples.
    pub(super) fn event(&self) -> &OwnedFd {
        &self.event
    }

    /// Takes everything that waits in the ring.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let (head, tail) = (self.position(DATA_HEAD), self.position(DATA_TAIL));
        let size = self.size;
        let end = head.load(Ordering::Acquire);
        let begin = tail.load(Ordering::Relaxed);
        let waiting = usize::try_from(end.wrapping_sub(begin)).unwrap_or(usize::MAX).min(size);
        let at = (begin % size as u64) as usize;
        let first = waiting.min(size - at);
        let mut records = Vec::with_capacity(waiting);
        // SAFETY: both parts lie within the data pages, and the kernel writes nothing between tail and head until the tail
        // has moved.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            records.extend_from_slice(std::slice::from_raw_parts(data.add(at), first));
            records.extend_from_slice(std::slice::from_raw_parts(data, waiting - first));
        }
        tail.store(end, Ordering::Release);
        records
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both positions are aligned words of the first page, which kernel and program may change at any time.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }
}

fn map(event: &OwnedFd, length: usize) -> io::Result<ptr::NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses an address that nothing else uses.
    let base = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, event.as_raw_fd(), 0) };
    match ptr::NonNull::new(base.cast()) {
        Some(start) if base != libc::MAP_FAILED => Ok(start),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any longer.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}
