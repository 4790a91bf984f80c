//! Manifests of the servers are what the API of Kubernetes knows, ask for no more rights than are needed, are watched, limited
//! and kept up while nodes are drained; the servers understand their words, and find their files and each other.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// What the tool's own manifests are held against too.
#[path = "../../tool/nstar/tests/cli/kubernetes/schemas.rs"]
mod schemas;
use schemas::valid_manifests;

const SERVERS: [&str; 5] = ["booking", "files", "index", "peer", "sink"];
/// Those that a secret closes to others than the members of a group.
const IN_A_GROUP: [&str; 2] = ["index", "peer"];
/// An address as a pod may have.
const POD_IP: &str = "192.0.2.1";

/// The manifests of a server, each valid.
fn manifests(server: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("kubernetes/{server}.yaml"));
    valid_manifests(&fs::read_to_string(path).expect("a file"))
}

fn of_kind<'a>(manifests: &'a [Value], kinds: &[&str]) -> &'a Value {
    let is_wanted = |manifest: &&Value| kinds.iter().any(|kind| manifest["kind"] == *kind);
    manifests.iter().find(is_wanted).unwrap_or_else(|| panic!("none of {kinds:?}"))
}

fn workload(manifests: &[Value]) -> &Value {
    &of_kind(manifests, &["Deployment", "StatefulSet"])["spec"]
}

fn pod(manifests: &[Value]) -> &Value {
    &workload(manifests)["template"]["spec"]
}

fn labels(manifests: &[Value]) -> &Value {
    &workload(manifests)["template"]["metadata"]["labels"]
}

/// The list, which is empty where there is none.
fn list(of: &Value) -> &[Value] {
    of.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_else(|| panic!("{of} is no text"))
}

/// The words of a pod's server, with the variables that Kubernetes fills in. None of these is a secret.
fn words(pod: &Value) -> Vec<String> {
    let container = &pod["containers"][0];
    let mut words: Vec<_> = list(&container["args"]).iter().map(|word| text(word).to_owned()).collect();
    for variable in list(&container["env"]) {
        assert_eq!(variable["valueFrom"], json!({ "fieldRef": { "fieldPath": "status.podIP" } }));
        let named = format!("$({})", text(&variable["name"]));
        words.iter_mut().for_each(|word| *word = word.replace(&named, POD_IP));
    }
    assert!(!words.is_empty() && words.iter().all(|word| !word.contains("$(")), "{words:?}");
    words
}

/// The value that the words give to a flag.
fn value<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(flag)?.strip_prefix('='))
}

/// The paths that the words name.
fn paths(words: &[String]) -> impl Iterator<Item = &str> {
    let values = words.iter().filter_map(|word| word.split_once('=')).map(|(_, value)| value);
    values.map(|value| value.strip_prefix("sqlite:").unwrap_or(value)).filter(|value| value.starts_with('/'))
}

/// Where the file at a path is mounted from.
fn mount<'a>(pod: &'a Value, path: &str) -> &'a Value {
    let holds = |mount: &&Value| Path::new(path).starts_with(text(&mount["mountPath"]));
    let mounts = list(&pod["containers"][0]["volumeMounts"]);
    mounts.iter().find(holds).unwrap_or_else(|| panic!("{path} is on no volume: {mounts:?}"))
}

/// The volume of this name that holds a secret.
fn secret<'a>(pod: &'a Value, name: &Value) -> &'a Value {
    let volume = list(&pod["volumes"]).iter().find(|volume| volume["name"] == *name);
    &volume.unwrap_or_else(|| panic!("no volume {name}"))["secret"]
}

#[test]
fn no_manifest_is_left_untested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes");
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, SERVERS.map(|server| format!("{server}.yaml")));
}

#[test]
fn pods_have_no_rights_that_they_do_not_need_and_the_servers_know_their_words() {
    for server in SERVERS {
        let manifests = manifests(server);
        let pod = pod(&manifests);
        assert_eq!(pod["automountServiceAccountToken"], false, "{server}");
        let context = &pod["securityContext"];
        assert_eq!(
            (&context["runAsNonRoot"], &context["runAsUser"], &context["fsGroup"]),
            (&json!(true), &json!(65532), &json!(65532)),
            "{server}"
        );
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault", "{server}");
        // Secrets that it made, and that its group may read, are refused.
        assert_eq!(context["fsGroupChangePolicy"], "OnRootMismatch", "{server}");
        let container = &pod["containers"][0];
        let context = &container["securityContext"];
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{server}");
        let closed = (&context["readOnlyRootFilesystem"], &context["allowPrivilegeEscalation"]);
        assert_eq!(closed, (&json!(true), &json!(false)), "{server}");
        let image = text(&container["image"]);
        assert!(image.ends_with(concat!(":", env!("CARGO_PKG_VERSION"))), "{server}: {image}");
        nstar_lab::command()
            .try_get_matches_from(["nstar-lab".to_owned()].into_iter().chain(words(pod)))
            .unwrap_or_else(|error| panic!("{server}: {error}"));
    }
}

