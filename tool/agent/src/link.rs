//! An agent that was started somewhere, and the stream to it.

use std::process;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::open::Ended;
use crate::patience::Patience;
use crate::protocol::{About, Command};
use crate::ssh::{BySsh, Connection};
use crate::stream::{End, Stream};
use crate::trouble::StartError;

/// How long an agent has for all its answers when it is started, and for each later: pulling up a container's process may take seconds.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// Round trips at the start, so that the clocks are aligned before anything else.
const PINGS: u64 = 8;

/// This very program, even where its file has been replaced since.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// A running agent, until dropped.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) about: About,
    // Ends before the connection that it runs over.
    pub(crate) stream: Stream,
    _connection: Option<Connection>,
}

impl Link {
    /// Starts an agent and aligns its clock with ours, until somebody asks to stop. `by_ssh` says how it runs on a host that is
    /// reached so.
    pub(crate) fn start(endpoint: &Endpoint, by_ssh: BySsh, stop: &AtomicBool) -> Result<Self, StartError> {
        Self::start_within(ANSWER_PATIENCE, endpoint, (by_ssh, stop))
    }

    /// The same, with so much time for all answers together.
    fn start_within(
        most: Duration,
        endpoint: &Endpoint,
        (by_ssh, stop): (BySsh, &AtomicBool),
    ) -> Result<Self, StartError> {
        // Of the two the stream ends first, also where this fails.
        let (connection, stream) = reach(endpoint, by_ssh, stop)?;
        let patience = Patience::begin(most, stop);
        let began = stream.shared.wait_unless_stopped(&patience, |kept| kept.about.is_some());
        let failure = |began: bool| match began {
            true => None,
            false if patience.is_stopped() => Some(StartError::Interrupted),
            false => Some(why_not(&stream, endpoint)),
        };
        failure(began).map_or(Ok(()), Err)?;
        for number in 1..=PINGS {
            stream.ask(Command::Ping(0));
            let answered = stream.shared.wait_unless_stopped(&patience, |kept| kept.pongs >= number);
            failure(answered).map_or(Ok(()), Err)?;
        }
        let about = stream.shared.lock().about.clone().unwrap_or_default();
        Ok(Self { about, stream, _connection: connection })
    }
}

/// Starts the command, or takes the stream that is there.
fn reach(
    endpoint: &Endpoint,
    by_ssh: BySsh,
    stop: &AtomicBool,
) -> Result<(Option<Connection>, Stream), StartError> {
    let (command, connection) = match endpoint {
        Endpoint::Here => (here(), None),
        Endpoint::Command(words) => (command(words), None),
        Endpoint::Ssh(host) => {
            let connection = Connection::new(endpoint, host)?;
            (connection.agent(by_ssh, stop)?, Some(connection))
        }
        Endpoint::Open(stream) => {
            let opened = stream.take().ok_or_else(|| std::io::Error::other("the stream was used before"));
            let opened = opened.and_then(Stream::open);
            return opened
                .map(|stream| (None, stream))
                .map_err(|source| StartError::Here { what: "the stream", source });
        }
    };
    let program = command.get_program().to_string_lossy().into_owned();
    let stream = Stream::start(command).map_err(|source| StartError::NotRun { program, source })?;
    Ok((connection, stream))
}

/// An agent beside this process. It is known by the name of the program, where its file is still there.
pub(crate) fn here() -> process::Command {
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let mut command = process::Command::new(program.unwrap_or_else(|| OWN_PROGRAM.into()));
    command.arg("agent");
    command
}

fn command(words: &[String]) -> process::Command {
    let mut command = process::Command::new(words.first().map_or("", String::as_str));
    command.args(words.get(1..).unwrap_or_default());
    command
}

/// Why an agent did not answer.
fn why_not(stream: &Stream, endpoint: &Endpoint) -> StartError {
    let endpoint = Box::new(endpoint.clone());
    match stream.end() {
        Some(End::Protocol(source)) => StartError::Protocol { endpoint, source, stderr: stream.last_words() },
        Some(End::Flooded) => StartError::Flooded { endpoint, stderr: stream.last_words() },
        Some(End::Closed) => match stream.how_it_ended() {
            Ended::Exited { code, stderr } => StartError::Ended { endpoint, code, stderr },
            Ended::Disconnected { reason } => StartError::Disconnected { endpoint, reason },
        },
        None => {
            StartError::Silent { endpoint, limit_s: ANSWER_PATIENCE.as_secs(), stderr: stream.last_words() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
    use std::thread;

    use super::*;
    use crate::open::{OpenStream, Ways};
    use crate::protocol::{self, Commands, Greeting, Packer, Report};

    /// Answers every ping late.
    fn late(mut input: PipeReader, mut output: PipeWriter) -> std::io::Result<()> {
        let (mut greeting, mut commands, mut packer) =
            (Greeting::default(), Commands::default(), Packer::default());
        let mut say = |report: Report| output.write_all(&packer.pack(&report).unwrap());
        let (mut greeted, mut chunk) = (false, [0; 4096]);
        while let Ok(read @ 1..) = input.read(&mut chunk) {
            if greeted {
                commands.push(&chunk[..read]);
            } else if let Some(rest) = greeting.push(&chunk[..read]).unwrap() {
                greeted = true;
                commands.push(&rest);
                say(Report::About(About::default()))?;
            }
            while let Some(command) = commands.next_command().unwrap() {
                let Command::Ping(number) = command else { continue };
                thread::sleep(Duration::from_millis(300));
                say(Report::Pong(number, 1))?;
            }
        }
        Ok(())
    }

    /// One that has greeted and answers so.
    fn open(answers: impl FnOnce(PipeReader, PipeWriter) + Send + 'static) -> Endpoint {
        let (input, commands) = pipe().unwrap();
        let (said, mut output) = pipe().unwrap();
        output.write_all(protocol::greeting().as_bytes()).unwrap();
        thread::spawn(move || answers(input, output));
        let ways = Ways { output: Box::new(said), input: Box::new(commands), ended: Box::new(|| None) };
        Endpoint::Open(OpenStream::new("far", ways))
    }

    #[test]
    fn all_answers_at_the_start_have_to_come_within_one_time() {
        let endpoint = open(|input, output| drop(late(input, output)));
        let go_on = AtomicBool::new(false);
        let started = Link::start_within(Duration::from_secs(1), &endpoint, (BySsh::default(), &go_on));
        assert!(matches!(started, Err(StartError::Silent { .. })), "{started:?}");
    }

    #[test]
    fn a_start_that_waits_for_an_agent_is_given_up_once_somebody_asks_to_stop() {
        let silent = |mut input: PipeReader, _output: PipeWriter| drop(input.read_to_end(&mut Vec::new()));
        let stop = AtomicBool::new(true);
        let day = Duration::from_secs(24 * 60 * 60);
        let started = Link::start_within(day, &open(silent), (BySsh::default(), &stop));
        assert!(matches!(started, Err(StartError::Interrupted)), "{started:?}");
    }
}
