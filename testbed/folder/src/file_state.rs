//! Which file, and which state of it.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A file and its state. Equal states have the same bytes, unless the file changed twice within one tick of the file
/// system's clock (see [`FileState::is_settled`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified_s: i64,
    modified_ns: i64,
    changed_s: i64,
    changed_ns: i64,
}

/// After this long, a further change is sure to get another time stamp: kernels stamp files with a clock that ticks every
/// 1 to 10 ms.
const TICK: Duration = Duration::from_millis(50);

/// The last second that an HTTP date can express: 9999-12-31T23:59:59Z.
pub const DATE_S_MAX: u64 = 253_402_300_799;

impl FileState {
    /// The state that `metadata` describes.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            changed_s: metadata.ctime(),
            changed_ns: metadata.ctime_nsec(),
        }
    }

    /// Whether `metadata` describes this file in this state.
    pub fn is_of(&self, metadata: &Metadata) -> bool {
        *self == Self::of(metadata)
    }

    /// Whether the last change is long enough ago that a further one would show. Unlike the modification time, the
    /// change time (ctime) cannot be set by a program.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ns = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
        let changed_ns = i128::from(self.changed_s) * 1_000_000_000 + i128::from(self.changed_ns);
        now_ns - changed_ns > i128::try_from(TICK.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Length, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Text to store, different for every file and state on this machine.
    pub fn text(&self) -> String {
        let Self { device, inode, size, .. } = self;
        let (modified, changed) = ((self.modified_s, self.modified_ns), (self.changed_s, self.changed_ns));
        format!("{device}-{inode}-{size}-{}.{}-{}.{}", modified.0, modified.1, changed.0, changed.1)
    }

    /// A strong entity tag (RFC 9110, section 8.8.3), with its quotes.
    pub fn etag(&self) -> String {
        let modified_ns = i128::from(self.modified_s) * 1_000_000_000 + i128::from(self.modified_ns);
        format!("\"{:x}-{:x}-{modified_ns:x}\"", self.inode, self.size)
    }

    /// When it was modified, in whole seconds since 1970. `None` where an HTTP date cannot express it.
    pub fn modified_s(&self) -> Option<u64> {
        u64::try_from(self.modified_s).ok().filter(|&s| s <= DATE_S_MAX)
    }

    /// The value of `Last-Modified` (RFC 9110, section 8.8.2).
    pub fn last_modified(&self) -> Option<String> {
        self.modified_s().map(|s| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(s)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, FileTimes};

    use super::*;

    fn state_of(path: &std::path::Path) -> FileState {
        FileState::of(&fs::metadata(path).unwrap())
    }

    #[test]
    fn size_time_and_inode_each_make_another_tag() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let write = |path: &std::path::Path, text: &str, time| {
            fs::write(path, text).unwrap();
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_times(FileTimes::new().set_modified(time))
                .unwrap();
            state_of(path)
        };
        let first = write(&one, "abc", time);
        assert_eq!(first.last_modified().as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert!(first.etag().starts_with('"') && first.etag().ends_with('"'));
        assert_ne!(write(&other, "abc", time).etag(), first.etag());
        assert_ne!(write(&one, "abcd", time).etag(), first.etag());
        assert_ne!(write(&one, "abc", time + Duration::from_nanos(1)).etag(), first.etag());
    }

    #[test]
    fn a_fresh_change_is_not_settled_and_an_old_one_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let now = SystemTime::now();
        assert!(!state_of(file.path()).is_settled(now));
        assert!(state_of(file.path()).is_settled(now + Duration::from_secs(1)));
    }

    #[test]
    fn times_beyond_http_dates_are_left_out() {
        const LAST: i64 = DATE_S_MAX as i64;
        let mut state = state_of(tempfile::NamedTempFile::new().unwrap().path());
        for (modified_s, shown) in [(-1, false), (0, true), (LAST, true), (LAST + 1, false)] {
            state.modified_s = modified_s;
            assert_eq!(state.last_modified().is_some(), shown, "{modified_s}");
        }
    }
}
