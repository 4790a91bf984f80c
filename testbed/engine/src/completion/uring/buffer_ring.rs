//! A ring of buffers that the kernel takes as bytes come in: io_uring_register_buf_ring(3).

use std::{
    alloc::{self, Layout},
    io, mem,
    ptr::NonNull,
    sync::atomic::{AtomicU16, Ordering::Release},
};

use io_uring::types::BufRingEntry;

use crate::buffer::Buffers;

/// The alignment that the kernel requires of its entries.
const PAGE: usize = 4096;

/// Buffers of one size, lent to the kernel. Each full one is taken out, and another is put in its place.
///
/// This way a full buffer becomes the connection's without a copy, and a connection that is slow to use its input never
/// leaves the kernel without buffers for the others.
pub(crate) struct BufferRing {
    /// What the kernel reads: the addresses of the buffers, in the order in which it takes them.
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    /// How many buffers have ever been offered, wrapping.
    tail: u16,
    /// The buffers by their number. The kernel owns their memory until it reports one as full.
    slots: Vec<Vec<u8>>,
    size: usize,
}

impl BufferRing {
    /// Makes a ring of `count` buffers, a power of two, of `size` bytes each.
    pub(crate) fn new(count: u16, size: usize, buffers: &mut Buffers) -> io::Result<Self> {
        let layout = Layout::array::<BufRingEntry>(usize::from(count)).map_err(io::Error::other)?;
        let layout = layout.align_to(PAGE).map_err(io::Error::other)?;
        // SAFETY: the layout is not empty, as there is at least one entry.
        let memory = unsafe { alloc::alloc_zeroed(layout) };
        let entries = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let slots = (0..count).map(|_| buffers.take_of(size)).collect();
        let mut ring = Self { entries, layout, tail: 0, slots, size };
        (0..count).for_each(|number| ring.offer(number));
        Ok(ring)
    }

    /// The address of the entries, and how many there are.
    pub(crate) fn address(&self) -> (u64, u16) {
        (self.entries.as_ptr().expose_provenance() as u64, self.slots.len() as u16)
    }

    /// How many bytes fit into one buffer.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Takes out buffer `number`, into which the kernel has written `count` bytes, and puts a fresh one in its place.
    pub(crate) fn take(&mut self, number: u16, count: usize, buffers: &mut Buffers) -> Vec<u8> {
        let Some(slot) = self.slots.get_mut(usize::from(number)) else { return Vec::new() };
        let mut full = mem::replace(slot, buffers.take_of(self.size));
        // SAFETY: the kernel has written the first `count` bytes, which are no more than the size offered.
        unsafe { full.set_len(count.min(self.size)) };
        self.offer(number);
        full
    }

    /// Lets the kernel take buffer `number`.
    fn offer(&mut self, number: u16) {
        let place = usize::from(self.tail) & (self.slots.len() - 1);
        let Some(buffer) = self.slots.get_mut(usize::from(number)) else { return };
        // SAFETY: the place is one of the entries, and beyond the tail, where the kernel does not read. Of the first
        // entry, only fields other than the tail are written.
        let entry = unsafe { self.entries.add(place).as_mut() };
        entry.set_addr(buffer.as_mut_ptr().expose_provenance() as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is a field of the first entry, and is only ever accessed atomically.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(self.entries.as_ptr()).cast_mut()) };
        // The writes above must become visible before the new tail.
        tail.store(self.tail, Release);
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout. The kernel takes no more buffers: see `Ring::register`.
        unsafe { alloc::dealloc(self.entries.as_ptr().cast(), self.layout) };
    }
}
