//! `nstar doctor`: a fault that is planted in a server is found.

use crate::common::{
    support::{Place, Server},
    verdict::HTTP,
};

#[test]
fn a_server_that_may_open_few_files_is_found() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(keep, lambda: None)\n"));
    place.call(["prlimit", "--pid", &server.pid().to_string(), "--nofile=512"]).run().exits(0);
    let found = place.nstar(["doctor", &server.url("/")]).run();
    assert!([Some(0), Some(4)].contains(&found.status.code()), "{found}");
    found.says("may open 512 files").says(&format!("prlimit --pid {}", server.pid())).has_not_panicked();
}

#[test]
fn a_server_that_is_not_here_is_told_and_the_host_is_looked_at() {
    let found = Place::beside_others().nstar(["doctor", "http://192.0.2.7/"]).run();
    assert!([Some(0), Some(4)].contains(&found.status.code()), "{found}");
    found.complains("the processes of the server were not looked at").says("spoil a measurement");
    Place::beside_others().nstar(["doctor", "not a url"]).run().exits(2);
}
