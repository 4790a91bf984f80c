//! House rules that no compiler checks. Each failure names the remedy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Licences that ask for nothing beyond keeping their text.
const LICENCES: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "0BSD",
    "CDLA-Permissive-2.0",
];

/// Our crates but the systems, and the ones of ours they may use. Data flows one way, and so do dependencies.
const MAY_USE: &[(&str, &[&str])] = &[
    ("analysis", &[]),
    ("bus", &[]),
    ("import", &[]),
    ("wire", &[]),
    ("engine", &[]),
    ("database-server", &[]),
    ("agent", &["analysis", "load", "observe"]),
    ("load", &["analysis", "import", "wire"]),
    ("observe", &["analysis"]),
    ("symbols", &["analysis"]),
    ("report", &["analysis", "import"]),
    ("live", &["analysis", "report", "sweep", "wire"]),
    ("http-io", &["engine", "tls", "wire"]),
    ("tls", &["engine"]),
    ("folder", &["engine", "http-io"]),
    ("store", &["engine", "tls"]),
    ("crash-tests", &["test-support"]),
    ("test-support", &["database-server", "store"]),
    ("api-server", &["engine", "http-io", "store"]),
    ("serve", &["engine", "http-io", "nstar", "store", "tls"]),
    ("sweep", &["agent", "analysis", "load", "observe"]),
    ("experiment", &["analysis", "load", "observe", "sweep"]),
    (
        "nstar",
        &["agent", "analysis", "bus", "experiment", "import", "live", "load", "report", "sweep", "symbols"],
    ),
    ("bench", &["database-server", "experiment", "observe", "share"]),
    (
        "fuzz",
        &["agent", "analysis", "experiment", "files", "http-io", "import", "load", "report", "share", "wire"],
    ),
    ("packaging", &["nstar", "nstar-lab"]),
    ("truth", &["database-server"]),
    // And every system.
    (
        "nstar-lab",
        &[
            "analysis",
            "database-server",
            "engine",
            "experiment",
            "http-io",
            "nstar",
            "report",
            "serve",
            "store",
            "sweep",
        ],
    ),
];

/// What every system may use.
const SYSTEMS_MAY_USE: &[&str] = &["api-server", "engine", "folder", "http-io", "serve", "store", "tls"];

/// Systems that use another one.
const SYSTEMS_USE_SYSTEMS: &[(&str, &str)] = &[("files", "accounts"), ("share-dht", "share")];

/// Our crates that the tests of others may use, beside those of [`MAY_USE`].
const MAY_USE_IN_TESTS: &[(&str, &[&str])] = &[
    ("analysis", &["report"]),
    ("crash-tests", &["store"]),
    ("fuzz", &["engine"]),
    ("nstar-lab", &["crash-tests", "test-support"]),
    ("store", &["database-server", "test-support"]),
];

/// What the tests of every system may use.
const TESTS_OF_SYSTEMS_MAY_USE: &[&str] = &["database-server", "test-support"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo's own JSON")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().expect("packages").iter()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// `scripts/test` names two suites, and takes all others by patterns.
#[test]
fn every_integration_test_is_run() {
    let metadata = metadata();
    let own = packages(&metadata).filter(|package| package["source"].is_null());
    let targets = own.flat_map(|package| package["targets"].as_array().expect("targets"));
    let is_test =
        |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"test".into()));
    let is_missed = |name: &&str| match *name {
        "cli" | "short" => false,
        name => {
            name.len() < 3 || name.starts_with("sh") || (name.starts_with("cl") && !name.starts_with("cli"))
        }
    };
    let names: BTreeSet<&str> = targets.filter(is_test).map(|target| text(target, "name")).collect();
    let missed: Vec<_> = names.iter().copied().filter(is_missed).collect();
    assert!(
        names.len() > 30 && missed.is_empty(),
        "the patterns in scripts/test miss {missed:?} of {names:?}"
    );
}

#[test]
fn cargo_run_is_nstar_as_the_readme_says() {
    let metadata = metadata();
    let members = metadata["workspace_default_members"].as_array().expect("default members");
    let programs = packages(&metadata).filter(|package| members.contains(&package["id"]));
    let programs: Vec<_> =
        programs.map(|package| (text(package, "name"), text(package, "default_run"))).collect();
    assert_eq!(
        programs,
        [("nstar", "nstar"), ("nstar-lab", "")],
        "default-members in Cargo.toml must be both programs, of which nstar alone has a default-run"
    );
}

