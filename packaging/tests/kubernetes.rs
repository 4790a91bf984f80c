//! Manifests of the servers are what the API of Kubernetes knows, ask for no more rights than are needed, are watched, limited
//! and kept up while nodes are drained; and the servers understand their words.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// What the tool's own manifests are held against too.
#[path = "../../tool/nstar/tests/cli/kubernetes/schemas.rs"]
mod schemas;
use schemas::valid_manifests;

const SERVERS: [&str; 3] = ["booking", "files", "sink"];

/// The manifests of a server, each valid.
fn manifests(server: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("kubernetes/{server}.yaml"));
    valid_manifests(&fs::read_to_string(path).expect("a file"))
}

fn of_kind<'a>(manifests: &'a [Value], kinds: &[&str]) -> &'a Value {
    let is_wanted = |manifest: &&Value| kinds.iter().any(|kind| manifest["kind"] == *kind);
    manifests.iter().find(is_wanted).unwrap_or_else(|| panic!("none of {kinds:?}"))
}

#[test]
fn pods_have_no_rights_that_they_do_not_need_and_the_servers_know_their_words() {
    for server in SERVERS {
        let manifests = manifests(server);
        let workload = of_kind(&manifests, &["Deployment", "StatefulSet"]);
        let pod = &workload["spec"]["template"]["spec"];
        assert_eq!(pod["automountServiceAccountToken"], false, "{server}");
        let context = &pod["securityContext"];
        assert_eq!(
            (&context["runAsNonRoot"], &context["runAsUser"]),
            (&json!(true), &json!(65532)),
            "{server}"
        );
        assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault", "{server}");
        // Secrets that their group may read are refused.
        assert_eq!(context["fsGroupChangePolicy"], "OnRootMismatch", "{server}");
        let container = &pod["containers"][0];
        let context = &container["securityContext"];
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{server}");
        let closed = (&context["readOnlyRootFilesystem"], &context["allowPrivilegeEscalation"]);
        assert_eq!(closed, (&json!(true), &json!(false)), "{server}");
        let image = container["image"].as_str().expect("an image");
        assert!(image.ends_with(concat!(":", env!("CARGO_PKG_VERSION"))), "{server}: {image}");
        let words = container["args"].as_array().expect("words").iter();
        let words = words.map(|word| word.as_str().expect("a word"));
        nstar_lab::command()
            .try_get_matches_from(["nstar-lab"].into_iter().chain(words))
            .unwrap_or_else(|error| panic!("{server}: {error}"));
    }
}

#[test]
fn pods_are_watched_limited_and_kept_up() {
    for server in SERVERS {
        let manifests = manifests(server);
        let workload = of_kind(&manifests, &["Deployment", "StatefulSet"]);
        let (labels, replicas) =
            (&workload["spec"]["template"]["metadata"]["labels"], &workload["spec"]["replicas"]);
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            assert_eq!(container[probe]["httpGet"]["path"], "/healthz", "{server}: {probe}");
        }
        for kind in ["limits", "requests"] {
            assert!(container["resources"][kind]["memory"].is_string(), "{server}: {kind}");
            assert!(container["resources"][kind]["cpu"].is_string(), "{server}: {kind}");
        }
        // A drain has to be able to move the only one, and must not stop the last of several.
        let budget = &of_kind(&manifests, &["PodDisruptionBudget"])["spec"];
        let kept = if *replicas == 1 { "maxUnavailable" } else { "minAvailable" };
        assert_eq!(budget[kept], 1, "{server}");
        assert_eq!(budget["selector"]["matchLabels"], *labels, "{server}");
        assert_eq!(of_kind(&manifests, &["Service"])["spec"]["selector"], *labels, "{server}");
        let network = &of_kind(&manifests, &["NetworkPolicy"])["spec"];
        assert_eq!(
            (&network["podSelector"]["matchLabels"], &network["egress"]),
            (labels, &json!([])),
            "{server}"
        );
    }
}
