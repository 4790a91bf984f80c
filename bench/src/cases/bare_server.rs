//! The barest server of a model, in C.

use super::compiled;
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
        Ok(Self { program: compiled::program(place, "bare-server")? })
    }

    /// One that takes uploads.
    pub(super) fn sink(&self, place: &Place, model: &str) -> Outcome<Server> {
        self.start(place, model, &[])
    }

    /// One that answers whatever comes with so many bytes.
    pub(super) fn responder(&self, place: &Place, model: &str, body_bytes: usize) -> Outcome<Server> {
        self.start(place, model, &[&body_bytes.to_string()])
    }

    /// One that parses as much of a request as it must, and answers that for `path` with so many bytes.
    pub(super) fn parser(
        &self,
        place: &Place,
        model: &str,
        body_bytes: usize,
        path: &str,
    ) -> Outcome<Server> {
        self.start(place, model, &[&body_bytes.to_string(), path])
    }

    fn start(&self, place: &Place, model: &str, rest: &[&str]) -> Outcome<Server> {
        place.serve(|address| {
            let address = address.to_string();
            let words = [&[&self.program, model, &address, CHUNK], rest].concat();
            Ok(words.into_iter().map(String::from).collect())
        })
    }
}
