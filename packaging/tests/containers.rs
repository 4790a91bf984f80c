//! What is run in containers asks for no more rights than it needs, is watched, and names its images exactly. Whether the
//! images work is tried by `make container-check`.

use std::{fs, path::Path};

use serde_json::Value;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// An instruction of a Containerfile, and what follows it.
type Instruction = (String, String);

/// The stages of a Containerfile, each beginning with its FROM; what stands before them is the first.
fn stages(text: &str) -> Vec<Vec<Instruction>> {
    let mut stages = vec![Vec::new()];
    let text = text.replace("\\\n", " ");
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if name == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().expect("a stage").push((name.to_owned(), rest.trim().to_owned()));
    }
    stages
}

fn value<'a>(stage: &'a [Instruction], name: &str) -> &'a str {
    stage.iter().rev().find(|(found, _)| found == name).map_or("", |(_, rest)| rest)
}

/// Whether the name of an image says which version: a tag that stays, or a digest.
fn is_exact(image: &str) -> bool {
    let tag = image.rsplit('/').next().and_then(|name| name.split_once([':', '@'])).map(|(_, tag)| tag);
    tag.is_some_and(|tag| tag != "latest" && tag.contains(|c: char| c.is_ascii_digit()))
}

#[test]
fn images_run_as_nobody_special_and_are_watched() {
    let stages = stages(&read("container/Containerfile"));
    let known = ["ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL"];
    let known = known.into_iter().chain(["HEALTHCHECK", "ENTRYPOINT", "CMD"]).collect::<Vec<_>>();
    for (name, rest) in stages.iter().flatten() {
        assert!(known.contains(&name.as_str()) && !rest.is_empty(), "{name} {rest}");
    }
    let shipped: Vec<_> = stages.iter().filter(|stage| value(stage, "FROM").starts_with("scratch")).collect();
    assert_eq!(shipped.len(), 2, "an image of each program");
    for (stage, program) in shipped.into_iter().zip(["nstar", "nstar-lab"]) {
        assert_eq!(value(stage, "FROM"), format!("scratch AS {program}"));
        let user = value(stage, "USER").split(':').next().and_then(|user| user.parse::<u32>().ok());
        assert!(
            user.is_some_and(|user| user != 0),
            "{program}: a number, so that Kubernetes knows it is not root"
        );
        assert_eq!(value(stage, "ENTRYPOINT"), format!(r#"["/usr/bin/{program}"]"#));
        let words: Vec<String> =
            serde_json::from_str(value(stage, "CMD")).expect("a list: there is no shell");
        assert!(!words.is_empty());
    }
    let lab = stages.last().expect("a stage");
    let (_, check) = value(lab, "HEALTHCHECK").split_once("CMD ").expect("a command");
    assert_eq!(serde_json::from_str::<Vec<String>>(check).expect("a list"), ["/usr/bin/nstar-lab", "health"]);
    let base = value(&stages[0], "ARG").split_once('=').expect("a default").1;
    assert!(is_exact(base), "{base}");
}

#[test]
fn versions_of_images_are_told_from_none() {
    for exact in ["a/rust:1.95.0-bookworm", "localhost:5000/x@sha256:00ff", "mariadb:11.4"] {
        assert!(is_exact(exact), "{exact}");
    }
    for open in ["a/rust", "rust:latest", "localhost:5000/x", "rust:bookworm"] {
        assert!(!is_exact(open), "{open}");
    }
}

#[test]
fn the_two_tiers_run_read_only_without_rights_and_one_after_the_other() {
    // Merge keys are resolved by the parser.
    let compose: Value = serde_saphyr::from_str(&read("container/compose.yaml")).expect("YAML");
    let services = compose["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["accounts", "database", "files"]);
    for name in ["accounts", "files"] {
        let service = &services[name];
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        assert_eq!(service["build"]["target"], "nstar-lab", "{name}");
        assert_eq!(service["image"], format!("localhost/nstar-lab:{}", env!("CARGO_PKG_VERSION")));
        let words = service["command"].as_array().expect("words").iter();
        let words = words.map(|word| word.as_str().expect("a word")).chain(["--print-config"]);
        // What the program itself makes of these words.
        nstar_lab::command()
            .try_get_matches_from(["nstar-lab"].into_iter().chain(words))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, service) in services {
        assert!(is_exact(service["image"].as_str().expect("an image")), "{name}");
        let ports = service["ports"].as_array().into_iter().flatten();
        assert!(ports.clone().all(|port| port.as_str().is_some_and(|port| port.starts_with("127.0.0.1:"))));
        assert_eq!(ports.count(), usize::from(name == "files"), "{name}");
        let secrets = service["environment"].as_object().into_iter().flatten();
        for (key, value) in secrets.filter(|(key, _)| key.ends_with("PASSWORD") && !key.contains("RANDOM")) {
            assert!(value.as_str().is_some_and(|value| value.starts_with("${")), "{name}: {key}");
        }
    }
    let waits =
        |service: &str, on: &str| services[service]["depends_on"][on]["condition"] == "service_healthy";
    assert!(waits("files", "accounts") && waits("accounts", "database"));
    assert_eq!(compose["networks"]["back"]["internal"], true);
}
