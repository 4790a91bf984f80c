//! Finds the content that a hash or a name stands for.

use share::{Content, Name, client::Client, entry::Query};

use super::super::{failure, shown::table};
use nstar::exit::Failure;

/// A hash or a name, as given on the command line.
pub(super) enum Wanted {
    Content(Content),
    Name(Name),
}

/// Content, and its name if that is known.
pub(super) type Known = (Content, Option<Name>);

impl Wanted {
    /// Reads it. Text that looks like a hash is taken as one.
    pub(super) fn read(what: &str) -> Result<Self, Failure> {
        if let Ok(content) = what.parse() {
            return Ok(Self::Content(content));
        }
        what.parse()
            .map(Self::Name)
            .map_err(|error| Failure::usage(format!("{what:?} is neither a hash nor a name: a name {error}")))
    }

    /// Finds the content. All who share the name must mean the same content. The inner failure concerns this content
    /// only, and others may still be downloaded; the outer one concerns the peer or its index.
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
                    "several files have this name; get one by its hash:\n{}",
                    several.trim_end()
                )))
            }
        })
    }
}

/// Explains why the content cannot be obtained, and what to do if a file has this hash as its name.
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
            "{reason}\nit was read as a hash; to get the file of that name, use its hash:\n{}",
            table(named).trim_end()
        )),
    }
}
