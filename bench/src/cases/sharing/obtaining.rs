//! Obtaining: files checked and kept, against what else would fetch them.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use share::{
    Content,
    client::Client,
    peer::{Progress, State},
};

use super::{Crowd, PATIENCE, Way, until_found};
use crate::{
    Effort, Outcome,
    cases::{KB, need_nginx},
    cpu::run_on,
    nginx::{self, Site},
    place::{Place, SHARED, Server},
    table::{Against, Row},
};

/// Obtaining files one after the other, checked and kept, against curl from nginx. What disks do to either is left out
/// where the place is on none: `TMPDIR=/dev/shm`.
pub(in super::super) fn large(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    need_nginx()?;
    let nginx = nginx::start(place, &Site::default())?;
    let crowd = Crowd::start(place, Way::Central, &["source", "receiver"].map(String::from))?;
    let [_, receiver] = &crowd.peers[..] else { return Err("two peers were started".into()) };
    let mut client = Client::new(receiver.address, None)?;
    let mut all = Vec::new();
    for (work, bytes, count) in
        [("1 MB", 1_000 * KB, 40), ("10 MB", 10_000 * KB, 10), ("100 MB", 100_000 * KB, 2)]
    {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds {
            let names: Vec<_> = (0..count).map(|number| format!("{bytes}-{round}-{number}.bin")).collect();
            let contents = names.iter().map(|name| write(place, name, bytes)).collect::<Outcome<Vec<_>>>()?;
            let total = (bytes * count) as f64;
            contents.iter().try_for_each(|content| until_found(&mut client, *content))?;
            ours.push(total / obtain(&mut client, &contents)?);
            theirs.push(total / curl(place, &nginx, &names)?);
            for name in &names {
                fs::remove_file(place.path(&format!("source/{name}")))?;
                fs::remove_file(place.path(&format!("receiver/{name}")))?;
            }
        }
        let against = Against::Program { name: "curl from nginx".into(), theirs, reach: Some(0.8) };
        all.push(Row { work: format!("obtain, {work}, one source"), unit: "B/s", ours, against });
    }
    Ok(all)
}

/// Seconds from the start of a program to its end.
pub(super) fn timed(words: &[String]) -> Outcome<f64> {
    let begun = Instant::now();
    run_on(SHARED, words, &[0])?;
    Ok(begun.elapsed().as_secs_f64())
}

/// A new file of the source.
pub(super) fn write(place: &Place, name: &str, bytes: usize) -> Outcome<Content> {
    let (bytes, content) = new_file(bytes);
    fs::write(place.path(&format!("source/{name}")), bytes)?;
    Ok(content)
}

/// Bytes that are like no others before.
pub(super) fn new_file(length: usize) -> (Vec<u8>, Content) {
    static FILES: AtomicU64 = AtomicU64::new(0);
    let seed = FILES.fetch_add(1, Relaxed);
    let bytes: Vec<u8> =
        (0_u64..).flat_map(|number| (number ^ (seed << 40)).to_le_bytes()).take(length).collect();
    let content = Content::of(&bytes);
    (bytes, content)
}

/// Seconds that a receiver takes for them, one after the other, where the index knows them all.
pub(super) fn obtain(client: &mut Client, contents: &[Content]) -> Outcome<f64> {
    let begun = Instant::now();
    for content in contents {
        let mut progress: Progress = client.obtain(*content, None)?;
        while progress.state == State::Running {
            progress = client.progress(*content, PATIENCE)?;
        }
        if progress.state != State::Done {
            return Err(format!("a file was not obtained: {:?}", progress.error).into());
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Seconds that curl takes for them over one connection.
fn curl(place: &Place, nginx: &Server, names: &[String]) -> Outcome<f64> {
    let to = place.path("curled").display().to_string();
    let urls = names
        .iter()
        .flat_map(|name| ["-o".into(), to.clone(), format!("http://{}/source/{name}", nginx.address)]);
    let words: Vec<String> = ["curl", "-sSf"].map(String::from).into_iter().chain(urls).collect();
    timed(&words)
}
