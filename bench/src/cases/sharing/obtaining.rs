//! Obtaining files, checked and kept: against curl, and one large file from the command line against sendme (iroh), which
//! verifies with the same hashes.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use share::{
    Content,
    client::Client,
    peer::{DownloadState, Progress},
};

use super::{IndexKind, PATIENCE, PeerGroup, until_found};
use crate::{
    programs::servers::{self, KB, Site, need_nginx},
    tools::{
        cpu::run_on,
        effort::{Effort, Result},
        table::{Against, Row},
        workspace::{SHARED, ServerProcess, Workspace, installed},
    },
};

/// Obtains files one after the other, against curl from nginx. `TMPDIR=/dev/shm` leaves the disk out of it.
pub(in super::super) fn large(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    need_nginx()?;
    let nginx = servers::nginx(workspace, &Site::default())?;
    let crowd = PeerGroup::start(workspace, IndexKind::Central, &["source", "receiver"].map(String::from))?;
    let [_, receiver] = &crowd.peers[..] else { return Err("two peers were started".into()) };
    let mut client = Client::new(receiver.address, None)?;
    let mut all = Vec::new();
    for (work, bytes, count) in
        [("1 MB", 1_000 * KB, 40), ("10 MB", 10_000 * KB, 10), ("100 MB", 100_000 * KB, 2)]
    {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds {
            let names: Vec<_> = (0..count).map(|number| format!("{bytes}-{round}-{number}.bin")).collect();
            let contents =
                names.iter().map(|name| write(workspace, name, bytes)).collect::<Result<Vec<_>>>()?;
            let total = (bytes * count) as f64;
            contents.iter().try_for_each(|content| until_found(&mut client, *content))?;
            ours.push(total / obtain(&mut client, &contents)?);
            theirs.push(total / curl(workspace, &nginx, &names)?);
            for name in &names {
                fs::remove_file(workspace.path(&format!("source/{name}")))?;
                fs::remove_file(workspace.path(&format!("receiver/{name}")))?;
            }
        }
        let against = Against::Program { name: "curl from nginx".into(), theirs, reach: Some(0.8) };
        all.push(Row { work: format!("obtain, {work}, one source"), unit: "B/s", ours, against });
    }
    Ok(all)
}

/// Runs a program and returns how long it took, in seconds.
pub(super) fn timed(words: &[String]) -> Result<f64> {
    let begun = Instant::now();
    run_on(SHARED, words, &[0])?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Writes a new file of the source.
pub(super) fn write(workspace: &Workspace, name: &str, bytes: usize) -> Result<Content> {
    let (bytes, content) = new_file(bytes);
    fs::write(workspace.path(&format!("source/{name}")), bytes)?;
    Ok(content)
}

/// Makes content unlike any before.
pub(super) fn new_file(length: usize) -> (Vec<u8>, Content) {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let seed = FILES.fetch_add(1, Relaxed);
    let bytes: Vec<u8> =
        (0_u64..).flat_map(|number| (number ^ (seed << 40)).to_le_bytes()).take(length).collect();
    let content = Content::of(&bytes);
    (bytes, content)
}

/// Has a receiver obtain contents that the index knows, one after the other. Returns the seconds it took.
pub(super) fn obtain(client: &mut Client, contents: &[Content]) -> Result<f64> {
    let begun = Instant::now();
    for content in contents {
        let mut progress: Progress = client.obtain(*content, None)?;
        while progress.state == DownloadState::Running {
            progress = client.progress(*content, PATIENCE)?;
        }
        if progress.state != DownloadState::Done {
            return Err(format!("a file was not obtained: {:?}", progress.error).into());
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Fetches files by curl over one connection. Returns the seconds it took.
fn curl(workspace: &Workspace, nginx: &ServerProcess, names: &[String]) -> Result<f64> {
    let to = workspace.path("curled").display().to_string();
    let urls = names
        .iter()
        .flat_map(|name| ["-o".into(), to.clone(), format!("http://{}/source/{name}", nginx.address)]);
    let words: Vec<String> = ["curl", "-sSf"].map(String::from).into_iter().chain(urls).collect();
    timed(&words)
}

/// Enough that the start of the programs weighs little.
const SENDME_BYTES: usize = 400_000_000;

/// Obtains from one source.
pub(in super::super) fn against_sendme(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let work = "obtain, 400 MB, one source, the program's start included".to_owned();
    let crowd = PeerGroup::start(workspace, IndexKind::Central, &["source", "receiver"].map(String::from))?;
    let [_, receiver] = &crowd.peers[..] else { return Err("two peers were started".into()) };
    let mut client = Client::new(receiver.address, None)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let name = format!("sent{round}.bin");
        let content = write(workspace, &name, SENDME_BYTES)?;
        until_found(&mut client, content)?;
        let (peer, hash) = (receiver.address.to_string(), content.to_string());
        let get = [&workspace.ours("nstar-lab"), "share", "get", &hash, "--peer", &peer].map(String::from);
        ours.push(SENDME_BYTES as f64 / timed(&get)?);
        if installed("sendme") {
            theirs.push(SENDME_BYTES as f64 / sendme(workspace, &format!("source/{name}"))?);
        }
        for folder in ["source", "receiver"] {
            fs::remove_file(workspace.path(&format!("{folder}/{name}")))?;
        }
    }
    let against = match theirs.is_empty() {
        true => Against::Missing("sendme".into()),
        false => Against::Program { name: "sendme".into(), theirs, reach: None },
    };
    Ok(vec![Row { work, unit: "B/s", ours, against }])
}

/// Sends a file by sendme without a relay. Returns the seconds it takes to receive it.
fn sendme(workspace: &Workspace, file: &str) -> Result<f64> {
    let flags = ["--relay", "disabled", "--no-progress"];
    let mut sender = Command::new("sendme")
        .arg("send")
        .args(flags)
        .args(["--magic-ipv4-addr", "127.0.0.1:0"])
        .arg(workspace.path(file))
        .current_dir(workspace.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let said = BufReader::new(sender.stdout.take().ok_or("sendme says nothing")?);
    let ticket = said
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("sendme receive ").map(str::to_owned));
    let taken = ticket.ok_or("sendme gave no ticket".into()).and_then(|ticket| {
        let folder = workspace.path("received");
        fs::create_dir_all(&folder)?;
        let receive = format!("cd {} && exec sendme receive {} {ticket}", folder.display(), flags.join(" "));
        let taken = timed(&["sh".into(), "-c".into(), receive]);
        fs::remove_dir_all(folder)?;
        taken
    });
    sender.kill()?;
    sender.wait()?;
    taken
}
