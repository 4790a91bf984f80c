//! `nstar scenario`: each request of a file sent once.

use crate::common::{
    support::{Place, Server, free_port},
    verdict::HTTP,
};

#[test]
fn a_check_shows_what_came_and_fails_where_a_load_would() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(answer, lambda: None)\n"));
    place.write("good.toml", "[[request]]\nname = \"first\"\npath = \"/\"\n[[request]]\npath = \"/two\"\n");
    let good = place.nstar(["scenario", "check", "good.toml", &server.url("/")]).run().exits(0);
    good.says("first").says("GET /two").says("200").says("2 B").says("All 2 requests");
    let base = server.url("/");
    place.write("bad.toml", format!("base = \"{base}\"\n[[request]]\npath = \"/\"\nexpect = 201\n"));
    place.nstar(["scenario", "check", "bad.toml"]).run().exits(1).says("expect = 200").says("1 of 1");
}

#[test]
fn what_cannot_be_checked_is_told() {
    let place = Place::beside_others();
    place.write("mine.toml", "[[request]]\npath = \"/\"\n");
    place.nstar(["scenario", "check", "mine.toml"]).run().exits(2).complains("or give URL");
    place.nstar(["scenario", "check", "none.toml"]).run().exits(2).complains("none.toml");
    let nobody = format!("http://127.0.0.1:{}/", free_port());
    place.nstar(["scenario", "check", "mine.toml", &nobody]).run().exits(1).complains("refused");
}
