//! The near end of an agent over pipes, and a far end that answers what it likes.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::AtomicBool;
use std::thread;

use agent::protocol::{self, About, Command, Commands, Greeting, Packer, Report};
use agent::{BySsh, Endpoint, Observer, OpenStream, StartError, Ways};

/// The near end of an agent that is this.
pub(crate) fn observer(far: impl FnOnce(PipeReader, PipeWriter) + Send + 'static) -> Observer {
    started(far).unwrap()
}

/// The same, where it may not start.
pub(crate) fn started(
    far: impl FnOnce(PipeReader, PipeWriter) + Send + 'static,
) -> Result<Observer, StartError> {
    let (input, commands) = pipe().unwrap();
    let (said, output) = pipe().unwrap();
    thread::spawn(move || far(input, output));
    let ways = Ways { output: Box::new(said), input: Box::new(commands), ended: Box::new(|| None) };
    let endpoint = Endpoint::Open(OpenStream::new("far", ways));
    Observer::start(&endpoint, BySsh::default(), &AtomicBool::new(false))
}

/// Greets and tells the time as an agent does, and says this to every other command.
pub(crate) fn liar(says: impl Fn(Command, &mut Packer) -> Vec<u8> + Send + 'static) -> Observer {
    observer(move |mut input, mut output| {
        let (mut greeting, mut commands, mut packer) =
            (Greeting::default(), Commands::default(), Packer::default());
        let about = packer.pack(&Report::About(About::default())).unwrap();
        output.write_all(&[protocol::greeting().as_bytes(), &about].concat()).unwrap();
        let (mut greeted, mut chunk) = (false, [0; 4096]);
        loop {
            let Ok(read @ 1..) = input.read(&mut chunk) else { return };
            if greeted {
                commands.push(&chunk[..read]);
            } else if let Some(rest) = greeting.push(&chunk[..read]).unwrap() {
                greeted = true;
                commands.push(&rest);
            }
            while let Some(command) = commands.next_command().unwrap() {
                let answer = match command {
                    Command::Ping(number) => packer.pack(&Report::Pong(number, 1)).unwrap(),
                    other => says(other, &mut packer),
                };
                if output.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    })
}
