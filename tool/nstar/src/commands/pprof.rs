//! `nstar report --format pprof`.

use analysis::run::Run;

use crate::exit::Failure;

/// The samples of a run.
pub(super) fn packed(run: &Run) -> Result<Vec<u8>, Failure> {
    compressed(report::pprof(run).ok_or_else(no_stacks)?)
}

/// As gzip, which the format asks for. What reads it takes it as it is too.
#[cfg(feature = "profile")]
fn compressed(profile: Vec<u8>) -> Result<Vec<u8>, Failure> {
    use std::io::Write;

    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(&profile).and_then(|()| packer.finish()).map_err(Failure::failed)
}

#[cfg(not(feature = "profile"))]
fn compressed(profile: Vec<u8>) -> Result<Vec<u8>, Failure> {
    Ok(profile)
}

pub(super) fn no_stacks() -> Failure {
    Failure::usage("the run was made without --profile, so it holds no stacks")
}

pub(super) fn not_of_comparisons() -> Failure {
    Failure::usage("a comparison holds no stacks; give a run file")
}
