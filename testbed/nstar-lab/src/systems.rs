//! The systems that `nstar-lab serve` runs. To add one, add its flags to [`SYSTEMS`].

use std::ffi::OsString;

use clap::{ArgMatches, Command, FromArgMatches, Subcommand, error::ErrorKind};
use nstar::exit::{Exit, Failure};
use serve::{System, SystemCommand};

/// The systems, in the order of the help.
const SYSTEMS: &[SystemCommand] = &[
    SystemCommand::of::<files::command::FilesFlags>(),
    SystemCommand::of::<accounts::command::AccountsFlags>(),
    SystemCommand::of::<booking::command::BookingFlags>(),
    SystemCommand::of::<sink::command::SinkFlags>(),
    SystemCommand::of::<share::index::command::IndexFlags>(),
    SystemCommand::of::<share_dht::command::PeerFlags>(),
];

/// The words before the flags of a system: the program, `serve`, and the name of the system.
const SYSTEM_WORDS: usize = 3;

/// The system that the command line names, with its flags.
#[derive(Debug)]
pub(crate) struct Serve(Box<dyn System>);

impl Serve {
    /// Serves until told to stop.
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        self.0.serve()
    }
}

impl Subcommand for Serve {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(SYSTEMS.iter().map(|system| system.command()))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        find(name).is_some()
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        find(name).ok_or_else(missing)?.parse(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The words of the command line, with those of the configuration file that a server's flags name.
pub(crate) fn with_file(mut words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let word = |n: usize| words.get(n).and_then(|word| word.to_str());
    let Some(system) = word(1).filter(|&word| word == "serve").and_then(|_| find(word(2)?)) else {
        return Ok(words);
    };
    let flags = words.split_off(SYSTEM_WORDS);
    words.extend(serve::with_file(&system.command(), flags)?);
    Ok(words)
}

fn find(name: &str) -> Option<SystemCommand> {
    SYSTEMS.iter().copied().find(|system| system.command().get_name() == name)
}
