//! Memory that a process shares with those forked from it.

use std::{alloc, ops::Deref, ptr, slice, sync::atomic::AtomicU64};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// An array of atomic integers, all zero at first, in memory that processes forked later share with this one.
///
/// A server must keep its counters here, because its concurrency model may run services in processes of their own.
///
/// ```
/// use std::sync::atomic::Ordering::Relaxed;
///
/// let cells = engine::shared::Atomics::new(2);
/// if let Some(requests) = cells.get(0) {
///     requests.fetch_add(1, Relaxed);
/// }
/// assert_eq!(cells[0].load(Relaxed), 1);
/// ```
#[derive(Debug)]
pub struct Atomics {
    first: ptr::NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the value is the only owner of its memory, which holds nothing but atomic integers.
unsafe impl Send for Atomics {}
// SAFETY: a shared reference gives access to atomic integers only.
unsafe impl Sync for Atomics {}

impl Atomics {
    /// Allocates `count` integers. This takes whole pages, so group what belongs together. When memory runs out, the
    /// process ends, as for every allocation.
    pub fn new(count: usize) -> Self {
        let count = count.max(1);
        let Ok(layout) = alloc::Layout::array::<AtomicU64>(count) else {
            alloc::handle_alloc_error(alloc::Layout::new::<AtomicU64>())
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address the kernel chooses, touches no memory in use.
        let mapped = unsafe { mmap_anonymous(ptr::null_mut(), layout.size(), protection, MapFlags::SHARED) };
        match mapped.ok().and_then(|start| ptr::NonNull::new(start.cast())) {
            Some(first) => Self { first, count },
            None => alloc::handle_alloc_error(layout),
        }
    }
}

impl Deref for Atomics {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` zeroed, page-aligned integers and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for Atomics {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and no reference into it outlives `self`. Other processes keep theirs.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn all_are_zero_at_first_and_count_from_every_thread() {
        let cells = Atomics::new(1_000);
        assert!(cells.iter().all(|cell| cell.load(Relaxed) == 0) && cells.len() == 1_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        cells[999].fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert_eq!(cells[999].load(Relaxed), 4_000);
    }
}
