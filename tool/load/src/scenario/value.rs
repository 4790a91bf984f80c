//! The kinds of values that differ per user or per request.

/// A named value, which templates contain as `${name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its name in templates.
    pub name: String,
    /// How it is drawn.
    pub kind: ValueKind,
    /// How often it is drawn.
    pub each: Each,
    /// Least number of digits; shorter numbers are padded with zeros.
    pub width: usize,
    /// Check digit to append to a number.
    pub check: CheckDigit,
}

/// The check digit appended to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CheckDigit {
    /// No check digit.
    #[default]
    None,
    /// The digit of Verhoeff's algorithm, which Aadhaar numbers end in.
    Verhoeff,
}

/// How a value is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueKind {
    /// The number of the user, counted from `start`.
    User {
        /// Number of the first user.
        start: u64,
    },
    /// `start + user * per_user + (k mod wrap) * step`, where k counts the earlier draws of this user.
    Counter {
        /// First value of the first user.
        start: u64,
        /// Difference between two successive draws of a user.
        step: u64,
        /// Difference between the first values of two successive users.
        per_user: u64,
        /// Number of draws after which a user starts again; 0 for never.
        wrap: u64,
    },
    /// A random whole number from `min` to `max`, both included.
    Random {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A random string of `length` characters from `alphabet`.
    RandomString {
        /// Number of characters.
        length: usize,
        /// ASCII characters to draw from.
        alphabet: Vec<u8>,
    },
    /// A random item.
    Choice {
        /// Items to draw from.
        items: Vec<String>,
    },
    /// The items in turn. User u starts at item u, so that users spread over the list.
    Cycle {
        /// Items to go through.
        items: Vec<String>,
        /// Number of items from one draw of a user to the next. If it equals the number of servers, all items that a
        /// user draws lie at the same place modulo that number: its own server's items.
        step: u64,
    },
}

/// How often a value is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Each {
    /// For each request that contains it.
    #[default]
    Request,
    /// Once per user: the same in all its requests.
    User,
}
