//! Why something was not measured, or not done, and what to do about it: ASCII alone, as it is told on the way as well.

use std::time::Duration;

use analysis::comparison::{Ending, LeftOut, LeftOutCause as Cause, ReadySign};

use super::unwatched;

/// What was left out, and why: `uring: the kernel denies it`.
pub(crate) fn sentence(left_out: &LeftOut) -> String {
    let LeftOut { what, cause, .. } = left_out;
    if what.is_empty() { why(cause) } else { format!("{what}: {}", why(cause)) }
}

/// The reason alone.
pub(crate) fn why(cause: &Cause) -> String {
    match cause {
        Cause::LinkNeedsRoot => {
            "a network namespace and a shaped link need root: run it with sudo".to_owned()
        }
        Cause::LinkToolFailed { tool, os_error } => {
            format!("cannot run `{tool}`: {}; install iproute2 and util-linux", unwatched::error(*os_error))
        }
        Cause::LinkRefused { command, said } => format!("`{command}` failed: {}", or_nothing(said)),
        Cause::MemoryNotLimited { os_error } => {
            format!("its memory could not be limited: {}; that needs root", unwatched::error(*os_error))
        }
        Cause::DiskNotLimited { os_error } => format!(
            "what it asks of the disk could not be limited: {}; that needs root, and a folder on a disk",
            unwatched::error(*os_error)
        ),
        Cause::ProgramMissing { process, program } => {
            let process = process.as_ref().map_or_else(String::new, |process| format!("{process}: "));
            format!("{process}`{program}` not found: install it, or give its full path")
        }
        Cause::NotStarted { process, error } => format!("cannot start {process}: {error}"),
        Cause::EndedBeforeReady { process, ending, said } => {
            format!("{process} did not start: {}. {}", ended(*ending), last_lines(said))
        }
        Cause::Taken { process, sign } => format!(
            "{process} cannot start: another program is there already ({}). Stop it, or use a port of the runner \
             (`${{port.NAME}}`)",
            ready(sign)
        ),
        Cause::NotReady { process, within_ms, sign, said } => format!(
            "{process} was not ready within {:?}: waited for {}. Check that its command does that; it may need a longer \
             `ready_within`, or another `ready`. {}",
            Duration::from_millis(*within_ms),
            ready(sign),
            last_lines(said)
        ),
        Cause::EndedMeanwhile { process, ending, said } => {
            format!("{process} ended during the measurement: {}. {}", ended(*ending), last_lines(said))
        }
        Cause::CommandFailed { program, ending, said } => {
            format!("`{program}` failed: {}. {}", ended(*ending), last_lines(said))
        }
        Cause::CommandSlow { program, within_ms, said } => {
            let within = Duration::from_millis(*within_ms);
            format!("`{program}` did not end within {within:?}. {}", last_lines(said))
        }
        Cause::NotTheJson { program, error } => {
            format!("`{program}` did not print the expected JSON: {error}")
        }
        Cause::EmptyList { program, list } => {
            format!("`{program}` did not print the expected JSON: the list `{list}` is empty")
        }
        Cause::NotPrepared { made, wanted } => {
            format!("preparing failed: {made} of {wanted} requests succeeded")
        }
        Cause::NoFolder { error } => format!(
            "cannot make a folder for the experiment: {error}; set TMPDIR to a folder that you can write to"
        ),
        Cause::NoData { error } => {
            format!("cannot make the files of the experiment: {error}; set TMPDIR to a folder with room")
        }
        Cause::Failed { error } => error.clone(),
        Cause::Told { text } => text.clone(),
    }
}

fn ended(how: Ending) -> String {
    match how {
        Ending::Exit(status) => format!("it ended with exit status {status}"),
        Ending::Signal(signal) => format!("it was ended by signal {signal}"),
        Ending::Unknown => "it ended".to_owned(),
    }
}

fn last_lines(said: &str) -> String {
    if said.is_empty() { "It printed nothing.".to_owned() } else { format!("Its last lines: {said}") }
}

fn or_nothing(said: &str) -> &str {
    if said.is_empty() { "it said nothing" } else { said }
}

/// What is waited for.
fn ready(sign: &ReadySign) -> String {
    match sign {
        ReadySign::Running => "running".to_owned(),
        ReadySign::Line(line) => format!("'{line}' in what it prints"),
        ReadySign::Connections(address) => format!("connections at {address}"),
        ReadySign::Answers(url) => format!("answers at {url}"),
    }
}
