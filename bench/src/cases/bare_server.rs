//! The barest server of a model, in C, compiled here and now.

use std::process::Command;

use crate::{
    Outcome,
    place::{Place, Server},
};

/// Bytes of one read, of ours by default and so of this one's.
const CHUNK: &str = "65536";

pub(super) struct BareServer {
    program: String,
}

impl BareServer {
    pub(super) fn compile(place: &Place) -> Outcome<Self> {
        let program = place.path("bare-server").display().to_string();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/c/bare-server.c");
        let compiler = Command::new("cc").args(["-O2", "-pthread", "-o", &program, source]).output();
        let output = compiler.map_err(|error| format!("no C compiler (cc): {error}"))?;
        if output.status.success() {
            Ok(Self { program })
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into())
        }
    }

    /// One that takes uploads.
    pub(super) fn sink(&self, place: &Place, model: &str) -> Outcome<Server> {
        self.start(place, model, &[])
    }

    /// One that answers whatever comes with so many bytes.
    pub(super) fn responder(&self, place: &Place, model: &str, body_bytes: usize) -> Outcome<Server> {
        self.start(place, model, &[&body_bytes.to_string()])
    }

    fn start(&self, place: &Place, model: &str, rest: &[&str]) -> Outcome<Server> {
        place.serve(|address| {
            let address = address.to_string();
            let words = [&[&self.program, model, &address, CHUNK], rest].concat();
            Ok(words.into_iter().map(String::from).collect())
        })
    }
}
