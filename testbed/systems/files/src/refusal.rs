//! Why a request is refused.

use std::io;

use http_io::Problem;
use rustix::io::Errno;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server accepts no uploads.
    ReadOnly,
    /// The user lacks permission.
    Forbidden,
    /// There is no such file or upload, as far as the user may know.
    NotFound,
    /// No file may have this name.
    Name {
        /// What is wrong with it. Follows "the name".
        reason: &'static str,
    },
    /// The request contradicts itself or an earlier one.
    Request(&'static str),
    /// The file does not meet the request's condition.
    Precondition,
    /// Something is in the way.
    Conflict(&'static str),
    /// The upload does not continue at this offset.
    Offset {
        /// The right offset: what has arrived so far, bytes.
        expected: u64,
    },
    /// The upload is too long.
    TooLong {
        /// The limit, bytes.
        most: u64,
    },
    /// The upload would exceed the quota.
    Quota {
        /// Space in use, including other uploads in progress, bytes.
        used: u64,
        /// The quota, bytes.
        quota: u64,
    },
    /// The user has as many files and folders as one may have.
    Entries {
        /// The limit.
        max: u64,
    },
    /// Too many uploads of the user wait to be resumed.
    Parts {
        /// The limit.
        max: usize,
    },
    /// The disk is full.
    DiskFull,
    /// Another request works on the same upload.
    Locked,
    /// Too many uploads are waiting.
    Busy,
    /// The system failed.
    System(io::Error),
}

impl Refusal {
    /// The response to the client.
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::ReadOnly => Problem::new(403, "this server accepts no uploads")
                .hint("it is read-only, or has no accounts"),
            Self::Forbidden => Problem::new(403, "you may not change this")
                .hint("your own folder is /files/users/YOUR-NAME/"),
            Self::NotFound => Problem::new(404, "there is no such file"),
            Self::Name { reason } => Problem::new(422, format!("the name {reason}")),
            Self::Request(what) => Problem::new(400, what),
            Self::Precondition => Problem::new(412, "the file is not in the state that the request expects"),
            Self::Conflict(what) => Problem::new(409, what),
            Self::Offset { expected } => Problem::new(409, "the upload does not continue there")
                .hint(format!("it continues at byte {expected}"))
                .header("Upload-Complete", "?0")
                .header("Upload-Offset", expected.to_string()),
            Self::TooLong { most } => Problem::new(413, format!("an upload may have {most} bytes at most")),
            Self::Quota { used, quota } => {
                let error = format!("this would exceed your quota: {used} of {quota} bytes are used");
                Problem::new(507, error).hint("delete something first; uploads in progress count too")
            }
            Self::Entries { max } => {
                Problem::new(507, format!("a user may have {max} files and folders at most"))
                    .hint("delete some first")
            }
            Self::Parts { max } => {
                Problem::new(507, format!("{max} of your uploads wait to be resumed, and no more may"))
                    .hint("finish or delete one of them first")
            }
            Self::DiskFull => Problem::new(507, "the server's disk is full, but for what it keeps free"),
            Self::Locked => accounts::problem(409, "another request is still sending to this upload")
                .hint("ask for the offset again in a moment")
                .header("Retry-After", "1"),
            Self::Busy => accounts::problem(503, "too many uploads are waiting for the disk"),
            Self::System(error) => {
                tracing::error!(%error, "a file cannot be written");
                accounts::problem(503, "the file cannot be written now")
            }
        }
    }
}

impl From<Refusal> for http_io::server::Error {
    fn from(refusal: Refusal) -> Self {
        refusal.problem().into()
    }
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::DiskFull,
            Errno::ROFS | Errno::ACCESS | Errno::PERM => Self::Conflict("the server may not write there"),
            Errno::NAMETOOLONG => Self::Name { reason: "is too long for the server's disk" },
            Errno::LOOP | Errno::NOTDIR => {
                Self::Conflict("a part of the path is a file or a link, not a folder")
            }
            Errno::XDEV => {
                Self::Conflict("that folder is on another disk, where files cannot be moved atomically")
            }
            Errno::ISDIR => Self::Conflict("there is a folder of this name"),
            Errno::NOTEMPTY => Self::Conflict("the folder is not empty"),
            Errno::NOENT => Self::NotFound,
            other => Self::System(other.into()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::System(error),
        }
    }
}

impl From<engine::offload::Error> for Refusal {
    fn from(error: engine::offload::Error) -> Self {
        match error {
            engine::offload::Error::Full | engine::offload::Error::NoThread => Self::Busy,
            engine::offload::Error::Panicked => Self::System(io::Error::other(error)),
        }
    }
}