#[test]
fn pods_are_watched_limited_and_kept_up() {
    for server in SERVERS {
        let manifests = manifests(server);
        let container = &pod(&manifests)["containers"][0];
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["path"], "/healthz", "{server}: {probe}");
        }
        for kind in ["limits", "requests"] {
            assert!(container["resources"][kind]["memory"].is_string(), "{server}: {kind}");
            assert!(container["resources"][kind]["cpu"].is_string(), "{server}: {kind}");
        }
        // A drain has to be able to move the only one, and must not stop all of several.
        let budget = &of_kind(&manifests, &["PodDisruptionBudget"])["spec"];
        let replicas = workload(&manifests)["replicas"].as_u64().expect("a number");
        let kept = || Some(replicas.saturating_sub(budget["minAvailable"].as_u64()?));
        let away = budget["maxUnavailable"].as_u64().or_else(kept).expect("a number");
        assert!(away >= 1 && (away < replicas || replicas == 1), "{server}: {away} of {replicas}");
        assert_eq!(budget["selector"]["matchLabels"], *labels(&manifests), "{server}");
    }
}

#[test]
fn services_lead_to_where_the_servers_listen() {
    for server in SERVERS {
        let manifests = manifests(server);
        let (pod, service) = (pod(&manifests), of_kind(&manifests, &["Service"]));
        let port = &pod["containers"][0]["ports"][0];
        let at = format!("0.0.0.0:{}", port["containerPort"]);
        assert_eq!(value(&words(pod), "--listen"), Some(&*at), "{server}");
        assert_eq!(service["spec"]["selector"], *labels(&manifests), "{server}");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], port["name"], "{server}");
        let named = &workload(&manifests)["serviceName"];
        assert!(named.is_null() || *named == service["metadata"]["name"], "{server}: {named}");
    }
}

#[test]
fn every_file_but_the_secret_of_a_group_is_on_a_claim() {
    for server in SERVERS {
        let manifests = manifests(server);
        let (pod, claims) = (pod(&manifests), list(&workload(&manifests)["volumeClaimTemplates"]));
        let words = words(pod);
        for path in paths(&words).filter(|path| value(&words, "--secret-file") != Some(*path)) {
            let name = &mount(pod, path)["name"];
            assert!(claims.iter().any(|claim| claim["metadata"]["name"] == *name), "{server}: {path}");
        }
    }
}

/// Kubernetes and this test read the octal number 0440 differently, so the manifests have it in decimal.
#[test]
fn the_secret_of_a_group_is_a_file_that_root_and_the_servers_group_may_read() {
    for server in SERVERS {
        let manifests = manifests(server);
        let (pod, is_closed) = (pod(&manifests), IN_A_GROUP.contains(&server));
        let words = words(pod);
        let path = value(&words, "--secret-file");
        assert_eq!((path.is_some(), pod["volumes"].is_array()), (is_closed, is_closed), "{server}");
        let Some(mount) = path.map(|path| mount(pod, path)) else { continue };
        assert_eq!(mount["readOnly"], true, "{server}");
        let given = json!({ "secretName": "nstar-share", "defaultMode": 0o440 });
        assert_eq!(*secret(pod, &mount["name"]), given, "{server}");
    }
}

#[test]
fn servers_call_nobody_but_peers_call_each_other_the_index_and_the_dns_server() {
    let [index, peer] = ["index", "peer"].map(manifests);
    let [to_index, to_peers] =
        [&index, &peer].map(|of| json!([{ "podSelector": { "matchLabels": labels(of) } }]));
    let dns = json!([{
        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": "kube-system" } },
        "podSelector": { "matchLabels": { "k8s-app": "kube-dns" } },
    }]);
    let asking = json!([{ "port": 53, "protocol": "UDP" }, { "port": 53, "protocol": "TCP" }]);
    // By number: not every network plugin resolves the names of other pods' ports.
    let port = |of: &[Value]| json!([{ "port": pod(of)["containers"][0]["ports"][0]["containerPort"] }]);
    let of_peers = json!([
        { "to": to_index, "ports": port(&index) },
        { "to": to_peers, "ports": port(&peer) },
        { "to": dns, "ports": asking },
    ]);
    let nobody = json!([]);
    for server in SERVERS {
        let manifests = manifests(server);
        let network = &of_kind(&manifests, &["NetworkPolicy"])["spec"];
        assert_eq!(network["podSelector"]["matchLabels"], *labels(&manifests), "{server}");
        assert_eq!(network["policyTypes"], json!(["Ingress", "Egress"]), "{server}");
        let called = if server == "peer" { &of_peers } else { &nobody };
        assert_eq!(network["egress"], *called, "{server}");
        let mut admitted = json!([{ "ports": [{ "port": "http" }] }]);
        if IN_A_GROUP.contains(&server) {
            admitted[0]["from"] = to_peers.clone();
        }
        assert_eq!(network["ingress"], admitted, "{server}");
    }
}

#[test]
fn peers_find_the_index_by_its_name_and_each_other_by_the_address_of_the_pod() {
    let [index, peer] = ["index", "peer"].map(manifests);
    let service = of_kind(&index, &["Service"]);
    let (name, port) = (text(&service["metadata"]["name"]), &service["spec"]["ports"][0]["port"]);
    let pod = pod(&peer);
    let words = words(pod);
    assert_eq!(value(&words, "--index"), Some(&*format!("http://{name}:{port}")));
    let at = format!("{POD_IP}:{}", pod["containers"][0]["ports"][0]["containerPort"]);
    assert_eq!(value(&words, "--advertise"), Some(&*at));
    // Downloads are moved out of the peer's own folder in the shared one, which needs one mount for both.
    let folder = Path::new(value(&words, "--share").expect("a folder"));
    let mounts = list(&pod["containers"][0]["volumeMounts"]).iter().map(|mount| text(&mount["mountPath"]));
    assert_eq!(mounts.filter(|at| Path::new(at).starts_with(folder)).count(), 1);
    assert_eq!(value(&words, "--state"), None);
}
