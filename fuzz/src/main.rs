//! Searches with libFuzzer for inputs that break the target that the variable `FUZZ_TARGET` names. The arguments are those
//! of libFuzzer: folders of inputs to begin with, single inputs to try, and options. `scripts/fuzz` builds and starts it.
#![no_main]

use std::{process, sync::LazyLock};

use fuzz::Target;

/// Which one of them, so that all are linked once.
const VARIABLE: &str = "FUZZ_TARGET";

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    fuzz::find(&name).unwrap_or_else(|| {
        eprintln!("{VARIABLE} must be one of:");
        fuzz::TARGETS.iter().for_each(|target| eprintln!("  {:20} {}", target.name, target.input));
        process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(
    init: {
        LazyLock::force(&TARGET);
    },
    |bytes: &[u8]| (TARGET.run)(bytes)
);
