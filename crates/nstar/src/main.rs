//! The command line: flags, a validated plan, stages in order.

fn main() {}
