//! The same seed makes the same requests.

use std::path::Path;
use std::sync::{Arc, Mutex};

use load::{Plan, Scenario, Stop};

use crate::common::{OK, Server, run};

/// Returns the request lines that the server received, sorted.
fn requests(seed: u64, threads: usize) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = lines.clone();
    let server = Server::start(move |mut peer, _| {
        while let Some(request) = peer.request() {
            seen.lock().unwrap().push(request.line);
            peer.send(OK).unwrap();
        }
    });
    let text = "[values]\nuser = { kind = \"user\" }\nfile = { kind = \"random\", max = 1999 }\n\
                name = { kind = \"random-string\" }\n\
                [[request]]\npath = \"/a/${user}/${file}\"\nweight = 2\n[[request]]\npath = \"/b/${name}\"\n";
    let scenario = Scenario::from_toml(Path::new("s.toml"), text).unwrap().with_base(server.url("/"));
    let plan = Plan { seed, threads, ..Plan::new(scenario) };
    assert_eq!(run(&plan, 5, Stop::PerUser(20)).completed, 100);
    let mut lines = std::mem::take(&mut *lines.lock().unwrap());
    lines.sort();
    lines
}

#[test]
fn requests_depend_on_the_seed_and_not_on_the_threads() {
    let first = requests(7, 1);
    assert_eq!(first, requests(7, 2));
    assert_ne!(first, requests(8, 1));
}