#[test]
fn every_licence_is_one_we_may_ship() {
    let metadata = metadata();
    let refused: Vec<_> = packages(&metadata)
        .filter(|package| !licence_fits(text(package, "license")))
        .map(|package| format!("{} ({})", text(package, "name"), text(package, "license")))
        .collect();
    assert!(refused.is_empty(), "not on the list of licences in tidy.rs: {refused:?}. Use another crate.");
}

#[test]
fn deny_toml_has_the_same_licences() {
    let file = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let allowed = file.split_once("allow = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list").0;
    let allowed: Vec<_> = allowed.split(',').map(|name| name.trim().trim_matches('"')).collect();
    let allowed: BTreeSet<_> = allowed.into_iter().filter(|name| !name.is_empty()).collect();
    let ours: BTreeSet<_> = LICENCES.into_iter().collect();
    assert_eq!(allowed, ours, "keep deny.toml and LICENCES in tidy.rs the same");
}

/// Where all packages that are not ours come from, as cargo names it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_package_is_ours_or_of_the_registry_and_deny_toml_refuses_others() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let sources: Vec<_> = lock.lines().filter_map(|line| line.strip_prefix("source = ")).collect();
    let elsewhere: Vec<_> = sources.iter().filter(|source| source.trim_matches('"') != REGISTRY).collect();
    assert!(sources.len() > 100 && elsewhere.is_empty(), "not from crates.io: {elsewhere:?}");
    let file = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    for line in ["unknown-registry = \"deny\"", "unknown-git = \"deny\"", "yanked = \"deny\""] {
        assert!(file.lines().any(|found| found == line), "deny.toml no longer says {line}");
    }
}

/// An SPDX expression fits if each of its `AND` parts offers one licence we accept.
fn licence_fits(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|name| LICENCES.contains(&name.trim())))
}

/// The systems: the crates in the folder of systems.
fn systems() -> BTreeSet<String> {
    let folders = fs::read_dir(root().join("testbed/systems")).expect("the systems");
    folders.map(|folder| folder.expect("a folder").file_name().into_string().expect("a name")).collect()
}

/// The crates of ours that the crate `name` may use.
fn may_use<'a>(name: &str, systems: &'a BTreeSet<String>) -> BTreeSet<&'a str> {
    if systems.contains(name) {
        let others = SYSTEMS_USE_SYSTEMS.iter().filter(|(system, _)| *system == name).map(|(_, used)| *used);
        return SYSTEMS_MAY_USE.iter().copied().chain(others).collect();
    }
    let (_, allowed) =
        MAY_USE.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("add {name} to MAY_USE"));
    let mut allowed: BTreeSet<_> = allowed.iter().copied().collect();
    if name == "nstar-lab" {
        allowed.extend(systems.iter().map(String::as_str));
    }
    allowed
}

#[test]
fn our_crates_use_only_what_lies_downstream() {
    let (metadata, systems) = (metadata(), systems());
    let known = MAY_USE.iter().map(|(name, _)| *name);
    let ours: BTreeSet<_> = known.chain(systems.iter().map(String::as_str)).collect();
    let mut seen = BTreeSet::new();
    for package in packages(&metadata).filter(|package| package["source"].is_null()) {
        let name = text(package, "name");
        let allowed = may_use(name, &systems);
        let in_tests = match systems.contains(name) {
            true => TESTS_OF_SYSTEMS_MAY_USE,
            false => listed(MAY_USE_IN_TESTS, name).unwrap_or_default(),
        };
        seen.insert(name);
        let is_allowed = |dependency: &Value| {
            let (used, for_tests) = (text(dependency, "name"), dependency["kind"] == "dev");
            !ours.contains(used) || allowed.contains(used) || (for_tests && in_tests.contains(&used))
        };
        let used = package["dependencies"].as_array().expect("dependencies").iter();
        let wrong: Vec<_> =
            used.filter(|used| !is_allowed(used)).map(|dependency| text(dependency, "name")).collect();
        assert!(wrong.is_empty(), "{name} must not use {wrong:?}: see the map in ARCHITECTURE.md");
    }
    assert_eq!(seen, ours, "MAY_USE names a crate that is gone");
}

