//! Obtaining one large file from the command line, against sendme (iroh), which verifies with the same hashes.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use share::client::Client;

use super::{
    IndexKind, PeerGroup,
    obtaining::{timed, write},
    until_found,
};
use crate::{
    Effort, Result,
    tools::{
        table::{Against, Row},
        workspace::{Workspace, installed},
    },
};

/// Enough that the start of the programs weighs little.
const BYTES: usize = 400_000_000;

/// Obtains from one source.
pub(in super::super) fn against(workspace: &Workspace, effort: Effort) -> Result<Vec<Row>> {
    let work = "obtain, 400 MB, one source, the program's start included".to_owned();
    let crowd = PeerGroup::start(workspace, IndexKind::Central, &["source", "receiver"].map(String::from))?;
    let [_, receiver] = &crowd.peers[..] else { return Err("two peers were started".into()) };
    let mut client = Client::new(receiver.address, None)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds {
        let name = format!("sent{round}.bin");
        let content = write(workspace, &name, BYTES)?;
        until_found(&mut client, content)?;
        let (peer, hash) = (receiver.address.to_string(), content.to_string());
        let get = [&workspace.ours("nstar-lab"), "share", "get", &hash, "--peer", &peer].map(String::from);
        ours.push(BYTES as f64 / timed(&get)?);
        if installed("sendme") {
            theirs.push(BYTES as f64 / sendme(workspace, &format!("source/{name}"))?);
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
