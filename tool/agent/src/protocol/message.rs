//! The messages.

use std::net::SocketAddr;

use analysis::counters::{Counters, ThreadLook};
use analysis::run::ServerUnwatched;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::ProtocolError;

/// What the near end asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Find the processes behind these addresses, and sample them from now on.
    Watch {
        /// The addresses as the generator calls them.
        addresses: Vec<SocketAddr>,
    },
    /// Take a sample now.
    Sample,
    /// Start or stop closer looks at threads.
    LookClosely(bool),
    /// Tell the time.
    Ping(u64),
}

/// What the far end tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Where it runs. Always the first.
    About(About),
    /// For each address that is to be watched whether its processes were found, and where they listen.
    Watching(Vec<Result<SocketAddr, NotFound>>),
    /// A sample; its time is of the far end's clock, as that of looks.
    Sample(Box<Counters>),
    /// A look at threads.
    Look(ThreadLook),
    /// The time at the far end, microseconds of its monotonic clock, and the number of the ping that asked for it.
    Pong(u64, u64),
    /// So many samples and looks were left out since the last such report, because the stream did not take them.
    LeftOut(u64),
}

/// Where an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The name of the host, or of the container.
    pub host: String,
    /// Tells one start of one machine from all others; empty if that may not be read.
    pub boot_id: String,
    /// Tells one namespace of process numbers from others of that machine; empty if that may not be read.
    pub process_namespace: String,
    /// Whether it may see everything.
    pub is_root: bool,
}

/// Why the processes behind an address were not found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotFound {
    /// Neither is the address one of that host's, nor does anything listen on the port.
    NotLocal(SocketAddr),
    /// The address is that host's, and nothing listens on the port.
    NotListening(SocketAddr),
    /// Something listens, and that user may not see what.
    PermissionDenied(SocketAddr),
    /// Something listens, and no process of that host holds the socket.
    NoOwner(SocketAddr),
    /// The agent itself listens.
    OwnProcess(SocketAddr),
    /// A directory cannot be listed.
    Unreadable(String, Option<i32>),
}

impl From<NotFound> for ServerUnwatched {
    fn from(reason: NotFound) -> Self {
        match reason {
            NotFound::NotLocal(address) => Self::NotLocal { address },
            NotFound::NotListening(address) => Self::NotListening { address },
            NotFound::PermissionDenied(address) => Self::PermissionDenied { address },
            NotFound::NoOwner(address) => Self::NoOwner { address },
            NotFound::OwnProcess(address) => Self::OwnProcess { address },
            NotFound::Unreadable(path, os_error) => Self::Unreadable { path, os_error },
        }
    }
}

/// The bytes of a message. Nothing that derives its format can fail to be written to memory.
pub(super) fn written(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, Vec::new()).unwrap_or_default()
}

/// The message that the bytes are, all of them.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ProtocolError> {
    match postcard::take_from_bytes(bytes) {
        Ok((message, [])) => Ok(message),
        _ => Err(ProtocolError::Malformed { length: bytes.len() }),
    }
}

/// The longest name of a host that is shown.
const NAME_CHARS_MAX: usize = 64;

impl About {
    /// The same with a name that can be shown: short, in one line, without control characters.
    #[must_use]
    pub fn fit_to_be_shown(self) -> Self {
        let shown = self.host.chars().filter(|c| !c.is_control() && !c.is_whitespace());
        let host: String = shown.take(NAME_CHARS_MAX).collect();
        Self { host: if host.is_empty() { "unnamed".to_owned() } else { host }, ..self }
    }
}
