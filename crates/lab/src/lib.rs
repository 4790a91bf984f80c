//! Experiments: start systems, make data, sweep, collect.
