//! The greeting: who is at the other end, and of which version.

use super::PROTOCOL;

/// The longest greeting, the end of the line included.
pub const GREETING_BYTES_MAX: usize = 128;

/// How a greeting begins.
const NAME: &str = "nstar-agent";

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Our own greeting.
#[must_use]
pub fn greeting() -> String {
    format!("{NAME} {VERSION} protocol {PROTOCOL}\n")
}

/// Reads the other end's greeting from the start of a stream.
#[derive(Debug, Default)]
pub struct Greeting {
    line: Vec<u8>,
}

/// Reasons why the two ends do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GreetingError {
    /// Another version of nstar.
    #[error(
        "nstar there is of version {theirs} (protocol {their_protocol}), here of version {VERSION} (protocol {PROTOCOL}); \
         both have to be the same"
    )]
    OtherVersion {
        /// Its version.
        theirs: String,
        /// The version of its protocol.
        their_protocol: String,
    },
    /// Something else than nstar.
    #[error("instead of an nstar agent came: {said}")]
    NotAnAgent {
        /// What it said first, made fit to be shown.
        said: String,
    },
}

impl Greeting {
    /// Takes bytes that came; returns those after the greeting once it is complete, `None` until then.
    ///
    /// # Errors
    /// If they are not the greeting of this version.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, GreetingError> {
        self.line.extend_from_slice(bytes);
        let Some(end) = self.line.iter().take(GREETING_BYTES_MAX).position(|byte| *byte == b'\n') else {
            let may_still_be =
                NAME.as_bytes().iter().zip(&self.line).all(|(expected, byte)| expected == byte);
            let too_long = self.line.len() >= GREETING_BYTES_MAX;
            return if may_still_be && !too_long { Ok(None) } else { Err(self.not_an_agent()) };
        };
        let rest = self.line.split_off(end + 1);
        self.check()?;
        Ok(Some(rest))
    }

    fn check(&self) -> Result<(), GreetingError> {
        let line = String::from_utf8_lossy(&self.line);
        if *line == greeting() {
            return Ok(());
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [NAME, version, "protocol", protocol, ..] => Err(GreetingError::OtherVersion {
                theirs: shown(version.as_bytes()),
                their_protocol: shown(protocol.as_bytes()),
            }),
            _ => Err(self.not_an_agent()),
        }
    }

    fn not_an_agent(&self) -> GreetingError {
        GreetingError::NotAnAgent { said: shown(&self.line) }
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..GREETING_BYTES_MAX.min(bytes.len())).unwrap_or_default());
    in_one_line(text.trim(), GREETING_BYTES_MAX)
}

/// Text of others made fit to be shown: one line, without control characters, of bounded length.
pub(crate) fn in_one_line(text: &str, chars_max: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars_max).collect()
}
