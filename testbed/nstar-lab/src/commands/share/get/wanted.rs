//! What is meant by a hash or by a name.

use share::{Content, Name, client::Client, entry::Query};

use super::super::{failure, shown::table};
use nstar::exit::Failure;

/// A hash, or a name, as a person wrote it.
pub(super) enum Wanted {
    Content(Content),
    Name(Name),
}

/// Content, and what it is to be called where that is known.
pub(super) type Known = (Content, Option<Name>);

impl Wanted {
    /// Reads it; what is written as a hash is one.
    pub(super) fn read(what: &str) -> Result<Self, Failure> {
        if let Ok(content) = what.parse() {
            return Ok(Self::Content(content));
        }
        what.parse()
            .map(Self::Name)
            .map_err(|error| Failure::usage(format!("{what:?} is neither a hash nor a name: a name {error}")))
    }

    /// The content: of a name, what all who share it mean by it. The inner failure is about this one only, and others may
    /// still be had; the outer one is about the peer, or its index.
    pub(super) fn find(&self, client: &mut Client) -> Result<Result<Known, Failure>, Failure> {
        let name = match self {
            Self::Content(content) => return Ok(Ok((*content, None))),
            Self::Name(name) => name,
        };
        let found = client.search(&Query::Name(name.clone())).map_err(failure)?;
        Ok(match &found[..] {
            [] => Err(Failure::failed(format!(
                "nobody shares a file named {name}; `nstar share search` finds words of names"
            ))),
            [one] => Ok((one.entry.content, Some(name.clone()))),
            several => {
                let several = table(several);
                Err(Failure::usage(format!(
                    "different files are named so; get one by its hash:\n{}",
                    several.trim_end()
                )))
            }
        })
    }
}

/// The failure to have what was asked for, with what to do where nobody has a content of that hash but a file is named so.
pub(super) fn explain(client: &mut Client, what: &str, why: Failure) -> Failure {
    let (Failure::Failed(reason), Ok(content), Ok(name)) = (&why, what.parse(), what.parse()) else {
        return why;
    };
    let mut search = |query| client.search(&query).unwrap_or_default();
    if !search(Query::Content(content)).is_empty() {
        return why;
    }
    match &search(Query::Name(name))[..] {
        [] => why,
        named => Failure::failed(format!(
            "{reason}\nit was taken as a hash; a file that is named so is got by its own:\n{}",
            table(named).trim_end()
        )),
    }
}
