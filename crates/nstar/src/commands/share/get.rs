//! `nstar share get`: has a peer obtain a file, shows how far it has come, and copies it where it is wanted.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use share::{
    Content, Name,
    client::Client,
    peer::{Progress, State},
    seam::Query,
};

use super::{failure, table};
use crate::{
    exit::{Exit, Failure},
    flags::ShareGet,
    output,
};

/// How often the bar is drawn anew.
const DRAW_EVERY: Duration = Duration::from_millis(200);
/// Bytes copied from the peer at a time.
const PIECE: u64 = 4 * 1024 * 1024;

pub(super) fn run(client: &mut Client, flags: &ShareGet) -> Result<Exit, Failure> {
    if let Some(path) = flags.output.as_ref().filter(|path| path.exists()) {
        return Err(Failure::usage(format!("-o {}: there is a file already; name another", path.display())));
    }
    match (&flags.what[..], &flags.output) {
        ([what], Some(to)) => {
            let (content, name) = wanted(client, what)?;
            client.obtain(content, name.as_ref()).map_err(failure)?;
            let progress = follow(client, content, &bar(flags.no_progress))?;
            copy(client, content, progress.size, to)?;
            output::print(&format!("{}: {} bytes\n", to.display(), progress.size))?;
            Ok(Exit::Done)
        }
        (_, Some(_)) => Err(Failure::usage("-o names one file; get several without it, or one by one")),
        (several, None) => get_all(client, several, flags.no_progress),
    }
}

/// Has the peer obtain files into its folder, all of them asked for before the first is waited for.
fn get_all(client: &mut Client, what: &[String], silent: bool) -> Result<Exit, Failure> {
    let wanted = what.iter().map(|what| wanted(client, what)).collect::<Result<Vec<_>, _>>()?;
    for (content, name) in &wanted {
        client.obtain(*content, name.as_ref()).map_err(failure)?;
    }
    let (mut failed, bar) = (Vec::new(), bar(silent));
    for ((content, _), what) in wanted.iter().zip(what) {
        match follow(client, *content, &bar) {
            Ok(progress) => {
                let path = progress.path.unwrap_or_default();
                output::print(&format!("{path} is in the peer's shared folder, {} bytes\n", progress.size))?;
            }
            Err(why) => failed.push((what, why)),
        }
    }
    match (&failed[..], what.len()) {
        ([], _) => Ok(Exit::Done),
        ([(_, _)], 1) => Err(failed.remove(0).1),
        (_, all) => {
            failed.iter().for_each(|(what, why)| eprintln!("nstar: {what}: {why}"));
            Err(Failure::failed(format!("{} of {all} files could not be had", failed.len())))
        }
    }
}

/// What is meant by a hash, or by a name that all who share it mean the same by.
fn wanted(client: &mut Client, what: &str) -> Result<(Content, Option<Name>), Failure> {
    if let Ok(content) = what.parse() {
        return Ok((content, None));
    }
    let name: Name = what
        .parse()
        .map_err(|error| Failure::usage(format!("{what:?} is neither a hash nor a name: a name {error}")))?;
    let found = client.search(&Query::Name(name.clone())).map_err(failure)?;
    match &found[..] {
        [] => Err(Failure::failed(format!(
            "nobody shares a file named {name}; `nstar share search` finds parts of names"
        ))),
        [one] => Ok((one.entry.content, Some(name))),
        several => {
            let several = table(several);
            Err(Failure::usage(format!(
                "different files are named so; get one by its hash:\n{}",
                several.trim_end()
            )))
        }
    }
}

/// Waits until the peer has some content, and shows how far it has come.
fn follow(client: &mut Client, content: Content, bar: &ProgressBar) -> Result<Progress, Failure> {
    let mut progress = client.progress(content, DRAW_EVERY).map_err(failure)?;
    while progress.state == State::Running {
        bar.set_length(progress.size);
        bar.set_position(progress.bytes);
        let peers = progress.sources.values().filter(|source| source.bytes > 0).count();
        bar.set_message(format!("from {peers} peers"));
        progress = client.progress(content, DRAW_EVERY).map_err(failure)?;
    }
    bar.finish_and_clear();
    tell_of_liars(&progress);
    match progress.state {
        State::Done => Ok(progress),
        _ => Err(Failure::failed(progress.error.unwrap_or_else(|| "the peer gave it up".into()))),
    }
}

fn tell_of_liars(progress: &Progress) {
    for (peer, source) in progress.sources.iter().filter(|(_, source)| source.lied) {
        let how = source.trouble.as_deref().unwrap_or("it lied");
        eprintln!("nstar: {peer}: {how}; nothing of that was taken");
    }
}

/// Copies content from the peer, and checks it once more on the way: the file is there whole and right, or not at all.
fn copy(client: &mut Client, content: Content, size: u64, to: &Path) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::failed(format!("{} cannot be written: {error}", to.display()));
    let aside = aside(to);
    let mut file = File::create_new(&aside).map_err(failed)?;
    let copied = copy_into(client, (content, size), &mut file, failed);
    let placed = copied.and_then(|()| fs::rename(&aside, to).map_err(failed));
    if placed.is_err() {
        // It is not there any more where the renaming failed late.
        let _ = fs::remove_file(&aside);
    }
    placed
}

fn copy_into(
    client: &mut Client,
    (content, size): (Content, u64),
    file: &mut File,
    failed: impl Fn(io::Error) -> Failure,
) -> Result<(), Failure> {
    let mut hasher = blake3::Hasher::new();
    let mut at = 0;
    while at < size {
        let bytes = client.read(content, at..size.min(at + PIECE)).map_err(failure)?;
        if bytes.is_empty() {
            return Err(Failure::failed("the peer broke off; ask again"));
        }
        hasher.update(&bytes);
        file.write_all(&bytes).map_err(&failed)?;
        at += bytes.len() as u64;
    }
    if Content::from(hasher.finalize()) != content {
        return Err(Failure::failed(
            "the peer sent bytes that are not those of the file; nothing was written",
        ));
    }
    file.sync_all().map_err(failed)
}

fn aside(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    name.into()
}

fn bar(silent: bool) -> ProgressBar {
    if silent || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}
