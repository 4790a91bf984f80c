//! Buffers that a connection gives back while it is idle.

/// The least room offered to one read.
const SPARE_MIN: usize = 16 << 10;
/// The most room offered to one read, reached when reads keep filling what they are offered.
const SPARE_MAX: usize = 64 << 10;
/// How many empty buffers are kept for connections that need one.
const KEPT_MAX: usize = 32;

/// Received bytes, starting with the first that is not consumed yet.
#[derive(Debug)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    spare: usize,
    /// The room for one read, neither more nor less, if the service has set it.
    at_most: Option<usize>,
}

impl Input {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, spare: SPARE_MIN, at_most: None }
    }

    pub(crate) fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        if self.is_empty() {
            self.bytes.clear();
            self.start = 0;
        }
    }

    /// Whether it holds no memory.
    pub(crate) fn is_released(&self) -> bool {
        self.bytes.capacity() == 0
    }

    /// Sets the room offered to each read from now on, at least one byte, no matter how full reads are.
    pub(crate) fn read_at_most(&mut self, bytes: usize) {
        let bytes = bytes.max(1);
        self.at_most = Some(bytes);
        self.spare = bytes;
    }

    /// Makes room for one read. Returns the buffer to read into and how much of its spare capacity to use.
    pub(crate) fn room(&mut self) -> (&mut Vec<u8>, usize) {
        if self.bytes.capacity() - self.bytes.len() < self.spare {
            self.bytes.drain(..self.start);
            self.start = 0;
            self.bytes.reserve(self.spare);
        }
        let room = self.bytes.capacity() - self.bytes.len();
        (&mut self.bytes, self.at_most.map_or(room, |at_most| room.min(at_most)))
    }

    /// Adapts to a read of `count` bytes into `room`: after a full read, the next gets more room.
    pub(crate) fn adapt(&mut self, count: usize, room: usize) {
        if self.at_most.is_none() {
            self.spare = if count < room { SPARE_MIN } else { (self.spare * 2).min(SPARE_MAX) };
        }
    }

    /// A buffer for a read that runs while the input stays accessible, and how much of its capacity to use.
    pub(crate) fn lend(&self, from: &mut Buffers) -> (Vec<u8>, usize) {
        let buffer = from.take_of(self.spare);
        let room = buffer.capacity();
        (buffer, self.at_most.map_or(room, |at_most| room.min(at_most)))
    }

    /// Appends a buffer of received bytes. If nothing is unread, the input takes the buffer over instead of copying.
    pub(crate) fn append(&mut self, bytes: Vec<u8>, spent: &mut Buffers) {
        if self.is_empty() {
            spent.give(std::mem::replace(&mut self.bytes, bytes));
            self.start = 0;
        } else {
            let (buffer, _) = self.room();
            buffer.extend_from_slice(&bytes);
            spent.give(bytes);
        }
    }

    /// The most bytes that one read may bring, if the service has set it.
    pub(crate) const fn at_most(&self) -> Option<usize> {
        self.at_most
    }

    /// Gives the memory back if nothing is unread.
    pub(crate) fn release(&mut self, to: &mut Buffers) {
        if self.is_empty() {
            to.give(std::mem::take(&mut self.bytes));
        }
    }

    /// Takes memory if it holds none.
    pub(crate) fn acquire(&mut self, from: &mut Buffers) {
        if self.is_released() {
            self.bytes = from.take();
        }
    }
}

/// Empty buffers kept by one loop, so that idle connections hold none and busy ones do not allocate.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    kept: Vec<Vec<u8>>,
}

