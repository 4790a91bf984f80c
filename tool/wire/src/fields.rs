//! The positions of header lines: a table without lifetimes, so that a server can keep it beside the buffer that it points
//! into.

use smallvec::SmallVec;

/// Position and length of a piece of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// Locates `part`, which must be a slice of `whole`.
    pub(crate) fn of(part: &[u8], whole: &[u8]) -> Self {
        if part.is_empty() {
            return Self::default();
        }
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        debug_assert!(start + part.len() <= whole.len());
        // `Limits::head_window` limits a head to MAX_HEAD_BYTES (u16::MAX).
        Self { start: start as u16, len: part.len() as u16 }
    }

    /// Returns the bytes, or none if `whole` is not the buffer that this was made from.
    pub(crate) fn slice(self, whole: &[u8]) -> &[u8] {
        let start = usize::from(self.start);
        whole.get(start..start + usize::from(self.len)).unwrap_or_default()
    }

    /// Position after the last byte.
    pub(crate) fn end(self) -> usize {
        usize::from(self.start) + usize::from(self.len)
    }
}

/// One header line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Field {
    name: Span,
    value: Span,
}

/// Number of header lines that are stored in place: more than most heads have, and few enough because every connection of a
/// server has this room, even while it is idle. Further lines are stored on the heap.
const USUAL: usize = 32;

/// The header lines of one head, as positions within its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    table: SmallVec<[Field; USUAL]>,
}

impl Fields {
    /// Makes the table of the headers that `httparse` found in `head`.
    pub(crate) fn index(headers: &[httparse::Header<'_>], head: &[u8]) -> Self {
        let field = |header: &httparse::Header<'_>| Field {
            name: Span::of(header.name.as_bytes(), head),
            value: Span::of(header.value, head),
        };
        Self { table: headers.iter().map(field).collect() }
    }

    /// Returns the first value of the header `name`, in any case. `head` must be the bytes that the table was made from.
    pub fn get<'b>(&self, head: &'b [u8], name: &str) -> Option<&'b [u8]> {
        self.all(head, name).next()
    }

    /// Returns all values of the header `name`, in order.
    pub fn all<'b>(&self, head: &'b [u8], name: &str) -> impl Iterator<Item = &'b [u8]> {
        self.table
            .iter()
            .filter(move |field| {
                usize::from(field.name.len) == name.len()
                    && field.name.slice(head).eq_ignore_ascii_case(name.as_bytes())
            })
            .map(move |field| field.value.slice(head))
    }

    /// Returns name and value of every header, in order.
    pub fn iter<'b>(&self, head: &'b [u8]) -> impl Iterator<Item = (&'b str, &'b [u8])> {
        self.table.iter().map(move |field| {
            (std::str::from_utf8(field.name.slice(head)).unwrap_or_default(), field.value.slice(head))
        })
    }

    /// Number of header lines.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are no header lines.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Leaves out the values, which may be credentials.
impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fields({} headers)", self.table.len())
    }
}
