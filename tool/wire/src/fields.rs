//! Where the header lines are: a table of positions, free of lifetimes, so that a server may keep it
//! beside the buffer it points into.

use smallvec::SmallVec;

/// A piece of a head: where it starts and how long it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    len: u16,
}

impl Span {
    /// Where `part` lies within `whole`, of which it must be a slice.
    pub(crate) fn of(part: &[u8], whole: &[u8]) -> Self {
        if part.is_empty() {
            return Self::default();
        }
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        debug_assert!(start + part.len() <= whole.len());
        // A head is at most MAX_HEAD_BYTES (u16::MAX) long, which `Limits::head_window` sees to.
        Self { start: start as u16, len: part.len() as u16 }
    }

    /// The bytes meant, or none if `whole` is not the buffer this was made from.
    pub(crate) fn slice(self, whole: &[u8]) -> &[u8] {
        let start = usize::from(self.start);
        whole.get(start..start + usize::from(self.len)).unwrap_or_default()
    }

    /// One past the last byte.
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

/// More header lines than most heads have. So many are kept in place, more in memory of their own: every connection of a
/// server has room for a head, while it is idle too.
const USUAL: usize = 32;

/// The header lines of one head, as positions within its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    table: SmallVec<[Field; USUAL]>,
}

impl Fields {
    /// A table of the headers that `httparse` found in `head`.
    pub(crate) fn index(headers: &[httparse::Header<'_>], head: &[u8]) -> Self {
        let field = |header: &httparse::Header<'_>| Field {
            name: Span::of(header.name.as_bytes(), head),
            value: Span::of(header.value, head),
        };
        Self { table: headers.iter().map(field).collect() }
    }

    /// The first value of the header `name`, in any case, within `head`, the bytes this table was made from.
    pub fn get<'b>(&self, head: &'b [u8], name: &str) -> Option<&'b [u8]> {
        self.all(head, name).next()
    }

    /// Every value of the header `name`, in order.
    pub fn all<'b>(&self, head: &'b [u8], name: &str) -> impl Iterator<Item = &'b [u8]> {
        self.table
            .iter()
            .filter(move |field| {
                usize::from(field.name.len) == name.len()
                    && field.name.slice(head).eq_ignore_ascii_case(name.as_bytes())
            })
            .map(move |field| field.value.slice(head))
    }

    /// Every header, in order: name and value.
    pub fn iter<'b>(&self, head: &'b [u8]) -> impl Iterator<Item = (&'b str, &'b [u8])> {
        self.table.iter().map(move |field| {
            (std::str::from_utf8(field.name.slice(head)).unwrap_or_default(), field.value.slice(head))
        })
    }

    /// How many header lines there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Positions only: values may be credentials, and this cannot show them.
impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fields({} headers)", self.table.len())
    }
}