impl Buffers {
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.kept.pop().unwrap_or_else(|| Vec::with_capacity(SPARE_MIN))
    }

    /// An empty buffer with room for at least `size` bytes.
    pub(crate) fn take_of(&mut self, size: usize) -> Vec<u8> {
        let mut buffer = self.take();
        buffer.reserve(size);
        buffer
    }

    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let worth = (SPARE_MIN..=2 * SPARE_MAX).contains(&buffer.capacity());
        if worth && self.kept.len() < KEPT_MAX {
            buffer.clear();
            self.kept.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(input: &mut Input, bytes: &[u8]) {
        let (buffer, room) = input.room();
        assert!(room >= bytes.len());
        buffer.extend_from_slice(bytes);
        input.adapt(bytes.len(), room);
    }

    #[test]
    fn what_is_consumed_is_forgotten_and_the_rest_stays() {
        let mut input = Input::new();
        receive(&mut input, b"one two");
        input.consume(4);
        receive(&mut input, b" three");
        assert_eq!(input.unread(), b"two three");
        input.consume(usize::MAX);
        assert!(input.is_empty());
        assert_eq!(input.unread(), b"");
    }

    #[test]
    fn the_room_is_bounded_and_grows_only_while_reads_fill_it() {
        let mut input = Input::new();
        for _ in 0..10 {
            let (buffer, room) = input.room();
            assert!((SPARE_MIN..=2 * SPARE_MAX).contains(&room), "room of {room}");
            buffer.resize(buffer.capacity(), 0);
            input.adapt(room, room);
            input.consume(usize::MAX);
        }
        assert_eq!(input.spare, SPARE_MAX);
        receive(&mut input, b"short");
        assert_eq!(input.spare, SPARE_MIN);
    }

    #[test]
    fn the_room_is_what_the_service_set() {
        for asked in [1, 1_024, SPARE_MAX, 1 << 20] {
            let mut input = Input::new();
            input.read_at_most(asked);
            for filled in [asked, 1, asked] {
                let (buffer, room) = input.room();
                assert_eq!(room, asked);
                buffer.resize(buffer.len() + filled, 0);
                input.adapt(filled, room);
            }
        }
        let mut input = Input::new();
        input.read_at_most(0);
        assert_eq!(input.room().1, 1, "a read without room would look like the end of input");
    }

    #[test]
    fn a_long_message_consumed_bit_by_bit_does_not_grow_the_buffer() {
        let mut input = Input::new();
        for _ in 0..1_000 {
            receive(&mut input, &[7; 1_000]);
            input.consume(990);
            input.consume(input.unread().len() / 2);
        }
        assert!(input.bytes.capacity() <= 4 * SPARE_MAX, "{}", input.bytes.capacity());
    }

    #[test]
    fn an_empty_input_holds_no_memory_and_takes_back_the_same_buffer() {
        let (mut input, mut buffers) = (Input::new(), Buffers::default());
        receive(&mut input, b"request");
        input.release(&mut buffers);
        assert_eq!(input.unread(), b"request", "unread bytes stay");
        input.consume(7);
        input.release(&mut buffers);
        assert!(input.is_released());
        assert_eq!(buffers.kept.len(), 1);
        input.acquire(&mut buffers);
        assert!(!input.is_released());
        assert!(buffers.kept.is_empty());
    }

    #[test]
    fn a_lent_buffer_comes_back_behind_what_is_unread() {
        let (mut input, mut buffers) = (Input::new(), Buffers::default());
        for (sent, unread) in [("one", "one"), (" two", "one two"), (" three", "o three")] {
            let (mut lent, room) = input.lend(&mut buffers);
            assert!(lent.is_empty() && (SPARE_MIN..=lent.capacity()).contains(&room), "room of {room}");
            lent.extend_from_slice(sent.as_bytes());
            if sent == " three" {
                input.consume(6);
            }
            input.append(lent, &mut buffers);
            assert_eq!(input.unread(), unread.as_bytes());
        }
        input.read_at_most(7);
        assert_eq!(input.lend(&mut buffers).1, 7);
    }

    #[test]
    fn kept_buffers_are_bounded_in_number_and_size() {
        let mut buffers = Buffers::default();
        buffers.give(Vec::new());
        buffers.give(Vec::with_capacity(10 << 20));
        assert!(buffers.kept.is_empty());
        for _ in 0..100 {
            buffers.give(Vec::with_capacity(SPARE_MIN));
        }
        assert_eq!(buffers.kept.len(), KEPT_MAX);
    }
}
