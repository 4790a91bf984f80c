//! An agent of its own for one run: a process whose standard input and output are passed on over some stream.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Stdio};

use crate::link::here;
use crate::open::Ended;
use crate::serve::Uses;
use crate::stream::{Stderr, end_of, named};

/// How much is passed on at once.
const CHUNK: usize = 16 << 10;

/// Runs `nstar agent` for these uses, passes on what is said both ways until either end is done, and ends it. Returns how it ended.
///
/// # Errors
/// If it cannot be run.
pub fn relay(uses: Uses, input: impl Read + Send + 'static, output: &mut impl Write) -> io::Result<Ended> {
    let mut command = here();
    command.args((uses == Uses::Observing).then_some("--observe"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let passed = pass_both_ways(&mut child, input, output);
    let code = end_of(&mut child).and_then(|status| status.code());
    let stderr = passed.map_or_else(|error| error.to_string(), |stderr| stderr.last_words());
    Ok(Ended::Exited { code, stderr })
}

/// Passes on until the child's output ends or nobody takes it.
fn pass_both_ways(
    child: &mut Child,
    input: impl Read + Send + 'static,
    output: &mut impl Write,
) -> io::Result<Stderr> {
    let missing = || io::Error::other("a pipe is missing");
    let (to, mut from) = (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?);
    let stderr = Stderr::follow(child.stderr.take().ok_or_else(missing)?)?;
    named("nstar-relay", move || pass(input, to))?;
    let mut chunk = vec![0; CHUNK];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if output.write_all(chunk.get(..read).unwrap_or_default()).is_err() {
            break;
        }
    }
    Ok(stderr)
}

/// Passes on what a child is told, and ends its input with what comes.
fn pass(mut from: impl Read, mut to: ChildStdin) {
    // Whichever end goes first, nothing more is to be passed on.
    let _ = io::copy(&mut from, &mut to);
}
