//! The words for kinds of things, and how words and numbers go together.

use std::cmp::Reverse;

use analysis::run::{ResourceKind, Run, Step, WarningKind};
use analysis::ticks::{ErrorCounts, ErrorKind};

use crate::number;

/// Every kind of error, in the order columns show them.
pub(crate) const ERROR_KINDS: [ErrorKind; 12] = [
    ErrorKind::Refused,
    ErrorKind::Reset,
    ErrorKind::TimedOut,
    ErrorKind::Status,
    ErrorKind::Unavailable,
    ErrorKind::Malformed,
    ErrorKind::ClosedEarly,
    ErrorKind::WrongBody,
    ErrorKind::NothingToKeep,
    ErrorKind::Tls,
    ErrorKind::Unreachable,
    ErrorKind::LocalLimit,
];

/// A resource kind as a label.
pub(crate) fn kind(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Cpu => "CPU",
        ResourceKind::SingleThread => "single thread",
        ResourceKind::CpuQuota => "CPU quota",
        ResourceKind::Disk => "disk",
        ResourceKind::Network => "network",
        ResourceKind::Lock => "lock",
        ResourceKind::WorkerPool => "worker pool",
        ResourceKind::AcceptQueue => "listen queue",
        ResourceKind::FileDescriptors => "open files",
        ResourceKind::Memory => "memory",
        ResourceKind::ConnectionPool => "connection pool",
        ResourceKind::Upstream => "upstream",
        ResourceKind::GarbageCollection => "garbage collection",
        ResourceKind::RateLimit => "rate limit",
        ResourceKind::Softirq => "soft interrupts",
        ResourceKind::Generator => "load generator",
        ResourceKind::None => "none",
        ResourceKind::Unknown => "unknown",
    }
}

/// An error kind as a column's heading.
pub(crate) fn error_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Refused => "refused",
        ErrorKind::Reset => "reset",
        ErrorKind::TimedOut => "timed out",
        ErrorKind::Status => "status",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Malformed => "malformed",
        ErrorKind::ClosedEarly => "closed early",
        ErrorKind::WrongBody => "wrong body",
        ErrorKind::NothingToKeep => "nothing to keep",
        ErrorKind::Tls => "TLS",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::LocalLimit => "local limit",
    }
}

/// How many requests failed in each way, as `name` calls it, the most frequent first: `120 timed out, 4 reset`.
pub(crate) fn error_counts(counts: &ErrorCounts, name: fn(ErrorKind) -> &'static str) -> String {
    let mut kinds: Vec<(&ErrorKind, &u64)> = counts.iter().filter(|(_, count)| **count > 0).collect();
    kinds.sort_by_key(|(_, count)| Reverse(**count));
    let parts = kinds.into_iter().map(|(kind, count)| format!("{} {}", number::count(*count), name(*kind)));
    parts.collect::<Vec<_>>().join(", ")
}

/// The kinds of errors whose rates a run tells, in the order columns show them.
pub(crate) fn failing_kinds(run: &Run) -> Vec<ErrorKind> {
    let fails = |kind: &ErrorKind| run.steps.iter().any(|step| failures_per_s(step, *kind) > 0.0);
    ERROR_KINDS.into_iter().filter(fails).collect()
}

/// Requests a second that failed in this way at a step.
pub(crate) fn failures_per_s(step: &Step, kind: ErrorKind) -> f64 {
    step.errors_per_s.get(&kind).copied().unwrap_or(0.0)
}

/// A warning kind as a label.
pub(crate) fn warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::SharedCores => "Shared cores",
        WarningKind::GeneratorBusy => "Generator busy",
        WarningKind::Generators => "Generators",
        WarningKind::NotSteady => "Not steady",
        WarningKind::Changed => "Changed",
        WarningKind::Stalls => "Stalls",
        WarningKind::TooShort => "Too short",
        WarningKind::Little => "Little’s law",
        WarningKind::Errors => "Errors",
        WarningKind::StoppedAnswering => "Stopped answering",
        WarningKind::Mix => "Mix",
        WarningKind::Redirected => "Redirected",
        WarningKind::HeldBack => "Held back",
        WarningKind::NotCold => "Not cold",
        WarningKind::NotBounded => "Not bounded",
        WarningKind::NotObserved => "Not observed",
        WarningKind::Steal => "Stolen time",
        WarningKind::DebugBuild => "Debug build",
        WarningKind::Interrupted => "Interrupted",
        WarningKind::HostLimit => "Host limit",
        WarningKind::Other => "Warning",
    }
}

/// `4 users`, `1 user`.
pub(crate) fn users(count: u32) -> String {
    format!("{} {}", number::count(count.into()), if count == 1 { "user" } else { "users" })
}

/// Whether a character is not seen, or hides or reorders those that are. A process may name itself so.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A text with its first letter large.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A sentence that came as text, from a file without data beside it or from a system's own proof, spaced as sentences from
/// findings are: no line breaks inside a number or between a number and its unit, and microseconds are `µs`.
pub(crate) fn unbroken(sentence: &str) -> String {
    let mut text = String::new();
    for word in sentence.split(' ') {
        let on_number = text.ends_with(|c: char| c.is_ascii_digit()) && belongs_to_number(word);
        if !text.is_empty() {
            text.push(if on_number { number::GROUP } else { ' ' });
        }
        match word.strip_prefix("us").filter(|_| on_number) {
            Some(rest) => text += &format!("µs{rest}"),
            None => text += word,
        }
    }
    text
}

/// Whether a word continues a number: three digits, or a unit.
fn belongs_to_number(word: &str) -> bool {
    const UNITS: [&str; 10] = ["%", "µs", "us", "ms", "s", "req/s", "kb/s", "Mb/s", "Gb/s", "MB/s"];
    let word = word.trim_end_matches(['.', ',', ';', ':', ')']);
    UNITS.contains(&word) || word.split(['-', '–']).next().is_some_and(is_group)
}

fn is_group(digits: &str) -> bool {
    digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_sentences_hold_together() {
        let sentence = "It allows 8 660 req/s (8 100-9 000), 29.1 us each, and 4 users 812 times.";
        let expected = "It allows 8_660_req/s (8_100-9_000), 29.1_µs each, and 4 users 812 times.";
        assert_eq!(unbroken(sentence).replace(number::GROUP, "_"), expected);
        assert_eq!(unbroken(""), "");
    }

    #[test]
    fn every_kind_of_error_has_its_column() {
        let schema = schemars::schema_for!(ErrorKind).to_value();
        let kinds = schema["oneOf"].as_array().map_or(0, Vec::len);
        assert_eq!(kinds, ERROR_KINDS.len());
    }
}
