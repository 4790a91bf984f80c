//! The manifests of a fleet on Kubernetes, against the schemas of its API.

mod schemas;

use serde_json::{Value, json};

use self::schemas::valid_manifests;
use crate::common::support::{Outcome, Place};

fn kubernetes(place: &Place, more: &[&str]) -> Outcome {
    let words = ["fleet", "kubernetes", "--generators", "12", "--image", "registry:5000/nstar@sha256:00ff"];
    place.nstar(words.iter().chain(more)).run()
}

/// The manifests, each valid.
fn printed(place: &Place, more: &[&str]) -> Vec<Value> {
    let text = kubernetes(place, more).exits(0).stdout;
    assert!(!text.contains("{{") && !text.contains("}} "), "something was not filled in: {text}");
    valid_manifests(&text)
}

#[test]
fn manifests_are_what_the_api_knows_and_ask_for_no_more_than_is_needed() {
    let place = Place::beside_others();
    let manifests = printed(&place, &["--namespace", "load"]);
    let kinds: Vec<_> = manifests.iter().map(|one| one["kind"].as_str().expect("a kind")).collect();
    let policies = ["NetworkPolicy"; 3];
    assert_eq!(kinds, [&["Namespace", "Job", "DaemonSet"][..], &policies].concat());
    let [_, job, daemons, ..] = &manifests[..] else { panic!("{kinds:?}") };
    let spec = &job["spec"];
    assert_eq!((&spec["completionMode"], &spec["parallelism"]), (&json!("Indexed"), &json!(12)));
    let pod = |of: &Value| of["spec"]["template"]["spec"].clone();
    let (generator, observer) = (pod(job), pod(daemons));
    for pod in [&generator, &observer] {
        let container = &pod["containers"][0];
        assert_eq!(container["image"], "registry:5000/nstar@sha256:00ff");
        let context = &container["securityContext"];
        assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
        let closed = (&context["readOnlyRootFilesystem"], &context["allowPrivilegeEscalation"]);
        assert_eq!(closed, (&json!(true), &json!(false)));
        assert_eq!(pod["automountServiceAccountToken"], json!(false));
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        assert!(mounts.iter().all(|mount| mount["readOnly"] == true), "{mounts:?}");
    }
    assert_eq!(
        (&generator["hostPID"], &generator["securityContext"]["runAsNonRoot"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(observer["hostPID"], json!(true));
    let may = &observer["containers"][0]["securityContext"]["capabilities"]["add"];
    assert_eq!(may, &json!(["DAC_READ_SEARCH", "SYS_PTRACE"]));
    let arguments = |pod: &Value| pod["containers"][0]["args"].clone();
    let url = "nats://nats.load:4222";
    assert_eq!(arguments(&generator), json!(["agent", "--join", url]));
    assert_eq!(arguments(&observer), json!(["agent", "--observe", "--join", url]));
}

#[test]
fn credentials_come_from_a_secret_and_nothing_slips_into_the_manifests() {
    let place = Place::beside_others();
    let manifests = printed(&place, &["--nats", "tls://bus.example:7", "--nats-secret", "login"]);
    let text = Value::from(manifests).to_string();
    assert!(text.contains(r#""tls://bus.example:7","--nats-creds","/nats/nats.creds""#), "{text}");
    assert!(text.contains(r#""secretName":"login""#) && text.contains(r#"{"port":7,"#), "{text}");
    kubernetes(&place, &["--nats", "nats://ann:opensesame@bus"]).exits(2).complains("--nats-secret");
    kubernetes(&place, &["--nats", "http://bus"]).exits(2).complains("--nats: expected nats://");
    for name in ["Load", "a\nb", "a-", "a}", ""] {
        for flag in ["--namespace", "--nats-secret", "--nats-tls-secret"] {
            kubernetes(&place, &[flag, name]).exits(2).complains(flag);
        }
    }
    let words = ["fleet", "kubernetes", "--generators", "1", "--image", "a b\n- evil"];
    place.nstar(words).run().exits(2).complains("--image");
}

/// Without credentials the bus would obey every pod of the cluster.
#[test]
fn a_bus_in_the_namespace_is_called_by_the_machines_of_the_fleet_alone() {
    let place = Place::beside_others();
    let manifests = printed(&place, &["--namespace", "load"]);
    let of = |name: &str| {
        let is_it = |one: &&Value| one["kind"] == "NetworkPolicy" && one["metadata"]["name"] == name;
        let found = manifests.iter().find(is_it);
        found.unwrap_or_else(|| panic!("no {name}: {manifests:?}"))["spec"].clone()
    };
    let pods = |label: &str, value: &str| json!({"podSelector": {"matchLabels": {label: value}}});
    let bus = pods("app.kubernetes.io/name", "nats");
    let ports = json!([{"port": 4222, "protocol": "TCP"}]);
    let policy = of("nstar-bus");
    assert_eq!(policy["podSelector"], bus["podSelector"]);
    assert_eq!(policy["policyTypes"], json!(["Ingress"]));
    let fleet = json!({"from": [pods("app.kubernetes.io/part-of", "nstar")], "ports": ports});
    assert_eq!(list(&policy["ingress"]), [fleet, json!({"from": [bus.clone()]})]);
    let egress = of("nstar-observers")["egress"].clone();
    let [to_bus, names] = list(&egress) else { panic!("{egress}") };
    assert_eq!(to_bus, &json!({"to": [bus], "ports": ports}));
    assert_eq!(names["ports"][0], json!({"port": 53, "protocol": "UDP"}));

    let elsewhere = printed(&place, &["--nats", "nats://bus.example:7"]);
    let text = Value::from(elsewhere).to_string();
    assert!(!text.contains("nstar-bus") && !text.contains(r#""to":"#), "{text}");
}

#[test]
fn a_bus_that_asks_for_nothing_is_warned_of() {
    let place = Place::beside_others();
    let warns = |more: &[&str]| kubernetes(&place, more).exits(0).stdout.contains("show nothing to the bus");
    assert!(warns(&[]) && warns(&["--nats", "nats://bus.example"]));
    assert!(!warns(&["--nats-secret", "login"]) && !warns(&["--nats-tls-secret", "bus"]));
}

fn list(of: &Value) -> &[Value] {
    of.as_array().expect("a list")
}

/// A bus that asks for certificates: who may read those of a pod, and where the agent finds them.
#[test]
fn certificates_come_from_a_secret_that_the_pod_alone_may_read() {
    let place = Place::beside_others();
    // A name that YAML would take for a number.
    let flags = ["--nats-tls-secret", "bus", "--nats-secret", "7", "--namespace", "123"];
    let manifests = printed(&place, &flags);
    let [namespace, job, daemons, ..] = &manifests[..] else { panic!("{manifests:?}") };
    assert_eq!(namespace["metadata"]["name"], "123");
    let pod = |of: &Value| of["spec"]["template"]["spec"].clone();
    for pod in [pod(job), pod(daemons)] {
        let container = &pod["containers"][0];
        let words: Vec<_> = list(&container["args"]).iter().filter_map(Value::as_str).collect();
        assert_eq!(
            words[words.len() - 10..],
            [
                "--join",
                "tls://nats.123:4222",
                "--nats-creds",
                "/nats/nats.creds",
                "--nats-ca",
                "/nats-tls/ca.crt",
                "--nats-cert",
                "/nats-tls/tls.crt",
                "--nats-key",
                "/nats-tls/tls.key"
            ]
        );
        place.nstar(&words).run().exits(1).complains("cannot read /nats-tls/ca.crt");
        for (name, volume) in [("7", "nats"), ("bus", "nats-tls")] {
            let mount = json!({"name": volume, "mountPath": format!("/{volume}"), "readOnly": true});
            assert!(list(&container["volumeMounts"]).contains(&mount), "{container}");
            let secret = json!({"secretName": name, "defaultMode": 0o440});
            let given = json!({"name": volume, "secret": secret});
            assert!(list(&pod["volumes"]).contains(&given), "{pod}");
        }
    }
    let context = |of: &Value| pod(of)["securityContext"].clone();
    let (generator, observer) = (context(job), context(daemons));
    assert_eq!((&generator["fsGroup"], &generator["runAsGroup"]), (&json!(65532), &json!(65532)));
    assert_eq!(observer["runAsUser"], 0, "it reads what is of root alone");
    let text = kubernetes(&place, &flags).exits(0).stdout;
    for said in [
        "secret generic bus --namespace 123 --from-file=ca.crt --from-file=tls.crt --from-file=tls.key",
        "secret generic 7 --namespace 123 --from-file=nats.creds",
        "--fleet tls://localhost:4222 --nats-creds nats.creds --nats-ca ca.crt --nats-cert tls.crt --nats-key tls.key",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}
