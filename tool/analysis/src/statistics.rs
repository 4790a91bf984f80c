//! Statistics that know nothing of servers: intervals, trends, regressions.

pub mod batch_means;
pub(crate) mod isotonic;
pub(crate) mod matrix;
pub mod mser;
pub(crate) mod pooling;
pub(crate) mod series;
pub(crate) mod student;