fn listed<'a>(list: &[(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    list.iter().find(|(known, _)| *known == name).map(|(_, crates)| *crates)
}

#[test]
fn the_testbed_may_use_the_tool_and_never_the_other_way() {
    let metadata = metadata();
    let is_in = |path: &str, house: &str| Path::new(path).starts_with(root().join(house));
    for package in packages(&metadata).filter(|package| is_in(text(package, "manifest_path"), "tool")) {
        // Those for tests too: the tool is tested without the testbed.
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let path = text(dependency, "path");
            assert!(
                path.is_empty() || is_in(path, "tool"),
                "{} must not use {}: move what needs it to the testbed",
                text(package, "name"),
                text(dependency, "name")
            );
        }
    }
}

/// The crates of the testbed, as code names them, that lend the tool no word of its own.
const TESTBED_CRATES: [&str; 7] =
    ["api_server", "database_server", "engine", "folder", "http_io", "serve", "store"];

#[test]
fn the_tool_names_no_system() {
    let systems = systems().into_iter().map(|name| name.replace('-', "_"));
    let crates: Vec<_> = systems.chain(TESTBED_CRATES.map(str::to_owned)).collect();
    for (path, code) in production_code("tool") {
        let named: Vec<_> = crates.iter().filter(|name| names_crate(&code, name)).collect();
        assert!(named.is_empty(), "{} names {named:?}: the tool drives any server", path.display());
    }
}

/// Whether code names a crate at the beginning of a path.
fn names_crate(code: &str, name: &str) -> bool {
    let begins = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    code.match_indices(&format!("{name}::")).any(|(at, _)| begins(at))
}

/// Findings are data: their words are in `report`. Names that a program compares hold no spaces.
#[test]
fn analysis_writes_no_prose() {
    for (path, code) in production_code("tool/analysis") {
        let formats = ["format!", "format_args!", "write!", "writeln!", "concat!"];
        let formatted: Vec<_> = formats.into_iter().filter(|name| code.contains(name)).collect();
        let prose: Vec<_> = literals(&code).filter(|literal| literal.contains(' ')).collect();
        assert!(
            formatted.is_empty() && prose.is_empty(),
            "{} writes {formatted:?} {prose:?}: return a finding as data, and word it in tool/report/src/sentences",
            path.display()
        );
    }
}

/// The string literals of code without escapes in them, attributes left out.
fn literals(code: &str) -> impl Iterator<Item = String> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("#["));
    let code = lines.collect::<Vec<_>>().join("\n");
    let parts: Vec<_> = code.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    parts.into_iter()
}

/// The most packages in the tool's tree, itself included: it runs as root on machines that matter.
const TOOL_PACKAGES_MAX: usize = 110;

/// The most that fleets add to it: half a hundred come with the client library of NATS.
const FLEET_PACKAGES_MAX: usize = 60;

/// The most that profiles add: the libraries that read the names of functions and who called them, and what unpacks them.
const PROFILE_PACKAGES_MAX: usize = 19;

/// The most that the view of a sweep that goes on adds: what lays out a terminal and draws what changed of it.
const LIVE_PACKAGES_MAX: usize = 20;

/// The most that descriptions in YAML add: a parser, and what it brings to show places in a text and to read other encodings.
const YAML_PACKAGES_MAX: usize = 10;

#[test]
fn the_tool_stays_small() {
    stays_below(TOOL_PACKAGES_MAX, &["--no-default-features"]);
    stays_below(TOOL_PACKAGES_MAX + FLEET_PACKAGES_MAX, &["--no-default-features", "--features", "fleet"]);
    stays_below(
        TOOL_PACKAGES_MAX + PROFILE_PACKAGES_MAX,
        &["--no-default-features", "--features", "profile"],
    );
    stays_below(TOOL_PACKAGES_MAX + LIVE_PACKAGES_MAX, &["--no-default-features", "--features", "live"]);
    stays_below(TOOL_PACKAGES_MAX + YAML_PACKAGES_MAX, &["--no-default-features", "--features", "yaml"]);
}

