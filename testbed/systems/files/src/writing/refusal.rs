//! Why a file is not taken, replaced or removed.

use std::io;

use http_io::Problem;
use rustix::io::Errno;

/// Why a file is not taken, replaced or removed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Nobody may change anything here.
    Off,
    /// This user may not change this.
    Forbidden,
    /// There is no such file or upload, as far as this user may know.
    NotFound,
    /// No file may have this name.
    Name {
        /// What is wrong with it; follows "the name".
        reason: &'static str,
    },
    /// The request contradicts itself, or what was said before.
    Request(&'static str),
    /// The file is in another state than the request asks for.
    Precondition,
    /// Something else stands in the way.
    Conflict(&'static str),
    /// Not the place at which the upload is to go on.
    Offset {
        /// That place: what has come so far, bytes.
        expected: u64,
    },
    /// Longer than anybody may upload.
    TooLong {
        /// The longest, bytes.
        most: u64,
    },
    /// More than the user may keep.
    Quota {
        /// What they keep, other uploads under way included, bytes.
        used: u64,
        /// What they may keep, bytes.
        quota: u64,
    },
    /// The disk is full.
    DiskFull,
    /// Another request works at the same upload.
    Locked,
    /// Too much to do.
    Busy,
    /// The system failed.
    System(io::Error),
}

impl Refusal {
    /// What to tell the client.
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::Off => Problem::new(403, "this server takes no files")
                .hint("it was started to be read only, or without accounts"),
            Self::Forbidden => Problem::new(403, "you may not change this")
                .hint("your own folder is /files/users/YOUR-NAME/"),
            Self::NotFound => Problem::new(404, "there is no such file"),
            Self::Name { reason } => Problem::new(422, format!("the name {reason}")),
            Self::Request(what) => Problem::new(400, what),
            Self::Precondition => Problem::new(412, "the file is in another state than the request asks for"),
            Self::Conflict(what) => Problem::new(409, what),
            Self::Offset { expected } => Problem::new(409, "the upload does not go on from there")
                .hint(format!("it goes on at byte {expected}"))
                .header("Upload-Complete", "?0")
                .header("Upload-Offset", expected.to_string()),
            Self::TooLong { most } => {
                Problem::new(413, format!("{most} bytes are the most that one upload may have"))
            }
            Self::Quota { used, quota } => {
                let error = format!("this would be more than you may keep: {used} of {quota} bytes are used");
                Problem::new(507, error).hint("delete something first; an upload under way counts, too")
            }
            Self::DiskFull => Problem::new(507, "the server's disk is full"),
            Self::Locked => accounts::problem(409, "another request is still sending to this upload")
                .hint("ask for the offset again soon")
                .header("Retry-After", "1"),
            Self::Busy => accounts::problem(503, "too many uploads wait for the disk"),
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
            Errno::ROFS | Errno::ACCESS | Errno::PERM => {
                Self::Conflict("the server itself may not write there")
            }
            Errno::NAMETOOLONG => Self::Name { reason: "is too long for the server's disk" },
            Errno::LOOP | Errno::NOTDIR => {
                Self::Conflict("a part of the path is a file or a link, not a folder")
            }
            Errno::XDEV => {
                Self::Conflict("that folder lies on another disk, where no file can be put at one stroke")
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
