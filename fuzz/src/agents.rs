//! The stream between nstar and its agents: each end takes what the other sends for a stranger's.

use std::hash::{DefaultHasher, Hash, Hasher};

use agent::protocol::{Command, Commands, Greeting, Packer, Profiled, Report, Reports, command};

/// Most pieces that a stream comes in.
const PIECES_MAX: usize = 64;

pub(crate) fn greeting(bytes: &[u8]) {
    let whole = greeted([bytes]);
    assert_eq!(whole, greeted(bytes.chunks(1)), "in pieces of 1 byte");
}

/// What followed the greeting, or `None` until that is complete. Errors only tell how far the stream was read.
fn greeted<'b>(pieces: impl IntoIterator<Item = &'b [u8]>) -> Result<Option<Vec<u8>>, ()> {
    let (mut greeting, mut after) = (Greeting::default(), None::<Vec<u8>>);
    for piece in pieces {
        match &mut after {
            Some(after) => after.extend_from_slice(piece),
            None => after = greeting.push(piece).map_err(|error| is_shown(&error.to_string()))?,
        }
    }
    Ok(after)
}

fn is_shown(message: &str) {
    assert!(!message.contains(char::is_control), "a terminal would obey: {message:?}");
}

/// What came out of a stream: its messages, each by the hash of its bytes, as they may be long, and whether an error ended it.
type Seen = (Vec<u64>, bool);

pub(crate) fn reports(bytes: &[u8]) {
    same_in_any_pieces(bytes, |pieces| {
        let next = |reports: &mut Reports| {
            let read = reports.next_report().map_err(drop)?;
            Ok(read.map(|(report, _)| report_again(&report)))
        };
        read(Reports::default(), pieces, Reports::push, next)
    });
}

pub(crate) fn commands(bytes: &[u8]) {
    same_in_any_pieces(bytes, |pieces| {
        let next = |commands: &mut Commands| {
            let read = commands.next_command().map_err(drop)?;
            Ok(read.map(|command| command_again(&command)))
        };
        read(Commands::default(), pieces, Commands::push, next)
    });
}

/// Reads all messages of a stream, up to its first error.
fn read<R>(
    mut reader: R,
    pieces: &[&[u8]],
    push: fn(&mut R, &[u8]),
    next: impl Fn(&mut R) -> Result<Option<u64>, ()>,
) -> Seen {
    let mut seen = Vec::new();
    for piece in pieces {
        push(&mut reader, piece);
        loop {
            match next(&mut reader) {
                Ok(Some(message)) => seen.push(message),
                Ok(None) => break,
                Err(()) => return (seen, true),
            }
        }
    }
    (seen, false)
}

/// Packs a report and unpacks it, which must not change it.
fn report_again(report: &Report) -> u64 {
    if let Report::Profiled(profiled) = report {
        is_fit_to_be_shown(profiled);
    }
    is_believed_once(report);
    let Some(packed) = Packer::default().pack(report) else { return 0 };
    let mut reports = Reports::default();
    reports.push(&packed);
    let (again, _) = reports.next_report().expect("what was packed can be read").expect("all of it");
    assert_eq!(Packer::default().pack(&again).as_ref(), Some(&packed), "it arrives changed");
    hash(&packed)
}

/// What is believed of a report is believed as it is, and the names in its samples can be shown.
fn is_believed_once(report: &Report) {
    let believed = report.clone().believed();
    let sample = if let Report::Sample(sample) = &believed { Some(sample) } else { None };
    for process in sample.iter().flat_map(|sample| &sample.processes) {
        let threads = process.threads.iter().map(|thread| &thread.name);
        threads.chain([&process.name, &process.program]).for_each(|name| is_shown(name));
    }
    let packed = |report: &Report| Packer::default().pack(report);
    assert_eq!(packed(&believed.clone().believed()), packed(&believed), "it is cut again");
}

/// What is believed of a profile of one tier can be drawn.
fn is_fit_to_be_shown(profiled: &Profiled) {
    let Some(told) = profiled.clone().into_host(&[Default::default()]) else { return };
    for tier in &told.tiers {
        tier.functions.iter().for_each(|function| is_shown(&function.name));
        let is_there = |call: &u32| (*call as usize) < tier.functions.len();
        assert!(tier.stacks.iter().flat_map(|stack| &stack.calls).all(is_there), "a call of no function");
    }
}

fn command_again(read: &Command) -> u64 {
    let Ok(sent) = command(read) else { return 0 };
    let mut commands = Commands::default();
    commands.push(&sent);
    let again = commands.next_command().expect("what was sent can be read").expect("all of it");
    assert_eq!(command(&again).as_ref(), Ok(&sent), "it arrives changed");
    hash(&sent)
}

fn same_in_any_pieces(stream: &[u8], read: impl Fn(&[&[u8]]) -> Seen) {
    let step = stream.len() / PIECES_MAX + 1;
    let pieces: Vec<_> = stream.chunks(step).collect();
    assert_eq!(read(&[stream]), read(&pieces), "in pieces of {step} bytes");
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