fn stays_below(most: usize, features: &[&str]) {
    let words = ["--package", "nstar", "--edges", "normal", "--prefix", "none", "--offline", "--locked"];
    let output = Command::new(env!("CARGO"))
        .arg("tree")
        .args(words)
        .args(features)
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let listed = String::from_utf8(output.stdout).expect("names");
    let tree: BTreeSet<_> = listed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(tree.len() > 10, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        tree.len() <= most,
        "nstar has {} packages in its tree, {most} at most: {tree:?}. See `make size`.",
        tree.len()
    );
}

#[test]
fn a_library_is_linked_in_one_version_or_on_the_list() {
    // Two versions at once cost build time and size. Each entry: why it cannot be helped yet.
    let old_keys = "nkeys 0.4, under async-nats, is still on ed25519-dalek 2";
    let old_hashes = "mysql_common 0.37 is still on sha2 0.10, postgres-protocol on 0.11";
    let excused = BTreeMap::from([
        ("getrandom", "ring 0.17, under rustls, is still on 0.2"),
        ("const-oid", "x509-cert, under tokio-postgres-rustls, is still on 0.9, sha2 0.11 on 0.10"),
        ("base64", "mysql_common and postgres-protocol are still on 0.22"),
        ("block-buffer", old_hashes),
        ("curve25519-dalek", old_keys),
        ("ed25519", old_keys),
        ("ed25519-dalek", old_keys),
        ("rand", old_keys),
        ("rand_core", old_keys),
        ("signature", old_keys),
        ("crypto-common", old_hashes),
        ("digest", old_hashes),
        ("sha2", old_hashes),
        ("gimli", "framehop 0.16 is still on gimli 0.33, blazesym on 0.34"),
        ("fallible-iterator", "postgres-protocol is still on 0.2, rusqlite on 0.3"),
    ]);
    let metadata = metadata();
    let linked = linked_packages(&metadata, "nstar-lab");
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages(&metadata).filter(|package| linked.contains(text(package, "id"))) {
        versions.entry(text(package, "name")).or_default().insert(text(package, "version"));
    }
    let doubled: Vec<_> =
        versions.iter().filter(|(name, found)| found.len() > 1 && !excused.contains_key(**name)).collect();
    assert!(
        doubled.is_empty(),
        "in several versions: {doubled:?}. Align them, or excuse them in tidy.rs with a reason."
    );
}

/// Packages that end up in a program of ours: reached from it by normal dependencies, and no compiler's plug-in.
fn linked_packages<'a>(metadata: &'a Value, program: &str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<_, _> = metadata["resolve"]["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| (text(node, "id"), node))
        .collect();
    let start = packages(metadata).find(|package| text(package, "name") == program).expect(program);
    let plug_ins: BTreeSet<_> =
        packages(metadata).filter(|package| is_plug_in(package)).map(|package| text(package, "id")).collect();
    let mut reached = BTreeSet::new();
    let mut queue = vec![text(start, "id")];
    while let Some(id) = queue.pop() {
        if plug_ins.contains(id) || !reached.insert(id) {
            continue;
        }
        for dependency in nodes[id]["deps"].as_array().expect("deps") {
            let linked = |kind: &Value| kind["kind"].is_null() && kind["target"].is_null();
            if dependency["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(linked)) {
                queue.push(text(dependency, "pkg"));
            }
        }
    }
    reached
}

/// Whether a package is a procedural macro: it runs in the compiler and is linked into nothing.
fn is_plug_in(package: &Value) -> bool {
    let kinds =
        |target: &Value| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"proc-macro".into()));
    package["targets"].as_array().is_some_and(|targets| targets.iter().any(kinds))
}

#[test]
fn no_system_names_a_concurrency_model() {
    let names = [
        "Model",
        "threads",
        "epoll",
        "pool",
        "processes",
        "prefork",
        "polling",
        "select",
        "poll",
        "aio",
        "uring",
    ];
    let models: Vec<_> =
        names[1..].iter().map(|name| format!("\"{name}\"")).chain([names[0].into()]).collect();
    for (path, code) in production_code("testbed/systems") {
        let named: Vec<_> = models.iter().filter(|model| has_word(&code, model)).collect();
        assert!(
            named.is_empty(),
            "{} names {named:?}: a system is written against engine::service",
            path.display()
        );
    }
}

