//! The suite's own server.

use std::env;

use super::{Running, Start};
use crate::{Trouble, process};

/// The stack's name.
pub(super) const NAME: &str = "rust";

/// Names the program that serves and disturbs: this one, or in tests the one beside them.
pub(crate) fn own_program() -> Result<String, Trouble> {
    let own = env::current_exe().map_err(Trouble::io("find this program"))?;
    let beside = own.parent().filter(|folder| folder.ends_with("deps")).and_then(|deps| deps.parent());
    Ok(beside.map_or(own.clone(), |folder| folder.join("truth")).display().to_string())
}

pub(super) fn start(start: &Start) -> Result<Running, Trouble> {
    let around = &start.tier.surroundings;
    process::find("setpriv", "util-linux")?;
    let mut words = vec![own_program()?, "serve".into(), format!("--listen={}", start.place.address)];
    words.extend(start.http_upstream()?.map(|address| format!("--upstream={address}")));
    words.extend(start.tier.name.iter().map(|name| format!("--name={name}")));
    words.extend(around.forward.map(|most| format!("--forward={most}")));
    words.extend(around.accept.map(|pace| format!("--accept-us={}", pace.as_micros())));
    words.extend(around.course.map(|course| format!("--{}", course.word())));
    words.extend(around.heavy.map(|heavy| format!("--heavy={}", heavy.times)));
    words.push(format!("--body={}", around.body));
    words.push(format!("--backlog={}", around.backlog));
    words.push(format!("--idle={}", around.idle));
    words.extend(start.tier.words());
    start.serve(words)
}
