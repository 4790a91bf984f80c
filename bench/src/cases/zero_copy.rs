//! What sending a large file costs by sendfile, by send from a mapping that stays or is made anew, and by io_uring's
//! zero-copy send: the same bare server in C, one thread a connection.

use super::{Contestant, KB, compiled, in_turn, rows};
use crate::{Effort, Outcome, place::Place, table::Row};

const USERS: u32 = 8;
const FILE_KB: usize = 10_000;
const WAYS: [(&str, &str); 4] = [
    ("sendfile", "sendfile"),
    ("send", "send from a mapping"),
    ("map-send", "send from a mapping made anew"),
    ("send-zc", "zero-copy send from a mapping"),
];

pub(super) fn measure(place: &Place, effort: Effort) -> Outcome<Vec<Row>> {
    let program = compiled::program(place, "file-sender")?;
    let file = place.file("file-10000k", FILE_KB * KB)?.display().to_string();
    let mut contestants = Vec::new();
    for (way, name) in WAYS {
        let words = |address: String| vec![program.clone(), way.to_owned(), address, file.clone()];
        let server = place.serve(|address| Ok(words(address.to_string())))?;
        let (path, header) = ("/".into(), String::new());
        contestants.push(Contestant { name, servers: vec![server], path, header, reach: None });
    }
    let turns = in_turn(place, &contestants, USERS, effort)?;
    Ok(rows("sendfile, 10 MB, 8 users", "B/CPU-s", &contestants, &turns, |turn| turn.bytes / turn.cpu_s))
}
