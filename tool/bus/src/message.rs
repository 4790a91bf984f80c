//! What is said to find and to claim members: small JSON objects, so that `nats sub 'nstar.>'` shows what goes on.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The longest of them that is read.
const BYTES_MAX: usize = 4 << 10;

/// The longest text of others that is shown.
const SHOWN_CHARS_MAX: usize = 64;

/// The subject that asks who is there.
pub(crate) const WHO: &str = "nstar.who";

/// The subject that claims a member.
pub(crate) fn claim_subject(member: &str) -> String {
    format!("nstar.member.{member}.claim")
}

/// The subjects of a stream: to the member, and from it.
pub(crate) fn stream_subjects(run: &str, member: &str) -> (String, String) {
    (format!("nstar.run.{run}.{member}.down"), format!("nstar.run.{run}.{member}.up"))
}

/// What a member says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Presence {
    /// Tells it from all others.
    pub(crate) id: String,
    /// The name of its host.
    pub(crate) host: String,
    /// Of the program and of what it says over a stream; both ends must have the same.
    pub(crate) version: String,
    /// Whether it observes, rather than makes load.
    pub(crate) observes: bool,
    /// Who runs on it now.
    pub(crate) busy: Option<String>,
}

/// A run wants a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// Tells the run from all others.
    pub(crate) run: String,
    /// Who runs.
    pub(crate) who: String,
    /// The version of the run's nstar.
    pub(crate) version: String,
}

/// What a member answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// It belongs to the run.
    Claimed,
    /// It belongs to another, of this person.
    Busy(String),
    /// Its version is another.
    OtherVersion(String),
}

impl Presence {
    /// The same with texts that can be shown. An id that cannot be part of a subject is none.
    pub(crate) fn sound(self) -> Option<Self> {
        let sound = is_word(&self.id);
        let busy = self.busy.as_deref().map(shown);
        sound.then(|| Self { host: shown(&self.host), version: shown(&self.version), busy, ..self })
    }
}

impl Claim {
    /// The same with texts that can be shown. A run that cannot be part of a subject is none.
    pub(crate) fn sound(self) -> Option<Self> {
        is_word(&self.run).then(|| Self { who: shown(&self.who), version: shown(&self.version), ..self })
    }
}

/// Sixteen hexadecimal digits that nobody guesses.
pub(crate) fn random_word() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_word(text: &str) -> bool {
    (1..=SHOWN_CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Text of others fit to be shown: one line, without control characters, of bounded length.
pub(crate) fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS_MAX).collect()
}

/// The bytes of a message. Nothing that derives its format can fail to be written to memory.
pub(crate) fn written(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// The message that the bytes are, if they are one.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let short = Some(bytes).filter(|bytes| bytes.len() <= BYTES_MAX)?;
    serde_json::from_slice(short).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shown_or_addressed_is_cleaned_or_refused() {
        let presence = |id: &str| Presence {
            id: id.into(),
            host: "a\x1b[2J\nb".into(),
            version: "x".repeat(500),
            observes: false,
            busy: Some("ann\r".into()),
        };
        let sound = presence("00ff").sound().unwrap();
        assert_eq!((&*sound.host, sound.version.len(), sound.busy.as_deref()), ("a [2J b", 64, Some("ann ")));
        for id in ["", "a.b", "a b", ">", "*", &"a".repeat(65)] {
            assert_eq!(presence(id).sound(), None, "{id}");
        }
        let claim = Claim { run: "x.>".into(), who: String::new(), version: String::new() };
        assert_eq!(claim.sound(), None);
    }

    #[test]
    fn messages_are_read_as_written_and_others_are_not() {
        let answer = Answer::Busy("ann@laptop".into());
        assert_eq!(read(&written(&answer)), Some(answer));
        assert_eq!(read::<Answer>(b"{}"), None);
        assert_eq!(read::<String>(&written(&"x".repeat(BYTES_MAX))), None);
        let (one, other) = (random_word().unwrap(), random_word().unwrap());
        assert!(is_word(&one) && one.len() == 16 && one != other);
    }
}