#[test]
fn no_engine_names_a_service() {
    let systems = systems().into_iter().map(|name| name.replace('-', "_"));
    let services = systems.chain(["api_server", "folder", "http_io", "wire"].map(str::to_owned));
    let services: Vec<_> = services.collect();
    for (path, code) in production_code("testbed/engine") {
        let named: Vec<_> = services.iter().filter(|name| has_word(&code, name)).collect();
        assert!(named.is_empty(), "{} names {named:?}: an engine knows no service", path.display());
    }
}

#[test]
fn names_are_found_in_code_and_not_in_words_about_it() {
    let code =
        without_tests_and_comments("use engine::Model; // a pool\n/// Threads\nfn polling_place() {}\n");
    assert!(has_word(&code, "Model") && !has_word(&code, "Threads") && !has_word(&code, "polling"));
    let code =
        without_tests_and_comments("let x = \"epoll\";\n#[cfg(test)]\nmod tests { use engine::Model; }");
    assert!(has_word(&code, "\"epoll\"") && !has_word(&code, "Model"));
}

/// What of the Rust files below a folder is compiled into the program, without its comments.
fn production_code(folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
    let in_src = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "src");
    sources(folder)
        .filter(move |(path, _)| in_src(path) && !path.ends_with("tests.rs"))
        .map(|(path, source)| (path, without_tests_and_comments(&source)))
}

fn without_tests_and_comments(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Whether a name stands in code by itself, not as a part of another.
fn has_word(code: &str, name: &str) -> bool {
    let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(name).any(|(at, _)| {
        !part_of_name(code[..at].chars().next_back()) && !part_of_name(code[at + name.len()..].chars().next())
    })
}

#[test]
fn the_pure_crates_link_nothing_that_touches_the_system() {
    let pure: [(&str, &[&str]); 2] =
        [("analysis", &["schemars", "serde", "statrs"]), ("wire", &["httparse", "smallvec", "thiserror"])];
    let metadata = metadata();
    for (name, allowed) in pure {
        let package = packages(&metadata).find(|package| text(package, "name") == name).expect("one of ours");
        let used = package["dependencies"].as_array().expect("dependencies").iter();
        let wrong: Vec<_> = used
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| text(dependency, "name"))
            .filter(|dependency| !allowed.contains(dependency))
            .collect();
        assert!(
            wrong.is_empty(),
            "{name} must stay pure: see that {wrong:?} has no clock, socket, file or randomness"
        );
    }
}

#[test]
fn the_pure_crates_are_forbidden_the_same() {
    let list =
        |name: &str| fs::read_to_string(root().join("tool").join(name).join("clippy.toml")).expect("a list");
    assert_eq!(
        list("analysis"),
        list("wire"),
        "what is forbidden in one pure crate is forbidden in the other"
    );
    for forbidden in
        ["std::time::Instant::now", "std::fs::File", "std::net::TcpStream", "std::hash::RandomState"]
    {
        assert!(list("wire").contains(forbidden), "{forbidden} is no longer forbidden in the pure crates");
    }
}

#[test]
fn unsafe_code_is_only_where_system_calls_have_no_safe_wrapper() {
    let may_be_unsafe = ["engine", "load", "observe"];
    let metadata = metadata();
    for package in packages(&metadata).filter(|package| package["source"].is_null()) {
        let manifest = fs::read_to_string(text(package, "manifest_path")).expect("a manifest");
        let name = text(package, "name");
        assert_eq!(
            manifest.contains("[lints]\nworkspace = true"),
            !may_be_unsafe.contains(&name),
            "{name}: give it `[lints] workspace = true`, or change the table of invariants in ARCHITECTURE.md"
        );
    }
    let workspace = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    assert!(workspace.contains("unsafe_code = \"forbid\""), "the workspace no longer forbids unsafe code");
}

#[test]
fn files_stay_short_enough_to_read() {
    for (path, source) in sources("tool").chain(sources("testbed")) {
        let lines = source.lines().count();
        assert!(lines <= 800, "{} has {lines} lines: split it by idea", path.display());
    }
}

fn sources(folder: &str) -> impl Iterator<Item = (PathBuf, String)> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    assert!(!found.is_empty(), "no Rust files below {folder}");
    found.into_iter().map(|path| {
        let source = fs::read_to_string(&path).expect("a source file");
        (path, source)
    })
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
