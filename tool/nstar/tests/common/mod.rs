//! What the suites of tests share that run the real programs.

pub(crate) mod machine;
pub(crate) mod program;
pub(crate) mod support;
pub(crate) mod verdict;
