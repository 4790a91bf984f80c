//! The stacks that tiers run on, one file each: how a tier is started, and what it can do.

mod database;
mod go;
mod haproxy;
mod java;
mod nginx;
mod node;
mod php;
mod python;
mod rust;
mod script;

use std::{io::Write, net::TcpStream, os::unix::fs::OpenOptionsExt, path::Path};

use database_server::DatabaseServer;

pub(crate) use self::rust::own_program;
use crate::{Trouble, place::Place, process::Process, stage::Stage, tier::Tier};

/// How tiers of a stack are started.
pub(crate) struct Stack {
    name: &'static str,
    start: fn(&Start) -> Result<Running, Trouble>,
}

const STACKS: [Stack; 9] = [
    Stack { name: rust::NAME, start: rust::start },
    Stack { name: "nginx", start: nginx::start },
    Stack { name: "haproxy", start: haproxy::start },
    Stack { name: "python", start: python::start },
    Stack { name: "node", start: node::start },
    Stack { name: "go", start: go::start },
    Stack { name: "java", start: java::start },
    Stack { name: "php", start: php::start },
    Stack { name: "mariadb", start: database::start },
];

/// What a tier is started with.
pub(crate) struct Start<'a> {
    tier: &'a Tier,
    place: &'a Place,
    /// A folder of its own.
    folder: &'a Path,
    upstream: Option<&'a Address>,
}

/// Where a tier takes requests, and in which form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Address {
    /// HTTP at host and port.
    Http(String),
    /// FastCGI at a unix socket, and the program to be run.
    FastCgi { socket: String, program: String },
    /// Statements, in a form of the suite's own: `mysql:HOST:PORT:row|statement:MICROSECONDS:BYTES:FILE`, with the password in
    /// the file.
    Database(String),
}

/// A tier that runs.
pub(crate) struct Running {
    pub(crate) address: Address,
    /// Dropping these ends the tier; nothing else is done with them.
    _keeps: Keeps,
}

/// What has to be kept for a tier to go on.
#[expect(dead_code, reason = "kept to be dropped")]
enum Keeps {
    Process(Process),
    Database(Box<DatabaseServer>),
}

/// The stack of this name.
pub(crate) fn find(name: &str) -> Result<&'static Stack, Trouble> {
    let known = STACKS.iter().find(|stack| stack.name == name);
    known.ok_or_else(|| Trouble::Case(format!("there is no stack '{name}'")))
}

/// Starts a tier, and waits until it takes requests.
pub(crate) fn start(
    tier: &Tier,
    place: &Place,
    folder: &Path,
    upstream: Option<&Address>,
) -> Result<Running, Trouble> {
    let start = Start { tier, place, folder, upstream };
    if tier.surroundings.heavy.is_some() && tier.stack != rust::NAME {
        return Err(start.cannot("serve two kinds of request"));
    }
    (find(&tier.stack)?.start)(&start)
}

impl Start<'_> {
    /// Runs a server that listens at the place's address.
    fn serve(&self, words: impl IntoIterator<Item = String>) -> Result<Running, Trouble> {
        let words: Vec<_> = self.place.wrapper.iter().cloned().chain(words).collect();
        let name = self.tier.name.clone().unwrap_or_default();
        let mut process = Process::start(&words, self.folder, &[("NAME", name)])?;
        process.wait_until(|| TcpStream::connect(&self.place.address).is_ok())?;
        Ok(Running { address: Address::Http(self.place.address.clone()), _keeps: Keeps::Process(process) })
    }

    /// Writes a file into the tier's folder.
    fn write(&self, name: &str, text: &str) -> Result<String, Trouble> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(Trouble::io(format!("write {}", path.display())))?;
        Ok(path.display().to_string())
    }

    /// Writes a file into the tier's folder that nobody else may read.
    fn write_secret(&self, name: &str, text: &str) -> Result<String, Trouble> {
        let path = self.folder.join(name);
        let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(Trouble::io(format!("write {}", path.display())))?;
        Ok(path.display().to_string())
    }

    /// The upstream server, where this stack speaks nothing but HTTP to it.
    fn http_upstream(&self) -> Result<Option<&str>, Trouble> {
        match self.upstream {
            None => Ok(None),
            Some(Address::Http(address)) => Ok(Some(address)),
            Some(other) => Err(self.cannot(&format!("speak to {other:?}"))),
        }
    }

    fn cannot(&self, what: &str) -> Trouble {
        Trouble::Case(format!("{} cannot {what}", self.tier.stack))
    }

    /// Refuses stages that the stack does not know.
    fn only(&self, known: fn(&Stage) -> bool) -> Result<(), Trouble> {
        match self.tier.stages.iter().find(|stage| !known(stage)) {
            Some(stage) => Err(self.cannot(&stage.to_string())),
            None => Ok(()),
        }
    }
}
