//! The values that a user puts into its requests: drawn from its random stream, or captured from responses.

pub(crate) mod captured;
pub(crate) mod stream;
