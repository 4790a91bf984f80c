//! `nstar scenario`: files made of what people have, and each of their requests sent once.

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

/// What is imported is checked as it is, with the secret from the environment.
#[test]
fn a_recording_becomes_a_scenario_without_its_secrets() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(answer, lambda: None)\n"));
    let (one, two) = (server.url("/one?page=2"), server.url("/two"));
    let entry = |url: &str| {
        format!(
            r#"{{"request":{{"method":"GET","url":"{url}","headers":[{{"name":"Cookie","value":"sid=s3cret"}}]}},
            "response":{{"status":200}}}}"#
        )
    };
    let entries = [entry(&one), entry(&two), entry(&one), entry("http://other.invalid/x")].join(",");
    place.write("visit.har", format!(r#"{{"log":{{"entries":[{entries}]}}}}"#));
    let import = ["scenario", "import", "visit.har", "-o", "visit.toml"];
    let told =
        place.nstar(import).run().exits(0).complains("2 kinds of requests").complains("http://other.invalid");
    assert!(!told.stderr.contains("s3cret"), "{told}");
    told.complains("export COOKIE=..");
    let text = std::fs::read_to_string(place.path("visit.toml")).expect("a scenario");
    assert!(!text.contains("s3cret") && text.contains("weight = 2"), "{text}");
    place.nstar(import).run().exits(2).complains("is there already");
    let check = ["scenario", "check", "visit.toml"];
    place.nstar(check).run().exits(2).complains("visit.toml:").complains("COOKIE");
    place.wrapped(["env", "COOKIE=sid=s3cret"], check).run().exits(0).says("GET /one").says("All 2 requests");
}

#[test]
fn a_curl_command_is_imported_or_sent() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(keep, lambda: None)\n"));
    let command = format!("curl -s -H 'X-Token: s3cret' {}", server.url("/mine"));
    let imported = place.nstar(["scenario", "import", "--from-curl", &command]).run().exits(0);
    assert!(
        imported.stdout.contains("path = \"/mine\"") && !imported.stdout.contains("s3cret"),
        "{imported}"
    );
    place.nstar(["load", "--from-curl", &command, "-n", "3"]).run().exits(0);
}

#[test]
fn what_cannot_be_imported_is_told_with_its_place_and_no_secret() {
    let place = Place::beside_others();
    place.write("cut.har", r#"{"log":{"entries":[{"request":{"method":"GET","url":7}}]}}"#);
    let place_of = "cut.har: log.entries[0].request.url";
    place.nstar(["scenario", "import", "cut.har"]).run().exits(2).complains(place_of).complains("line 1");
    place.write("other.txt", "hello");
    place.nstar(["scenario", "import", "other.txt"]).run().exits(2).complains("neither a recording");
    let refused = place.nstar(["sweep", "--from-curl", "curl -H s3cret http://127.0.0.1:1/"]).run().exits(2);
    assert!(!refused.stderr.contains("s3cret"), "{refused}");
}

#[cfg(feature = "yaml")]
#[test]
fn a_description_in_yaml_is_imported_and_its_mistakes_are_told_with_their_place() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(answer, lambda: None)\n"));
    let api = "openapi: 3.0.3\nservers: [{url: /v1}]\npaths:\n  /books/{id}:\n    get:\n      parameters:\n\
        \x20       - {name: id, in: path, required: true, schema: {type: integer, minimum: 7}}\n\
        \x20     responses: {200: {description: A book.}}\n";
    place.write("api.yaml", api);
    let import = ["scenario", "import", "api.yaml", "--base", &server.url("/"), "-o", "api.toml"];
    place.nstar(import).run().exits(0).complains("`id` is made up");
    let text = std::fs::read_to_string(place.path("api.toml")).expect("a scenario");
    assert!(text.contains("/v1\"") && text.contains("path = \"/books/${id}\""), "{text}");
    place.nstar(["scenario", "check", "api.toml"]).run().exits(0).says("GET /books/{id}").says("200");
    place.write("twice.yaml", format!("{api}paths: {{}}\n"));
    let twice = place.nstar(["scenario", "import", "twice.yaml"]).run().exits(2);
    twice.complains("twice.yaml: line 9, column 1").complains("`paths` is there twice");
}

#[test]
fn a_description_becomes_a_request_for_each_operation() {
    let place = Place::beside_others();
    let server = Server::python(&format!("{HTTP}serve(answer, lambda: None)\n"));
    let api = r#"{"openapi":"3.0.3","security":[{"key":[]}],
        "components":{"securitySchemes":{"key":{"type":"apiKey","in":"header","name":"X-Key"}}},
        "paths":{"/books/{id}":{"get":{"parameters":[{"name":"id","in":"path","schema":{"type":"integer"}}]}}}}"#;
    place.write("api.json", api);
    let import = ["scenario", "import", "api.json", "--base", &server.url("/"), "-o", "api.toml"];
    place.nstar(import).run().exits(0).complains("`id` is made up").complains("export AUTH_KEY=..");
    let check = ["scenario", "check", "api.toml"];
    place.wrapped(["env", "AUTH_KEY=1"], check).run().exits(0).says("GET /books/{id}").says("200");
    place.write("old.json", r#"{"swagger":"2.0"}"#);
    place
        .nstar(["scenario", "import", "old.json"])
        .run()
        .exits(2)
        .complains("old.json")
        .complains("Swagger 2");
}
