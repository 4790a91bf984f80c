//! Files that programs keep for themselves, and find again after a crash.

use experiment::journal::Journal;
use files::{rewritten_record, rewritten_usage};
use share::peer::rewritten_journal;

pub(crate) fn upload_record(bytes: &[u8]) {
    settles(bytes, rewritten_record);
}

pub(crate) fn usage_file(bytes: &[u8]) {
    settles(bytes, rewritten_usage);
}

/// What a program writes in place of a file is what it makes of that again.
fn settles(bytes: &[u8], rewrite: fn(&[u8]) -> Option<Vec<u8>>) {
    if let Some(written) = rewrite(bytes) {
        assert_eq!(rewrite(&written).as_ref(), Some(&written));
    }
}

pub(crate) fn share_journal(bytes: &[u8]) {
    let lines = rewritten_journal(bytes);
    assert_eq!(rewritten_journal(lines.join("\n").as_bytes()), lines);
}

pub(crate) fn experiment_journal(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let cut_short = format!("{text}\n{{\"work\":\"\",\"vari");
    assert_eq!(Journal::spent_by(&cut_short), Journal::spent_by(text), "a line cut short counts for nothing");
}
